package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// Goals of ReplicatedStatefulSet, from the contract's section 5, in seconds.
var (
	goalSwitchover = bounds{p99: atMost(0.5)}
	goalFailover   = bounds{p99: atMost(2)}
	goalNeedless   = atMost(0)
)

// silence is for how long there is no API server.
const silence = time.Minute

// replicated is a set of ledgers. What is measured is what they wrote down.
type replicated struct {
	*nodes
	set    *v1alpha1.ReplicatedStatefulSet
	folder string
}

func measureReplicated(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	r, err := n.newReplicated(ctx, "ledger")
	if err != nil {
		return nil, err
	}
	figures, err := r.switchovers(ctx, size.failovers)
	if err != nil {
		return figures, err
	}
	for _, kind := range []struct {
		title string
		once  func(context.Context) (time.Duration, error)
	}{
		{"primary's process killed, from the readiness flip to the next primary's command", r.killed},
		{"primary's pod deleted, from the kubelet's report to the next primary's command", r.deleted},
	} {
		step("%s, %d times", kind.title, size.failovers)
		var seconds []float64
		for range size.failovers {
			took, err := kind.once(ctx)
			if err != nil {
				return figures, fmt.Errorf("%s: %w", kind.title, err)
			}
			seconds = append(seconds, took.Seconds())
		}
		figures = append(figures, spread3(kind.title, seconds, goalFailover, fmt.Sprintf("%d times", len(seconds)))...)
	}
	for _, part := range []func(context.Context, sizes) (figure, error){r.atRest, r.withoutAPIServer} {
		f, err := part(ctx, size)
		if err != nil {
			return figures, err
		}
		figures = append(figures, f)
	}
	return figures, nil
}

func (n *nodes) newReplicated(ctx context.Context, name string) (*replicated, error) {
	image, err := n.load(ctx, program.Program{Package: "./test/faults/ledger", Ref: "localhost/ledger", User: "0:0", Tar: filepath.Join(n.folder, "ledger.tar")})
	if err != nil {
		return nil, err
	}
	r := &replicated{nodes: n, folder: filepath.Join(n.cluster.Dir(), "ledgers", name)}
	if err := ledgerset.MakeFolder(r.folder); err != nil {
		return nil, err
	}
	if err := n.makeNamespace(ctx, name); err != nil {
		return nil, err
	}
	r.set = &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: name}, Spec: ledgerset.Spec(image, r.folder, realNodes)}
	if err := n.client.Create(ctx, r.set); err != nil {
		return nil, err
	}
	_, err = r.whole(ctx)
	return r, err
}

// whole waits until every member runs in its role, and gives the primary.
func (r *replicated) whole(ctx context.Context) (primary string, err error) {
	return primary, waitFor(ctx, 3*time.Minute, "the ledgers to be whole", func() (bool, string, error) {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(r.set), r.set); err != nil {
			return false, "", err
		}
		whole := isWhole(r.set, realNodes)
		if whole {
			primary = r.set.Status.Members.Primary[0]
		}
		return whole, fmt.Sprintf("(%s)", r.set.Status.Reason), nil
	})
}

// calm is left between failovers: the operator waits with a grant that is younger
// than 15 s, which is not what is measured.
const calm = 16 * time.Second

// commands are those that the members were told since then, in order.
func (r *replicated) commands(since int64) ([]record.Line, error) {
	journals, err := ledgercheck.ReadJournals(ledgerset.Journals(r.folder))
	told := slices.DeleteFunc(journals.Lines, func(l record.Line) bool {
		return l.At < since || l.What != record.Command
	})
	slices.SortStableFunc(told, func(a, b record.Line) int { return int(a.At - b.At) })
	return told, err
}

// promoted waits until a member was told to be primary since then.
func (r *replicated) promoted(ctx context.Context, since int64) (told record.Line, err error) {
	return told, waitFor(ctx, time.Minute, "another primary", func() (bool, string, error) {
		all, err := r.commands(since)
		i := slices.IndexFunc(all, func(l record.Line) bool {
			return l.Text == v1alpha1.CommandPromote || l.Text == v1alpha1.CommandSeed
		})
		if i >= 0 {
			told = all[i]
		}
		return i >= 0, "", err
	})
}

// switchovers asks for some, and takes from their time what the commands took that
// are not the operator's: as execs, as the API server saw them begin and end.
func (r *replicated) switchovers(ctx context.Context, times int) ([]figure, error) {
	const title = "switchover, from the wish to the next primary's command"
	step("%s, %d times", title, times)
	var whole, own, execs []float64
	for range times {
		mark, err := markLog(r.cluster.AuditLog())
		if err != nil {
			return nil, err
		}
		asked, told, err := r.switchOver(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title, err)
		}
		seen, err := readSince(r.cluster.AuditLog(), mark, func(q request) bool {
			return q.isExec() && q.Object.Namespace == r.set.Namespace && q.Received.Before(told)
		})
		if err != nil {
			return nil, err
		}
		took := told.Sub(asked)
		whole = append(whole, took.Seconds())
		own = append(own, (took - covered(seen, asked, told)).Seconds())
		execs = append(execs, float64(len(seen)))
	}
	slices.Sort(execs)
	return append(spread3(title, whole, bounds{}, fmt.Sprintf("%d times", times)),
		spread3("switchover, the operator's own part of it", own, goalSwitchover, fmt.Sprintf("without its execs, %.0f each", quantile(execs, 0.5)))...), nil
}

// covered is for how long between two instants at least one of the requests was on
// its way.
func covered(requests []request, from, to time.Time) (sum time.Duration) {
	slices.SortFunc(requests, func(a, b request) int { return a.Received.Compare(b.Received) })
	for _, q := range requests {
		if q.Received.After(from) {
			from = q.Received
		}
		end := q.Answered
		if end.After(to) {
			end = to
		}
		if end.After(from) {
			sum += end.Sub(from)
			from = end
		}
	}
	return sum
}

// switchOver asks for one, and gives when it did and when the next primary was told.
func (r *replicated) switchOver(ctx context.Context) (asked, told time.Time, err error) {
	if _, err := r.whole(ctx); err != nil {
		return asked, told, err
	}
	next := r.set.Status.Members.Secondary[0]
	since := testimony.Now()
	before := r.set.DeepCopy()
	metav1.SetMetaDataAnnotation(&r.set.ObjectMeta, v1alpha1.AnnotationSwitchoverTo, next)
	if err := r.client.Patch(ctx, r.set, client.MergeFrom(before)); err != nil {
		return asked, told, err
	}
	primary, err := r.promoted(ctx, since)
	if err != nil {
		return asked, told, err
	}
	_, err = r.whole(ctx)
	return wall(since), wall(primary.At), err
}

// killed kills the primary's process. Its container runs on, and its readiness
// probe tells.
func (r *replicated) killed(ctx context.Context) (time.Duration, error) {
	old, err := r.primaryAtRest(ctx)
	if err != nil {
		return 0, err
	}
	began := testimony.Now()
	kubectl := filepath.Join(r.cluster.Programs(), "kubectl")
	if _, err := output(ctx, kubectl, "--kubeconfig", r.cluster.Kubeconfig(), "-n", r.set.Namespace, "exec", old.Name, "--", "/ledger", "kill"); err != nil {
		return 0, err
	}
	return r.succeeded(ctx, old, began, func(p *corev1.Pod) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	})
}

func (r *replicated) deleted(ctx context.Context) (time.Duration, error) {
	old, err := r.primaryAtRest(ctx)
	if err != nil {
		return 0, err
	}
	began := testimony.Now()
	if err := r.client.Delete(ctx, old); err != nil {
		return 0, err
	}
	return r.succeeded(ctx, old, began, func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
	})
}

func (r *replicated) primaryAtRest(ctx context.Context) (*corev1.Pod, error) {
	name, err := r.whole(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, calm); err != nil {
		return nil, err
	}
	var pod corev1.Pod
	return &pod, r.client.Get(ctx, client.ObjectKey{Namespace: r.set.Namespace, Name: name}, &pod)
}

// succeeded is how long after the API told of the old primary's end the next one
// was told to take over; 0 if that came first.
func (r *replicated) succeeded(ctx context.Context, old *corev1.Pod, began int64, ended func(*corev1.Pod) bool) (time.Duration, error) {
	var told int64
	for told == 0 {
		var now corev1.Pod
		err := r.client.Get(ctx, client.ObjectKeyFromObject(old), &now)
		if apierrors.IsNotFound(err) || err == nil && (now.UID != old.UID || ended(&now)) {
			told = testimony.Now()
		} else if err != nil {
			return 0, err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
	next, err := r.promoted(ctx, began)
	if err != nil {
		return 0, err
	}
	_, err = r.whole(ctx)
	return time.Duration(max(0, next.At-told)), err
}

// atRest counts the commands while nothing happens.
func (r *replicated) atRest(ctx context.Context, size sizes) (figure, error) {
	step("counting commands for %s", size.commands)
	if _, err := r.whole(ctx); err != nil {
		return figure{}, err
	}
	if err := pause(ctx, 5*time.Second); err != nil {
		return figure{}, err
	}
	began := testimony.Now()
	if err := pause(ctx, size.commands); err != nil {
		return figure{}, err
	}
	journals, err := ledgercheck.ReadJournals(ledgerset.Journals(r.folder))
	told := slices.DeleteFunc(journals.Lines, func(l record.Line) bool {
		return l.At < began || l.What != record.Command && l.What != record.Asked
	})
	perHour := float64(len(told)) * float64(time.Hour) / float64(size.commands)
	return figure{title: "commands at rest", what: "an hour, of a set with 3 members", value: perHour, digits: -1,
		detail: "reconcileInterval 1m: one status a minute and member"}, err
}

// withoutAPIServer counts primaries that came while there was none to tell them.
func (r *replicated) withoutAPIServer(ctx context.Context, _ sizes) (figure, error) {
	step("stopping the API server for %s", silence)
	if _, err := r.whole(ctx); err != nil {
		return figure{}, err
	}
	before, err := ledgercheck.ReadReigns(ledgerset.Journals(r.folder))
	if err != nil {
		return figure{}, err
	}
	if err := r.cluster.StopAPIServer(); err != nil {
		return figure{}, err
	}
	stopped := pause(ctx, silence)
	if err := r.cluster.StartAPIServer(); err != nil || stopped != nil {
		return figure{}, fmt.Errorf("after a time without an API server: %w (%w)", err, stopped)
	}
	if err := r.operatorAvailable(ctx); err != nil {
		return figure{}, err
	}
	if err := pause(ctx, calm); err != nil {
		return figure{}, err
	}
	if _, err := r.whole(ctx); err != nil {
		return figure{}, err
	}
	after, err := ledgercheck.ReadReigns(ledgerset.Journals(r.folder))
	return figure{title: "failovers in " + silence.String() + " without an API server", what: "needless", value: float64(len(after) - len(before)), digits: -1, goal: goalNeedless}, err
}
