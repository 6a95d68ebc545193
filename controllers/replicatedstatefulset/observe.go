package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// clock is what a decision knows of time.
type clock struct {
	now time.Time
	// took is how long it took to read the world.
	took time.Duration
	// watch is in which time this process could look. A deadline that blames a member, or
	// gives up on one, counts no other.
	watch leadership.Watch
}

// world is all that a decision may know.
type world struct {
	clock
	// live is true of a world that was read past the cache. Of a plan for another one
	// nothing is done but to ask.
	live bool
	set  *v1alpha1.ReplicatedStatefulSet
	// invalid says why the spec cannot be served; "" if it can.
	invalid string
	// namespaceGoes is true while the namespace is being deleted.
	namespaceGoes bool

	stateful *appsv1.StatefulSet        // nil: there is none
	services map[string]*corev1.Service // by name
	// budget is that of all members, or of those that are no primary, and primaryBudget
	// that of the primaries.
	budget, primaryBudget *policyv1.PodDisruptionBudget

	members []*member // pods of the set, by ordinal
	// foreignPods are pods with our labels that are no members, at most maxForeign.
	foreignPods []*corev1.Pod
	// claims are those of the members, by name, while they may have to grow.
	claims map[string]*corev1.PersistentVolumeClaim
	// leftClaims are those with our labels, when the object is being deleted with them and
	// its pods are gone.
	leftClaims []*corev1.PersistentVolumeClaim
	// copies is how many members the claims of a set are of that is stopped and does not know.
	copies int32
	// rules is a hash of the ConfigMaps of spec.ruleSelector.
	rules string
	// excess says why the ConfigMaps of spec.ruleSelector are not followed; "" if they are.
	excess string
	// config is what the StatefulSet has to carry of the ConfigMaps and Secrets that the pods
	// use.
	config configFacts
	// revisions are the templates of members that are to be changed in place, and the one
	// that they are to be of, by their names. Only a live world has them.
	revisions map[string]*corev1.PodTemplateSpec
	// missing are the Secrets of spec.TLS that are not there.
	missing []string
	// lossAt is when this process last saw a grant go, or the set for the first
	// time: what secondaries said of their copies before is old.
	lossAt time.Time
	// lossOf is the pod whose grant that was; "" if this process has seen none go, or
	// several at once.
	lossOf types.UID
	// lossPod is the name of that pod, which may be another one by now.
	lossPod string
	// statefulSince is since when this process knows the StatefulSet as it is specified now.
	statefulSince time.Time
	// trial is the last dry run of a create that the API server refused.
	trial refusedTrial
	// requestedAt is since when this process knows of the member that an annotation wants to
	// be primary.
	requestedAt time.Time
	// refused is the last write that the API server refused, in its words.
	refused string
	// mended is when children were patched last, by childKey.
	mended map[string]time.Time
	// undone are the writes that an admission webhook or policy changed back.
	undone undone.Held
	// closedAt is what the budget said when this process last closed it for a handover.
	closedAt string
	// causes are why members do not start, for users.
	causes causes.Hindrances
}

// member is a pod and what is known of it.
type member struct {
	pod     *corev1.Pod
	ordinal int
	node    nodestate.Facts
	// evictionAt is when its eviction was asked for last, as far as the book says.
	evictionAt time.Time
	// owned is true of a pod that its owners say is this object's, and that is no
	// stranger: no command is run in any other.
	owned bool
	// commandsIn is the name of the container in which commands run.
	commandsIn string
	// busy is the command that runs in the pod now, sent by this process.
	busy *podexec.Command
	// results are the newest of each command that this process ran in the pod,
	// said the newest of each whose outcome is known.
	results, said map[string]podexec.Result
	// unclear are the results that are new, and say nothing.
	unclear []podexec.Result
	// tries is how often in a row the outcome of a command was unknown.
	tries map[string]int
	// missed is how often in a row the end of status was not seen in the container that
	// runs, though the API server answered.
	missed int
	// askedAt is since when status has been asked in vain in the container that runs;
	// zero while it answers. unheard is true if the status of the object says so, from
	// this process or the one before.
	askedAt time.Time
	unheard bool
	// resizeRefused is the last resize of the pod that the API server refused.
	resizeRefused refusedResize
	// touched is when this process last saw the pod change: its container, or
	// whether it is Ready.
	touched time.Time

	known // see derive
}

// observe reads the world of a set. What the Board knows is read first: a command
// that ends meanwhile is seen by the next look, beside pods that are newer.
func (r *Reconciler) observe(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*world, error) {
	w := &world{
		clock: clock{now: r.Now(), watch: r.Lease.Watch()},
		live:  from.Live,
		set:   withDefaults(set),
	}
	if errs := validate(w.set); len(errs) > 0 {
		w.invalid = errs.ToAggregate().Error()
	}
	if err := r.readMembers(ctx, w, from); err != nil {
		return nil, err
	}
	if err := r.readChildren(ctx, w, from); err != nil {
		return nil, err
	}
	for _, m := range w.members {
		m.owned = w.owns(m)
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
	r.recall(w)
	r.readCauses(ctx, w)
	w.took = r.Now().Sub(w.now)
	countUnclear(ctx, w)
	return w, nil
}

// countUnclear counts and logs the commands whose outcome is not known.
func countUnclear(ctx context.Context, w *world) {
	for _, m := range w.members {
		for _, result := range m.unclear {
			unknownTotal.WithLabelValues(result.Name).Inc()
			ctrl.LoggerFrom(ctx).Info("the outcome of a command is not known", "pod", m.name(), "command", result.Name, "why", result.Why)
		}
	}
}

// owns reports whether a pod is this object's by its owners, and no stranger.
func (w *world) owns(m *member) bool {
	if w.stateful == nil || !w.ours(w.stateful) || !makes(w.stateful, m.pod) {
		return false
	}
	return w.whyStranger(m, w.isStored(m)) == ""
}

// readNamespace finds out whether the namespace of an object that goes does so, too.
func (r *Reconciler) readNamespace(ctx context.Context, w *world, from engine.View) error {
	if !w.deleting() || !from.Live {
		return nil
	}
	var namespace corev1.Namespace
	if err := from.Get(ctx, types.NamespacedName{Name: w.set.Namespace}, &namespace); err != nil {
		return fmt.Errorf("get the namespace: %w", err)
	}
	w.namespaceGoes = namespace.DeletionTimestamp != nil
	return nil
}

// readMembers reads the pods of the set, and what is known of each.
func (r *Reconciler) readMembers(ctx context.Context, w *world, from engine.View) error {
	pods, err := r.readPods(ctx, w, from)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(w.set)
	for i := range pods {
		pod := &pods[i]
		ordinal, ok := ordinalOf(w.set, pod.Name)
		m := &member{
			pod:        pod,
			ordinal:    ordinal,
			commandsIn: pod.Annotations[v1alpha1.AnnotationContainer],
			results:    map[string]podexec.Result{},
		}
		if !ok || !w.counts(m) {
			if isForeign(pod) && len(w.foreignPods) < maxForeign {
				w.foreignPods = append(w.foreignPods, pod)
			}
			continue
		}
		if m.commandsIn == "" && len(w.set.Spec.Pod.Containers) > 0 {
			m.commandsIn = commandsIn(&w.set.Spec.Pod)
		}
		busy, results := r.Board.Of(key, pod.UID)
		m.busy, m.evictionAt = busy, r.book.askedAt(pod.UID)
		for _, result := range results {
			m.results[result.Name] = result
		}
		if m.node, err = r.nodes.Read(ctx, r.Nodes, r.Live, pod.Spec.NodeName, r.Now()); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	slices.SortFunc(w.members, func(a, b *member) int { return a.ordinal - b.ordinal })
	return nil
}

// counts reports whether a pod with the name of a member is one. One that may be primary, or
// waits for us to go, is, whoever owns it now; else none with an ordinal that no set has, or
// of another owner.
func (w *world) counts(m *member) bool {
	if w.isStored(m) {
		return true
	}
	if m.terminating() && m.protected() {
		return true
	}
	if m.ordinal >= maxReplicas {
		return false
	}
	if owner := metav1.GetControllerOf(m.pod); owner != nil {
		return owner.Kind == "StatefulSet" && owner.Name == statefulSetName(w.set)
	}
	return true
}

// readChildren reads what the operator made for the set, whoever's it is. Services stop and
// start no member, and a patch of one is bound to the version that was read: they are read
// live only where the cache has none. A budget is closed before a role is handed over, so
// that a live world has it as it is.
func (r *Reconciler) readChildren(ctx context.Context, w *world, from engine.View) error {
	var err error
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: w.set.Namespace, Name: name}
	}
	if w.stateful, err = find[appsv1.StatefulSet](ctx, from, key(statefulSetName(w.set))); err != nil {
		return err
	}
	budgets := r.Cache
	if handsOver(w.set) { // else no budget is closed before anything, and there is none of the primaries
		budgets = from
	}
	if w.budget, err = findCached[policyv1.PodDisruptionBudget](ctx, budgets, from, key(budgetName(w.set))); err != nil {
		return err
	}
	if w.primaryBudget, err = find[policyv1.PodDisruptionBudget](ctx, budgets, key(primaryBudgetName(w.set))); err != nil {
		return err
	}
	w.services = map[string]*corev1.Service{}
	for _, name := range []string{serviceName(w.set), primaryServiceName(w.set), activeServiceName(w.set), secondaryServiceName(w.set)} {
		if w.services[name], err = findCached[corev1.Service](ctx, r.Cache, from, key(name)); err != nil {
			return err
		}
	}
	return nil
}

// object is a pointer to an object of the API.
type object[T any] interface {
	*T
	client.Object
}

// find reads an object; it is nil if there is none.
func find[T any, O object[T]](ctx context.Context, from client.Reader, key types.NamespacedName) (O, error) {
	found := O(new(T))
	err := from.Get(ctx, key, found)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", key.Name, err)
	}
	return found, nil
}

// findCached is the same, from the cache where that has it.
func findCached[T any, O object[T]](ctx context.Context, cache client.Reader, from engine.View, key types.NamespacedName) (O, error) {
	found, err := find[T, O](ctx, cache, key)
	if err == nil && found == nil && from.Live {
		return find[T, O](ctx, from, key)
	}
	return found, err
}

// readSecrets finds out which of the Secrets of spec.TLS are missing.
func (r *Reconciler) readSecrets(ctx context.Context, w *world) error {
	if w.invalid != "" {
		return nil
	}
	for _, name := range secretsOfTLS(w.set) {
		secret := configuration.Metadata(configuration.KindSecret)
		err := r.Cache.Get(
			ctx,
			types.NamespacedName{Namespace: w.set.Namespace, Name: name},
			secret,
		)
		switch {
		case apierrors.IsNotFound(err):
			w.missing = append(w.missing, name)
		case apierrors.IsForbidden(err): // the kubelet finds it, or says that it is missing
		case err != nil:
			return fmt.Errorf("get secret %s: %w", name, err)
		}
	}
	return nil
}

func secretsOfTLS(set *v1alpha1.ReplicatedStatefulSet) (names []string) {
	tls := set.Spec.TLS
	if tls == nil || tls.Static == nil {
		return nil
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

// metadataListOf is an empty list of the metadata of that core kind.
func metadataListOf(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return l
}
