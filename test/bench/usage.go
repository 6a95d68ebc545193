package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// metricLog is the metric of etcd with the bytes that were written to its write-ahead log.
const metricLog = "etcd_disk_wal_write_bytes_total"

// agentUse is the use of an agent since it was started, or during a time after an earlier reading. resident and own are
// its memory at the end.
type agentUse struct {
	pid            int
	at             time.Time
	during, cpu    time.Duration
	sent, received int64 // bytes of its system calls
	resident, own  int64 // bytes
}

// rate returns an amount a second.
func (u agentUse) rate(amount int64) float64 { return float64(amount) / u.during.Seconds() }

// hourly returns the processor time of an hour.
func (u agentUse) hourly() time.Duration {
	return time.Duration(float64(u.cpu) * float64(time.Hour) / float64(u.during))
}

// readAgents returns the use of agents since they were started. Agents that have ended are omitted.
func readAgents(pids []int) (all []agentUse) {
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d", pid)
		p, alive := readProcess(dir)
		u := agentUse{pid: pid, at: time.Now(), cpu: p.cpu, resident: p.resident, own: p.own}
		_, err := fmt.Sscan(procField(filepath.Join(dir, "io"), "wchar"), &u.sent)
		_, missing := fmt.Sscan(procField(filepath.Join(dir, "io"), "rchar"), &u.received)
		if alive && cmp.Or(err, missing) == nil {
			all = append(all, u)
		}
	}
	return all
}

// sinceReading returns the differences to an earlier reading.
func sinceReading(before, after []agentUse) (all []agentUse) {
	for _, u := range after {
		i := slices.IndexFunc(before, func(b agentUse) bool { return b.pid == u.pid })
		if i < 0 {
			continue
		}
		u.during = u.at.Sub(before[i].at)
		u.cpu, u.sent, u.received = u.cpu-before[i].cpu, u.sent-before[i].sent, u.received-before[i].received
		all = append(all, u)
	}
	return all
}

// livingProcess returns a process that must not have ended.
func livingProcess(pid int) process {
	p, alive := readProcess(fmt.Sprintf("/proc/%d", pid))
	if !alive {
		fail("process %d has ended", pid)
	}
	return p
}

// processNamed returns the process of a program of the control plane.
func (s *site) processNamed(name string) process {
	program := filepath.Join(s.cluster.Programs(), name)
	for _, dir := range must(filepath.Glob("/proc/[0-9]*")) {
		p, alive := readProcess(dir)
		isOwn := slices.ContainsFunc(p.args, func(arg string) bool { return strings.Contains(arg, s.cluster.Dir()+"/") })
		if alive && isOwn && p.args[0] == program {
			return p
		}
	}
	fail("no process of %s", name)
	return process{}
}

// flagOf returns the value of a flag in the arguments of a process.
func flagOf(args []string, name string) string {
	for _, arg := range args {
		if value, found := strings.CutPrefix(arg, name+"="); found {
			return value
		}
	}
	fail("no flag %s", name)
	return ""
}

// scrapePlain reads the metrics at an address without TLS.
func scrapePlain(ctx context.Context, address string) metrics {
	answer, err := http.DefaultClient.Do(must(http.NewRequestWithContext(ctx, http.MethodGet, address, nil)))
	check(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		fail("read %s: %s", address, answer.Status)
	}
	return parseMetrics(answer.Body)
}

// renewals are the requests of agents.
type renewals struct {
	succeeded, refused int
	took               []time.Duration // of those that succeeded
	gap                time.Duration   // the longest one between two renewals of a Lease
	others             string          // other requests, by kind
}

// renewalsOf returns the requests of agents that were answered between two times. A watch is answered when it ends.
func renewalsOf(requests []*request, from, to time.Time) renewals {
	var found renewals
	var others []*request
	last := map[string]time.Time{}
	for _, r := range requests {
		if r.answered().Before(from) || r.answered().After(to) {
			continue
		}
		switch {
		case r.what() != "patch leases":
			others = append(others, r)
		case r.refused():
			found.refused++
		default:
			found.succeeded++
			found.took = append(found.took, r.answered().Sub(r.received()))
			lease := r.ObjectRef.Namespace + "/" + r.ObjectRef.Name
			if before, known := last[lease]; known {
				found.gap = max(found.gap, r.received().Sub(before))
			}
			last[lease] = r.received()
		}
	}
	found.others = orNone(tallied(others))
	return found
}

func orNone(text string) string { return cmp.Or(text, "none") }

// mean returns the mean of at least one duration.
func mean(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(len(all))
}
