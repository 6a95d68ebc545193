package main

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// This test binary is also the program that the gate starts, and the parent of the gate. probeEnv lists
// the roles of its processes in order.
const probeEnv = "GATE_TEST_PROBES"

func runProbe(probes string) int {
	probe, rest, _ := strings.Cut(probes, ",")
	must(os.Setenv(probeEnv, rest))
	switch probe {
	case "arguments":
		_, err := os.Stdout.WriteString(strings.Join(os.Args, "\x00"))
		must(err)
	case "hostile":
		makeHostile()
		must(syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	case "launcher": // like runc, which is a Go program too
		must(syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	case "deathsignal":
		var number int32
		_, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&number)), 0)
		os.Stdout.WriteString(strconv.Itoa(int(number)) + " " + strconv.Itoa(int(errno)))
	case "zombies":
		return zombies()
	case "container":
		enterContainer()
		must(syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	}
	return 0
}

func must(err error) {
	if err != nil {
		os.Stderr.WriteString("probe: " + err.Error() + "\n")
		os.Exit(99)
	}
}

// makeHostile sets all inheritable state that a gate could change: ignored and blocked signals, limits,
// open files, and the umask.
func makeHostile() {
	for s := syscall.Signal(1); s <= 64; s++ {
		signal.Ignore(s)
	}
	everything := ^uint64(0)
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&everything)), 0, 8, 0, 0)
	if errno != 0 {
		must(errno)
	}
	var files syscall.Rlimit
	must(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	files.Cur = 256
	must(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files))
	null, err := syscall.Open("/dev/null", syscall.O_RDWR, 0)
	must(err)
	must(syscall.Dup3(null, 200, 0))
	syscall.Umask(0o027)
}

// zombies starts a child without waiting for it, and prints the states of its children.
func zombies() int {
	path, err := os.Executable()
	must(err)
	_, err = syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{Env: []string{probeEnv + "=none"}})
	must(err)
	seen := ""
	for !strings.Contains(seen, "Z") { // until the child has exited
		seen = childrenOf(os.Getpid())
	}
	os.Stdout.WriteString("children: " + seen)
	return 5
}

// childrenOf returns the states of a process's children, one letter each.
func childrenOf(parent int) string {
	var states []string
	entries, err := os.ReadDir("/proc")
	must(err)
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + entry.Name() + "/stat") // empty if the process has exited
		_, state, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(state); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			states = append(states, fields[0])
		}
	}
	return strings.Join(states, "")
}
