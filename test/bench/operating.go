package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Goals of the running operator, from the contract's section 4.
const (
	goalManaged   = 3.0 // KiB per pod
	goalUnmanaged = 0.1 // KiB per pod: none, but for the noise of a heap
	goalLatency   = 100 // ms at p99
)

// memorySet is how many members each set of the memory benchmark has.
const memorySet = 100

// measureMemory reads the live heap of one process without pods, with some,
// with more, and with as many again that it does not manage.
func measureMemory(ctx context.Context, s *site, size sizes) ([]figure, error) {
	o, err := s.startOperator(ctx, ours, "GOGC=20") // collects more often; what lives is the same
	if err != nil {
		return nil, err
	}
	defer o.stop()
	empty, _, err := o.liveHeap(ctx)
	if err != nil {
		return nil, err
	}
	var figures []figure
	var namespaces []string
	live, rss, have := empty, 0.0, 0
	for _, pods := range size.pods {
		namespace := fmt.Sprintf("memory-%d", pods)
		namespaces = append(namespaces, namespace)
		if err := s.fill(ctx, contestants[0], namespace, shape{(pods - have) / memorySet, memorySet}); err != nil {
			return nil, err
		}
		have = pods
		if live, rss, err = o.liveHeap(ctx); err != nil {
			return nil, err
		}
		figures = append(figures, figure{title: "memory", what: fmt.Sprintf("per managed pod and its claim, at %s pods", thousands(pods)),
			value: (live - empty) / float64(pods) / 1024, unit: " KiB", goal: atMost(goalManaged),
			detail: fmt.Sprintf("live heap %.1f MiB, without pods %.1f MiB; resident %.0f MiB", mib(live), mib(empty), mib(rss))})
	}
	const unmanaged = "memory-unmanaged"
	namespaces = append(namespaces, unmanaged)
	if err := s.fill(ctx, contestants[2], unmanaged, shape{1, size.unmanaged}); err != nil {
		return nil, err
	}
	after, _, err := o.liveHeap(ctx)
	if err != nil {
		return nil, err
	}
	figures = append(figures, figure{title: "memory", what: fmt.Sprintf("per unmanaged pod, with %s of them", thousands(size.unmanaged)),
		value: (after - live) / float64(size.unmanaged) / 1024, unit: " KiB", digits: 3, goal: atMost(goalUnmanaged),
		detail: fmt.Sprintf("live heap %.1f MiB, before %.1f MiB", mib(after), mib(live))})
	o.stop()
	return figures, s.clearNamespaces(ctx, namespaces...)
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

// fill makes a namespace with sets whose members are all Ready. The
// contestant's process, if it has one, runs already.
func (s *site) fill(ctx context.Context, c contestant, namespace string, want shape) error {
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return err
	}
	if c.name == bare {
		if _, err := c.prepare(ctx, s, namespace); err != nil {
			return err
		}
	}
	watch, err := s.spectate(ctx, namespace, ready)
	if err != nil {
		return err
	}
	defer watch.stop()
	_, err = s.timeCreate(ctx, c, namespace, want, watch)
	return err
}

// measureRest counts every write of the operator, events too, while nothing
// changes. It runs without a Lease, which is renewed every 2 s, whatever there
// is to do.
func measureRest(ctx context.Context, s *site, size sizes) ([]figure, error) {
	o, err := s.startOperator(ctx, ours)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	one, many := shape{1, size.members / 2}, shape{size.sets, setMembers}
	for namespace, want := range map[string]shape{"rest-one": one, "rest-many": many} {
		if err := s.fill(ctx, contestants[0], namespace, want); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	mark, err := s.markAudit()
	if err != nil {
		return nil, err
	}
	for began := time.Now(); time.Since(began) < size.rest; {
		step("at rest for %s of %s", time.Since(began).Round(time.Second), size.rest)
		if err := pause(ctx, min(30*time.Second, size.rest-time.Since(began))); err != nil {
			return nil, err
		}
	}
	changes, err := s.operatorsSince(mark)
	if err != nil {
		return nil, err
	}
	f := figure{title: "rest", what: fmt.Sprintf("writes in %s, events counted too", size.rest), value: float64(len(changes)), digits: -1, goal: atMost(0),
		detail: fmt.Sprintf("%d sets with %s members", one.sets+many.sets, thousands(one.pods()+many.pods()))}
	if len(changes) > 0 {
		f.detail += ": " + tallied(changes)
	}
	o.stop()
	return []figure{f}, s.clearNamespaces(ctx, "rest-one", "rest-many")
}

// measureLatency scales one set at a time from 0 to 1 while all others are at
// rest. Both ends are times at which the API server received a request.
func measureLatency(ctx context.Context, s *site, size sizes) ([]figure, error) {
	const namespace = "latency"
	if err := s.makeNamespace(ctx, namespace); err != nil {
		return nil, err
	}
	o, err := s.startOperator(ctx, ours)
	if err != nil {
		return nil, err
	}
	defer o.stop()
	total := size.objects + 1 // all others, and the one that changes
	step("making %s sets without members", thousands(total))
	if err := createClusters(ctx, s, namespace, shape{total, 0}); err != nil {
		return nil, err
	}
	if err := s.observed(ctx, namespace, total); err != nil {
		return nil, err
	}
	mark, err := s.markAudit()
	if err != nil {
		return nil, err
	}
	order := rand.Perm(total)[:size.changes]
	said := time.Now()
	for n, i := range order {
		if time.Since(said) > progressInterval {
			said = time.Now()
			step("%d of %d changes", n, len(order))
		}
		one := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
		if err := s.objects.Patch(ctx, statefulCluster(namespace, i, 0), one); err != nil {
			return nil, err
		}
		// Long enough for what follows the first write to be over.
		if err := pause(ctx, 250*time.Millisecond+rand.N(100*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, settle); err != nil {
		return nil, err
	}
	writes, err := s.writesSince(mark)
	if err != nil {
		return nil, err
	}
	latencies, err := delays(writes, namespace, len(order))
	if err != nil {
		return nil, err
	}
	o.stop()
	detail := fmt.Sprintf("%d changes, slowest %.1f ms", len(latencies), latencies[len(latencies)-1])
	title := fmt.Sprintf("spec change to first write, %s other objects", thousands(size.objects))
	return []figure{
		{title: title, what: "p50", value: quantile(latencies, 0.5), unit: " ms", detail: detail},
		{title: title, what: "p99", value: quantile(latencies, 0.99), unit: " ms", goal: atMost(goalLatency)},
	}, s.clearNamespaces(ctx, namespace)
}

// observed waits until every set has a status and every revision is there.
func (s *site) observed(ctx context.Context, namespace string, total int) error {
	err := waitFor(ctx, 10*time.Minute, "the status of all sets", func() (bool, string, error) {
		revisions, err := s.admin.AppsV1().ControllerRevisions(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, "", err
		}
		budgets, err := s.admin.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, "", err
		}
		return len(revisions.Items) >= total && len(budgets.Items) >= total,
			fmt.Sprintf("(%d of %d are begun)", min(len(revisions.Items), len(budgets.Items)), total), pause(ctx, time.Second)
	})
	if err != nil {
		return err
	}
	return s.quiet(ctx)
}

// quiet waits until the operator has written nothing for a few seconds.
func (s *site) quiet(ctx context.Context) error {
	return waitFor(ctx, 5*time.Minute, "the operator to be at rest", func() (bool, string, error) {
		mark, err := s.markAudit()
		if err != nil {
			return false, "", err
		}
		if err := pause(ctx, settle); err != nil {
			return false, "", err
		}
		writes, err := s.writesSince(mark)
		changes, _ := byOperator(writes)
		return len(changes) == 0, "", err
	})
}

// delays pairs each change of a spec with the first pod that the operator asks
// for after it, and gives the milliseconds between them, sorted.
func delays(writes []request, namespace string, want int) ([]float64, error) {
	slices.SortStableFunc(writes, func(a, b request) int { return a.Received.Compare(b.Received) })
	var found []float64
	changed := map[string]time.Time{} // by the name of the set
	for _, w := range writes {
		if w.Object.Namespace != namespace {
			continue
		}
		switch w.String() {
		case "patch statefulclusters":
			changed[w.Object.Name] = w.Received
		case "create pods":
			set := w.Object.Name[:max(0, strings.LastIndexByte(w.Object.Name, '-'))]
			if at, waiting := changed[set]; waiting {
				found = append(found, float64(w.Received.Sub(at).Microseconds())/1000)
				delete(changed, set)
			}
		}
	}
	if len(found) != want {
		return nil, fmt.Errorf("%d of %d changes were followed by a write", len(found), want)
	}
	slices.Sort(found)
	return found, nil
}
