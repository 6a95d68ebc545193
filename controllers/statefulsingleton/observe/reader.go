package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Reader reads what a pass needs.
type Reader struct {
	// Cache reads from the watch caches, Live from the API server.
	Cache, Live client.Reader
	// Guard checks the policy in the API server.
	Guard *Guard
	// Now returns the current time.
	Now func() time.Time
	// Lease reports whether this process is the leader, and when it could observe the
	// cluster.
	Lease *leadership.Lease

	// Pods watches pods, only to trigger passes.
	Pods *PodWatch
	// Leases watches Leases, to trigger passes and to record when a version was seen.
	Leases *leasewatch.Watch
	memory memory.Of[Remembered]
	nodes  nodestate.Reader
}

// Observe reads the world of an object. The proof that a grant is safe depends on the
// order: the object first, then its pods, the holder last.
func (r *Reader) Observe(ctx context.Context, key types.NamespacedName) (*facts.World, error) {
	w := &facts.World{Now: r.Now(), Watch: r.Lease.Watch()}
	if err := r.readObject(ctx, w, key); err != nil || w.Unread() {
		return w, err
	}
	if err := r.readLease(ctx, w, key); err != nil {
		return w, err
	}
	read := w.UsesLease()
	pods, err := r.readPods(ctx, w, key)
	if err != nil {
		return nil, err
	}
	if err := r.assemble(ctx, w, pods); err != nil {
		return nil, err
	}
	if !read { // pods of an earlier object or mode can use it
		if err := r.readLease(ctx, w, key); err != nil {
			return nil, err
		}
	}
	if !w.UsesLease() {
		r.Leases.Leave(key)
	}
	if err := r.confirmRivals(ctx, w); err != nil {
		return nil, err
	}
	if err := r.readClaims(ctx, w); err != nil {
		return nil, err
	}
	if w.Object != nil {
		err = r.readSurroundings(ctx, w, key)
	}
	mem := r.Of(key)
	if mem.Recall(w); err == nil {
		r.ReadCauses(ctx, w, mem)
	}
	return w, err
}

// readPods reads the pods of the object.
func (r *Reader) readPods(ctx context.Context, w *facts.World, key types.NamespacedName) ([]corev1.Pod, error) {
	if w.Object == nil {
		return r.ReadOrphans(ctx, key)
	}
	var selected, named corev1.PodList
	reads, within := errgroup.WithContext(ctx)
	in := client.InNamespace(key.Namespace)
	if w.Invalid == "" {
		reads.Go(func() error {
			return r.Live.List(within, &selected, in, client.MatchingLabelsSelector{Selector: spec.SelectorOf(w.Object)})
		})
	}
	reads.Go(func() error {
		return r.Live.List(within, &named, in, client.MatchingLabels{v1.LabelSingleton: key.Name})
	})
	if err := reads.Wait(); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.Concat(selected.Items, named.Items)
	for _, name := range w.HolderNames() {
		var holder corev1.Pod
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &holder)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the holder: %w", err)
		}
		if err == nil && w.NamesHolder(&holder) {
			pods = append(pods, holder)
		}
	}
	return Latest(pods), nil
}

// Latest keeps the newest view of each pod, and sorts the pods by age.
func Latest(pods []corev1.Pod) []corev1.Pod {
	slices.Reverse(pods) // the last read comes first
	seen := map[types.UID]bool{}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		before := seen[p.UID]
		seen[p.UID] = true
		return before
	})
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// assemble adds the pods to the world, with their Nodes and owners.
func (r *Reader) assemble(ctx context.Context, w *facts.World, pods []corev1.Pod) error {
	families := map[types.UID]*facts.Family{}
	for i := range pods {
		m := &facts.Member{Pod: &pods[i]}
		m.Inspect(w.Object)
		var err error
		if m.Node, err = r.ReadNode(ctx, w, m); err != nil {
			return err
		}
		// A single pod has no other pod to be compared with.
		if len(pods) > 1 || w.ReplacesFirst() || m.Detached() {
			if m.Family, err = r.readFamily(ctx, m.Pod, families); err != nil {
				return err
			}
		}
		w.Pods = append(w.Pods, m)
	}
	return nil
}

// ReadNode reads the relevant facts of the Node of a pod. A Node that looks lost is read live, except for
// pods that cannot be running their program: their Nodes do not matter for a grant. A cordoned Node is
// read live if the cordon matters, because the cache may show a cordon that was removed.
func (r *Reader) ReadNode(ctx context.Context, w *facts.World, m *facts.Member) (nodestate.Facts, error) {
	name, read := m.Pod.Spec.NodeName, r.nodes.Read
	if w.NeedsGrant(m) {
		read = r.nodes.Glance
	}
	node, err := read(ctx, r.Cache, r.Live, name, r.Now())
	if err != nil || !node.Cordoned || !w.ReplacesFirst() {
		return node, err
	}
	return r.nodes.Read(ctx, r.Live, r.Live, name, r.Now())
}

// readClaims reads the claims that several pods mount. A pod cannot reach its gate while a
// pod on another node uses its volume.
func (r *Reader) readClaims(ctx context.Context, w *facts.World) error {
	for name, members := range claimUsers(w.Pods) {
		if len(members) < 2 {
			continue
		}
		var claim corev1.PersistentVolumeClaim
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: members[0].Pod.Namespace, Name: name}, &claim)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get claim %s: %w", name, err)
		}
		for _, m := range members {
			if m.Claims == nil {
				m.Claims = map[string]corev1.PersistentVolumeAccessMode{}
			}
			m.Claims[name] = exclusiveMode(&claim)
		}
	}
	return nil
}

// claimUsers returns the pods that mount each claim and have not ended.
func claimUsers(pods []*facts.Member) map[string][]*facts.Member {
	users := map[string][]*facts.Member{}
	for _, m := range pods {
		if podstate.Ended(m.Pod) {
			continue
		}
		for i := range m.Pod.Spec.Volumes {
			if c := m.Pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
				users[c.ClaimName] = append(users[c.ClaimName], m)
			}
		}
	}
	return users
}

// exclusiveMode returns the access mode of a claim if only the pods of one node, or only one
// pod, can mount it; else "".
func exclusiveMode(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeAccessMode {
	switch {
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return corev1.ReadWriteOncePod
	case len(claim.Spec.AccessModes) > 0 && children.OnOneNode(claim):
		return corev1.ReadWriteOnce
	}
	return ""
}

// readFamily reads the owner of a pod. Each ReplicaSet is read once a pass: read has the
// families of the owners that were read before.
func (r *Reader) readFamily(ctx context.Context, pod *corev1.Pod, read map[types.UID]*facts.Family) (facts.Family, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return facts.Family{Unknown: facts.NoController}, nil
	}
	if f := read[owner.UID]; f != nil && owner.Kind == "ReplicaSet" {
		return *f, nil
	}
	var f facts.Family
	var err error
	switch owner.Kind {
	case "ReplicaSet":
		f, err = r.readDeployment(ctx, pod.Namespace, owner)
	case "StatefulSet":
		f, err = r.readStatefulSet(ctx, pod, owner)
	case "Deployment":
		f, err = r.readDetached(ctx, pod, owner)
	default:
		f = facts.UnknownFamily(pod, owner)
	}
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("get %s %s: %w", owner.Kind, owner.Name, err)
	}
	read[owner.UID] = &f
	return f, nil
}

// RevisionAnnotation contains the revision number of the deployment controller.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// readDeployment reads the family of a pod whose controller is a ReplicaSet.
func (r *Reader) readDeployment(ctx context.Context, namespace string, owner *metav1.OwnerReference) (facts.Family, error) {
	var set appsv1.ReplicaSet
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, &set); err != nil {
		return facts.Family{}, err
	}
	above := metav1.GetControllerOf(&set)
	switch {
	case set.UID != owner.UID:
		return facts.Family{}, nil
	case above == nil, above.Kind != "Deployment":
		return facts.UnknownReplicaSet(&set, above), nil
	}
	var d appsv1.Deployment
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: above.Name}, &d); err != nil || d.UID != above.UID {
		return facts.Family{}, err
	}
	return familyOf(&d, &set), nil
}

// readDetached reads the family of a pod that was detached from its ReplicaSet.
func (r *Reader) readDetached(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (facts.Family, error) {
	from := facts.DetachedFrom(pod)
	if from == "" {
		return facts.Family{}, nil
	}
	var d appsv1.Deployment
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &d); err != nil || d.UID != owner.UID {
		return facts.Family{}, err
	}
	var set appsv1.ReplicaSet
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: from}, &set)
	if client.IgnoreNotFound(err) != nil {
		return facts.Family{}, err
	}
	if !metav1.IsControlledBy(&set, &d) { // also if the ReplicaSet is missing and has no controller
		return familyOf(&d, nil), nil
	}
	return familyOf(&d, &set), nil
}

// familyOf returns the family of the pods of a Deployment's ReplicaSet; set is nil if the
// ReplicaSet is gone.
func familyOf(d *appsv1.Deployment, set *appsv1.ReplicaSet) facts.Family {
	f := facts.Family{Owner: d.UID, Name: "Deployment " + d.Name, Outdated: true, Deployment: d.Name, Unwanted: ptr.Deref(d.Spec.Replicas, 1) == 0}
	if set != nil {
		f.ReplicaSet, f.Outdated = set.Name, RevisionOf(set) < RevisionOf(d)
		f.Adopts = set.DeletionTimestamp == nil && d.DeletionTimestamp == nil
		f.Pinned = set.Spec.Template.Spec.NodeName != ""
	}
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		f.Rolls, f.Wanted, f.Surges = true, minReady(d), surges(d)
	}
	return f
}

// surges reports whether a Deployment may have more pods than replicas.
func surges(d *appsv1.Deployment) bool {
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxSurge == nil {
		return true
	}
	replicas := max(ptr.Deref(d.Spec.Replicas, 1), 1)
	more, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(replicas), true)
	return err == nil && more > 0
}

// minReady returns the min number of Ready pods with which a Deployment continues its
// rollout.
func minReady(d *appsv1.Deployment) int32 {
	replicas := ptr.Deref(d.Spec.Replicas, 1)
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxUnavailable == nil {
		return replicas
	}
	missing, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(replicas), false)
	if err != nil {
		return replicas
	}
	return replicas - int32(min(missing, int(replicas)))
}

// RevisionOf returns the revision number of a Deployment or ReplicaSet; 0 if it has none.
func RevisionOf(obj metav1.Object) int64 {
	revision, err := strconv.ParseInt(obj.GetAnnotations()[RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// readStatefulSet reads the family of a pod whose controller is a StatefulSet.
func (r *Reader) readStatefulSet(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (facts.Family, error) {
	var set appsv1.StatefulSet
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set); err != nil || set.UID != owner.UID {
		return facts.Family{}, err
	}
	f := facts.Family{Owner: set.UID, Name: "StatefulSet " + set.Name,
		Outdated: set.Status.UpdateRevision != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision}
	// An ordered set waits for each pod to be Ready before it continues.
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		f.Wanted = ptr.Deref(set.Spec.Replicas, 1)
	}
	return f, nil
}

// readSurroundings reads everything other than pods.
func (r *Reader) readSurroundings(ctx context.Context, w *facts.World, key types.NamespacedName) error {
	w.Unguarded = r.Guard.MissingIn(key.Namespace)
	var wrapper corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: v1.ConfigMapWrapper}, &wrapper)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the script: %w", err)
	}
	if err == nil {
		w.Wrapper = &wrapper
	}
	if err := r.readBudget(ctx, w, key); err != nil {
		return err
	}
	if w.Deleting() {
		var namespace corev1.Namespace
		if err := r.Live.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace); err != nil {
			return fmt.Errorf("get the namespace: %w", err)
		}
		w.NamespaceGoes = namespace.DeletionTimestamp != nil
	}
	if w.ReleasesAll() {
		return nil
	}
	var due bool
	if due, w.OwnersDue = r.Of(key).dueForOwners(w); due {
		return r.readRefusedOwners(ctx, w, key)
	}
	return nil
}

// readBudget reads the PodDisruptionBudget of an object. If the object wants none, it is
// read until it is known to be missing.
func (r *Reader) readBudget(ctx context.Context, w *facts.World, key types.NamespacedName) error {
	mem := r.Of(key)
	this := generation{w.Object.UID, w.Object.Generation}
	if !w.ReplacesFirst() && mem.withoutBudget == this {
		return nil
	}
	var budget policyv1.PodDisruptionBudget
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: children.BudgetName(key.Name)}, &budget)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the PodDisruptionBudget: %w", err)
	}
	mem.withoutBudget = generation{}
	switch {
	case err == nil:
		w.Budget = &budget
	case !w.ReplacesFirst():
		mem.withoutBudget = this
	}
	return nil
}
