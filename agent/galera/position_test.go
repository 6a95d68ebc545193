package galera

import "testing"

const aCluster = "d4a01016-eb33-11f1-8b33-8e753d8daebe"

func TestTheStateFile(t *testing.T) {
	for _, row := range []struct {
		text string
		want position
	}{
		{"# GALERA saved state\nversion: 2.1\nuuid:    " + aCluster + "\nseqno:   12\nsafe_to_bootstrap: 0\n", position{aCluster, 12}},
		{"# GALERA saved state\nversion: 2.1\nuuid:    " + aCluster + "\nseqno:   -1\nsafe_to_bootstrap: 0\n", position{aCluster, -1}},
		{"# GALERA saved state\nversion: 2.1\nuuid:    " + noCluster + "\nseqno:   -1\nsafe_to_bootstrap: 0\n", position{"", -1}},
		{"", position{"", -1}},
	} {
		if got, err := parseState(row.text); err != nil || got != row.want {
			t.Errorf("%q is %+v (%v), want %+v", row.text, got, err, row.want)
		}
	}
	if _, err := parseState("uuid: " + aCluster + "\nseqno: many\n"); err == nil {
		t.Error("a number that is none is accepted")
	}
}

func TestTheRecoveredPosition(t *testing.T) {
	for _, row := range []struct {
		log  string
		want position
	}{
		{"2026-11-28 14:00:12 0 [Note] WSREP: Recovered position: " + aCluster + ":5\n", position{aCluster, 5}},
		{"2026-11-28 14:00:12 0 [Note] WSREP: Recovered position: " + aCluster + ":5,0-1-2\n", position{aCluster, 5}},
		{"2026-11-28 14:00:12 0 [Note] WSREP: Recovered position: " + noCluster + ":-1\n", position{"", -1}},
	} {
		if got, err := parseRecovered(row.log); err != nil || got != row.want {
			t.Errorf("%q is %+v (%v), want %+v", row.log, got, err, row.want)
		}
	}
	if _, err := parseRecovered("[ERROR] Aborting"); err == nil {
		t.Error("a log without a position is accepted")
	}
}

func TestThePasswordOfTheServer(t *testing.T) {
	if got, want := hashOf("secret3"), "*FD30D7429029211F62884F5111B62E63F459F653"; got != want {
		t.Errorf("the hash is %s, want %s", got, want)
	}
	if got, want := quote(`a "b" \c`), `"a \"b\" \\c"`; got != want {
		t.Errorf("the value is written as %s, want %s", got, want)
	}
}
