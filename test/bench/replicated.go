package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// Goals of ReplicatedStatefulSet, from section 5 of the contract, in seconds.
var (
	goalSwitchover = bounds{p99: atMost(0.5)}
	goalFailover   = bounds{p99: atMost(2)}
	goalNeedless   = atMost(0)
)

// silence is how long the API server is stopped.
const silence = time.Minute

// replicated is a set of ledgers. The measurements come from the ledgers' journals.
type replicated struct {
	*site
	set    *v1alpha1.ReplicatedStatefulSet
	folder string
}

func measureReplicated(ctx context.Context, s *site) {
	r := s.newReplicated(ctx, "ledger")
	r.switchovers(ctx, s.size.failovers)
	for _, kind := range []struct {
		title string
		once  func(context.Context) time.Duration
	}{
		{"primary's process killed, from the readiness flip to the next primary's command", r.killed},
		{"primary's pod deleted, from the kubelet's report to the next primary's command", r.deleted},
	} {
		step("%s, %d times", kind.title, s.size.failovers)
		var took []time.Duration
		for range s.size.failovers {
			within(kind.title, func() { took = append(took, kind.once(ctx)) })
		}
		s.spread3(kind.title, took, goalFailover, fmt.Sprintf("%d times", len(took)))
	}
	r.atRest(ctx, s.size.commands)
	r.withoutAPIServer(ctx)
}

func (s *site) newReplicated(ctx context.Context, name string) *replicated {
	image := s.load(ctx, program.Program{Package: "./test/faults/ledger", Ref: "localhost/ledger", User: "0:0", Tar: filepath.Join(s.folder, "ledger.tar")})
	r := &replicated{site: s, folder: filepath.Join(s.cluster.Dir(), "ledgers", name)}
	check(ledgerset.MakeFolder(r.folder))
	s.makeNamespace(ctx, name)
	r.set = &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name}, Spec: ledgerset.Spec(image, r.folder, realNodes)}
	check(s.client.Create(ctx, r.set))
	r.whole(ctx)
	return r
}

// whole waits until every member runs in its role, and returns the primary.
func (r *replicated) whole(ctx context.Context) (primary string) {
	waitFor(ctx, 3*time.Minute, "the ledgers to be whole", func() (bool, string) {
		check(r.client.Get(ctx, client.ObjectKeyFromObject(r.set), r.set))
		return isWhole(r.set, realNodes), fmt.Sprintf("(%s)", r.set.Status.Reason)
	})
	return r.set.Status.Members.Primary[0]
}

// calm is the pause between failovers. The operator delays a failover while a grant is younger than 15
// s, and this delay is not measured.
const calm = 16 * time.Second

// commands returns the wanted commands in the members' journals since a time, in order.
func (r *replicated) commands(since int64, wanted func(record.Line) bool) []record.Line {
	journals := must(ledgercheck.ReadJournals(ledgerset.Journals(r.folder)))
	told := slices.DeleteFunc(journals.Lines, func(l record.Line) bool { return l.At < since || !wanted(l) })
	slices.SortStableFunc(told, func(a, b record.Line) int { return int(a.At - b.At) })
	return told
}

// promoted waits until a member has been promoted since a time, and returns the time of its promotion.
func (r *replicated) promoted(ctx context.Context, since int64) (at int64) {
	waitFor(ctx, time.Minute, "another primary", func() (bool, string) {
		told := r.commands(since, func(l record.Line) bool {
			return l.What == record.Command && (l.Text == v1alpha1.CommandPromote || l.Text == v1alpha1.CommandSeed)
		})
		if len(told) > 0 {
			at = told[0].At
		}
		return len(told) > 0, ""
	})
	return at
}

// switchovers requests switchovers and measures them. From each it also subtracts the time of the
// commands, which the operator does not control, by the start and end of the execs in the audit log.
func (r *replicated) switchovers(ctx context.Context, times int) {
	const title = "switchover, from the wish to the next primary's command"
	step("%s, %d times", title, times)
	var whole, own []time.Duration
	var execs []int
	for range times {
		within(title, func() {
			mark := r.markAudit()
			asked, told := r.switchOver(ctx)
			seen := r.since(mark, func(q *request) bool {
				return q.ObjectRef.Subresource == "exec" && q.ObjectRef.Namespace == r.set.Namespace && q.received().Before(told)
			})
			took := told.Sub(asked)
			whole, own, execs = append(whole, took), append(own, took-covered(seen, asked, told)), append(execs, len(seen))
		})
	}
	r.spread3(title, whole, bounds{}, fmt.Sprintf("%d times", times))
	r.spread3("switchover, the operator's own part of it", own, goalSwitchover, fmt.Sprintf("without its execs, %d each", quantile(execs, 0.5)))
}

// switchOver requests a switchover. It returns the times of the request and of the next primary's
// promotion.
func (r *replicated) switchOver(ctx context.Context) (asked, told time.Time) {
	r.whole(ctx)
	next := r.set.Status.Members.Secondary[0]
	since := testimony.Now()
	r.requestSwitchover(ctx, next)
	at := r.promoted(ctx, since)
	r.whole(ctx)
	return wall(since), wall(at)
}

func (r *replicated) requestSwitchover(ctx context.Context, next string) {
	before := r.set.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.set.ObjectMeta, v1alpha1.AnnotationSwitchoverTo, next)
	check(r.client.Patch(ctx, r.set, client.MergeFrom(before)))
}

// killed kills the primary's process. Its container continues to run, and its readiness probe fails.
func (r *replicated) killed(ctx context.Context) time.Duration {
	old := r.primaryAtRest(ctx)
	began := testimony.Now()
	must(r.kubectl(ctx, r.set.Namespace, "exec", old.Name, "--", "/ledger", "kill"))
	return r.succeeded(ctx, old, began, func(p *corev1.Pod) bool { return !saysReady(p) })
}

func (r *replicated) deleted(ctx context.Context) time.Duration {
	old := r.primaryAtRest(ctx)
	began := testimony.Now()
	check(r.client.Delete(ctx, old))
	return r.succeeded(ctx, old, began, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	})
}

func (r *replicated) primaryAtRest(ctx context.Context) *corev1.Pod {
	name := r.whole(ctx)
	pause(ctx, calm)
	var pod corev1.Pod
	check(r.client.Get(ctx, client.ObjectKey{Namespace: r.set.Namespace, Name: name}, &pod))
	return &pod
}

// succeeded returns the time from the API's report of the old primary's end to the promotion of the
// next one, or 0 if the promotion was first.
func (r *replicated) succeeded(ctx context.Context, old *corev1.Pod, began int64, ended func(*corev1.Pod) bool) time.Duration {
	var told int64
	for told == 0 {
		var now corev1.Pod
		err := r.client.Get(ctx, client.ObjectKeyFromObject(old), &now)
		check(client.IgnoreNotFound(err))
		if err != nil || now.UID != old.UID || ended(&now) {
			told = testimony.Now()
		}
		pause(ctx, 5*time.Millisecond)
	}
	at := r.promoted(ctx, began)
	r.whole(ctx)
	return time.Duration(max(0, at-told))
}

// atRest counts the commands while nothing happens.
func (r *replicated) atRest(ctx context.Context, during time.Duration) {
	step("counting commands for %s", during)
	r.whole(ctx)
	pause(ctx, 5*time.Second)
	began := testimony.Now()
	pause(ctx, during)
	told := r.commands(began, func(l record.Line) bool { return l.What == record.Command || l.What == record.Asked })
	r.report(figure{title: "commands at rest", what: "an hour, of a set with 3 members", value: float64(len(told)) * float64(time.Hour) / float64(during), digits: -1,
		detail: "reconcileInterval 1m: one status a minute and member"})
}

// withoutAPIServer counts the primaries that appeared while the API server was stopped.
func (r *replicated) withoutAPIServer(ctx context.Context) {
	step("stopping the API server for %s", silence)
	r.whole(ctx)
	before := must(ledgercheck.ReadReigns(ledgerset.Journals(r.folder)))
	check(r.cluster.StopAPIServer())
	stopped := attempt(func() { pause(ctx, silence) })
	if err := r.cluster.StartAPIServer(); err != nil || stopped != nil {
		fail("after a time without an API server: %w (%w)", err, stopped)
	}
	r.operatorAvailable(ctx)
	pause(ctx, calm)
	r.whole(ctx)
	after := must(ledgercheck.ReadReigns(ledgerset.Journals(r.folder)))
	r.report(figure{title: "failovers in " + silence.String() + " without an API server", what: "needless", value: float64(len(after) - len(before)), digits: -1, goal: goalNeedless})
}
