package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// measureGate looks at the process of a gate while it waits, and for it again
// when its program runs.
func measureGate(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	var figures []figure
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateInit} {
		found, err := n.watchGate(ctx, mode, size.gate)
		if err != nil {
			return nil, fmt.Errorf("the gate of mode %s: %w", mode, err)
		}
		figures = append(figures, found...)
	}
	return figures, nil
}

func (n *nodes) watchGate(ctx context.Context, mode v1.GateMode, during time.Duration) ([]figure, error) {
	a, err := n.newApplication(ctx, "gate-"+strings.ToLower(string(mode)), mode, 2, deployment(surge()))
	if err != nil {
		return nil, err
	}
	active, _, err := a.alive()
	if err != nil {
		return nil, err
	}
	standby, err := a.standby(ctx)
	if err != nil {
		return nil, err
	}
	gate, err := oneGate(string(standby.UID))
	if err != nil {
		return nil, err
	}
	step("watching a gate of mode %s for %s", mode, during)
	before, began := gate.cpu, time.Now()
	if err := pause(ctx, during); err != nil {
		return nil, err
	}
	if gate, err = oneGate(string(standby.UID)); err != nil {
		return nil, err
	}
	busy := 100 * (gate.cpu - before).Seconds() / time.Since(began).Seconds()
	if err := deletePod(ctx, a, active); err != nil {
		return nil, err
	}
	if _, _, err := a.next(ctx, active); err != nil {
		return nil, err
	}
	all, err := processesOf(string(standby.UID))
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(all), func(p process) bool { return !p.isGate() })
	program := "the program is another process"
	if slices.ContainsFunc(all, func(p process) bool { return p.pid == gate.pid && !p.isGate() }) {
		program = "the program is the process that the gate was"
	}
	title := fmt.Sprintf("gate, %s", mode)
	return []figure{
		{title: title, what: "resident memory while it waits", value: mib(float64(gate.resident)), unit: " MiB",
			detail: fmt.Sprintf("of it %.2f MiB its own, the rest is the file", mib(float64(gate.own)))},
		{title: title, what: "processor time while it waits, of one core", value: busy, unit: " %", detail: "over " + during.String()},
		{title: title, what: "processes beside the program", value: float64(len(left)), digits: -1, goal: goalGateIsGone, detail: program},
	}, a.settled(ctx)
}

// standby is the pod that waits.
func (a *application) standby(ctx context.Context) (*corev1.Pod, error) {
	run, _, err := a.alive()
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := a.client.List(ctx, &pods, client.InNamespace(a.name)); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if string(pods.Items[i].UID) != run.UID {
			return &pods.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no pod of %s waits", a.name)
}

// process is one of a pod, as this machine sees it.
type process struct {
	pid           int
	args          []string
	resident, own int64 // bytes
	cpu           time.Duration
}

func (p process) isGate() bool {
	return len(p.args) > 1 && (p.args[0] == v1.GateInPod || p.args[0] == v1.GateInImage)
}

func oneGate(pod string) (process, error) {
	all, err := processesOf(pod)
	gates := slices.DeleteFunc(all, func(p process) bool { return !p.isGate() })
	if err != nil || len(gates) != 1 {
		return process{}, fmt.Errorf("pod %s has %d gates: %w", pod, len(gates), err)
	}
	return gates[0], nil
}

// processesOf are the processes in the cgroups of a pod.
func processesOf(pod string) ([]process, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, path := range files {
		cgroup, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(cgroup), pod) {
			continue // another's, or it has ended
		}
		if p, ok := readProcess(filepath.Dir(path)); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// readProcess is false for a process that ends meanwhile.
func readProcess(dir string) (process, bool) {
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		return process{}, false
	}
	args, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return process{}, false
	}
	p := process{pid: pid, args: strings.Split(strings.TrimSuffix(string(args), "\x00"), "\x00")}
	for name, value := range map[string]*int64{"VmRSS": &p.resident, "RssAnon": &p.own} {
		var kib int64
		if _, err := fmt.Sscan(procField(filepath.Join(dir, "status"), name), &kib); err != nil {
			return process{}, false
		}
		*value = kib << 10
	}
	threads, _ := filepath.Glob(filepath.Join(dir, "task", "*", "schedstat"))
	for _, thread := range threads {
		var nanoseconds int64
		text, err := os.ReadFile(thread)
		if err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(text), &nanoseconds); err != nil {
			return process{}, false
		}
		p.cpu += time.Duration(nanoseconds)
	}
	return p, true
}
