package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"
)

const floodBytes = 1 << 30

// hook runs a command of the operator: it sends an order to process 1, unless a knob makes it fail. The
// outcome is the exit code.
func hook(s settings, command string, peers []string) int {
	k, err := s.knob(command)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		return exitUsage
	}
	if !k.use() {
		k = knob{}
	}
	time.Sleep(k.lag)
	if k.has["hang"] {
		hang()
	}
	if k.pretends() {
		return k.pretend()
	}
	if chaos(command) {
		fmt.Fprintln(os.Stderr, "ledger: chaos")
		return exitFailed
	}
	o := order{Command: command, Peers: peers, Late: k.late, Crash: k.has["crash"]}
	if k.has["kill"] {
		o.Late = max(o.Late, 1)
	}
	out, err := send(s.socket, 0, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ledger: asking process 1:", err)
		return exitFailed
	}
	if k.has["kill"] {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		hang()
	}
	fmt.Print(out.Output)
	if out.Error != "" {
		fmt.Fprintln(os.Stderr, "ledger:", out.Error)
	}
	if k.has["then hang"] {
		hang()
	}
	if k.has["then exit"] {
		return k.thenExit
	}
	return out.Code
}

func hang() { time.Sleep(math.MaxInt64) }

// pretend prints and exits as the knob specifies.
func (k knob) pretend() int {
	switch {
	case k.has["print"]:
		fmt.Println(k.print)
	case k.has["garbage"]:
		_, _ = os.Stdout.WriteString("\xff\x00-1e9\nnot a number\x1b[31m\n")
	case k.has["flood"]:
		chunk := bytes.Repeat([]byte("9"), 1<<20)
		for left, err := floodBytes, error(nil); left > 0 && err == nil; left -= len(chunk) {
			_, err = os.Stdout.Write(chunk) // the error means that the reader is gone
		}
	}
	return k.exit
}

// chaos fails a command at random, as specified by the operator's chaosLevel.
func chaos(command string) bool {
	modulo, err := strconv.Atoi(os.Getenv("CHAOS_MODULO"))
	return err == nil && modulo > 2 && command != "sequence" && rand.IntN(modulo) == 0
}
