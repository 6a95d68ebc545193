package nodeinit

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Run runs a node's first process. dir is the node's folder.
func Run(dir string) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("node-init must be the first process of a new pid namespace; cluster up starts it")
	}
	var setup Setup
	if err := ReadJSON(SetupFile(dir), &setup); err != nil {
		return err
	}
	if err := prepare(setup); err != nil {
		return err
	}
	s := supervisor{dir: dir, pids: map[string]int{}, ended: map[string]time.Time{}}
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGCHLD)
	// The tick restarts programs after their pause, and detects the first list, for which no signal is
	// sent.
	tick := time.NewTicker(200 * time.Millisecond)
	for {
		s.reap()
		s.reconcile()
		select {
		case <-signals:
		case <-tick.C:
		}
	}
}

func prepare(setup Setup) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for target, source := range setup.Binds {
		if err := syscall.Mount(source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", source, target, err)
		}
	}
	for _, file := range setup.ReadOnly {
		if err := syscall.Mount(file, file, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s over itself: %w", file, err)
		}
		if err := syscall.Mount("", file, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("make %s read-only: %w", file, err)
		}
	}
	// Last, because a bind's source may be below /run on some machines.
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	// Mount propagation of pods (mountPropagation) requires a shared tree. It is shared only within
	// this node.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts within the node: %w", err)
	}
	if err := syscall.Sethostname([]byte(setup.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	for key, value := range setup.Sysctls {
		path := filepath.Join("/proc/sys", strings.ReplaceAll(key, ".", "/"))
		if err := os.WriteFile(path, []byte(value), 0o644); err != nil {
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return nil
}

// supervisor starts and stops programs. It is used by only one goroutine.
type supervisor struct {
	dir   string
	pids  map[string]int
	ended map[string]time.Time // when a program ended
	told  Running              // the last response written
}

// reap reaps all ended children: daemons, and orphans of the whole node such as containers whose shim
// was killed.
func (s *supervisor) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
		for name, known := range s.pids {
			if known == pid {
				delete(s.pids, name)
				s.ended[name] = time.Now()
				fmt.Printf("%s exited: status %d signal %d\n", name, status.ExitStatus(), status.Signal())
			}
		}
	}
}

func (s *supervisor) reconcile() {
	var wanted Wanted
	if err := ReadJSON(WantedFile(s.dir), &wanted); err != nil {
		return // not written yet
	}
	keep := map[string]bool{}
	settled := true
	for _, program := range wanted.Programs {
		keep[program.Name] = true
		if s.pids[program.Name] != 0 {
			continue
		}
		if time.Since(s.ended[program.Name]) < time.Second {
			settled = false // a failing program must not use up the CPU
			continue
		}
		pid, err := start(program)
		if err != nil {
			fmt.Printf("start %s: %v\n", program.Name, err)
			s.ended[program.Name] = time.Now()
			settled = false
			continue
		}
		s.pids[program.Name] = pid
	}
	for name, pid := range s.pids {
		if !keep[name] {
			settled = false
			// Not SIGTERM: a stopped kubelet must do nothing more in a test.
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	if settled {
		s.tell(wanted.Generation)
	}
}

// tell writes the running programs if they changed.
func (s *supervisor) tell(generation int64) {
	same := s.told.Generation == generation && len(s.told.PIDs) == len(s.pids)
	for name, pid := range s.pids {
		same = same && s.told.PIDs[name] == pid
	}
	if same {
		return
	}
	now := Running{Generation: generation, PIDs: map[string]int{}}
	for name, pid := range s.pids {
		now.PIDs[name] = pid
	}
	if err := WriteJSON(RunningFile(s.dir), now); err == nil {
		s.told = now
	}
}

func start(program Program) (int, error) {
	path, err := exec.LookPath(program.Args[0])
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(program.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	process, err := os.StartProcess(path, program.Args, &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{nil, log, log},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	pid := process.Pid
	return pid, process.Release()
}
