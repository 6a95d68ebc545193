package observe

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
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Reader reads the state of sets, and remembers what no object has.
type Reader struct {
	// Cache reads from the informers; Live reads from the API server.
	Cache, Live client.Reader
	// Pods lists pods from the API server one at a time. If nil, Live is used.
	Pods client.Reader
	// Now returns the current time.
	Now func() time.Time
	// Lease reports whether this process is the leader, and when it was able to observe the
	// cluster.
	Lease *leadership.Lease
	// Fresh returns n distinct ids that are not in taken. If nil, they are random.
	Fresh func(n int, taken func(string) bool) []string

	// Deletions has the deletions of pods that the pod watch showed.
	Deletions Deletions
	memory    memory.Of[Remembered]
	nodes     nodestate.Reader
}

// Observe reads the state of a set. Members and claims are read from the given view, revisions and
// the budget from the cache. Stale revisions and a stale budget do no harm: their names follow from
// their content, so no second one is created, and a missing one only causes a delay.
func (r *Reader) Observe(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) (*facts.World, error) {
	// Read the clock first, then the watch, then the cluster: a freeze in between makes a duration
	// look shorter, never longer.
	w := &facts.World{Now: r.Now(), Live: from.Live, Settings: spec.Settings{Set: spec.WithDefaults(set)}}
	w.Watch = r.Lease.Watch()
	w.Invalid = spec.Problem(w.Set)
	pods, claims, err := r.readMembers(ctx, w, from)
	if err != nil {
		return nil, err
	}
	claims = facts.KeepOrphans(w, claims)
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
	if w.Invalid == "" {
		w.Invalid = facts.ChangedClaims(w)
	}
	if from.Live && !r.Of(w.Set).Searched {
		if w.Abandoned, err = r.ReadAbandoned(ctx, client.ObjectKeyFromObject(w.Set), w.Set.UID); err != nil {
			return nil, fmt.Errorf("list the claims of earlier sets with the same name: %w", err)
		}
	}
	if err := r.readDeletions(ctx, w, from); err != nil {
		return nil, fmt.Errorf("look for deleted pods: %w", err)
	}
	if err := readOffers(ctx, w, from); err != nil {
		return nil, fmt.Errorf("list the claims that the set may adopt: %w", err)
	}
	r.Of(w.Set).Recall(w)
	if w.Served() {
		w.Causes = r.Of(w.Set).causes.Read(ctx, r.Live, w.Now, CausesOf(w))
	}
	w.Fresh = facts.FirstIDs(w)
	ids := w.IDs()
	for _, id := range w.Fresh {
		ids[id] = true
	}
	fresh := identity.Fresh
	if r.Fresh != nil {
		fresh = r.Fresh
	}
	w.Fresh = append(w.Fresh, fresh(freshIDs(w), func(id string) bool { return ids[id] })...)
	return w, nil
}

// readMembers reads pods and claims concurrently. A claim is created after its pod, but the pods
// may be listed a moment before the claims. So the pods are read again if the pod of a claim is
// missing and the member is not returning.
func (r *Reader) readMembers(ctx context.Context, w *facts.World, from engine.View) ([]*corev1.Pod, []*corev1.PersistentVolumeClaim, error) {
	var pods, unlabelled []*corev1.Pod
	var claims []*corev1.PersistentVolumeClaim
	reads, within := errgroup.WithContext(ctx)
	reads.Go(func() (err error) { pods, err = r.readPods(within, w, from); return err })
	reads.Go(func() (err error) { claims, err = r.readClaims(within, w.Set, from); return err })
	if from.Live {
		reads.Go(func() (err error) { unlabelled, err = r.readUnlabelled(within, w, from); return err })
	}
	err := reads.Wait()
	claims, w.Misnamed = w.NamedAsOurs(claims)
	if err == nil && from.Live && len(facts.MissingPods(w, pods, claims)) > 0 {
		// Sequentially: a pod that loses the operator's label in between is found by the second
		// read.
		if pods, err = r.readPods(ctx, w, from); err == nil {
			unlabelled, err = r.readUnlabelled(ctx, w, from)
		}
		if err == nil {
			pods = append(pods, unlabelled...)
			unlabelled, err = r.readByName(ctx, w, facts.MissingPods(w, pods, claims), from)
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
func (r *Reader) readByName(ctx context.Context, w *facts.World, names []string, from engine.View) ([]*corev1.Pod, error) {
	var found []*corev1.Pod
	for _, name := range names {
		var pod corev1.Pod
		err := from.Get(ctx, types.NamespacedName{Namespace: w.Set.Namespace, Name: name}, &pod)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("get pod: %w", err)
		case err == nil && r.isMember(w.Set, &pod, true):
			found = append(found, &pod)
		}
	}
	return found, nil
}

// readPods lists the pods with the operator's labels. It returns the members, and records other pods in
// w.Orphans and w.Labelled.
func (r *Reader) readPods(ctx context.Context, w *facts.World, from engine.View) ([]*corev1.Pod, error) {
	set := w.Set
	reader := from.Reader
	if from.Live && r.Pods != nil {
		strangers, err := r.hasStrangers(ctx, set)
		if err != nil {
			return nil, err
		}
		if strangers {
			reader = r.Pods
		}
	}
	var list corev1.PodList
	if err := reader.List(ctx, &list, r.belonging(set, from)...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(list.Items))
	w.Orphans, w.Labelled = nil, nil
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case r.isMember(set, pod, from.Live):
			pods = append(pods, pod)
		case pod.DeletionTimestamp != nil:
		case metav1.GetControllerOf(pod) == nil:
			w.Orphans = append(w.Orphans, pod)
		case len(w.Labelled) < facts.MaxLabelled:
			w.Labelled = append(w.Labelled, pod)
		}
	}
	return pods, nil
}

// hasStrangers reports whether the cache has pods with the operator's labels that the set does not
// control. Users determine the number and size of these pods, so the live list then uses r.Pods.
func (r *Reader) hasStrangers(ctx context.Context, set *v1alpha1.StatefulCluster) (bool, error) {
	var list corev1.PodList
	if err := r.Cache.List(ctx, &list, r.belonging(set, engine.View{Reader: r.Cache})...); err != nil {
		return false, fmt.Errorf("list pods of the cache: %w", err)
	}
	for i := range list.Items {
		if !children.Controls(set, &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

// readClaims lists the claims with the set's label. In a pass on the cache they have only metadata.
func (r *Reader) readClaims(ctx context.Context, set *v1alpha1.StatefulCluster, from engine.View) ([]*corev1.PersistentVolumeClaim, error) {
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
func (r *Reader) belonging(set *v1alpha1.StatefulCluster, from engine.View) []client.ListOption {
	if from.Live {
		return []client.ListOption{client.InNamespace(set.Namespace),
			client.MatchingLabels{v1alpha1.LabelClusterUID: string(set.UID)}}
	}
	return []client.ListOption{client.InNamespace(set.Namespace),
		client.MatchingFields{IndexOwner: string(set.UID)}, client.UnsafeDisableDeepCopy}
}

// assemble builds the members from pods, claims and nodes.
func (r *Reader) assemble(ctx context.Context, w *facts.World, pods []*corev1.Pod, claims []*corev1.PersistentVolumeClaim, from engine.View) error {
	byID := make(map[string]*facts.Member, len(pods))
	nodes := map[string]*corev1.Node{}
	for _, pod := range pods {
		m := &facts.Member{ID: w.IDOf(pod.Name), Pod: pod}
		var err error
		if m.Node, err = r.readNode(ctx, pod, nodes, w.Now, from); err != nil {
			return fmt.Errorf("get node %s: %w", pod.Spec.NodeName, err)
		}
		byID[m.ID] = m
		w.Members = append(w.Members, m)
	}
	for _, c := range claims {
		m := byID[facts.MemberOf(c)]
		if m == nil {
			w.Loose = append(w.Loose, c)
			continue
		}
		m.Add(c)
	}
	if err := readLostClaims(ctx, w, from); err != nil {
		return err
	}
	slices.SortFunc(w.Loose, func(a, b *corev1.PersistentVolumeClaim) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// readLostClaims reads by name the claims of members, and of members being recreated, that the
// label selector did not find. A claim counts as gone only if it does not exist at all.
func readLostClaims(ctx context.Context, w *facts.World, from engine.View) error {
	if !from.Live || w.Invalid != "" {
		return nil
	}
	read := func(template, id string, add func(*corev1.PersistentVolumeClaim)) error {
		var c corev1.PersistentVolumeClaim
		err := from.Get(ctx, types.NamespacedName{Namespace: w.Set.Namespace, Name: claim.Name(w.Set.Name, template, id)}, &c)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("get claim: %w", err)
		}
		add(&c)
		return nil
	}
	for _, m := range w.Members {
		if !m.HasRun() {
			continue
		}
		for _, t := range facts.MissingClaims(w, m) {
			if err := read(t.Name, m.ID, m.Add); err != nil {
				return err
			}
		}
	}
	for _, e := range w.Set.Status.Updating {
		id := w.IDOf(e.Name)
		if w.HasPod(id) || w.OrphanIDs[id] {
			continue
		}
		for _, t := range w.Set.Spec.VolumeClaimTemplates {
			if w.HasClaim(t.Name, id) {
				continue
			}
			if err := read(t.Name, id, func(c *corev1.PersistentVolumeClaim) { w.Loose = append(w.Loose, c) }); err != nil {
				return err
			}
		}
	}
	return nil
}

// readNode reads a pod's Node from the cache. In a live pass, a Node that looks lost or cordoned is
// read again from the API server.
func (r *Reader) readNode(ctx context.Context, pod *corev1.Pod, seen map[string]*corev1.Node, now time.Time, from engine.View) (facts.Node, error) {
	name := pod.Spec.NodeName
	if name == "" {
		return facts.Node{}, nil
	}
	n, read := seen[name]
	if !read {
		var err error
		n, err = getNode(ctx, r.Cache, name)
		if err == nil && from.Live && r.NodeOf(pod, n, now).CostsMembers() {
			n, err = getNode(ctx, from.Reader, name)
		}
		if err != nil {
			return facts.Node{}, err
		}
		seen[name] = n
	}
	return r.NodeOf(pod, n, now), nil
}

// NodeOf returns the state of the Node that a pod was bound to. If a different machine has the name
// now, the Node of the pod is gone.
func (r *Reader) NodeOf(pod *corev1.Pod, n *corev1.Node, now time.Time) facts.Node {
	if n == nil {
		return facts.Node{Gone: true, GoneSince: r.nodes.Absent(pod.Spec.NodeName, now)}
	}
	bound, scheduled := podstate.Since(pod, corev1.PodScheduled)
	since, found := r.nodes.Present(n, now), nodestate.Of(n)
	out := facts.Node{GoneSince: n.CreationTimestamp.Time}
	out.Gone = scheduled && since.After(bound) && pod.CreationTimestamp.Time.Before(since) && !outlived(pod, n)
	out.OutOfService, out.Cordoned, out.NotReadySince = found.OutOfService, found.Cordoned, found.NotReadySince
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

// getNode reads a Node; nil if it does not exist.
func getNode(ctx context.Context, reader client.Reader, name string) (*corev1.Node, error) {
	var n corev1.Node
	if err := reader.Get(ctx, types.NamespacedName{Name: name}, &n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return &n, nil
}

// readRevisions reads the revisions and the budget. It reads from the API server only if it is known
// that one lacks the operator's label and so is missing from the cache.
func (r *Reader) readRevisions(ctx context.Context, w *facts.World, from engine.View) error {
	reader, options := r.Cache, r.belonging(w.Set, engine.View{})
	if from.Live && r.Of(w.Set).Hidden {
		reader, options = from.Reader, []client.ListOption{client.InNamespace(w.Set.Namespace)}
	}
	var revisions appsv1.ControllerRevisionList
	if err := reader.List(ctx, &revisions, options...); err != nil {
		return fmt.Errorf("list revisions: %w", err)
	}
	for i := range revisions.Items {
		if children.Controls(w.Set, &revisions.Items[i]) {
			w.Revisions = append(w.Revisions, &revisions.Items[i])
		}
	}
	slices.SortFunc(w.Revisions, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var budget policyv1.PodDisruptionBudget
	err := reader.Get(ctx, client.ObjectKeyFromObject(w.Set), &budget)
	if err == nil {
		w.Budget = &budget
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("get budget: %w", err)
	}
	return nil
}

// CausesOf returns the pods for which causes are read, the reasons why they do not run: those of all
// members, and those of returning members that do not exist.
func CausesOf(w *facts.World) []causes.Named {
	var all []causes.Named
	has := map[string]bool{}
	for _, m := range w.Members {
		has[m.Name()] = true
		all = append(all, causes.Named{Name: m.Name(), In: m.Replaces(), Pod: m.Pod})
	}
	for _, e := range w.Set.Status.Updating {
		if !has[e.Name] {
			all = append(all, causes.Named{Name: e.Name})
		}
	}
	return all
}

// namesBatch bounds the number of recorded names, so that the object stays far below the etcd limit
// (1.5 MiB).
const namesBatch = 2000

// freshIDs returns how many new ids a plan may need in addition to w.Fresh.
func freshIDs(w *facts.World) int {
	if w.Invalid != "" {
		return 0
	}
	need := w.Replicas() + w.MaxExtra()
	for _, m := range w.Members {
		if m.Ready() && !m.Terminating() && !m.OnBadNode() {
			need--
		}
	}
	return max(0, min(need, namesBatch)-len(w.Fresh))
}
