package extendedstatefulset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// world has all input of a decision.
type world struct {
	now time.Time
	// watch is the time during which this process watched the cluster. Only that time counts for
	// deadlines.
	watch leadership.Watch
	live  bool // read from the API server, not from the cache
	set   *v1alpha1.ExtendedStatefulSet
	// invalid is the reason why the spec cannot be served; "" if it can.
	invalid string
	// digest is the digest of the template.
	digest   string
	replicas int32
	zones    []zone // wanted zones, in the order of the spec

	children siblings
	// rivals are StatefulSets that the object no longer controls, but whose pods get its claims.
	rivals siblings
	// seen are zones that are in labels but not in the status.
	seen []v1alpha1.ZoneStatus
	pods []podOfOrdinal
	// foreignPods are pods with the operator's labels that belong to no version, at most maxForeign.
	foreignPods []foreignPod
	claims      map[string]*corev1.PersistentVolumeClaim
	// foreign are claims of other owners that have the names of claims of this object.
	foreign map[string]*corev1.PersistentVolumeClaim
	// claimants are StatefulSets of other owners whose claims would have the same names, by claim name
	// without the ordinal. They are read only if claims are missing.
	claimants map[string]string
	// unseen maps a zone index to the first ordinal that was not read by name.
	unseen   map[int32]int32
	services map[string]*corev1.Service
	// budgets are the PodDisruptionBudgets that the object controls, and those of other owners with the
	// same names.
	budgets map[string]*policyv1.PodDisruptionBudget
	jobs    map[string]*batchv1.Job // Jobs that the object controls
	// lostJobs are the results of recorded Jobs that are missing, by UID. A missing Job without an
	// entry is undecided until lostDue; zero if there is none.
	lostJobs map[types.UID]v1alpha1.JobResult
	lostDue  time.Time
	config   configFacts
	// tracking is nil if there are no owner references to manage.
	tracking *tracking
	// untracked is the error if the API server forbids listing the objects that may have owner
	// references; else "".
	untracked string

	// probes has the state of the probes, by pod UID.
	probes map[types.UID]probed

	// refused is the last write error; "" if there is none.
	refused string
	// undone are the writes that an admission webhook or policy reverted.
	undone undone.Held
	// refusals are the known reasons why pods are missing, by pod name. refusalsDue is when to read
	// them again.
	refusals    map[string]string
	refusalsDue time.Time
	// causes are the reasons why pods of the current version do not run.
	causes causes.Hindrances
}

// Board has the running command and the command results of each pod. podexec.Board implements it.
type Board interface {
	Of(owner types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result)
	Keep(owner types.NamespacedName, pods ...types.UID)
}

// reader reads what a pass needs.
type reader struct {
	// cache reads from the watches; live reads from the API server.
	cache, live client.Reader
	// board has the results of the probes. It is nil if no probes are run.
	board Board
	now   func() time.Time
	// lease reports whether this process leads, and during which time it watched the cluster.
	lease *leadership.Lease

	memory memory.Of[remembered]
	ends   jobEnds
	// config reads ConfigMaps and Secrets. If it is nil, configuration is not followed.
	config *configReader
}

// observe reads the world. It fails only if a request to the API server or the cache fails.
func (r *reader) observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, from engine.View) (*world, error) {
	now := r.now() // taken before Watch, and both before the reads
	w := &world{
		now:      now,
		watch:    r.lease.Watch(),
		live:     from.Live,
		set:      set,
		invalid:  problem(withDefaults(set)),
		replicas: replicasOf(set),
	}
	known := r.of(set)
	w.refused, w.undone = known.refusal.Text(), known.undone.Held(set.Generation, now)
	digest, err := digestOf(set)
	if err != nil {
		w.invalid = err.Error()
	}
	w.digest = digest
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
	if w.set.DeletionTimestamp == nil {
		w.causes = known.causes.Read(ctx, r.live, w.now, servingPods(w))
	}
	w.invalid = cmp.Or(w.invalid, w.zonesTurned(), w.zonesUsedUp(), claimOfOthers(w))
	if err := readServices(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read Services: %w", err)
	}
	if err := r.readBudgets(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read PodDisruptionBudgets: %w", err)
	}
	r.readProbes(w)
	return w, r.readJobs(ctx, w, from)
}

// ofSet selects objects that have the label of the set.
func ofSet(set *v1alpha1.ExtendedStatefulSet) []client.ListOption {
	return []client.ListOption{client.InNamespace(set.Namespace), client.MatchingLabels{v1alpha1.LabelSet: set.Name}}
}

// readChildren finds the StatefulSets by their label. A live read also finds them by their names,
// because the label may have been removed.
func readChildren(ctx context.Context, w *world, from engine.View) error {
	var list appsv1.StatefulSetList
	if err := from.List(ctx, &list, ofSet(w.set)...); err != nil {
		return err
	}
	for i := range list.Items {
		w.addChild(&list.Items[i])
	}
	w.recoverZones(list.Items)
	if !from.Live {
		return nil
	}
	for _, z := range w.zones {
		for _, number := range []int64{w.set.Status.CurrentVersion, w.set.Status.UpdateVersion} {
			if number == 0 || w.children.find(z.index, number) != nil {
				continue
			}
			if err := readChild(ctx, w, from, childName(w.set.Name, z, number)); err != nil {
				return err
			}
		}
	}
	return nil
}

// readChild reads a StatefulSet by its name, if it exists.
func readChild(ctx context.Context, w *world, from engine.View, name string) error {
	var one appsv1.StatefulSet
	err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &one)
	if err == nil {
		w.addChild(&one)
	}
	return client.IgnoreNotFound(err)
}

func (w *world) addChild(set *appsv1.StatefulSet) {
	index, number, ok := parseChild(w.set.Name, set.Name)
	if !ok {
		return
	}
	if !controls(w.set, set) {
		if set.Spec.Template.Labels[v1alpha1.LabelSet] == w.set.Name {
			w.rivals = append(w.rivals, &child{set: set, zone: index, version: number})
		}
		return
	}
	w.children = append(w.children, &child{
		set:     set,
		zone:    index,
		version: number,
		pods:    map[int32]*corev1.Pod{},
	})
	slices.SortFunc(w.children, func(a, b *child) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.version, b.version))
	})
}

// parseChild returns the zone index and the version in the name of a StatefulSet.
func parseChild(set, name string) (index int32, number int64, ok bool) {
	rest, ok := strings.CutPrefix(name, set+"-")
	if !ok {
		return 0, 0, false
	}
	index = noZone
	if zoned, version, cut := strings.Cut(rest, "-v"); cut {
		n, err := strconv.ParseInt(strings.TrimPrefix(zoned, "z"), 10, 32)
		if err != nil {
			return 0, 0, false
		}
		index, rest = int32(n), "v"+version
	}
	number, err := strconv.ParseInt(strings.TrimPrefix(rest, "v"), 10, 64)
	return index, number, err == nil && number > 0 && childName(set, zone{index: index}, number) == name
}

func readPods(ctx context.Context, w *world, from engine.View) error {
	var list corev1.PodList
	if err := from.List(ctx, &list, ofSet(w.set)...); err != nil {
		return err
	}
	for i := range list.Items {
		w.addPod(&list.Items[i])
	}
	if !from.Live {
		return nil
	}
	if err := findChildren(ctx, w, from); err != nil {
		return err
	}
	return findPods(ctx, w, from)
}

func (w *world) addPod(pod *corev1.Pod) {
	cut := strings.LastIndex(pod.Name, "-")
	stem := pod.Name[:max(cut, 0)]
	index, number, ours := parseChild(w.set.Name, stem)
	ordinal, err := strconv.ParseInt(pod.Name[cut+1:], 10, 32)
	isNamed := ours && err == nil
	if labels := foreignLabels(pod, isNamed, isNamed && w.mayMake(index, number, stem, pod)); len(labels) > 0 && len(w.foreignPods) < maxForeign {
		w.foreignPods = append(w.foreignPods, foreignPod{pod, labels})
	}
	if !isNamed {
		return
	}
	w.pods = append(w.pods, podOfOrdinal{zone: index, version: number, ordinal: int32(ordinal), pod: pod})
	w.own(&w.pods[len(w.pods)-1])
}

// mayMake reports whether a pod with the name of a version's pod may belong to that version: its
// StatefulSet controls or adopts the pod, or the pod is older than the StatefulSet, so that a former
// StatefulSet of the same name may have created it.
func (w *world) mayMake(index int32, number int64, stem string, pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return true
	}
	if !owned.IsStatefulSet(owner, stem) {
		return false
	}
	c := w.children.find(index, number)
	if c == nil || owned.By(pod, c.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")) {
		return true
	}
	return pod.CreationTimestamp.Before(&c.set.CreationTimestamp)
}

// own assigns a pod to the StatefulSet that controls it.
func (w *world) own(t *podOfOrdinal) {
	if c := w.children.find(t.zone, t.version); c != nil && owned.By(t.pod, c.set, appsv1.SchemeGroupVersion.WithKind("StatefulSet")) {
		t.owned, c.pods[t.ordinal] = true, t.pod
	}
}

// findChildren reads the StatefulSets of pods that seem to have none. Their label may have been
// removed.
func findChildren(ctx context.Context, w *world, from engine.View) error {
	asked := sets.New[string]()
	for i := range w.pods {
		t := &w.pods[i]
		name := t.pod.Name[:strings.LastIndex(t.pod.Name, "-")]
		if w.children.find(t.zone, t.version) == nil && !asked.Has(name) {
			asked.Insert(name)
			if err := readChild(ctx, w, from, name); err != nil {
				return err
			}
		}
		w.own(t)
	}
	return nil
}

// unsure reports whether the cache may lack a StatefulSet of the object. The cache holds only
// StatefulSets with the operator's label, which may have been removed.
func (w *world) unsure() bool {
	if w.live || w.set.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(w.pods, func(t podOfOrdinal) bool {
		return w.children.find(t.zone, t.version) == nil && t.pod.DeletionTimestamp == nil
	})
}

// readServices reads both Services by their names, also if they belong to another owner.
func readServices(ctx context.Context, w *world, from engine.View) error {
	w.services = map[string]*corev1.Service{}
	for _, want := range buildServices(w.set, nil) {
		var one corev1.Service
		err := from.Get(ctx, client.ObjectKeyFromObject(want), &one)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			w.services[one.Name] = &one
		}
	}
	return nil
}

// readBudgets reads the budgets in the cache and the wanted budgets, by name. It makes no request if
// there are neither.
func (r *reader) readBudgets(ctx context.Context, w *world, from engine.View) error {
	w.budgets = map[string]*policyv1.PodDisruptionBudget{}
	var list policyv1.PodDisruptionBudgetList
	if err := r.cache.List(ctx, &list, ofSet(w.set)...); err != nil {
		return err
	}
	names := sets.New[string]()
	for i := range list.Items {
		if controls(w.set, &list.Items[i]) {
			names.Insert(list.Items[i].Name)
		}
	}
	for _, z := range w.budgeted() {
		names.Insert(z.stem(w.set.Name))
	}
	for _, name := range sets.List(names) {
		var one policyv1.PodDisruptionBudget
		err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &one)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil {
			w.budgets[name] = &one
		}
	}
	return nil
}

// readProbes reads the results of the probes from the Board.
func (r *reader) readProbes(w *world) {
	if r.board == nil || len(w.set.Spec.ActivePassiveProbes) == 0 {
		return
	}
	w.probes = make(map[types.UID]probed, len(w.pods))
	for _, t := range w.pods {
		running, results := r.board.Of(client.ObjectKeyFromObject(w.set), t.pod.UID)
		known := probed{busy: running != nil, results: make(map[string]podexec.Result, len(results))}
		for _, result := range results {
			known.results[result.Name] = result
		}
		w.probes[t.pod.UID] = known
	}
}
