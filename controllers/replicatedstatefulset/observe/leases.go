package observe

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// policyRetry is the interval for checking the policy on Leases after a problem.
const policyRetry = 2 * time.Second

// NewPolicyChecker returns what checks the policy on the Leases of members. namespace is the operator's own, and
// watched are those that it manages; empty means all.
func NewPolicyChecker(live client.Reader, namespace string, watched []string) *policy.Checker {
	return &policy.Checker{Live: live, Subject: "The policy on the Leases of members, as observed by the controllers",
		Namespace: namespace, Watched: watched, Builders: []policy.Builder{children.BuildLeaseGuard}, Interval: policy.Interval, Retry: policyRetry,
		NotInstalled: v1alpha1.ReasonPolicyNotInstalled, NotSupported: v1alpha1.ReasonPolicyNotInstalled, Excluded: notGuarded,
		IfUsed: true, Turned: make(chan event.GenericEvent, 1)}
}

// notGuarded returns the message about a namespace that the policy excludes.
func notGuarded(namespace string) string {
	return "no policy protects the Leases in namespace " + namespace + "; use another namespace, or set spec.fencing.mode to " + string(v1alpha1.FencingProof)
}

// OnPolicy returns requests for the sets that use Leases, when the policy on them has changed.
func (r *Reader) OnPolicy(ctx context.Context, _ client.Object) []reconcile.Request {
	requests := r.setsOf(ctx, func(p *corev1.Pod) bool {
		return children.LeaseDuration(p, p.Annotations[v1alpha1.AnnotationContainer]) > 0
	})
	var sets v1alpha1.ReplicatedStatefulSetList
	if err := r.Cache.List(ctx, &sets, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "list ReplicatedStatefulSets")
	}
	for i := range sets.Items {
		if w := (facts.World{Set: &sets.Items[i]}); w.UsesLeases() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(w.Set)})
		}
	}
	return requests
}

// readLeases reads the Leases of the members, if they are used. Leases are always
// read from the API server. Without the right to read them, or the policy on them, they prove nothing, and no member
// with a Lease is started.
func (r *Reader) readLeases(ctx context.Context, w *facts.World) error {
	f, known := &w.Fencing, r.MemoryOf(w.Set)
	isUsed := w.UsesLeases() || len(known.leases) > 0 // those that no member uses any more are deleted
	r.useLeases(client.ObjectKeyFromObject(w.Set), isUsed)
	if !isUsed || w.Invalid != "" {
		return nil
	}
	if r.Policy != nil {
		r.Policy.First(ctx) // a new process has not checked it yet
		f.Problem = r.Policy.MissingIn(w.Set.Namespace)
	}
	if f.Problem.Message != "" {
		return nil // other clients can have written them
	}
	var leases coordinationv1.LeaseList
	err := r.Live.List(ctx, &leases, client.InNamespace(w.Set.Namespace), client.MatchingLabels{v1alpha1.LabelLease: w.Set.Name})
	if apierrors.IsForbidden(err) {
		f.Problem = r.notPermitted(err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the Leases of the members: %w", err)
	}
	now := r.Now() // after the read, so that a Lease is never older than it seems
	f.Leases, f.Foreign, f.Since = map[string]*coordinationv1.Lease{}, map[string]*coordinationv1.Lease{}, map[string]time.Time{}
	for i := range leases.Items {
		lease := &leases.Items[i]
		pod, ok := children.PodOfLease(lease.Name)
		if !ok {
			continue
		}
		if !w.Ours(lease) {
			f.Foreign[pod] = lease
			continue
		}
		f.Leases[pod], f.Since[pod] = lease, known.leaseSince(lease, r.Leases, now)
	}
	known.forgetLeases(f.Leases)
	if err := r.readForeignLeases(ctx, w); err != nil {
		return err
	}
	return r.Leases.Follow(ctx, client.ObjectKeyFromObject(w.Set))
}

// readForeignLeases reads Leases of other clients that have the name of a missing one. They lack its label.
func (r *Reader) readForeignLeases(ctx context.Context, w *facts.World) error {
	for _, m := range w.Members {
		if !m.IsLeased() || w.LeaseOf(m) != nil || w.Fencing.Foreign[m.Name()] != nil {
			continue
		}
		lease, err := Find[coordinationv1.Lease](ctx, r.Live, types.NamespacedName{Namespace: w.Set.Namespace, Name: children.LeaseName(m.Name())})
		switch {
		case err != nil:
			return fmt.Errorf("get the Lease of a member: %w", err)
		case lease != nil && lease.Labels[v1alpha1.LabelLease] != w.Set.Name:
			w.Fencing.Foreign[m.Name()] = lease
		}
	}
	return nil
}

// useLeases sets whether a set uses Leases. The policy on them is checked, and the Leases of a namespace are watched,
// only while a set uses them.
func (r *Reader) useLeases(set types.NamespacedName, uses bool) {
	r.Policy.Use(set, uses)
	if !uses {
		r.Leases.Leave(set)
	}
}

// newer returns the object if it has changed since it was read, and else nil. A pass reads the Leases after the object,
// and may release a Lease only if no grant was recorded in between.
func (r *Reader) newer(ctx context.Context, w *facts.World, from engine.View) (*v1alpha1.ReplicatedStatefulSet, error) {
	if w.Fencing.Leases == nil || !from.Live {
		return nil, nil
	}
	var now v1alpha1.ReplicatedStatefulSet
	if err := from.Get(ctx, client.ObjectKeyFromObject(w.Set), &now); err != nil {
		return nil, fmt.Errorf("get the object after its Leases: %w", err)
	}
	switch {
	case now.UID != w.Set.UID, spec.UnreadParts(&now).Any():
		return nil, errors.New("the object was replaced while its Leases were read")
	case now.ResourceVersion != w.Set.ResourceVersion:
		return &now, nil
	}
	return nil, nil
}

// notPermitted returns the notice about a missing right.
func (r *Reader) notPermitted(err error) engine.Notice {
	return engine.Notice{Reason: v1alpha1.ReasonFencingNotPermitted, Message: fencing.NotPermitted(err, r.Namespace)}
}

// notBegun returns a result of a command. A start that process 1 has not admitted, because it does not renew the Lease,
// changed nothing.
func notBegun(m *facts.Member, r podexec.Result) podexec.Result {
	if r.Outcome != podexec.Failed || r.Code != fencing.ExitFenced || !spec.StartsPrimary(r.Name) || !m.IsLeased() {
		return r
	}
	r.Outcome, r.Sent = podexec.Unknown, false
	r.Why = fmt.Sprintf("process 1 does not renew Lease %s; see the log of the pod for the reason", children.LeaseName(m.Name()))
	return r
}

// fencedContainer is a container that has ended because it did not renew its Lease, and that the kubelet reports as
// running.
type fencedContainer struct {
	id    string
	since time.Time // when this process first saw that
}

// markFenced changes the status of a member's pod if its container has ended because it did not renew the Lease,
// and the kubelet has not reported this: the member is then like any other whose container has ended. A container that
// was marked once stays marked if its Lease is not read, or was deleted.
func (k *Remembered) markFenced(m *facts.Member, lease *coordinationv1.Lease, now time.Time) {
	uid, running := m.Pod.UID, m.Running()
	if lease != nil && running != "" && lease.Annotations[v1alpha1.AnnotationFenced] == running && k.fenced[uid].id != running {
		if k.fenced == nil {
			k.fenced = map[types.UID]fencedContainer{}
		}
		k.fenced[uid] = fencedContainer{running, now}
	}
	marked := k.fenced[uid]
	if marked.id == "" || marked.id != running {
		delete(k.fenced, uid)
		return
	}
	if m.NodeUnreachable() { // its kubelet cannot report
		marked.since = now
		k.fenced[uid] = marked
	}
	pod := m.Pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.ContainerID == running {
			s.Ready, s.State = false, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ContainerID: running, ExitCode: fencing.ExitFenced, Reason: v1alpha1.EventFenced}}
		}
	}
	m.Pod, m.FencedSince = pod, marked.since
}

// leaseSince returns when this process first saw the current version of a Lease.
func (k *Remembered) leaseSince(lease *coordinationv1.Lease, watched *leasewatch.Watch, now time.Time) time.Time {
	if k.leases == nil {
		k.leases = map[string]*leasewatch.Sighting{}
	}
	seen := k.leases[lease.Name]
	if seen == nil {
		seen = &leasewatch.Sighting{}
		k.leases[lease.Name] = seen
	}
	return watched.Since(client.ObjectKeyFromObject(lease), seen, lease.ResourceVersion, now)
}

// forgetLeases forgets Leases that do not exist any more.
func (k *Remembered) forgetLeases(leases map[string]*coordinationv1.Lease) {
	for name := range k.leases {
		if pod, _ := children.PodOfLease(name); leases[pod] == nil {
			delete(k.leases, name)
		}
	}
}
