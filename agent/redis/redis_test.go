package redis

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
	common "github.com/stateful-operator/stateful-operator/agent/settings"
)

const step = 1 << epochBits

func TestEpochs(t *testing.T) {
	first := driver.Start{Created: 100, Epoch: 1}
	next := func(e epoch, created, number, offset int64) epoch {
		t.Helper()
		n, err := e.next(driver.Start{Created: created, Epoch: number}, offset)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	e := next(epoch{}, first.Created, first.Epoch, 50)
	if e != (epoch{base: step, begin: 50, start: first}) || e.number(50) != step || e.number(70) != step+20 || e.number(7) != step {
		t.Errorf("the first epoch is %+v", e)
	}
	// Two members start from the same copy, one after the other was lost.
	a, b := next(e, 100, 2, 60), next(e, 100, 3, 60)
	if a.base <= e.number(60) || b.base <= a.number(60+step-1) {
		t.Errorf("epochs from the same copy: %+v and %+v", a, b)
	}
	// The object is created again, and its epochs start at 1.
	a, b = next(b, 200, 1, 60), next(b, 200, 2, 60)
	if a.base <= e.base || b.base <= a.base {
		t.Errorf("epochs in a new object: %+v and %+v", a, b)
	}
	// The epoch was longer than a step.
	if long := next(e, 100, 2, 50+5*step); long.base <= e.number(50+5*step) {
		t.Errorf("after a long epoch: %+v", long)
	}
	for _, impossible := range []driver.Start{{}, {Created: 100, Epoch: math.MaxInt64}} {
		if n, err := e.next(impossible, 0); err == nil {
			t.Errorf("%+v follows: %+v", impossible, n)
		}
	}
}

func TestEpochInASource(t *testing.T) {
	e := epoch{base: math.MaxUint64, begin: 1 << 62, start: driver.Start{Created: 1800000000, Epoch: 12}}
	others := []string{"#!lua name=other\n-- epoch 1 2 3 4\n", "#!lua name=x_stateful_operator\n"}
	if got, found, err := parseEpoch(append(others, e.source())); err != nil || !found || got != e {
		t.Errorf("the epoch is %+v (%t, %v), want %+v", got, found, err, e)
	}
	if got, found, err := parseEpoch(others); err != nil || found || got != (epoch{}) {
		t.Errorf("without an epoch: %+v, %t, %v", got, found, err)
	}
	if _, _, err := parseEpoch([]string{"#!lua name=stateful_operator\n-- epoch 1\n"}); err == nil {
		t.Error("a damaged epoch is accepted")
	}
}

func TestParseState(t *testing.T) {
	primary := "# Replication\r\nrole:master\r\nconnected_slaves:3\r\nslave0:ip=10.0.0.7,port=6379,state=online,offset=70,lag=0\r\n" +
		"slave1:ip=10.0.0.8,port=6379,state=wait_bgsave,offset=0,lag=0\r\nslave2:ip=10.0.0.9,port=6379,state=online,offset=77,lag=1\r\n" +
		"master_replid:abc\r\nmaster_repl_offset:77\r\n\r\n# Persistence\r\nloading:0\r\nasync_loading:0\r\n"
	got, err := parseState(primary)
	if err != nil || !got.primary || got.loading || got.offset != 77 || got.history != "abc" || !slices.Equal(got.replicas, []int64{70, 77}) {
		t.Errorf("the primary is %+v, %v", got, err)
	}
	secondary := "role:slave\r\nslave_read_only:1\r\nmaster_link_status:up\r\nmaster_repl_offset:5\r\nloading:1\r\n"
	got, err = parseState(secondary)
	if err != nil || got.primary || !got.loading || !got.copying || !got.linked || got.offset != 5 || len(got.replicas) != 0 {
		t.Errorf("the secondary is %+v, %v", got, err)
	}
	for _, text := range []string{"", "role:sentinel\r\nmaster_repl_offset:5\r\n", "role:master\r\n"} {
		if got, err := parseState(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestConfiguration(t *testing.T) {
	s := &Server{Member: driver.Member{Private: "/run/redis"}, localPassword: "local", config: settings.Config{
		Common: common.Common{PrimaryHost: "p", Port: 6379, ListenAddresses: "*", DataDir: "/data", Settings: map[string]string{"save": "", "maxmemory": "1gb"}},
	}}
	lines := strings.Split(s.configuration(`pass"w\rd`), "\n")
	for _, want := range []string{
		"bind * -::*", "port 6379", `save ""`, "maxmemory 1gb", "repl-timeout 15", "appendonly no", `masterauth "pass\"w\\rd"`,
		"user stateful-operator on #25bf8e1a2393f1108d37029b3df5593236c755742ec93465bbafa9b290bddcf6 ~* &* +@all",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("the configuration has no line %q: %q", want, lines)
		}
	}
	s.config.TLSDir = "/tls"
	lines = strings.Split(s.configuration("p"), "\n")
	for _, want := range []string{"port 0", "tls-port 6379", "tls-replication yes", "tls-cert-file /run/redis/tls-server.crt", "tls-ca-cert-file /run/redis/tls-server.crt"} {
		if !slices.Contains(lines, want) {
			t.Errorf("the configuration has no line %q: %q", want, lines)
		}
	}
}
