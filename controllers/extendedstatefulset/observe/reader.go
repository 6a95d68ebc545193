package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Board has the running command and the command results of each pod. podexec.Board implements it.
type Board interface {
	Of(owner types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result)
	Keep(owner types.NamespacedName, pods ...types.UID)
}

// Reader reads what a pass needs.
type Reader struct {
	// Cache reads from the watches, Live from the API server.
	Cache, Live client.Reader
	// Board has the results of the probes. It is nil if no probes are run.
	Board Board
	Now   func() time.Time
	// Lease reports whether this process leads, and during which time it watched the cluster.
	Lease *leadership.Lease

	memory memory.Of[Remembered]
	// Ends has the results of deleted Jobs.
	Ends jobEnds
	// Config reads ConfigMaps and Secrets. If it is nil, configuration is not followed.
	Config *ConfigReader
}

// Observe reads the world. It fails only if a request to the API server or the cache fails.
func (r *Reader) Observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, from engine.View) (*facts.World, error) {
	now := r.Now() // taken before Watch, and both before the reads
	w := &facts.World{
		Now:      now,
		Watch:    r.Lease.Watch(),
		Live:     from.Live,
		Set:      set,
		Invalid:  spec.Problem(spec.WithDefaults(set)),
		Replicas: spec.ReplicasOf(set),
	}
	remembered := r.Of(set)
	w.Refused, w.Undone = remembered.Refusal.Text(), remembered.Undone.Held(set.Generation, now)
	digest, err := children.DigestOf(set)
	if err != nil {
		w.Invalid = err.Error()
	}
	w.Digest = digest
	if err := listClaims(ctx, w, from); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	if err := readChildren(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read StatefulSets: %w", err)
	}
	if err := readPods(ctx, w, from); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	if err := findClaims(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	if err := r.readConfig(ctx, w); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	r.readRefusals(ctx, w)
	if w.Set.DeletionTimestamp == nil {
		w.Causes = remembered.causes.Read(ctx, r.Live, w.Now, facts.CurrentPods(w))
	}
	w.Invalid = cmp.Or(w.Invalid, zonesSwitched(w), zonesUsedUp(w), claimOfOtherSet(w))
	if err := readServices(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read Services: %w", err)
	}
	if err := r.readBudgets(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read PodDisruptionBudgets: %w", err)
	}
	r.readProbes(w)
	return w, r.readJobs(ctx, w, from)
}

// OfSet selects objects that have the label of the set.
func OfSet(set *v1alpha1.ExtendedStatefulSet) []client.ListOption {
	return []client.ListOption{client.InNamespace(set.Namespace), client.MatchingLabels{v1alpha1.LabelSet: set.Name}}
}

// readChildren finds the StatefulSets by their label. A live read also finds them by their names,
// because the label may have been removed.
func readChildren(ctx context.Context, w *facts.World, from engine.View) error {
	var list appsv1.StatefulSetList
	if err := from.List(ctx, &list, OfSet(w.Set)...); err != nil {
		return err
	}
	for i := range list.Items {
		AddChild(w, &list.Items[i])
	}
	RecoverZones(w, list.Items)
	if !from.Live {
		return nil
	}
	for _, z := range w.Zones {
		for _, number := range []int64{w.Set.Status.CurrentVersion, w.Set.Status.UpdateVersion} {
			if number == 0 || w.Children.Find(z.Index, number) != nil {
				continue
			}
			if err := readChild(ctx, w, from, children.ChildName(w.Set.Name, z, number)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readChild reads a StatefulSet by its name, if it exists.
func readChild(ctx context.Context, w *facts.World, from engine.View, name string) error {
	var one appsv1.StatefulSet
	err := from.Get(ctx, client.ObjectKey{Namespace: w.Set.Namespace, Name: name}, &one)
	if err == nil {
		AddChild(w, &one)
	}
	return client.IgnoreNotFound(err)
}

// AddChild adds a StatefulSet with the name of a version to the world: as a child if the set controls
// it, or as a rival if only its pods have the label of the set.
func AddChild(w *facts.World, set *appsv1.StatefulSet) {
	index, number, ok := children.ParseChild(w.Set.Name, set.Name)
	if !ok {
		return
	}
	if !children.Controls(w.Set, set) {
		if set.Spec.Template.Labels[v1alpha1.LabelSet] == w.Set.Name {
			w.Rivals = append(w.Rivals, &facts.Child{Set: set, Zone: index, Version: number})
		}
		return
	}
	w.Children = append(w.Children, &facts.Child{
		Set:     set,
		Zone:    index,
		Version: number,
		Pods:    map[int32]*corev1.Pod{},
	})
	slices.SortFunc(w.Children, func(a, b *facts.Child) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Version, b.Version))
	})
}

// readPods finds the pods by their label. A live read also finds pods, and the StatefulSets of pods, by
// their names, because the label may have been removed.
func readPods(ctx context.Context, w *facts.World, from engine.View) error {
	var list corev1.PodList
	if err := from.List(ctx, &list, OfSet(w.Set)...); err != nil {
		return err
	}
	for i := range list.Items {
		AddPod(w, &list.Items[i])
	}
	if !from.Live {
		return nil
	}
	if err := findChildren(ctx, w, from); err != nil {
		return err
	}
	return findPods(ctx, w, from)
}

// AddPod adds a pod to the pods of the world if it has the name of a version's pod. It adds a pod that
// belongs to no version to the foreign pods.
func AddPod(w *facts.World, pod *corev1.Pod) {
	cut := strings.LastIndex(pod.Name, "-")
	stem := pod.Name[:max(cut, 0)]
	index, number, ours := children.ParseChild(w.Set.Name, stem)
	ordinal, err := strconv.ParseInt(pod.Name[cut+1:], 10, 32)
	isNamed := ours && err == nil
	if labels := facts.ForeignLabels(pod, isNamed, isNamed && mayBelong(w, index, number, stem, pod)); len(labels) > 0 && len(w.ForeignPods) < facts.MaxForeign {
		w.ForeignPods = append(w.ForeignPods, facts.ForeignPod{Pod: pod, Labels: labels})
	}
	if !isNamed {
		return
	}
	w.Pods = append(w.Pods, facts.PodOfOrdinal{Zone: index, Version: number, Ordinal: int32(ordinal), Pod: pod})
	assign(w, &w.Pods[len(w.Pods)-1])
}

// mayBelong reports whether a pod with the name of a version's pod may belong to that version: its
// StatefulSet controls or adopts the pod, or the pod is older than the StatefulSet, so that a former
// StatefulSet of the same name may have created it.
func mayBelong(w *facts.World, index int32, number int64, stem string, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return true
	}
	if !owned.IsStatefulSet(owner, stem) {
		return false
	}
	c := w.Children.Find(index, number)
	if c == nil || owned.By(pod, c.Set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")) {
		return true
	}
	return pod.CreationTimestamp.Before(&c.Set.CreationTimestamp)
}

// assign adds a pod to the StatefulSet that controls it, by UID.
func assign(w *facts.World, t *facts.PodOfOrdinal) {
	if c := w.Children.Find(t.Zone, t.Version); c != nil && owned.By(t.Pod, c.Set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")) {
		t.Owned, c.Pods[t.Ordinal] = true, t.Pod
	}
}

// findChildren reads the StatefulSets of pods that seem to have none. Their label may have been
// removed.
func findChildren(ctx context.Context, w *facts.World, from engine.View) error {
	read := sets.New[string]()
	for i := range w.Pods {
		t := &w.Pods[i]
		name := t.Pod.Name[:strings.LastIndex(t.Pod.Name, "-")]
		if w.Children.Find(t.Zone, t.Version) == nil && !read.Has(name) {
			read.Insert(name)
			if err := readChild(ctx, w, from, name); err != nil {
				return err
			}
		}
		assign(w, t)
	}
	return nil
}

// readServices reads both Services by their names, also if they belong to another owner.
func readServices(ctx context.Context, w *facts.World, from engine.View) error {
	w.Services = map[string]*corev1.Service{}
	for _, want := range children.BuildServices(w.Set, nil) {
		var one corev1.Service
		err := from.Get(ctx, client.ObjectKeyFromObject(want), &one)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			w.Services[one.Name] = &one
		}
	}
	return nil
}

// readBudgets reads the budgets in the cache and the wanted budgets, by name. It makes no request if
// there are neither.
func (r *Reader) readBudgets(ctx context.Context, w *facts.World, from engine.View) error {
	w.Budgets = map[string]*policyv1.PodDisruptionBudget{}
	var list policyv1.PodDisruptionBudgetList
	if err := r.Cache.List(ctx, &list, OfSet(w.Set)...); err != nil {
		return err
	}
	names := sets.New[string]()
	for i := range list.Items {
		if children.Controls(w.Set, &list.Items[i]) {
			names.Insert(list.Items[i].Name)
		}
	}
	for _, z := range w.Budgeted() {
		names.Insert(z.Stem(w.Set.Name))
	}
	for _, name := range sets.List(names) {
		var one policyv1.PodDisruptionBudget
		err := from.Get(ctx, client.ObjectKey{Namespace: w.Set.Namespace, Name: name}, &one)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			w.Budgets[name] = &one
		}
	}
	return nil
}

// readProbes reads the results of the probes from the Board.
func (r *Reader) readProbes(w *facts.World) {
	if r.Board == nil || len(w.Set.Spec.ActivePassiveProbes) == 0 {
		return
	}
	w.Probes = make(map[types.UID]facts.Probed, len(w.Pods))
	for _, t := range w.Pods {
		running, results := r.Board.Of(client.ObjectKeyFromObject(w.Set), t.Pod.UID)
		probed := facts.Probed{Busy: running != nil, Results: make(map[string]podexec.Result, len(results))}
		for _, result := range results {
			probed.Results[result.Name] = result
		}
		w.Probes[t.Pod.UID] = probed
	}
}
