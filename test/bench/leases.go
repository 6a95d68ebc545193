package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// leaseDurations are the durations of the Leases, one after another. The first one is the one of the documentation.
var leaseDurations = []time.Duration{30 * time.Second, 15 * time.Second}

// startPause is the min time between the starts of two agents. Their renewals are spread by it.
const startPause = 50 * time.Millisecond

// measureLeases measures the cost of holders of Leases: of their agents, of the control plane and of the operator. Each
// agent is process 1 of a PID namespace, and kwok simulates its pod. The operator's policies stay behind, so this must
// be the last benchmark of its control plane.
func measureLeases(ctx context.Context, s *site) {
	if os.Geteuid() != 0 {
		fmt.Println("  skipped: only root can create the namespaces of the agents")
		return
	}
	agent := filepath.Join(s.folder, "agent")
	must(output(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", agent, "./agent"))
	o := s.startOperator(ctx, "StatefulSingleton")
	defer o.stop()
	s.awaitLeaseGuard(ctx)
	for _, duration := range leaseDurations {
		within("Leases of "+duration.String(), func() { s.holdLeases(ctx, agent, o, duration) })
	}
}

// holdLeases measures the programs first without holders, and then with them.
func (s *site) holdLeases(ctx context.Context, agent string, o *operator, duration time.Duration) {
	h := &holders{site: s, agent: agent, duration: duration}
	defer h.stop()
	programs := s.measured(o)
	h.makeNamespaces(ctx)
	pause(ctx, settle)
	step("measuring the control plane without holders for %s", s.size.withoutHolders)
	idle := s.use(ctx, programs, nil, s.size.withoutHolders)
	h.start(ctx)
	step("waiting until all have renewed their Leases twice")
	pause(ctx, duration)
	mark := s.markAudit()
	step("measuring %s holders for %s", thousands(s.size.holders), s.size.holding)
	busy := s.use(ctx, programs, h.pids(), s.size.holding)
	seen := renewalsOf(s.since(mark, h.isOwn), busy.began, busy.began.Add(busy.during))
	others := s.since(mark, func(r *request) bool { return r.isWrite() && r.User.Username == operatorUser })
	h.reportCost(idle, busy, seen, tallied(others))
	h.stop()
	h.clear(ctx)
}

// measuredPrograms are the programs whose processor time is compared.
type measuredPrograms struct {
	etcd, server, operator int // process IDs
	etcdMetrics            string
}

func (s *site) measured(o *operator) measuredPrograms {
	etcd := s.processNamed("etcd")
	return measuredPrograms{etcd: etcd.pid, server: s.processNamed("kube-apiserver").pid, operator: o.command.Process.Pid,
		etcdMetrics: flagOf(etcd.args, "--listen-client-urls") + "/metrics"}
}

// programUse is the processor time of a program, and its resident bytes at the end.
type programUse struct {
	cpu      time.Duration
	resident int64
}

// since returns the use since an earlier reading.
func (u programUse) since(before programUse) programUse {
	return programUse{cpu: u.cpu - before.cpu, resident: u.resident}
}

// used is the use of the programs and the agents in a time.
type used struct {
	began                  time.Time
	during                 time.Duration
	etcd, server, operator programUse
	written                float64 // bytes in etcd's write-ahead log
	agents                 []agentUse
}

// use measures the programs and the agents for a time.
func (s *site) use(ctx context.Context, programs measuredPrograms, agents []int, during time.Duration) used {
	before, began := readAgents(agents), time.Now()
	first := s.readPrograms(ctx, programs)
	s.rest(ctx, during)
	last := s.readPrograms(ctx, programs)
	u := used{began: began, during: time.Since(began), written: last.written - first.written,
		etcd: last.etcd.since(first.etcd), server: last.server.since(first.server), operator: last.operator.since(first.operator)}
	u.agents = sinceReading(before, readAgents(agents))
	return u
}

// readPrograms returns the use of the programs since they were started.
func (s *site) readPrograms(ctx context.Context, programs measuredPrograms) used {
	read := func(pid int) programUse {
		p := livingProcess(pid)
		return programUse{cpu: p.cpu, resident: p.resident}
	}
	return used{etcd: read(programs.etcd), server: read(programs.server), operator: read(programs.operator),
		written: scrapePlain(ctx, programs.etcdMetrics).value(metricLog)}
}

// share returns the percentage of one core that a processor time is.
func (u used) share(cpu time.Duration) float64 { return 100 * cpu.Seconds() / u.during.Seconds() }

// writtenPerWrite returns the bytes of etcd's log for a write. Those that are written without holders are excluded.
func writtenPerWrite(idle, busy used, writes int) float64 {
	return (busy.written - idle.written*busy.during.Seconds()/idle.during.Seconds()) / float64(writes)
}

// reportCost reports the cost of the holders.
func (h *holders) reportCost(idle, busy used, seen renewals, others string) {
	title := fmt.Sprintf("%s holders of Leases of %s", thousands(h.size.holders), h.duration)
	if seen.succeeded == 0 {
		fail("no Lease was renewed; see -keep-logs")
	}
	perSecond := float64(seen.succeeded) / busy.during.Seconds()
	h.report(figure{title: title, what: "agents that ended", value: float64(h.ended()), digits: -1, goal: atMost(0)})
	h.report(figure{title: title, what: "renewals a second", value: perSecond, digits: 1,
		detail: fmt.Sprintf("in %s: %d renewals, %d refused ones, %s; writes of the operator: %s", busy.during.Round(time.Second), seen.succeeded, seen.refused, seen.others, orNone(others))})
	h.report(figure{title: title, what: "renewals a second and holder", value: perSecond / float64(h.size.holders), digits: 4})
	h.report(figure{title: title, what: "answer to a renewal, p50", value: milliseconds(quantile(seen.took, 0.5)), unit: " ms"})
	h.report(figure{title: title, what: "answer to a renewal, p99", value: milliseconds(quantile(seen.took, 0.99)), unit: " ms"})
	h.report(figure{title: title, what: "longest time between two renewals of a holder", value: seen.gap.Seconds(), unit: " s"})
	h.report(figure{title: title, what: "bytes of etcd's write-ahead log for a renewal", value: writtenPerWrite(idle, busy, seen.succeeded), digits: -1,
		detail: fmt.Sprintf("%.0f bytes a second, without holders %.0f", busy.written/busy.during.Seconds(), idle.written/idle.during.Seconds())})
	h.reportAgents(title, busy, perSecond)
	h.reportProgram(title, "etcd", idle, busy, idle.etcd, busy.etcd)
	h.reportProgram(title, "kube-apiserver", idle, busy, idle.server, busy.server)
	h.reportProgram(title, "the operator", idle, busy, idle.operator, busy.operator)
}

// reportProgram reports the processor time of a program with holders, and as a multiple of that without.
func (h *holders) reportProgram(title, name string, idle, busy used, without, with programUse) {
	share, before := busy.share(with.cpu), idle.share(without.cpu)
	h.report(figure{title: title, what: "processor time of " + name + ", of one core", value: share, unit: " %",
		detail: fmt.Sprintf("resident %.0f MiB; without holders %.2f %% and %.0f MiB", mib(float64(with.resident)), before, mib(float64(without.resident)))})
	h.report(figure{title: title, what: "processor time of " + name + ", times that without holders", value: share / before, unit: "×"})
}

// reportAgents reports the processor time, the traffic and the memory of the agents, for a number of renewals a second.
func (h *holders) reportAgents(title string, busy used, renewals float64) {
	var resident, own []int64
	var hourly []time.Duration
	var sent, received float64 // bytes a second
	for _, a := range busy.agents {
		resident, own, hourly = append(resident, a.resident), append(own, a.own), append(hourly, a.hourly())
		sent, received = sent+a.rate(a.sent), received+a.rate(a.received)
	}
	if len(hourly) == 0 {
		return
	}
	h.report(figure{title: title, what: "processor time of an agent an hour, median", value: quantile(hourly, 0.5).Seconds(), unit: " s",
		detail: fmt.Sprintf("mean %.2f s; all agents use %.2f %% of a core", mean(hourly).Seconds(), 100*mean(hourly).Hours()*float64(len(hourly)))})
	h.report(figure{title: title, what: "processor time of an agent an hour, max", value: slices.Max(hourly).Seconds(), unit: " s"})
	h.report(figure{title: title, what: "resident memory of an agent, median", value: mib(float64(quantile(resident, 0.5))), unit: " MiB", digits: 1,
		detail: fmt.Sprintf("of it %.1f MiB private; the rest is the file, which all agents share", mib(float64(quantile(own, 0.5))))})
	h.report(figure{title: title, what: "resident memory of an agent, max", value: mib(float64(slices.Max(resident))), unit: " MiB", digits: 1,
		detail: fmt.Sprintf("the max of the private part is %.1f MiB", mib(float64(slices.Max(own))))})
	h.report(figure{title: title, what: "bytes that an agent sends for a renewal", value: sent / renewals, digits: -1, detail: "with TLS, and its share of the watches"})
	h.report(figure{title: title, what: "bytes that an agent receives for a renewal", value: received / renewals, digits: -1,
		detail: "with TLS, the event of the watch, and the reads of the token's file"})
}
