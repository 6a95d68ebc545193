package observe

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Observe reads the world of a set from a view: the cache, or the API server.
func (r *Reader) Observe(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*facts.World, error) {
	w := &facts.World{
		Clock: facts.Clock{Now: r.Now(), Watch: r.Lease.Watch()},
		Live:  from.Live,
		Set:   spec.WithDefaults(set),
	}
	if errs := spec.Validate(w.Set); len(errs) > 0 {
		w.Invalid = errs.ToAggregate().Error()
	}
	if err := r.readMembers(ctx, w, from); err != nil {
		return nil, err
	}
	if err := r.readLeases(ctx, w); err != nil {
		return nil, err
	}
	newer, err := r.newer(ctx, w, from)
	if err != nil {
		return nil, err
	}
	if newer != nil {
		return r.Observe(ctx, newer, from)
	}
	for _, m := range w.Members {
		r.MemoryOf(w.Set).markFenced(m, w.Fencing.Leases[m.Name()], r.Now())
	}
	if err := r.readChildren(ctx, w, from); err != nil {
		return nil, err
	}
	dropForeign(w)
	if err := r.readRights(ctx, w, from); err != nil {
		return nil, err
	}
	for _, m := range w.Members {
		m.Owned = isOwned(w, m)
	}
	if err := r.readRules(ctx, w); err != nil {
		return nil, err
	}
	if err := readRevisions(ctx, w, from); err != nil {
		return nil, err
	}
	if err := r.readSecrets(ctx, w); err != nil {
		return nil, err
	}
	if err := r.ReadAgent(ctx, w); err != nil {
		return nil, err
	}
	if err := r.readConfig(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if err := r.readClaims(ctx, w); err != nil {
		return nil, err
	}
	if err := r.readLeftClaims(ctx, w, from); err != nil {
		return nil, err
	}
	if err := r.readCopies(ctx, w, from); err != nil {
		return nil, err
	}
	if err := r.readNamespace(ctx, w, from); err != nil {
		return nil, err
	}
	r.Recall(w)
	r.readCauses(ctx, w)
	w.Took = r.Now().Sub(w.Now)
	countUnknown(ctx, w)
	return w, nil
}

// countUnknown counts and logs the commands with an unknown outcome.
func countUnknown(ctx context.Context, w *facts.World) {
	for _, m := range w.Members {
		for _, result := range m.UnknownResults {
			unknownTotal.WithLabelValues(result.Name).Inc()
			log.FromContext(ctx).Info("the outcome of a command is unknown", "pod", m.Name(), "command", result.Name, "why", result.Why)
		}
	}
}

// isOwned returns Member.Owned: whether the pod belongs to this object by its owner references and
// was created for it (see World.WhyForeign).
func isOwned(w *facts.World, m *facts.Member) bool {
	if w.Stateful == nil || !w.Ours(w.Stateful) || !facts.Controls(w.Stateful, m.Pod) {
		return false
	}
	return w.WhyForeign(m, w.IsStored(m)) == ""
}

// readNamespace sets whether the namespace of a terminating object is terminating too.
func (r *Reader) readNamespace(ctx context.Context, w *facts.World, from engine.View) error {
	if !w.Deleting() || !from.Live {
		return nil
	}
	var namespace corev1.Namespace
	if err := from.Get(ctx, types.NamespacedName{Name: w.Set.Namespace}, &namespace); err != nil {
		return fmt.Errorf("get the namespace: %w", err)
	}
	w.NamespaceTerminating = namespace.DeletionTimestamp != nil
	return nil
}

// readMembers reads the pods of the set, and the facts of each.
func (r *Reader) readMembers(ctx context.Context, w *facts.World, from engine.View) error {
	pods, err := r.readPods(ctx, w, from)
	if err != nil {
		return err
	}
	key, nodes := client.ObjectKeyFromObject(w.Set), nodesRead{}
	for i := range pods {
		pod := &pods[i]
		ordinal, ok := spec.OrdinalOf(w.Set, pod.Name)
		m := &facts.Member{
			Pod:        pod,
			Ordinal:    ordinal,
			CommandsIn: pod.Annotations[v1alpha1.AnnotationContainer],
		}
		if !ok || !isMember(w, m) {
			noteMislabeled(w, pod)
			continue
		}
		if m.CommandsIn == "" && len(w.Set.Spec.Pod.Containers) > 0 {
			m.CommandsIn = spec.CommandsIn(&w.Set.Spec.Pod)
		}
		busy, results := r.Board.Of(key, pod.UID)
		m.Busy, m.EvictionAt = busy, r.Book.RequestedAt(pod.UID)
		m.Results = make(map[string]podexec.Result, len(results))
		for _, result := range results {
			m.Results[result.Name] = notBegun(m, result)
		}
		if m.Node, err = nodes.read(ctx, r, w, m, from); err != nil {
			return err
		}
		w.Members = append(w.Members, m)
	}
	slices.SortFunc(w.Members, func(a, b *facts.Member) int { return a.Ordinal - b.Ordinal })
	return nil
}

// nodesRead are the facts of the Nodes that a pass has read.
type nodesRead map[nodeRead]nodestate.Facts

// nodeRead is a Node, and whether its absence may have consequences for the pod for which it was read.
type nodeRead struct {
	name     string
	isStored bool
}

// read reads the facts of a member's Node once for all members.
func (n nodesRead) read(ctx context.Context, r *Reader, w *facts.World, m *facts.Member, from engine.View) (nodestate.Facts, error) {
	key := nodeRead{m.Pod.Spec.NodeName, w.IsStored(m)}
	if known, isKnown := n[key]; isKnown {
		return known, nil
	}
	node, err := r.ReadNode(ctx, w, m, from)
	if err == nil {
		n[key] = node
	}
	return node, err
}

// ReadNode reads the relevant facts of a member's Node. A Node that is missing in the cache is read
// from the API server if its absence may have consequences: in a pass on live objects, or if the
// pod is on record, because its grant may be removed. For other pods an answer of the last few
// seconds is used again (Glance).
func (r *Reader) ReadNode(ctx context.Context, w *facts.World, m *facts.Member, from engine.View) (nodestate.Facts, error) {
	if from.Live || w.IsStored(m) {
		return r.nodes.Read(ctx, r.Nodes, r.Live, m.Pod.Spec.NodeName, r.Now())
	}
	return r.nodes.Glance(ctx, r.Nodes, r.Live, m.Pod.Spec.NodeName, r.Now())
}

// isMember reports whether a pod with the name of a member is a member. A pod that may be primary,
// or is terminating with our finalizer, always is, regardless of its owner. Otherwise pods with an
// ordinal of MaxReplicas or more, and pods of another owner, are not.
func isMember(w *facts.World, m *facts.Member) bool {
	if w.IsStored(m) {
		return true
	}
	if m.Terminating() && m.Protected() {
		return true
	}
	if m.Ordinal >= spec.MaxReplicas {
		return false
	}
	if owner := metav1.GetControllerOfNoCopy(m.Pod); owner != nil {
		return owned.IsStatefulSet(owner, spec.StatefulSetName(w.Set))
	}
	return true
}

// readChildren reads the children of the set by name, including objects with these names that
// belong to others. Services neither stop nor start a member, and their patches are bound to the
// version that was read. So they are read live only if the cache has none. A budget is closed
// before a role is handed over, so a live world reads budgets live.
func (r *Reader) readChildren(ctx context.Context, w *facts.World, from engine.View) error {
	var err error
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: w.Set.Namespace, Name: name}
	}
	if w.Stateful, err = Find[appsv1.StatefulSet](ctx, from, key(spec.StatefulSetName(w.Set))); err != nil {
		return err
	}
	budgets := r.Cache
	if spec.HandsOver(w.Set) { // otherwise no budget is closed first, and the primaries have none
		budgets = from
	}
	if w.Budget, err = findCached[policyv1.PodDisruptionBudget](ctx, budgets, from, key(spec.BudgetName(w.Set))); err != nil {
		return err
	}
	if w.PrimaryBudget, err = Find[policyv1.PodDisruptionBudget](ctx, budgets, key(spec.PrimaryBudgetName(w.Set))); err != nil {
		return err
	}
	w.Services = map[string]*corev1.Service{}
	for _, name := range []string{spec.ServiceName(w.Set), w.Set.PrimaryServiceName(), spec.ActiveServiceName(w.Set), spec.SecondaryServiceName(w.Set)} {
		if w.Services[name], err = findCached[corev1.Service](ctx, r.Cache, from, key(name)); err != nil {
			return err
		}
	}
	return nil
}

// readSecrets sets which Secrets of spec.TLS and spec.application are missing.
func (r *Reader) readSecrets(ctx context.Context, w *facts.World) error {
	if w.Invalid != "" {
		return nil
	}
	for _, name := range requiredSecrets(w.Set) {
		secret := configuration.Metadata(configuration.KindSecret)
		err := r.Cache.Get(
			ctx,
			types.NamespacedName{Namespace: w.Set.Namespace, Name: name},
			secret,
		)
		switch {
		case apierrors.IsNotFound(err):
			w.MissingSecrets = append(w.MissingSecrets, name)
		case apierrors.IsForbidden(err): // the kubelet finds the Secret or reports it as missing
		case err != nil:
			return fmt.Errorf("get secret %s: %w", name, err)
		}
	}
	return nil
}

// requiredSecrets returns the names of the Secrets of spec.TLS and spec.application.
func requiredSecrets(set *v1alpha1.ReplicatedStatefulSet) (names []string) {
	if set.Spec.Application != nil {
		names = append(names, set.Spec.Application.CredentialsSecret)
	}
	tls := set.Spec.TLS
	if tls == nil || tls.Static == nil {
		return names
	}
	all := []string{tls.Static.OperatorSecret}
	if member := tls.Static.Member; member != nil {
		all = append(all, member.PeerSecret, member.ServerSecret)
	}
	for _, name := range all {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// dropForeign removes pods from the members that have a controller other than the StatefulSet, and
// are younger than it, so that no former StatefulSet of the same name created them.
func dropForeign(w *facts.World) {
	if w.Stateful == nil || !w.Ours(w.Stateful) {
		return
	}
	w.Members = slices.DeleteFunc(w.Members, func(m *facts.Member) bool {
		isHeld := w.IsStored(m) || (m.Terminating() && m.Protected())
		if isHeld || !IsMadeByAnother(w.Stateful, m.Pod) {
			return false
		}
		noteMislabeled(w, m.Pod)
		return true
	})
}

// IsMadeByAnother reports whether a pod has a controller that is neither this StatefulSet nor a
// former one of the same name.
func IsMadeByAnother(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if metav1.GetControllerOfNoCopy(pod) == nil || facts.Controls(set, pod) {
		return false
	}
	return !pod.CreationTimestamp.Before(&set.CreationTimestamp)
}

// noteMislabeled records a pod that has our labels and is not a member. A terminating pod is soon
// no longer selected. Our finalizer makes no difference, because a user who can create pods can
// write it.
func noteMislabeled(w *facts.World, pod *corev1.Pod) {
	has := func(label string) bool { return pod.Labels[label] != "" }
	if podstate.Terminating(pod) || !slices.ContainsFunc(spec.OwnPodLabels, has) {
		return
	}
	if len(w.MislabeledPods) < maxMislabeled {
		w.MislabeledPods = append(w.MislabeledPods, pod)
	}
}

// maxMislabeled is the max number of foreign pods that one pass handles. Later passes handle the
// rest.
const maxMislabeled = 100
