package rabbitmq

import (
	"slices"
	"testing"
)

func TestVersions(t *testing.T) {
	for out, good := range map[string]bool{
		"4.3.6\n": true, "4.2.0\n": true, "5.0.0\n": true, "=ESOCK WARNING MSG====\n4.2.1\n": true,
		"4.1.9\n": false, "3.13.7\n": false, "": false, "x": false,
	} {
		if err := checkVersion(out); (err == nil) != good {
			t.Errorf("%q: %v", out, err)
		}
	}
}

func TestAnswersOfMembers(t *testing.T) {
	const mark = `answer: {"state":"member","cluster":"c","member":"rabbit@a.s"}`
	for _, row := range []struct {
		out     string
		nodes   []string
		current bool
		fails   bool
	}{
		{"=ESOCK WARNING MSG====\r\n[UNIX] x\r\n" + mark + "\nanswer: ok\nanswer: rabbit@b.s\nanswer: rabbit@a.s\nok\n", []string{"rabbit@b.s", "rabbit@a.s"}, true, false},
		{mark + "\nanswer: failed\nanswer: rabbit@a.s\nok\n", []string{"rabbit@a.s"}, false, false},
		{mark + "\nanswer: {error,timeout}\nanswer: rabbit@a.s\nok\n", []string{"rabbit@a.s"}, false, false},
		{mark + "\nanswer: ok\nok\n", nil, false, true},                     // its store does not run
		{mark + "\nanswer: ok\nanswer: rabbit@b.s\nok\n", nil, false, true}, // it was removed
		{"answer: {\"state\":\"left\",\"cluster\":\"c\"}\nanswer: ok\nanswer: rabbit@a.s\n", nil, false, true},
		{"answer: x\nanswer: ok\nanswer: rabbit@a.s\n", nil, false, true},
		{"ok\n", nil, false, true},
	} {
		got, err := parseInspection(answersIn(row.out), "a.s")
		if (err != nil) != row.fails || err == nil && (!slices.Equal(got.Nodes, row.nodes) || got.Current != row.current || got.ID != "c") {
			t.Errorf("%q: %+v, %v", row.out, got, err)
		}
	}
}

func TestAPasswordHasNoMeaningInErlang(t *testing.T) {
	if got, want := advanced(`a">>`), `[{rabbit, [{default_user, <<"admin">>}, {default_pass, <<97,34,62,62>>}, {khepri_leader_wait_retry_timeout, 604800000}]}].`+"\n"; got != want {
		t.Errorf("the configuration is %s, want %s", got, want)
	}
}
