package statefulcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/identity"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// world is the observed state of a set. Decisions use nothing else.
type world struct {
	settings
	now time.Time
	// watch is the time in which this process was able to observe the cluster. Only that time
	// counts towards the deadlines after which a member is lost.
	watch leadership.Watch
	live  bool // read from the API server; otherwise only the timeless rules may act (see doc.go)
	// invalid is the reason why the spec cannot be served; "" if it is valid.
	invalid string

	members []*member                       // pods owned by the set, sorted by name
	loose   []*corev1.PersistentVolumeClaim // claims without a pod, sorted by name
	// misnamed are claims with the operator's labels whose name is not the name of a claim of the
	// set.
	misnamed []*corev1.PersistentVolumeClaim
	// abandoned are claims of a deleted set of the same name that lack the retained label. They are
	// searched for in live reads until none is left.
	abandoned []*corev1.PersistentVolumeClaim
	budget    *policyv1.PodDisruptionBudget
	revisions []*appsv1.ControllerRevision
	// orphans are pods with the set's labels and no owner that this process never saw as members.
	// orphanIDs holds the ids of the orphans that have claims of a member. These claims are in none
	// of the lists above.
	orphans   []*corev1.Pod
	orphanIDs map[string]bool
	// labelled are pods with the set's labels and another controller, at most maxLabelled.
	labelled []*corev1.Pod
	// foreign are pods that the selector matches and that are not members. It is set only if live.
	foreign []string
	// offers are claims of earlier sets with this name that the set may adopt. They are searched
	// for in a live read if members are missing.
	offers offers
	// fresh are unused ids: first those on record, then those of claims given to the set, then
	// random ones.
	fresh []string
	// refused are the writes that the API server refused, with the times before which they are not
	// retried.
	refused map[string]refusal // by the reason of the action
	// undone are the writes that an admission webhook or policy reverted.
	undone undone.Held
	// crashed are pods that this process saw crash and that were not Ready since.
	crashed map[types.UID]bool
	// retired are pods that this process deleted to scale down.
	retired map[types.UID]bool
	// deleted holds the names of pods whose deletion by others this process observed.
	deleted map[string]bool
	// ending are members whose pod is gone but still in the cache, so that it is unknown how it
	// ended.
	ending []string
	// causes are the reasons why members do not run.
	causes causes.Hindrances
	// aside holds when this process first saw claims without a pod that were set aside.
	aside map[types.UID]time.Time
}

// member is a pod and its claims.
type member struct {
	id     string
	pod    *corev1.Pod
	node   node
	claims map[string]*corev1.PersistentVolumeClaim // by name
}

// node is the state of a member's Node. The zero value is for a member that was never scheduled.
type node struct {
	gone          bool // no Node has the name, or a different machine has it now
	goneSince     time.Time
	outOfService  bool
	notReadySince time.Time // zero while Ready
	cordoned      bool      // unschedulable for new pods
}

// indexOwner is the cache index of pods, claims and revisions by the UID of their set, which is in
// a label.
const indexOwner = "stateful-operator.cluster"

// indexNode is the cache index of pods by their Node.
const indexNode = "spec.nodeName"

// reader reads the state of sets, and remembers what no object has.
type reader struct {
	// cache reads from the informers; live reads from the API server.
	cache, live client.Reader
	// pods lists pods from the API server one at a time. If nil, live is used.
	pods client.Reader
	// now returns the current time.
	now func() time.Time
	// lease reports whether this process is the leader, and when it was able to observe the
	// cluster.
	lease *leadership.Lease

	memory memory.Of[remembered]
	nodes  nodestate.Reader
	ends   ends
}

// observe reads the state of a set. Members and claims are read from the given view, revisions and
// the budget from the cache. Stale revisions and a stale budget do no harm: their names follow from
// their content, so no second one is created, and a missing one only causes a delay.
func (r *reader) observe(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) (*world, error) {
	// Read the clock first, then the watch, then the cluster: a freeze in between makes a duration
	// look shorter, never longer.
	w := &world{now: r.now(), live: from.Live, settings: settings{withDefaults(set)}}
	w.watch = r.lease.Watch()
	w.invalid = problem(w.set)
	pods, claims, err := r.readMembers(ctx, w, from)
	if err != nil {
		return nil, err
	}
	claims = keepOrphans(w, claims)
	if from.Live {
		noteOutsiders(w)
	}
	if err := checkDeletion(ctx, w, pods, from); err != nil {
		return nil, err
	}
	if err := r.assemble(ctx, w, pods, claims, from); err != nil {
		return nil, err
	}
	if err := r.readRevisions(ctx, w, from); err != nil {
		return nil, err
	}
	if w.invalid == "" {
		w.invalid = changedClaims(w)
	}
	if from.Live && !r.of(w.set).searched {
		if w.abandoned, err = r.readAbandoned(ctx, client.ObjectKeyFromObject(w.set), w.set.UID); err != nil {
			return nil, fmt.Errorf("list the claims of earlier sets with the same name: %w", err)
		}
	}
	if err := r.readEnds(ctx, w, from); err != nil {
		return nil, fmt.Errorf("look for deleted pods: %w", err)
	}
	if err := readOffers(ctx, w, from); err != nil {
		return nil, fmt.Errorf("list the claims that the set may adopt: %w", err)
	}
	r.of(w.set).recall(w)
	if w.served() {
		w.causes = r.of(w.set).causes.Read(ctx, r.live, w.now, causesOf(w))
	}
	w.fresh = firstIDs(w)
	ids := w.ids()
	for _, id := range w.fresh {
		ids[id] = true
	}
	w.fresh = append(w.fresh, identity.Fresh(freshIDs(w), func(id string) bool { return ids[id] })...)
	return w, nil
}

// readMembers reads pods and claims concurrently. A claim is created after its pod, but the pods
// may be listed a moment before the claims. So the pods are read again if the pod of a claim is
// missing for no known reason.
func (r *reader) readMembers(ctx context.Context, w *world, from engine.View) ([]*corev1.Pod, []*corev1.PersistentVolumeClaim, error) {
	var pods, unlabelled []*corev1.Pod
	var claims []*corev1.PersistentVolumeClaim
	reads, within := errgroup.WithContext(ctx)
	reads.Go(func() (err error) { pods, err = r.readPods(within, w, from); return err })
	reads.Go(func() (err error) { claims, err = r.readClaims(within, w.set, from); return err })
	if from.Live {
		reads.Go(func() (err error) { unlabelled, err = r.readUnlabelled(within, w, from); return err })
	}
	err := reads.Wait()
	claims, w.misnamed = w.namedAsOurs(claims)
	if err == nil && from.Live && len(unexplained(w, pods, claims)) > 0 {
		// Sequentially: a pod that loses the operator's label in between is found by the second
		// read.
		if pods, err = r.readPods(ctx, w, from); err == nil {
			unlabelled, err = r.readUnlabelled(ctx, w, from)
		}
		if err == nil {
			pods = append(pods, unlabelled...)
			unlabelled, err = r.readByName(ctx, w, unexplained(w, pods, claims), from)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	pods = append(pods, unlabelled...)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(pods, func(a, b *corev1.Pod) bool { return a.UID == b.UID }), claims, nil
}

// readByName reads the pods with these names and returns those that are members.
func (r *reader) readByName(ctx context.Context, w *world, names []string, from engine.View) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	for _, name := range names {
		var pod corev1.Pod
		err := from.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, &pod)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("get pod: %w", err)
		case err == nil && r.isMember(w.set, &pod, true):
			found = append(found, &pod)
		}
	}
	return found, nil
}

// readPods lists the pods with the operator's labels. It returns the members, and records other pods in
// w.orphans and w.labelled.
func (r *reader) readPods(ctx context.Context, w *world, from engine.View) ([]*corev1.Pod, error) {
	set := w.set
	reader := from.Reader
	if from.Live && r.pods != nil {
		crowded, err := r.hasStrangers(ctx, set)
		if err != nil {
			return nil, err
		}
		if crowded {
			reader = r.pods
		}
	}
	var list corev1.PodList
	if err := reader.List(ctx, &list, r.belonging(set, from)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	w.orphans, w.labelled = nil, nil
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case r.isMember(set, pod, from.Live):
			pods = append(pods, pod)
		case pod.DeletionTimestamp != nil:
		case metav1.GetControllerOf(pod) == nil:
			w.orphans = append(w.orphans, pod)
		case len(w.labelled) < maxLabelled:
			w.labelled = append(w.labelled, pod)
		}
	}
	return pods, nil
}

// hasStrangers reports whether the cache has pods with the operator's labels that the set does not
// control. Users determine the number and size of these pods, so the live list then uses r.pods.
func (r *reader) hasStrangers(ctx context.Context, set *v1alpha1.StatefulCluster) (bool, error) {
	var list corev1.PodList
	if err := r.cache.List(ctx, &list, r.belonging(set, engine.View{Reader: r.cache})...); err != nil {
		return false, fmt.Errorf("list pods of the cache: %w", err)
	}
	for i := range list.Items {
		if !controls(set, &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

func (r *reader) readClaims(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) ([]*corev1.PersistentVolumeClaim, error) {
	var found []*corev1.PersistentVolumeClaim
	if from.Live {
		var list corev1.PersistentVolumeClaimList
		if err := from.List(ctx, &list, r.belonging(set, from)...); err != nil {
			return nil, fmt.Errorf("list claims: %w", err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
		return found, nil
	}
	list := metadataList("PersistentVolumeClaim")
	if err := from.List(ctx, list, r.belonging(set, from)...); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	for i := range list.Items {
		found = append(found, &corev1.PersistentVolumeClaim{ObjectMeta: list.Items[i].ObjectMeta})
	}
	return found, nil
}

// belonging returns the list options that select the objects of the set: by index in the cache, by
// label from the API server.
func (r *reader) belonging(set *v1alpha1.StatefulCluster, from engine.View) []client.ListOption {
	if from.Live {
		return []client.ListOption{client.InNamespace(set.Namespace),
			client.MatchingLabels{v1alpha1.LabelClusterUID: string(set.UID)}}
	}
	return []client.ListOption{client.InNamespace(set.Namespace),
		client.MatchingFields{indexOwner: string(set.UID)}, client.UnsafeDisableDeepCopy}
}

// assemble builds the members from pods, claims and nodes.
func (r *reader) assemble(ctx context.Context, w *world, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, from engine.View) error {
	byID := make(map[string]*member, len(pods))
	nodes := map[string]*corev1.Node{}
	for _, pod := range pods {
		m := &member{id: w.idOf(pod.Name), pod: pod}
		var err error
		if m.node, err = r.readNode(ctx, pod, nodes, w.now, from); err != nil {
			return fmt.Errorf("get node %s: %w", pod.Spec.NodeName, err)
		}
		byID[m.id] = m
		w.members = append(w.members, m)
	}
	for _, c := range claims {
		m := byID[memberOf(c)]
		if m == nil {
			w.loose = append(w.loose, c)
			continue
		}
		m.add(c)
	}
	if err := readLostClaims(ctx, w, from); err != nil {
		return err
	}
	slices.SortFunc(w.loose, func(a, b *corev1.PersistentVolumeClaim) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// add adds a claim to a member.
func (m *member) add(c *corev1.PersistentVolumeClaim) {
	if m.claims == nil {
		m.claims = map[string]*corev1.PersistentVolumeClaim{}
	}
	m.claims[c.Name] = c
}

// readLostClaims reads by name the claims of members, and of members being recreated, that the
// label selector did not find. A claim counts as gone only if it does not exist at all.
func readLostClaims(ctx context.Context, w *world, from engine.View) error {
	if !from.Live || w.invalid != "" {
		return nil
	}
	read := func(template, id string, add func(*corev1.PersistentVolumeClaim)) error {
		var c corev1.PersistentVolumeClaim
		err := from.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: claim.Name(w.set.Name, template, id)}, &c)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("get claim: %w", err)
		}
		add(&c)
		return nil
	}
	for _, m := range w.members {
		if !m.hasRun() {
			continue
		}
		for _, t := range missingClaims(w, m) {
			if err := read(t.Name, m.id, m.add); err != nil {
				return err
			}
		}
	}
	for _, e := range w.set.Status.Updating {
		id := w.idOf(e.Name)
		if w.hasPod(id) || w.orphanIDs[id] {
			continue
		}
		for _, t := range w.set.Spec.VolumeClaimTemplates {
			if w.hasClaim(t.Name, id) {
				continue
			}
			if err := read(t.Name, id, func(c *corev1.PersistentVolumeClaim) { w.loose = append(w.loose, c) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasClaim reports whether the claim of the given template and id is in w.loose.
func (w *world) hasClaim(template, id string) bool {
	name := claim.Name(w.set.Name, template, id)
	return slices.ContainsFunc(w.loose, func(c *corev1.PersistentVolumeClaim) bool { return c.Name == name })
}

// readNode reads a pod's Node from the cache. In a live pass, a Node that looks lost or cordoned is
// read again from the API server.
func (r *reader) readNode(ctx context.Context, pod *corev1.Pod, seen map[string]*corev1.Node, now time.Time, from engine.View) (node, error) {
	name := pod.Spec.NodeName
	if name == "" {
		return node{}, nil
	}
	n, known := seen[name]
	if !known {
		var err error
		n, err = getNode(ctx, r.cache, name)
		if err == nil && from.Live && r.nodeOf(pod, n, now).costsMembers() {
			n, err = getNode(ctx, from.Reader, name)
		}
		if err != nil {
			return node{}, err
		}
		seen[name] = n
	}
	return r.nodeOf(pod, n, now), nil
}

// costsMembers reports whether the state of the node may cause the loss or retirement of members.
func (n node) costsMembers() bool { return n.lostNow() || n.cordoned }

// lostNow reports whether the node has a problem, no matter for how long.
func (n node) lostNow() bool { return n.removed() || !n.notReadySince.IsZero() }

// removed reports whether the node is gone or out of service.
func (n node) removed() bool { return n.gone || n.outOfService }

// nodeOf returns the state of the Node that a pod was bound to. If a different machine has the name
// now, the Node of the pod is gone.
func (r *reader) nodeOf(pod *corev1.Pod, n *corev1.Node, now time.Time) node {
	if n == nil {
		return node{gone: true, goneSince: r.nodes.Absent(pod.Spec.NodeName, now)}
	}
	bound, scheduled := podstate.Since(pod, corev1.PodScheduled)
	since, found := r.nodes.Present(n, now), nodestate.Of(n)
	out := node{goneSince: n.CreationTimestamp.Time}
	out.gone = scheduled && since.After(bound) && pod.CreationTimestamp.Time.Before(since) && !outlived(pod, n)
	out.outOfService, out.cordoned, out.notReadySince = found.OutOfService, found.Cordoned, found.NotReadySince
	return out
}

// outlived reports whether the pod has been running on the present machine since before the Node
// object was created, so that the Node object was only recreated for the same machine. It compares
// the age of the pod sandbox, which container restarts do not change, or else of the containers.
func outlived(pod *corev1.Pod, n *corev1.Node) bool {
	if !nodestate.Of(n).Ready {
		return false
	}
	if sandbox := podstate.Condition(pod, corev1.PodReadyToStartContainers); sandbox != nil && sandbox.Status == corev1.ConditionTrue {
		return sandbox.LastTransitionTime.Before(&n.CreationTimestamp)
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil && s.State.Running.StartedAt.Before(&n.CreationTimestamp)
	})
}

func getNode(ctx context.Context, reader client.Reader, name string) (*corev1.Node, error) {
	var n corev1.Node
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, &n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &n, nil
}

// readRevisions reads the revisions and the budget. It reads from the API server only if it is known
// that one lacks the operator's label and so is missing from the cache.
func (r *reader) readRevisions(ctx context.Context, w *world, from engine.View) error {
	reader, options := r.cache, r.belonging(w.set, engine.View{})
	if from.Live && r.of(w.set).hidden {
		reader, options = from.Reader, []client.ListOption{client.InNamespace(w.set.Namespace)}
	}
	var revisions appsv1.ControllerRevisionList
	if err := reader.List(ctx, &revisions, options...); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	for i := range revisions.Items {
		if controls(w.set, &revisions.Items[i]) {
			w.revisions = append(w.revisions, &revisions.Items[i])
		}
	}
	slices.SortFunc(w.revisions, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var budget policyv1.PodDisruptionBudget
	err := reader.Get(ctx, client.ObjectKeyFromObject(w.set), &budget)
	if err == nil {
		w.budget = &budget
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get budget: %w", err)
	}
	return nil
}

func claimMetadata() *metav1.PartialObjectMetadata { return metadataOf("PersistentVolumeClaim") }

// metadataOf returns empty metadata of an object of the given core kind.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// metadataList returns an empty metadata list of the given core kind.
func metadataList(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return l
}
