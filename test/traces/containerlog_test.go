package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	kubeletPrefix = "2026-01-02T03:04:05.123456789Z stderr F "
	agentPrefix   = "2026-01-02 03:04:05.120 agent run: "
	idlePrefix    = "2026-01-02 03:04:05.120 agent postgresql idle: " // of a member
)

// TestReadContainer tests a log as the kubelet writes it, and as kubectl prints it.
func TestReadContainer(t *testing.T) {
	for name, prefix := range map[string]string{"of a kubelet": kubeletPrefix, "of kubectl": "2026-01-02T03:04:05.123456789Z "} {
		log := strings.Join([]string{
			prefix + "waiting for Lease app/other.singleton as other_1",
			prefix + agentPrefix + "waiting for Lease app/mailer.singleton as mailer-1_42",
			prefix + agentPrefix + "cannot read Lease app/mailer.singleton: timeout",
			prefix + idlePrefix + "holds Lease app/mailer.singleton (epoch 3) after 1.2s: starts the program",
			prefix + "waiting for Lease app/other.singleton as other_1",
			prefix + "",
			prefix + "no end of this line" + agentPrefix + "handed over Lease app/mailer.singleton to mailer-2_43 (epoch 4)",
			"",
		}, "\n")
		read := &trace{}
		if err := read.readContainer("0.log", strings.NewReader(log)); err != nil {
			t.Fatal(err)
		}
		if len(read.containers) != 1 {
			t.Fatalf("a log %s has %d containers", name, len(read.containers))
		}
		c := read.containers[0]
		if c.pod != "mailer-1_42" || c.lease != "app/mailer.singleton" || c.line != 2 || !c.began.Equal(time.Date(2026, 1, 2, 3, 4, 5, 120e6, time.UTC)) {
			t.Errorf("the container of a log %s is %+v", name, c)
		}
		if len(c.marks) != 2 || c.marks[0].kind != started || c.marks[0].epoch != 3 || c.marks[1].kind != handed || c.last.line != 6 || c.last.at.Nanosecond() != 123456789 {
			t.Errorf("the lines of a log %s are %+v, and the last of the program is %+v", name, c.marks, c.last)
		}
	}
	for name, log := range map[string]string{"without an agent": kubeletPrefix + "text\n", "that is empty": ""} {
		read := &trace{}
		if err := read.readContainer("0.log", strings.NewReader(log)); err != nil || len(read.containers) != 0 {
			t.Errorf("a log %s has %d containers, error %v", name, len(read.containers), err)
		}
	}
	for _, log := range []string{"text\n", kubeletPrefix + "2026-13-02 03:04:05.120 agent run: waiting\n"} {
		if err := new(trace).readContainer("0.log", strings.NewReader(log)); err == nil {
			t.Errorf("%q is a log", log)
		}
	}
}

// TestLinesOfAgents tests that the agent writes the lines that this program reads.
func TestLinesOfAgents(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "agent", "lease", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for format, row := range map[string]struct {
		line string
		kind markKind
		ok   bool
	}{
		"waiting for Lease %s as %s":                                     {"waiting for Lease a/b as c_1", output, false},
		"holds Lease %s (epoch %d) after %s: starts the program":         {"holds Lease a/b (epoch 7) after 1.2s: starts the program", started, true},
		"armed with epoch %d of Lease %s":                                {"armed with epoch 7 of Lease a/b", started, true},
		"handed over Lease %s to %s (epoch %d)":                          {"handed over Lease a/b to c_1 (epoch 8)", handed, true},
		"disarmed: Lease %s (epoch %d) does not name this pod":           {"disarmed: Lease a/b (epoch 7) does not name this pod", disarmed, true},
		"%s: ends the container":                                         {"the Lease has another holder: ends the container", fenced, true},
		"received start grant %s: runs the program without the Lease":    {"received start grant 3: runs the program without the Lease from now on", released, true},
		"processes remain %s after SIGKILL: ends the container":          {"processes remain 10s after SIGKILL: ends the container", fenced, true},
		"still waiting for Lease %s after %s; its holder is %q":          {`still waiting for Lease a/b after 1m; its holder is "c"`, output, false},
		"Lease %s names this pod with epoch %d, and is not renewed: %s":  {"Lease a/b names this pod with epoch 0, and is not renewed: x", output, false},
		"received signal %d (%s) while waiting: the program was not sta": {"received signal 15 (terminated) while waiting: the program was not started", output, false},
	} {
		if !strings.Contains(source.String(), format) {
			t.Errorf("the agent does not write %q any more", format)
		}
		m, ok := markOf(row.line)
		if ok != row.ok || ok && m.kind != row.kind || m.kind == started && ok && m.epoch != 7 {
			t.Errorf("%q is %+v, %t", row.line, m, ok)
		}
	}
	if found := waitsLine.FindStringSubmatch("waiting for Lease a/b as c_1"); len(found) != 3 || found[1] != "a/b" || found[2] != "c_1" {
		t.Errorf("the wait is %q", found)
	}
}
