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
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// world is the input of decisions. It is read from the API server, except for Nodes without
// problems and for other objects of this kind, which are read from the cache. Otherwise
// caches only trigger a pass.
type world struct {
	now time.Time
	// watch records when this process could observe the cluster.
	watch leadership.Watch
	// firstSeen is when this process first saw the object.
	firstSeen time.Time
	// mirrorGone is when the last known static pod went missing; zero if none is missing.
	mirrorGone time.Time
	// object is the StatefulSingleton; nil if it is gone.
	object *v1.StatefulSingleton
	// invalid is the reason why the spec cannot be served; "" if it can.
	invalid string
	// crowded is true if the namespace has too many older objects.
	crowded bool
	// rivals are the objects of the namespace whose selectors overlap.
	rivals []*v1.StatefulSingleton
	// pods are the pods that match the selector, that carry the object's name, or that
	// status.holder names, oldest first. They include ended pods.
	pods []*member
	// namespaceGoes is true while the namespace is terminating.
	namespaceGoes bool
	wrapper       *corev1.ConfigMap
	// budget is the object with the name of our PodDisruptionBudget; nil if there is none.
	budget *policyv1.PodDisruptionBudget
	// unguarded is the reason why the API server does not reject pods without the gate;
	// empty if it does.
	unguarded engine.Notice
	// refusedOwners are owners whose pods the API server refused. ownersDue is when to
	// search for such owners again.
	refusedOwners []object
	ownersDue     time.Time
	// refused is the API server's message about the last write that it refused.
	refused string
	// undone are the writes that an admission webhook or policy reverted.
	undone undone.Held
	// delay is the reason why the pod whose turn it is does not run.
	delay delay
}

// member is a pod and the facts known about it.
type member struct {
	pod *corev1.Pod
	// gated reports whether the program cannot start without a grant. program are the names
	// of its containers.
	gated   bool
	program []string
	// lacks are the names in spec.containers that the pod does not have.
	lacks  []string
	node   nodestate.Facts
	family family
	// heldSince is when this process first saw the gate running.
	heldSince time.Time
	// claims are the claims that the pod shares with other pods. The value is the access
	// mode if it is restrictive, ReadWriteOnce or ReadWriteOncePod, else "".
	claims map[string]corev1.PersistentVolumeAccessMode

	verdict // set by derive
}

// reader reads what a pass needs.
type reader struct {
	// cache reads from the watch caches, live from the API server.
	cache, live client.Reader
	// guard checks the policy in the API server.
	guard *Guard
	// now returns the current time.
	now func() time.Time
	// lease reports whether this process is the leader, and when it could observe the
	// cluster.
	lease *leadership.Lease

	pods   *podWatch
	memory memory.Of[remembered]
	nodes  nodestate.Reader
}

// observe reads the world of an object. The proof that a grant is safe depends on the
// order: the object first, then its pods, the holder last.
func (r *reader) observe(ctx context.Context, key types.NamespacedName) (*world, error) {
	w := &world{now: r.now(), watch: r.lease.Watch()}
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
func (r *reader) readPods(ctx context.Context, w *world, key types.NamespacedName) ([]corev1.Pod, error) {
	if w.object == nil {
		return r.readOrphans(ctx, key)
	}
	var selected, named corev1.PodList
	reads, within := errgroup.WithContext(ctx)
	in := client.InNamespace(key.Namespace)
	if w.invalid == "" {
		reads.Go(func() error {
			return r.live.List(within, &selected, in, client.MatchingLabelsSelector{Selector: selectorOf(w.object)})
		})
	}
	reads.Go(func() error {
		return r.live.List(within, &named, in, client.MatchingLabels{v1.LabelSingleton: key.Name})
	})
	if err := reads.Wait(); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.Concat(selected.Items, named.Items)
	if w.object.Status.Holder != nil {
		var holder corev1.Pod
		err := r.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: w.object.Status.Holder.Name}, &holder)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get the holder: %w", err)
		}
		if err == nil && holder.UID == w.object.Status.Holder.UID {
			pods = append(pods, holder)
		}
	}
	return latest(pods), nil
}

// latest keeps the newest view of each pod, and sorts the pods by age.
func latest(pods []corev1.Pod) []corev1.Pod {
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
func (r *reader) assemble(ctx context.Context, w *world, pods []corev1.Pod) error {
	families := map[types.UID]*family{}
	for i := range pods {
		m := &member{pod: &pods[i]}
		m.lookAt(w.object)
		var err error
		if m.node, err = r.readNode(ctx, w, m); err != nil {
			return err
		}
		// A single pod has no other pod to be compared with.
		if len(pods) > 1 || w.replacesFirst() || m.detached() {
			if m.family, err = r.readFamily(ctx, m.pod, families); err != nil {
				return err
			}
		}
		w.pods = append(w.pods, m)
	}
	return nil
}

// readNode reads the relevant facts of the Node of a pod. Decisions about a cordon use a live read,
// because a cache may show a cordon that was removed. The Node of a pod that cannot be running its
// program fences nothing.
func (r *reader) readNode(ctx context.Context, w *world, m *member) (nodestate.Facts, error) {
	name, read := m.pod.Spec.NodeName, r.nodes.Read
	if w.needsGrant(m) {
		read = r.nodes.Glance
	}
	node, err := read(ctx, r.cache, r.live, name, r.now())
	if err != nil || !node.Cordoned || !w.replacesFirst() {
		return node, err
	}
	return r.nodes.Read(ctx, r.live, r.live, name, r.now())
}

// lookAt determines how the program of the pod is held back. If the object is gone, the
// held containers count as the program.
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

// readClaims reads the claims that several pods mount. A pod cannot reach its gate while a
// pod on another node uses its volume.
func (r *reader) readClaims(ctx context.Context, w *world) error {
	for name, members := range claimUsers(w.pods) {
		if len(members) < 2 {
			continue
		}
		var claim corev1.PersistentVolumeClaim
		err := r.live.Get(ctx, types.NamespacedName{Namespace: members[0].pod.Namespace, Name: name}, &claim)
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

// claimUsers returns the pods that mount each claim and have not ended.
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

// narrowest returns the access mode of a claim if it restricts which pods can mount it;
// else "".
func narrowest(claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeAccessMode {
	switch {
	case slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod):
		return corev1.ReadWriteOncePod
	case len(claim.Spec.AccessModes) > 0 && onOneNode(claim):
		return corev1.ReadWriteOnce
	}
	return ""
}

// readFamily reads the owner of a pod. Each ReplicaSet is read once.
func (r *reader) readFamily(ctx context.Context, pod *corev1.Pod, known map[types.UID]*family) (family, error) {
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

// revisionAnnotation contains the revision number of the deployment controller.
const revisionAnnotation = "deployment.kubernetes.io/revision"

func (r *reader) readDeployment(ctx context.Context, namespace string, owner *metav1.OwnerReference) (family, error) {
	var set appsv1.ReplicaSet
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, &set); err != nil {
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
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: above.Name}, &d); err != nil || d.UID != above.UID {
		return family{}, err
	}
	return familyOf(&d, &set), nil
}

// readDetached reads the family of a pod that was detached from its ReplicaSet.
func (r *reader) readDetached(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (family, error) {
	from := detachedFrom(pod)
	if from == "" {
		return family{}, nil
	}
	var d appsv1.Deployment
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &d); err != nil || d.UID != owner.UID {
		return family{}, err
	}
	var set appsv1.ReplicaSet
	err := r.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: from}, &set)
	if client.IgnoreNotFound(err) != nil {
		return family{}, err
	}
	if !metav1.IsControlledBy(&set, &d) { // also if the ReplicaSet is missing and has no controller
		return familyOf(&d, nil), nil
	}
	return familyOf(&d, &set), nil
}

// familyOf returns the family of the pods of a Deployment's ReplicaSet; set is nil if the
// ReplicaSet is gone.
func familyOf(d *appsv1.Deployment, set *appsv1.ReplicaSet) family {
	f := family{owner: d.UID, name: "Deployment " + d.Name, outdated: true, deployment: d.Name, unwanted: ptr.Deref(d.Spec.Replicas, 1) == 0}
	if set != nil {
		f.replicaSet, f.outdated = set.Name, revisionOf(set) < revisionOf(d)
		f.adopts = set.DeletionTimestamp == nil && d.DeletionTimestamp == nil
		f.pinned = set.Spec.Template.Spec.NodeName != ""
	}
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		f.rolls, f.wanted, f.surges = true, minReady(d), surges(d)
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

func revisionOf(obj metav1.Object) int64 {
	revision, err := strconv.ParseInt(obj.GetAnnotations()[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

func (r *reader) readStatefulSet(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference) (family, error) {
	var set appsv1.StatefulSet
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: owner.Name}, &set); err != nil || set.UID != owner.UID {
		return family{}, err
	}
	f := family{owner: set.UID, name: "StatefulSet " + set.Name,
		outdated: set.Status.UpdateRevision != "" && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision}
	// An ordered set waits for each pod to be Ready before it continues.
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		f.wanted = ptr.Deref(set.Spec.Replicas, 1)
	}
	return f, nil
}

// readSurroundings reads everything other than pods.
func (r *reader) readSurroundings(ctx context.Context, w *world, key types.NamespacedName) error {
	w.unguarded = r.guard.missingIn(key.Namespace)
	var wrapper corev1.ConfigMap
	err := r.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: v1.ConfigMapWrapper}, &wrapper)
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
		if err := r.live.Get(ctx, types.NamespacedName{Name: key.Namespace}, &namespace); err != nil {
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

// readBudget reads the PodDisruptionBudget of an object. If the object wants none, it is
// read until it is known to be missing.
func (r *reader) readBudget(ctx context.Context, w *world, key types.NamespacedName) error {
	known := r.of(key)
	this := generation{w.object.UID, w.object.Generation}
	if !w.replacesFirst() && known.withoutBudget == this {
		return nil
	}
	var budget policyv1.PodDisruptionBudget
	err := r.live.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: budgetName(key.Name)}, &budget)
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
