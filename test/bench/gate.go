package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// measureGate measures the process of a gate while it waits, and verifies that it has ended when the
// program runs.
func measureGate(ctx context.Context, s *site) {
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateInit} {
		within(fmt.Sprintf("gate of mode %s", mode), func() { s.watchGate(ctx, mode, s.size.gate) })
	}
}

func (s *site) watchGate(ctx context.Context, mode v1.GateMode, during time.Duration) {
	a := s.newApplication(ctx, "gate-"+strings.ToLower(string(mode)), mode, 2, deployment(surge))
	active := a.active()
	standby := a.standby(ctx, active)
	gate := oneGate(standby)
	step("watching a gate of mode %s for %s", mode, during)
	before, began := gate.cpu, time.Now()
	pause(ctx, during)
	gate = oneGate(standby)
	busy := 100 * (gate.cpu - before).Seconds() / time.Since(began).Seconds()
	deletePod(ctx, a, active)
	a.next(ctx, active)
	all := processesOf(standby)
	left := slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !p.isGate() })
	program := "the program is another process"
	if slices.ContainsFunc(all, func(p process) bool { return p.pid == gate.pid && !p.isGate() }) {
		program = "the program is the process of the gate"
	}
	title := fmt.Sprintf("gate, %s", mode)
	s.report(figure{title: title, what: "resident memory while it waits", value: mib(float64(gate.resident)), unit: " MiB",
		detail: fmt.Sprintf("of it %.2f MiB private, the rest is the file", mib(float64(gate.own)))})
	s.report(figure{title: title, what: "processor time while it waits, of one core", value: busy, unit: " %", detail: "over " + during.String()})
	s.report(figure{title: title, what: "processes in addition to the program", value: float64(len(left)), digits: -1, goal: goalGateIsGone, detail: program})
	a.settled(ctx)
}

// standby returns the UID of the waiting pod.
func (a *application) standby(ctx context.Context, active testimony.Run) (uid string) {
	pods := a.podsIn(ctx, a.Namespace)
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return string(p.UID) != active.UID })
	if i < 0 {
		fail("no pod of %s waits", a.Name)
	}
	return string(pods[i].UID)
}

// process is a process of a pod, in /proc of this machine.
type process struct {
	pid           int
	args          []string
	resident, own int64 // bytes
	cpu           time.Duration
}

func (p process) isGate() bool {
	return len(p.args) > 1 && (p.args[0] == v1.GateInPod || p.args[0] == v1.GateInImage)
}

func oneGate(pod string) process {
	gates := slices.DeleteFunc(processesOf(pod), func(p process) bool { return !p.isGate() })
	if len(gates) != 1 {
		fail("pod %s has %d gates", pod, len(gates))
	}
	return gates[0]
}

// processesOf returns the processes in the cgroups of a pod.
func processesOf(pod string) (found []process) {
	for _, path := range must(filepath.Glob("/proc/[0-9]*/cgroup")) {
		cgroup, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(cgroup), pod) {
			continue // of another pod, or ended
		}
		if p, ok := readProcess(filepath.Dir(path)); ok {
			found = append(found, p)
		}
	}
	return found
}

// readProcess returns false if the process ends meanwhile.
func readProcess(dir string) (process, bool) {
	pid, _ := strconv.Atoi(filepath.Base(dir))
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	p := process{pid: pid, args: strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")}
	for name, value := range map[string]*int64{"VmRSS": &p.resident, "RssAnon": &p.own} {
		_, missing := fmt.Sscan(procField(filepath.Join(dir, "status"), name), value)
		*value <<= 10 // the file has KiB
		err = errors.Join(err, missing)
	}
	threads, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	for _, thread := range threads {
		var nanoseconds int64
		text, ended := os.ReadFile(thread)
		if ended != nil {
			continue
		}
		_, missing := fmt.Sscan(string(text), &nanoseconds)
		p.cpu += time.Duration(nanoseconds)
		err = errors.Join(err, missing)
	}
	return p, err == nil
}
