package scribe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

var program string

func TestMain(m *testing.M) {
	var err error
	if program, err = gexec.Build("github.com/stateful-operator/stateful-operator/test/faults/witness"); err != nil {
		panic(err)
	}
	code := m.Run()
	gexec.CleanupBuildArtifacts()
	os.Exit(code)
}

// scene is an observed folder, and a scribe for witnesses without access to it.
type scene struct {
	*testing.T
	*WithT
	scribe *Scribe
	folder *observer.Folder
	to     string // the scribe's address
	far    bool   // witnesses connect to the scribe
}

func open(t *testing.T) scene {
	if runtime.GOOS != "linux" {
		t.Skip("witnesses and scribes are programs of pods")
	}
	s := scene{T: t, WithT: NewWithT(t), far: true}
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 20)) // longer than a socket address allows
	var err error
	s.folder, err = observer.Open(filepath.Join(root, "namespace", "app"))
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(s.folder.Close)
	s.scribe, err = Start("127.0.0.1:0", root)
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.scribe.Close() })
	s.to = fmt.Sprintf("%s127.0.0.1:%d/", testimony.Scheme, s.scribe.Port())
	return s
}

// both runs a test with local witnesses and with remote ones.
func both(t *testing.T, try func(scene)) {
	for name, far := range map[string]bool{"in a folder": false, "over the network": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.far = far
			try(s)
		})
	}
}

// start starts a witness with the name of a pod, in a new process group.
func (s scene) start(pod string, env ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(program, "argument of", pod)
	cmd.Env = append(os.Environ(), append(env, "POD="+pod)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.far {
		cmd.Env = append(cmd.Env, "WITNESS_TO="+s.to+"namespace/app")
	} else {
		cmd.Dir = s.folder.Dir()
		cmd.Env = append(cmd.Env, "WITNESS_DIR=.")
	}
	s.Expect(cmd.Start()).To(Succeed())
	s.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	return cmd
}

// waits waits until the given number of runs is alive and started.
func (s scene) waits(living, started int) []testimony.Run {
	s.Helper()
	var runs []testimony.Run
	s.Eventually(func(g Gomega) {
		var err error
		runs, err = s.folder.Runs()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(runs).To(HaveLen(started))
		alive := slices.DeleteFunc(slices.Clone(runs), func(r testimony.Run) bool { return !r.Alive() })
		g.Expect(alive).To(HaveLen(living))
	}, 20*time.Second, time.Millisecond).Should(Succeed())
	return runs
}

func (s scene) overlaps() []testimony.Overlap {
	s.Helper()
	runs, err := s.folder.Runs()
	s.Expect(err).NotTo(HaveOccurred())
	return testimony.Overlaps(runs, testimony.Now())
}

func TestOneAfterTheOther(t *testing.T) {
	both(t, func(s scene) {
		for i, end := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			c := s.start(fmt.Sprint("pod-", i))
			s.waits(1, i+1)
			s.Expect(c.Process.Signal(end)).To(Succeed())
			_ = c.Wait()
			s.waits(0, i+1)
		}
		s.Expect(s.overlaps()).To(BeEmpty())
		runs, _ := s.folder.Runs()
		s.Expect(runs[0].Stopped).To(BeTrue(), "it was asked to stop")
		s.Expect(runs[1].Stopped).To(BeFalse(), "it was killed")
		s.Expect(testimony.Gaps(runs)).To(HaveExactElements(HaveField("Length", BeNumerically(">", 0))))
		s.Expect(runs[0].Args).To(Equal([]string{"argument of", "pod-0"}))
		s.Expect(runs[0].Pod).To(Equal("pod-0"))
		s.Expect(runs[0].PID).NotTo(BeZero())
	})
}

// TestOneAfterAnother starts each witness as soon as the previous one has ended.
func TestOneAfterAnother(t *testing.T) {
	s := open(t)
	ends := []os.Signal{syscall.SIGTERM, syscall.SIGKILL}
	for i := range 20 {
		cmd := s.start(fmt.Sprint("pod-", i))
		s.waits(1, i+1)
		s.Expect(cmd.Process.Signal(ends[i%2])).To(Succeed())
		_ = cmd.Wait()
	}
	for i, r := range s.waits(0, 20) {
		s.Expect(r.Stopped).To(Equal(i%2 == 0), "run %d", i)
		s.Expect(r.Pod).To(Equal(fmt.Sprint("pod-", i)))
	}
	s.Expect(s.overlaps()).To(BeEmpty())
}

func TestTwoAtATimeMeet(t *testing.T) {
	both(t, func(s scene) {
		s.start("one")
		first := s.waits(1, 1)[0]
		s.start("two", "WITNESS_EXIT_AFTER=1ms", "WITNESS_EXIT_CODE=3")
		second := s.waits(1, 2)[1]
		s.Expect(second.Met).To(Equal([]string{first.ID}))
		s.Expect(s.overlaps()).To(HaveExactElements(HaveField("Length", BeNumerically(">", 0))))
	})
}

// TestManyAtOnce starts many witnesses in parallel. Each later one finds the earlier ones.
func TestManyAtOnce(t *testing.T) {
	both(t, func(s scene) {
		const many = 8
		for i := range many {
			s.start(fmt.Sprint("pod-", i))
		}
		met := 0
		for _, r := range s.waits(many, many) {
			met += len(r.Met)
		}
		s.Expect(met).To(Equal(many*(many-1)/2), "each pair is found once")
	})
}

func TestAChildHoldsTheConnection(t *testing.T) {
	both(t, func(s scene) {
		c := s.start("parent", "WITNESS_FORK=true")
		kill := c.Process.Kill
		if run := s.waits(1, 1)[0]; !s.far {
			kill = func() error { return s.folder.Kill(run.ID) }
		}
		s.Expect(kill()).To(Succeed())
		_ = c.Wait() // the parent has ended
		s.Consistently(func() []testimony.Run { return s.waits(1, 1) }, 100*time.Millisecond).Should(HaveLen(1), "its child is running")
		s.Expect(syscall.Kill(-c.Process.Pid, syscall.SIGKILL)).To(Succeed())
		s.waits(0, 1)
	})
}

// TestAFrozenWitnessRuns verifies that a frozen witness counts as running.
func TestAFrozenWitnessRuns(t *testing.T) {
	both(t, func(s scene) {
		c := s.start("frozen")
		s.waits(1, 1)
		s.Expect(c.Process.Signal(syscall.SIGSTOP)).To(Succeed())
		s.start("next")
		s.Expect(s.waits(2, 2)[1].Met).To(HaveLen(1))
	})
}

func TestKill(t *testing.T) {
	s := open(t)
	s.far = false
	c := s.start("victim", "WITNESS_IGNORE_TERM=true")
	run := s.waits(1, 1)[0]
	s.start("other")
	s.waits(2, 2)
	s.Expect(c.Process.Signal(syscall.SIGTERM)).To(Succeed())
	s.Expect(s.folder.Kill(run.ID)).To(Succeed())
	state, err := c.Process.Wait()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(state.Sys().(syscall.WaitStatus).Signal()).To(Equal(syscall.SIGKILL))
	s.waits(1, 2)
	s.Expect(s.folder.Kill(run.ID)).NotTo(Succeed(), "it has exited")

	s.far = true
	s.start("far")
	s.Expect(s.folder.Kill(s.waits(2, 3)[2].ID)).To(MatchError(ContainSubstring("another machine")))
}

// TestEndReadLate simulates a slow scribe, which reads the start of the next run before the last
// lines and the end of the previous one.
func TestEndReadLate(t *testing.T) {
	s := open(t)
	t.Chdir(s.folder.Dir())
	begins := func(run string) {
		remote, err := testimony.DialFolder(".")
		s.Expect(err).NotTo(HaveOccurred())
		s.Cleanup(func() { _ = remote.Close() })
		s.Expect(remote.Conn.Write([]byte(`{"what":"NOTE"}` + "\n"))).NotTo(BeZero()) // the response is not read
		p := s.folder.Program(remote.Conn.(syscall.Conn), true)
		s.Expect(p.Hear([]byte(`{"what":"START","run":"` + run + `"}`))).To(Succeed())
	}
	cmd := s.start("first")
	first := s.waits(1, 1)[0]
	s.scribe.mu.Lock() // blocks the scribe
	s.Expect(cmd.Process.Signal(syscall.SIGTERM)).To(Succeed())
	time.Sleep(100 * time.Millisecond) // it sends its Stop, and waits
	begins("early")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	begins("next")
	s.scribe.mu.Unlock()
	runs := s.waits(2, 3)
	s.Expect(runs[1].Met).To(Equal([]string{first.ID}), "it was still running")
	s.Expect(runs[2].Met).To(Equal([]string{"early"}), "the first one had ended")
	s.Expect(runs[2].Start).To(BeNumerically(">=", runs[0].End))
}

func TestWithoutObserver(t *testing.T) {
	s := open(t)
	s.far = false
	s.folder.Close()
	s.start("lonely")
	diary := filepath.Join(s.folder.Dir(), testimony.DiaryFile)
	s.Eventually(func() ([]byte, error) { return os.ReadFile(diary) }, 20*time.Second).Should(ContainSubstring(testimony.Start))
	s.Expect(s.folder.Runs()).To(BeEmpty())

	again, err := observer.Open(s.folder.Dir())
	s.Expect(err).NotTo(HaveOccurred())
	s.Cleanup(again.Close)
	_, err = again.Runs()
	s.Expect(err).To(MatchError(ContainSubstring("lonely")), "the duration of that run is unknown")
}

func TestUnreachableObserver(t *testing.T) {
	s := open(t)
	s.far = false
	socket := filepath.Join(s.folder.Dir(), testimony.SocketFile)
	s.Expect(os.Remove(socket)).To(Succeed())
	s.Expect(os.WriteFile(socket, nil, 0o644)).To(Succeed())
	s.Expect(s.start("lost").Wait()).NotTo(Succeed())
	_, err := s.folder.Runs()
	s.Expect(err).To(MatchError(And(ContainSubstring(testimony.Cannot), ContainSubstring("connection refused"))))
}

func TestFiles(t *testing.T) {
	s := open(t)
	journal, err := testimony.Dial(s.to+"namespace/j", testimony.Journal)
	s.Expect(err).NotTo(HaveOccurred())
	before := testimony.Now()
	s.Expect(journal.Write(record.Marshal(record.Line{What: record.Ack, At: 1}))).NotTo(BeZero())
	s.Expect(record.ReadLines[record.Line](filepath.Join(s.scribe.root, "namespace", "j"))).To(HaveExactElements(
		And(HaveField("What", record.Ack), HaveField("At", BeNumerically(">=", before)))), "acknowledged records are written with the scribe's time")

	history, err := testimony.Dial(s.to+"namespace/h", testimony.History)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(history.Write([]byte("as it is\n"))).NotTo(BeZero())
	s.Expect(os.ReadFile(filepath.Join(s.scribe.root, "namespace", "h"))).To(BeEquivalentTo("as it is\n"))
}

func TestRefused(t *testing.T) {
	s := open(t)
	for _, row := range []struct{ path, what, want string }{
		{"../escaped", testimony.History, "is outside the folder"},
		{"x", "poem", "poem"},
		{"namespace/other", testimony.Diary, "no observer"},
	} {
		s.Expect(testimony.Dial(s.to+row.path, row.what)).Error().To(MatchError(ContainSubstring(row.want)))
	}
	lost, err := testimony.Dial(s.to+"no/such/folder", testimony.History)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(lost.Write([]byte("lost\n"))).Error().To(HaveOccurred(), "a record that cannot be written is not acknowledged")
}
