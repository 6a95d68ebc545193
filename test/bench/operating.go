package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Goals of the running operator, from section 4 of the contract.
const (
	goalManaged   = 3.0 // KiB per pod
	goalUnmanaged = 0.1 // KiB per pod: 0 except for the noise of a heap
	goalLatency   = 100 // ms at p99
)

// memorySet is the number of members of each set in the memory benchmark.
const memorySet = 100

// measureMemory reads the live heap of one process without pods, with the two numbers of managed pods,
// and with additional unmanaged pods.
func measureMemory(ctx context.Context, s *site) {
	o := s.startOperator(ctx, ours, "GOGC=20") // collects more often, with the same live heap
	defer o.stop()
	empty, _ := o.liveHeap(ctx)
	const unmanaged = "memory-unmanaged"
	namespaces := []string{unmanaged}
	live, rss, have := empty, 0.0, 0
	for _, pods := range s.size.pods {
		namespace := fmt.Sprintf("memory-%d", pods)
		namespaces = append(namespaces, namespace)
		s.fill(ctx, contestants[0], namespace, shape{(pods - have) / memorySet, memorySet})
		have = pods
		live, rss = o.liveHeap(ctx)
		s.report(figure{title: "memory", what: fmt.Sprintf("per managed pod and its claim, at %s pods", thousands(pods)),
			value: (live - empty) / float64(pods) / 1024, unit: " KiB", goal: atMost(goalManaged),
			detail: fmt.Sprintf("live heap %.1f MiB, without pods %.1f MiB; resident %.0f MiB", mib(live), mib(empty), mib(rss))})
	}
	s.fill(ctx, contestants[2], unmanaged, shape{1, s.size.unmanaged})
	after, _ := o.liveHeap(ctx)
	s.report(figure{title: "memory", what: fmt.Sprintf("per unmanaged pod, with %s of them", thousands(s.size.unmanaged)),
		value: (after - live) / float64(s.size.unmanaged) / 1024, unit: " KiB", digits: 3, goal: atMost(goalUnmanaged),
		detail: fmt.Sprintf("live heap %.1f MiB, before %.1f MiB", mib(after), mib(live))})
	o.stop()
	s.clearNamespaces(ctx, namespaces...)
}

// fill creates a namespace with sets and waits until all members are Ready. A contestant's process must
// already run.
func (s *site) fill(ctx context.Context, c contestant, namespace string, want shape) {
	s.makeNamespace(ctx, namespace)
	if c.name == bare {
		c.prepare(ctx, s, namespace)
	}
	watch := s.spectate(ctx, namespace, ready)
	defer watch.stop()
	s.timeCreate(ctx, c, namespace, want, watch)
}

// measureRest counts all writes of the operator, including events, while nothing changes. The operator
// runs without a Lease, which is renewed every 2 s in any case.
func measureRest(ctx context.Context, s *site) {
	o := s.startOperator(ctx, ours)
	defer o.stop()
	one, many := shape{1, s.size.members / 2}, shape{s.size.sets, setMembers}
	for namespace, want := range map[string]shape{"rest-one": one, "rest-many": many} {
		s.fill(ctx, contestants[0], namespace, want)
	}
	pause(ctx, settle)
	mark := s.markAudit()
	s.rest(ctx, s.size.rest)
	s.reportRest("rest", s.size.rest, mark, fmt.Sprintf("%d sets with %s members", one.sets+many.sets, thousands(one.pods()+many.pods())))
	o.stop()
	s.clearNamespaces(ctx, "rest-one", "rest-many")
}

// rest waits for the given duration.
func (s *site) rest(ctx context.Context, during time.Duration) {
	for began := time.Now(); time.Since(began) < during; {
		step("at rest for %s of %s", time.Since(began).Round(time.Second), during)
		pause(ctx, min(30*time.Second, during-time.Since(began)))
	}
}

// reportRest reports the operator's writes since the mark.
func (s *site) reportRest(title string, during time.Duration, mark auditMark, detail string) {
	changes := s.since(mark, (*request).isOperators)
	if len(changes) > 0 {
		detail = strings.TrimPrefix(detail+": "+tallied(changes), ": ")
	}
	s.report(figure{title: title, what: fmt.Sprintf("writes in %s, events counted too", during), value: float64(len(changes)), digits: -1, goal: atMost(0), detail: detail})
}

// measureLatency scales one set at a time from 0 to 1 while all others are at rest. A delay starts and
// ends when the API server receives a request.
func measureLatency(ctx context.Context, s *site) {
	const namespace = "latency"
	s.makeNamespace(ctx, namespace)
	o := s.startOperator(ctx, ours)
	defer o.stop()
	total := s.size.objects + 1 // all others, and the one that changes
	step("creating %s sets without members", thousands(total))
	check(contestants[0].create(ctx, s, namespace, shape{total, 0}))
	s.begun(ctx, namespace, total)
	mark := s.markAudit()
	order := rand.Perm(total)[:s.size.changes]
	edit(ctx, order, 250*time.Millisecond, 100*time.Millisecond, func(i int) error {
		one := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
		return s.client.Patch(ctx, statefulCluster(namespace, i, 0), one)
	})
	pause(ctx, settle)
	latencies := delays(s.since(mark, (*request).isWrite), namespace, "patch statefulclusters", "create pods", "-", len(order))
	o.stop()
	title := fmt.Sprintf("spec change to first write, %s other objects", thousands(s.size.objects))
	s.report(figure{title: title, what: "p50", value: milliseconds(quantile(latencies, 0.5)), unit: " ms",
		detail: fmt.Sprintf("%d changes, slowest %.1f ms", len(latencies), milliseconds(slices.Max(latencies)))})
	s.report(figure{title: title, what: "p99", value: milliseconds(quantile(latencies, 0.99)), unit: " ms", goal: atMost(goalLatency)})
	s.clearNamespaces(ctx, namespace)
}

// edit makes the changes one after another, with a pause of apart plus a random part of chance. The
// pause is long enough for all consequences of the first write to finish.
func edit(ctx context.Context, order []int, apart, chance time.Duration, change func(int) error) {
	said := time.Now()
	for n, i := range order {
		if time.Since(said) > progressInterval {
			said = time.Now()
			step("%d of %d changes", n, len(order))
		}
		check(change(i))
		pause(ctx, apart+rand.N(chance))
	}
}

// begun waits until every set has its revision and its budget.
func (s *site) begun(ctx context.Context, namespace string, total int) {
	waitFor(ctx, 10*time.Minute, "the status of all sets", func() (bool, string) {
		var revisions appsv1.ControllerRevisionList
		var budgets policyv1.PodDisruptionBudgetList
		check(s.client.List(ctx, &revisions, client.InNamespace(namespace), cached))
		check(s.client.List(ctx, &budgets, client.InNamespace(namespace), cached))
		pause(ctx, time.Second)
		have := min(len(revisions.Items), len(budgets.Items))
		return have >= total, fmt.Sprintf("(%d of %d have started)", have, total)
	})
	s.quiet(ctx)
}

// quiet waits until the operator has written nothing for a few seconds.
func (s *site) quiet(ctx context.Context) {
	waitFor(ctx, 5*time.Minute, "the operator to be at rest", func() (bool, string) {
		mark := s.markAudit()
		pause(ctx, settle)
		return len(s.since(mark, (*request).isChange)) == 0, ""
	})
}
