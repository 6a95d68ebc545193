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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// world is all that a decision may know.
type world struct {
	now  time.Time
	took time.Duration // how long it took to read all this
	live bool          // read past the cache; of a plan for another world nothing is done but to ask
	// watch is in which time this process could look. A deadline that blames a member, or
	// gives up on one, counts no other.
	watch leadership.Watch
	set   *v1alpha1.ReplicatedStatefulSet
	// invalid says why the spec cannot be served; "" if it can.
	invalid string
	// namespaceGoes is true while the namespace is being deleted.
	namespaceGoes bool

	stateful *appsv1.StatefulSet        // nil: there is none
	services map[string]*corev1.Service // by name
	budget   *policyv1.PodDisruptionBudget
	members  []*member // pods of the set, by ordinal
	// rules is a hash of the ConfigMaps of spec.ruleSelector.
	rules string
	// excess says why the ConfigMaps of spec.ruleSelector are not followed; "" if they are.
	excess string
	// missing are the Secrets of spec.TLS that are not there.
	missing []string
	// lossAt is when this process last saw a grant go, or the set for the first
	// time: what secondaries said of their copies before is old.
	lossAt time.Time
	// lossOf is the pod whose grant that was; "" if this process has seen none go, or
	// several at once.
	lossOf types.UID
	// wishAt is since when this process knows of the member that a person wants to be
	// primary.
	wishAt time.Time
	// refused is the last write that the API server refused, in its words.
	refused string
	// mended are the last patches of children, by childKey.
	mended map[string]mended

	books books // see learn
}

// member is a pod and what is known of it.
type member struct {
	pod     *corev1.Pod
	ordinal int
	node    nodestate.Facts
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
	// unanswered is how often in a row the end of status was not seen in the container
	// that runs, though the API server answered.
	unanswered int
	// askedAt is since when status has been asked in vain in the container that runs;
	// zero while it answers. unheard is true if the status of the object says so, from
	// this process or the one before.
	askedAt time.Time
	unheard bool
	// touched is when this process last saw the pod change: its container, or
	// whether it is Ready.
	touched time.Time
}

// view is where observe reads: the cache, or the API server.
// observe reads the world of a set. What the Board knows is read first: a command
// that ends meanwhile is seen by the next look, beside pods that are newer.
func (r *Reconciler) observe(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*world, error) {
	w := &world{now: r.Now(), watch: r.Lease.Watch(), live: from.Live, set: withDefaults(set)}
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
		m.owned = w.stateful != nil && w.ours(w.stateful) && metav1.IsControlledBy(m.pod, w.stateful) && w.stranger(m) == ""
	}
	if w.invalid == "" {
		if err := r.readRules(ctx, w); err != nil {
			return nil, err
		}
		if err := r.readSecrets(ctx, w); err != nil {
			return nil, err
		}
	}
	if w.deleting() && from.Live {
		var namespace corev1.Namespace
		if err := from.Get(ctx, types.NamespacedName{Name: set.Namespace}, &namespace); err != nil {
			return nil, fmt.Errorf("get the namespace: %w", err)
		}
		w.namespaceGoes = namespace.DeletionTimestamp != nil
	}
	r.recall(w)
	w.took = r.Now().Sub(w.now)
	for _, m := range w.members {
		for _, result := range m.unclear {
			unknownTotal.WithLabelValues(result.Name).Inc()
			ctrl.LoggerFrom(ctx).Info("nobody knows what came of a command", "pod", m.name(), "command", result.Name, "why", result.Why)
		}
	}
	return w, nil
}

// readPods reads the pods of the set, by the labels that all of them have. One
// whose labels somebody took off runs on, and nobody can take its name: those of
// the books, those with our finalizer, and those with our annotation that nobody
// controls are found by their names.
func (r *Reconciler) readPods(ctx context.Context, w *world, from engine.View) ([]corev1.Pod, error) {
	var pods corev1.PodList
	options := []client.ListOption{client.InNamespace(w.set.Namespace), client.MatchingLabels(ownLabels(w.set))}
	if !from.Live {
		options = append(options, client.UnsafeDisableDeepCopy)
	}
	if err := from.List(ctx, &pods, options...); err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	listed := map[string]bool{}
	for i := range pods.Items {
		listed[pods.Items[i].Name] = true
	}
	unlisted, err := r.unlisted(ctx, w, listed)
	if err != nil {
		return nil, err
	}
	for _, name := range unlisted {
		var pod corev1.Pod
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("get pod %s: %w", name, err)
		}
		madeByUs := pod.Annotations[v1alpha1.AnnotationTemplate] != "" && metav1.GetControllerOf(&pod) == nil
		if m := (&member{pod: &pod}); err == nil && (m.protected() || w.written(m) || madeByUs) {
			pods.Items = append(pods.Items, pod)
		}
	}
	return pods.Items, nil
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
		m := &member{pod: pod, ordinal: ordinal, commandsIn: pod.Annotations[v1alpha1.AnnotationContainer], results: map[string]podexec.Result{}}
		// One that may be primary, or waits for us to go, is a member whoever owns it now.
		let := m.terminating() && m.protected()
		if ordinal >= maxReplicas && !w.written(m) && !let {
			continue // no set has that many
		}
		if owner := metav1.GetControllerOf(pod); !ok || owner != nil && (owner.Kind != "StatefulSet" || owner.Name != statefulSetName(w.set)) && !w.written(m) && !let {
			continue
		}
		if m.commandsIn == "" && len(w.set.Spec.Pod.Containers) > 0 {
			m.commandsIn = commandsIn(&w.set.Spec.Pod)
		}
		busy, results := r.Board.Of(key, pod.UID)
		m.busy = busy
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

// readChildren reads what the operator made for the set, whoever's it is. Services
// and the budget stop and start nobody, and a patch of one is bound to the version
// that was read: they are read live only where the cache has none.
func (r *Reconciler) readChildren(ctx context.Context, w *world, from engine.View) error {
	get := func(from client.Reader, name string, into client.Object) (bool, error) {
		err := from.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, into)
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("get %s: %w", name, err)
		}
		return err == nil, nil
	}
	find := func(name string, into client.Object) (bool, error) {
		if ok, err := get(r.Cache, name, into); ok || err != nil || !from.Live {
			return ok, err
		}
		return get(from, name, into)
	}
	var stateful appsv1.StatefulSet
	if ok, err := get(from, statefulSetName(w.set), &stateful); err != nil {
		return err
	} else if ok {
		w.stateful = &stateful
	}
	var budget policyv1.PodDisruptionBudget
	if ok, err := find(statefulSetName(w.set), &budget); err != nil {
		return err
	} else if ok {
		w.budget = &budget
	}
	w.services = map[string]*corev1.Service{}
	for _, name := range []string{serviceName(w.set), primaryServiceName(w.set), activeServiceName(w.set)} {
		var service corev1.Service
		if ok, err := find(name, &service); err != nil {
			return err
		} else if ok {
			w.services[name] = &service
		}
	}
	return nil
}

// readSecrets finds out which of the Secrets of spec.TLS are missing.
func (r *Reconciler) readSecrets(ctx context.Context, w *world) error {
	for _, name := range secretsOfTLS(w.set) {
		secret := metadataOf("Secret")
		err := r.Cache.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, secret)
		if apierrors.IsNotFound(err) {
			w.missing = append(w.missing, name)
		} else if err != nil {
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

func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}
