package main

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
)

func TestKnobsThatPretend(t *testing.T) {
	s := newSet(t, 1)
	a := s.members[0]
	for _, row := range []struct {
		knob string
		code int
		out  string
	}{
		{"exit 5", 5, ""},
		{"print 18446744073709551615", 0, "18446744073709551615\n"},
		{"print 9\nexit 1", 1, "9\n"},
		{"garbage", 0, "\xff\x00-1e9\nnot a number\x1b[31m\n"},
		{"lag 1ms", 0, "0\n"},
		{"then exit 4", 4, "0\n"},
		{"unknown word", exitUsage, ""},
	} {
		a.turn("sequence", row.knob)
		code, out := a.run("sequence")
		s.Expect(code).To(Equal(row.code), row.knob)
		s.Expect(out).To(Equal(row.out), row.knob)
	}
	a.turn("status", "exit 8\nonce")
	a.ends(8, "status")
	a.ends(exitStopped, "status")
	a.turn("sequence", "flood")
	cmd := a.command("sequence")
	pipe, err := cmd.StdoutPipe()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(cmd.Start()).To(Succeed())
	s.Expect(io.CopyN(io.Discard, pipe, 8<<20)).To(BeEquivalentTo(8 << 20))
	pipe.Close()
	_ = cmd.Wait()
}

func TestKnobsOfStarts(t *testing.T) {
	s := newSet(t, 1)
	a := s.members[0]

	a.turn("seed", "crash")
	a.ends(exitFailed, "seed")
	a.ends(exitStopped, "status")

	a.turn("seed", "kill") // the hook is killed, but not the command it sent
	a.ends(-1, "seed")
	s.until("it is primary although its hook was killed", func() bool { code, _ := a.run("status"); return code == exitPrimary })
	a.does("stop")

	a.turn("seed", "late 100ms\nthen exit 1")
	a.ends(1, "seed")
	s.until("it is primary after its hook failed", func() bool { code, _ := a.run("status"); return code == exitPrimary })

	a.turn("stop", "then hang")
	stop := a.begins("stop")
	s.until("it is stopped", func() bool { code, _ := a.run("status"); return code == exitStopped })
	s.Expect(syscall.Kill(stop.Process.Pid, 0)).To(Succeed(), "the hook has exited")
	a.turn("stop", "")

	a.turn("seed", "hang")
	seed := a.begins("seed")
	a.ends(exitStopped, "status")
	_ = seed.Process.Kill()
	a.ends(exitStopped, "status")
	s.said(a, record.Primary)
	s.check(a)
}

func TestHookIsKilledAndItsCommandGoesOn(t *testing.T) {
	s := newSet(t, 2)
	a, b := s.members[0], s.members[1]
	b.turn("secondary", "kill")
	b.ends(-1, "secondary", a.address) // not a primary yet
	a.does("seed")
	s.appends(a, 1)
	b.does("status")
	s.check(a)
}

func TestWhichKnob(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	s := settings{name: "a", knobs: dir}
	t.Setenv("LEDGER_KNOB_STOP", "exit 1; lag 1s")
	want := func(exit int) {
		t.Helper()
		k, err := s.knob("stop")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(k.exit).To(Equal(exit))
	}
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(dir, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(text), 0o644)).To(Succeed())
	}
	want(1)
	write("stop", "exit 2\n")
	want(2)
	write("a/stop", "exit 3\n")
	write("b/stop", "exit 4\n")
	want(3)
}

func TestChaos(t *testing.T) {
	s := newSet(t, 1, "CHAOS_MODULO=3")
	failed, answered := 0, 0
	s.until("both outcomes", func() bool {
		if code, _ := s.members[0].run("status"); code == exitFailed {
			failed++
		} else {
			answered++
		}
		return failed > 0 && answered > 0
	})
	for range 20 {
		s.Expect(s.members[0].sequence()).To(BeZero(), "other commands are not affected")
	}
}

func TestUnknownKnob(t *testing.T) {
	for _, text := range []string{"exit", "exit x", "lag", "late 5", "then", "then exit", "bang"} {
		NewWithT(t).Expect(parseKnob(text)).Error().To(MatchError(ContainSubstring(text)))
	}
}
