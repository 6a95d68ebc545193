package statefulsingleton

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// world is all that a decision may know. But for Nodes that look well and for other
// objects of its kind, all of it is read from the API server: the caches only say when
// to look.
type world struct {
	now time.Time
	// watch says in which time before now this process could look.
	watch leadership.Watch
	// firstSeen is when this process saw the object first.
	firstSeen time.Time
	// mirrorGone is when a static pod was first not shown any more that was seen
	// before; zero if none is missed.
	mirrorGone time.Time
	// object is the StatefulSingleton; nil when it is gone.
	object *v1.StatefulSingleton
	// invalid says why the spec cannot be served; "" if it can.
	invalid string
	// crowded is true when the namespace has too many older objects.
	crowded bool
	// rivals are the objects of the namespace whose selectors overlap.
	rivals []*v1.StatefulSingleton
	// pods are those that match the selector, that carry the object's name, or
	// that status.holder names, the oldest first. Ended ones are among them.
	pods []*member
	// namespaceGoes is true while the namespace is being deleted.
	namespaceGoes bool
	wrapper       *corev1.ConfigMap
	// budget is what has the name of the object's PodDisruptionBudget; nil if nothing has.
	budget *policyv1.PodDisruptionBudget
	// unguarded is why the API server does not refuse pods without the gate; empty if it
	// does.
	unguarded engine.Notice
	// refusedOwners have pods that the API server refused; ownersDue is when to
	// look for such owners again.
	refusedOwners []object
	ownersDue     time.Time
	// refused is the last write that the API server refused, in its words.
	refused string
	// undone are the writes that an admission webhook or policy changed back.
	undone undone.Held
	// delay is what keeps the pod whose turn it is from running.
	delay delay
}

// member is a pod and what is known of it.
type member struct {
	pod *corev1.Pod
	// gated reports whether the program cannot start without a grant, program
	// which containers that are.
	gated   bool
	program []string
	// lacks are the containers of the program that the pod does not have.
	lacks  []string
	node   nodestate.Facts
	family family
	// heldSince is when this process first saw the gate run.
	heldSince time.Time
	// claims are those of its volumes that other pods mount too, with how narrow
	// the mode is: ReadWriteOnce, ReadWriteOncePod, or "" for any other.
	claims map[string]corev1.PersistentVolumeAccessMode

	verdict // what derive finds out
}

// observe reads the world of an object. The order is part of the proof of the
// grant: the object first, its pods after it, the holder last.
func (r *Reconciler) observe(ctx context.Context, key types.NamespacedName) (*world, error) {
	w := &world{now: r.Now(), watch: r.Lease.Watch()}
	if err := r.readObject(ctx, w, key); err != nil || w.unread() {
		return w, err
	}
	pods, err := r.readPods(ctx, w, key)
	if err != nil {
		return nil, err
	}
	if err := r.assemble(ctx, w, pods); err != nil {
		return nil, err
	}
	if err := r.confirmRivals(ctx, w); err != nil {
		return nil, err
	}
	if err := r.readClaims(ctx, w); err != nil {
		return nil, err
	}
	if w.object != nil {
		err = r.readSurroundings(ctx, w, key)
	}
	known := r.of(key)
	if known.recall(w); err == nil {
		r.readCauses(ctx, w, known)
	}
	return w, err
}

// readPods reads the pods of the object.
func (r *Reconciler) readPods(ctx context.Context, w *world, key types.NamespacedName) ([]corev1.Pod, error) {
	if w.object == nil {
		return r.readOrphans(ctx, key)
	}
	var selected, named corev1.PodList
	reads, within := errgroup.WithContext(ctx)
	in := client.InNamespace(key.Namespace)
	if w.invalid == "" {
		reads.Go(func() error {
			return r.Live.List(within, &selected, in, client.MatchingLabelsSelector{Selector: selectorOf(w.object)})
		})
	}
	reads.Go(func() error {
		return r.Live.List(within, &named, in, client.MatchingLabels{v1.LabelSingleton: key.Name})
	})
	if err := reads.Wait(); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.Concat(selected.Items, named.Items)
	if w.object.Status.Holder != nil {
		var holder corev1.Pod
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: w.object.Status.Holder.Name}, &holder)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the holder: %w", err)
		}
		if err == nil && holder.UID == w.object.Status.Holder.UID {
			pods = append(pods, holder)
		}
	}
	return latest(pods), nil
}

// latest keeps the newest view of each pod, and orders them by age.
func latest(pods []corev1.Pod) []corev1.Pod {
	slices.Reverse(pods) // what was read last comes first
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

// assemble finds out what there is to know about each pod.
func (r *Reconciler) assemble(ctx context.Context, w *world, pods []corev1.Pod) error {
	families := map[types.UID]*family{}
	for i := range pods {
		m := &member{pod: &pods[i]}
		m.lookAt(w.object)
		var err error
		if m.node, err = r.readNode(ctx, w, m.pod.Spec.NodeName); err != nil {
			return err
		}
		// One pod by itself has no one to be compared with.
		if len(pods) > 1 || w.replacesFirst() || m.detached() {
			if m.family, err = r.readFamily(ctx, m.pod, families); err != nil {
				return err
			}
		}
		w.pods = append(w.pods, m)
	}
	return nil
}

// readNode reads what matters of a Node. What follows from a cordon is decided on the Node as
// it is now: a cache may show one that was taken back.
func (r *Reconciler) readNode(ctx context.Context, w *world, name string) (nodestate.Facts, error) {
	node, err := r.nodes.Read(ctx, r.Cache, r.Live, name, r.Now())
	if err != nil || !node.Cordoned || !w.replacesFirst() {
		return node, err
	}
	return r.nodes.Read(ctx, r.Live, r.Live, name, r.Now())
}

// lookAt finds out how the program of the pod is held back. Where the object is
// gone, one container that is held makes the pod one of its own.
func (m *member) lookAt(object *v1.StatefulSingleton) {
	if object == nil {
		object = withDefaults(&v1.StatefulSingleton{})
		for i := range m.pod.Spec.Containers {
			if isHeld(&m.pod.Spec.Containers[i]) {
				object.Spec.Containers = append(object.Spec.Containers, m.pod.Spec.Containers[i].Name)
			}
		}
	}
	m.gated = hasGate(m.pod, object) && !m.cameThrough()
	m.lacks = lacking(m.pod, object)
	for _, c := range program(m.pod, object) {
		m.program = append(m.program, c.Name)
	}
}

// readClaims reads the claims that several pods mount: a pod cannot come as far
// as its gate while a pod on another node has its volume.
func (r *Reconciler) readClaims(ctx context.Context, w *world) error {
	for name, members := range claimUsers(w.pods) {
		if len(members) < 2 {
			continue
		}
		var claim corev1.PersistentVolumeClaim
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: members[0].pod.Namespace, Name: name}, &claim)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("get claim %s: %w", name, err)
		}
		for _, m := range members {
			if m.claims == nil {
				m.claims = map[string]corev1.PersistentVolumeAccessMode{}
			}
			m.claims[name] = narrowest(&claim)
		}
	}
	return nil
}

// claimUsers are the pods that mount each claim and have not ended.
func claimUsers(pods []*member) map[string][]*member {
	users := map[string][]*member{}
	for _, m := range pods {
		if podstate.Ended(m.pod) {
			continue
		}
		for i := range m.pod.Spec.Volumes {
			if c := m.pod.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
				users[c.ClaimName] = append(users[c.ClaimName], m)
			}
		}
	}
	return users
}

// narrowest is the mode of a claim, if it lets few pods mount it.
func narrowest(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeAccessMode {
	switch {
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return corev1.ReadWriteOncePod
	case len(claim.Spec.AccessModes) > 0 && onOneNode(claim):
		return corev1.ReadWriteOnce
	}
	return ""
}

// readFamily reads who made a pod, each owner once.
func (r *Reconciler) readFamily(ctx context.Context, pod *corev1.Pod, known map[types.UID]*family) (family, error) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return family{unknown: noController}, nil
	}
	if f := known[owner.UID]; f != nil && owner.Kind == "ReplicaSet" {
		return *f, nil
	}
	var f family
	var err error
	switch owner.Kind {
	case "ReplicaSet":
		f, err = r.readDeployment(ctx, pod.Namespace, owner)
	case "StatefulSet":
		f, err = r.readStatefulSet(ctx, pod, owner)
	case "Deployment":
		f, err = r.readDetached(ctx, pod, owner)
	default:
		f = unknownFamily(pod, owner)
	}
	if client.IgnoreNotFound(err) != nil {
		return f, fmt.Errorf("get %s %s: %w", owner.Kind, owner.Name, err)
	}
	known[owner.UID] = &f
	return f, nil
}

// revisionAnnotation is where the deployment controller counts revisions.
const revisionAnnotation = "deployment.kubernetes.io/revision"

func (r *Reconciler) readDeployment(ctx context.Context, namespace string, owner *metav1.OwnerReference) (family, error) {
	var set appsv1.ReplicaSet
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, &set); err != nil {
		return family{}, err
	}
	above := metav1.GetControllerOf(&set)
	switch {
	case set.UID != owner.UID:
		return family{}, nil
	case above == nil, above.Kind != "Deployment":
		return unknownReplicaSet(&set, above), nil
	}
	var d appsv1.Deployment
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: above.Name}, &d); err != nil || d.UID != above.UID {
		return family{}, err
	}
	return familyOf(&d, &set), nil
}

// readDetached reads the same for a pod that was taken from its ReplicaSet.
func (r *Reconciler) readDetached(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (family, error) {
	from := detachedFrom(pod)
	if from == "" {
		return family{}, nil
	}
	var d appsv1.Deployment
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &d); err != nil || d.UID != owner.UID {
		return family{}, err
	}
	var set appsv1.ReplicaSet
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: from}, &set)
	if client.IgnoreNotFound(err) != nil {
		return family{}, err
	}
	if !metav1.IsControlledBy(&set, &d) { // or it is not there, and nobody controls it
		return familyOf(&d, nil), nil
	}
	return familyOf(&d, &set), nil
}

// familyOf is that of the pods of a ReplicaSet of a Deployment; set is nil if it is gone.
func familyOf(d *appsv1.Deployment, set *appsv1.ReplicaSet) family {
	f := family{owner: d.UID, name: "Deployment " + d.Name, outdated: true, deployment: d.Name, unwanted: ptr.Deref(d.Spec.Replicas, 1) == 0}
	if set != nil {
		f.replicaSet, f.outdated = set.Name, revisionOf(set) < revisionOf(d)
		f.adopts = set.DeletionTimestamp == nil && d.DeletionTimestamp == nil
		f.pinned = set.Spec.Template.Spec.NodeName != ""
	}
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		f.rolls, f.wanted, f.surges = true, leastReady(d), surges(d)
	}
	return f
}

// surges reports whether a Deployment may have a pod more than it has replicas.
func surges(d *appsv1.Deployment) bool {
	rolling := d.Spec.Strategy.RollingUpdate
	if rolling == nil || rolling.MaxSurge == nil {
		return true
	}
	replicas := max(ptr.Deref(d.Spec.Replicas, 1), 1)
	more, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(replicas), true)
	return err == nil && more > 0
}

// leastReady is how many pods of a Deployment are to be Ready for a rollout to go on.
func leastReady(d *appsv1.Deployment) int32 {
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

func revisionOf(obj metav1.Object) int64 {
	revision, err := strconv.ParseInt(obj.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

func (r *Reconciler) readStatefulSet(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (family, error) {
	var set appsv1.StatefulSet
	if err := r.Live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set); err != nil || set.UID != owner.UID {
		return family{}, err
	}
	f := family{owner: set.UID, name: "StatefulSet " + set.Name,
		outdated: set.Status.UpdateRevision != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision}
	// An ordered set waits for each pod to be Ready before it goes on.
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		f.wanted = ptr.Deref(set.Spec.Replicas, 1)
	}
	return f, nil
}

// readSurroundings reads what is not a pod.
func (r *Reconciler) readSurroundings(ctx context.Context, w *world, key types.NamespacedName) error {
	w.unguarded = r.Guard.missingIn(key.Namespace)
	var wrapper corev1.ConfigMap
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: v1.ConfigMapWrapper}, &wrapper)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the script: %w", err)
	}
	if err == nil {
		w.wrapper = &wrapper
	}
	if err := r.readBudget(ctx, w, key); err != nil {
		return err
	}
	if w.deleting() {
		var namespace corev1.Namespace
		if err := r.Live.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace); err != nil {
			return fmt.Errorf("get the namespace: %w", err)
		}
		w.namespaceGoes = namespace.DeletionTimestamp != nil
	}
	if w.releasesAll() {
		return nil
	}
	var due bool
	if due, w.ownersDue = r.of(key).dueForOwners(w); due {
		return r.readRefusedOwners(ctx, w, key)
	}
	return nil
}

// readBudget reads the PodDisruptionBudget of an object. One that does not want any is asked
// about until it is known to have none.
func (r *Reconciler) readBudget(ctx context.Context, w *world, key types.NamespacedName) error {
	known := r.of(key)
	this := generation{w.object.UID, w.object.Generation}
	if !w.replacesFirst() && known.withoutBudget == this {
		return nil
	}
	var budget policyv1.PodDisruptionBudget
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: budgetName(key.Name)}, &budget)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get the PodDisruptionBudget: %w", err)
	}
	known.withoutBudget = generation{}
	switch {
	case err == nil:
		w.budget = &budget
	case !w.replacesFirst():
		known.withoutBudget = this
	}
	return nil
}
