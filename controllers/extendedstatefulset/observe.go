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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// world is all that a decision may know.
type world struct {
	now time.Time
	// watch is the time in which this process could look. Whoever is blamed for what did
	// not happen in time is blamed for that time only.
	watch leadership.Watch
	live  bool // read past the cache
	set   *v1alpha1.ExtendedStatefulSet
	// invalid says why the spec cannot be served; "" if it can.
	invalid string
	// digest is that of the content of the template.
	digest   string
	replicas int32
	zones    []zone // wanted, in the order of the spec

	children []*child // by zone index, then version
	// rivals are StatefulSets that were ours, and whose pods get our claims.
	rivals []*child
	// seen are zones that labels tell of and the status does not.
	seen    []v1alpha1.ZoneStatus
	tenants []tenant
	claims  map[string]*corev1.PersistentVolumeClaim
	// foreign are claims that have the names of ours and are somebody else's.
	foreign map[string]*corev1.PersistentVolumeClaim
	// claimants are StatefulSets whose claims would have the names of ours, by those
	// names without ordinals. They are looked for only where claims are missing.
	claimants map[string]string
	// unseen is from which ordinal on a zone was not looked at by name, by its index.
	unseen   map[int32]int32
	services map[string]*corev1.Service
	jobs     map[string]*batchv1.Job // those that the object controls
	// config holds, by the name of a StatefulSet that is there or to be made, what
	// it shall carry of the configuration. One that is not here keeps what it has.
	config map[string]configStamp
	// missing says, by the name of a StatefulSet, what it requires and what is not
	// there or cannot be read, with a reason of condition ConfigMissing.
	missing map[string]notice
	// restart says why pods are yet to be restarted for a change of configuration.
	restart notice
	// configWait is when to look at the configuration again; 0 is never.
	configWait time.Duration
	// tracking is nil where owner references are none of our business.
	tracking *tracking

	// probes is what is known of the probes in the pods, by the pods' UIDs.
	probes map[types.UID]probed

	// books are the status as it has to be before anything else is done.
	books *v1alpha1.ExtendedStatefulSetStatus
	// refused is what the API server refused last; "" if nothing.
	refused string
	// refusals says, by their names, why pods are not there that should be, as far as
	// that is known; refusalsDue is when to ask again.
	refusals    map[string]string
	refusalsDue time.Time
}

// child is one StatefulSet of ours.
type child struct {
	set     *appsv1.StatefulSet
	zone    int32 // its index
	version int64
	pods    map[int32]*corev1.Pod // by ordinal, those that go too
}

// tenant is a pod on an ordinal, also one whose StatefulSet is gone.
type tenant struct {
	zone    int32
	version int64
	ordinal int32
	pod     *corev1.Pod
	// owned is true when its controller is a StatefulSet of ours, by UID.
	owned bool
}

// observe reads the world. It fails only when the API does.
func (r *Reconciler) observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, from engine.View) (*world, error) {
	now := r.Now() // before the watch, and both before what is read
	w := &world{now: now, watch: r.Lease.Watch(), live: from.Live, set: set, invalid: problem(withDefaults(set)), replicas: replicasOf(set)}
	if refusal, isNew := r.memory.Get(client.ObjectKeyFromObject(set), set.UID); !isNew {
		w.refused = refusal.Text()
	}
	digest, err := digestOf(set)
	if err != nil {
		w.invalid = err.Error()
	}
	w.digest = digest
	if err := listClaims(ctx, w, from); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	if err := readChildren(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read the StatefulSets: %w", err)
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
	w.invalid = cmp.Or(w.invalid, w.zonesTurned(), w.zonesUsedUp(), w.claimOfOthers())
	if err := readServices(ctx, w, from); err != nil {
		return nil, fmt.Errorf("read Services: %w", err)
	}
	r.readProbes(w)
	return w, readJobs(ctx, w, from)
}

// ofSet selects what carries the label of the set.
func ofSet(set *v1alpha1.ExtendedStatefulSet) []client.ListOption {
	return []client.ListOption{client.InNamespace(set.Namespace), client.MatchingLabels{v1alpha1.LabelSet: set.Name}}
}

// readChildren finds the StatefulSets by their label, and live also by the names
// that they must have: somebody may have taken the label off.
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
			if number == 0 || w.child(z.index, number) != nil {
				continue
			}
			var one appsv1.StatefulSet
			err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: childName(w.set.Name, z, number)}, &one)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				w.addChild(&one)
			}
		}
	}
	return nil
}

func (w *world) addChild(set *appsv1.StatefulSet) {
	index, number, ok := parseChild(w.set.Name, set.Name)
	if !ok {
		return
	}
	if !metav1.IsControlledBy(set, w.set) {
		if set.Spec.Template.Labels[v1alpha1.LabelSet] == w.set.Name {
			w.rivals = append(w.rivals, &child{set: set, zone: index, version: number})
		}
		return
	}
	w.children = append(w.children, &child{set: set, zone: index, version: number, pods: map[int32]*corev1.Pod{}})
	slices.SortFunc(w.children, func(a, b *child) int {
		return cmp.Or(cmp.Compare(a.zone, b.zone), cmp.Compare(a.version, b.version))
	})
}

// parseChild reads zone index and version from the name of a StatefulSet.
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
	index, number, ours := parseChild(w.set.Name, pod.Name[:max(cut, 0)])
	ordinal, err := strconv.ParseInt(pod.Name[cut+1:], 10, 32)
	if !ours || err != nil {
		return
	}
	w.tenants = append(w.tenants, tenant{zone: index, version: number, ordinal: int32(ordinal), pod: pod})
	w.own(&w.tenants[len(w.tenants)-1])
}

// own gives a pod to the StatefulSet that controls it.
func (w *world) own(t *tenant) {
	if c := w.child(t.zone, t.version); c != nil && metav1.IsControlledBy(t.pod, c.set) {
		t.owned, c.pods[t.ordinal] = true, t.pod
	}
}

// findChildren finds the StatefulSets of pods that seem to have none: somebody may
// have taken the label off.
func findChildren(ctx context.Context, w *world, from engine.View) error {
	asked := sets.New[string]()
	for i := range w.tenants {
		t := &w.tenants[i]
		name := t.pod.Name[:strings.LastIndex(t.pod.Name, "-")]
		if w.child(t.zone, t.version) == nil && !asked.Has(name) {
			asked.Insert(name)
			var one appsv1.StatefulSet
			err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &one)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				w.addChild(&one)
			}
		}
		w.own(t)
	}
	return nil
}

// unsure tells whether a cache, which holds what has our label, may lack a
// StatefulSet of ours that has lost it.
func (w *world) unsure() bool {
	if w.live || w.set.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(w.tenants, func(t tenant) bool { return w.child(t.zone, t.version) == nil && t.pod.DeletionTimestamp == nil })
}

// readServices reads the two Services by their names, whosever they are.
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

// readProbes asks the Board what the probes of the pods said.
func (r *Reconciler) readProbes(w *world) {
	if r.Board == nil || len(w.set.Spec.ActivePassiveProbes) == 0 {
		return
	}
	w.probes = make(map[types.UID]probed, len(w.tenants))
	for _, t := range w.tenants {
		running, results := r.Board.Of(client.ObjectKeyFromObject(w.set), t.pod.UID)
		known := probed{busy: running != nil, results: make(map[string]podexec.Result, len(results))}
		for _, result := range results {
			known.results[result.Name] = result
		}
		w.probes[t.pod.UID] = known
	}
}

func readJobs(ctx context.Context, w *world, from engine.View) error {
	var list batchv1.JobList
	if err := from.List(ctx, &list, ofSet(w.set)...); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	w.jobs = map[string]*batchv1.Job{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], w.set) {
			w.jobs[list.Items[i].Name] = &list.Items[i]
		}
	}
	return nil
}
