package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

func TestTheStandInForKubeletsObeysAsAnApplicationWould(t *testing.T) {
	k := &kubelets{roles: map[string]string{}}
	server := httptest.NewServer(k.handler())
	t.Cleanup(server.Close)
	run := func(pod, command string) string {
		at, err := url.Parse(server.URL + "/exec/ns/" + pod + "/main?stdout=true&command=" + command + "&command=peer")
		if err != nil {
			t.Fatal(err)
		}
		executor, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: server.URL}, "GET", at.String())
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: &out})
		var code exec.CodeExitError
		if err != nil && !errors.As(err, &code) {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d %q", code.Code, out.String())
	}
	for i, row := range []struct{ pod, command, want string }{
		{"a", "status", `7 ""`}, {"a", "sequence", `0 "1\n"`},
		{"a", "seed", `0 ""`}, {"a", "status", `8 ""`},
		{"b", "secondary", `0 ""`}, {"b", "status", `0 ""`},
		{"a", "demote", `0 ""`}, {"a", "status", `0 ""`},
		{"b", "promote", `0 ""`}, {"b", "status", `8 ""`},
		{"b", "stop", `0 ""`}, {"b", "status", `7 ""`},
		{"b", "nothing", `127 ""`},
	} {
		began := time.Now()
		if got := run(row.pod, row.command); got != row.want {
			t.Errorf("%d: %s in %s: %s, want %s", i, row.command, row.pod, got, row.want)
		}
		if told := k.since(began); len(told) != 1 || told[0].pod != row.pod || told[0].name != row.command {
			t.Errorf("%d: noted %v", i, told)
		}
	}
	run("a", "primary")
	if k.kill("a"); run("a", "status") != `7 ""` {
		t.Error("one that was killed says that it runs")
	}
}
