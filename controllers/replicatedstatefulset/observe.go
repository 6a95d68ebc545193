package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// clock contains the times that a decision uses.
type clock struct {
	now time.Time
	// took is how long it took to read the world.
	took time.Duration
	// watch returns the time in which this process could observe the cluster. Deadlines after which
	// a member counts as failed or is given up count only this time.
	watch leadership.Watch
}

// world is a snapshot of the cluster and the complete input of a decision.
type world struct {
	clock
	// live is true if the world was read past the cache. A plan for a cached world may only send
	// queries.
	live bool
	set  *v1alpha1.ReplicatedStatefulSet
	// invalid states why the spec cannot be served. It is "" if it can.
	invalid string
	// namespaceGoes is true while the namespace is being deleted.
	namespaceGoes bool

	stateful *appsv1.StatefulSet        // nil if there is none
	services map[string]*corev1.Service // by name
	// budget covers all members, or those that are not primary. primaryBudget covers the primaries.
	budget, primaryBudget *policyv1.PodDisruptionBudget

	members []*member // pods of the set, by ordinal
	// foreignPods are pods with our labels that are not members, at most maxForeign.
	foreignPods []*corev1.Pod
	// claims are the claims of the members, by name. They are read only while they may have to
	// grow.
	claims map[string]*corev1.PersistentVolumeClaim
	// leftClaims are the claims with our labels. They are read only when the object and its claims
	// are being deleted and all pods are gone.
	leftClaims []*corev1.PersistentVolumeClaim
	// copies is the number of members that have claims. It is read only for a stopped set whose
	// former number of members is unknown.
	copies int32
	// rules is a hash of the ConfigMaps of spec.ruleSelector.
	rules string
	// excess states why the ConfigMaps of spec.ruleSelector are not followed. It is "" if they are.
	excess string
	// config is the configuration stamp that the StatefulSet must have for the ConfigMaps and
	// Secrets that the pods use.
	config configFacts
	// revisions are the templates of members to be resized in place, and the template to resize
	// them to, by revision name. Only a live world has them.
	revisions map[string]*corev1.PodTemplateSpec
	// missing are the Secrets of spec.TLS that do not exist.
	missing []string
	// lossAt is when this process last saw a grant disappear, or first saw the set. Sequences of
	// secondaries that were read before are outdated.
	lossAt time.Time
	// lossOf is the UID of the pod that had this grant. It is "" if this process has seen no grant
	// disappear, or several at once.
	lossOf types.UID
	// lossPod is the name of that pod. The name may belong to a replacement pod now.
	lossPod string
	// statefulSince is when this process first saw the current generation of the StatefulSet.
	statefulSince time.Time
	// trial is the last dry run of a create that the API server refused.
	trial refusedTrial
	// requestedAt is when this process first saw the current switchover annotation.
	requestedAt time.Time
	// refused is the error message of the last write that the API server refused.
	refused string
	// mended is when each child was last patched, by childKey.
	mended map[string]time.Time
	// undone are the writes that an admission webhook or policy reverted.
	undone undone.Held
	// closedAt is the value of the budget's annotation when this process last closed the budget for
	// a handover.
	closedAt string
	// causes are the reasons why members do not start. They are reported to users.
	causes causes.Hindrances
}

// member is a pod with its observed and derived facts.
type member struct {
	pod     *corev1.Pod
	ordinal int
	node    nodestate.Facts
	// evictionAt is when its eviction was last requested, according to the eviction book.
	evictionAt time.Time
	// owned is true if the pod belongs to this object by its owner references and was created for
	// it (see whyStranger). Commands run only in owned pods.
	owned bool
	// commandsIn is the name of the container in which commands run.
	commandsIn string
	// busy is the command that this process runs in the pod now.
	busy *podexec.Command
	// results are the latest result of each command that this process ran in the pod. said are the
	// latest results with a known outcome.
	results, said map[string]podexec.Result
	// unclear are the new results with an unknown outcome.
	unclear []podexec.Result
	// tries is the number of consecutive unknown outcomes of each command.
	tries map[string]int
	// missed is the number of consecutive status commands in the running container whose end was
	// not seen although the API server answered.
	missed int
	// askedAt is when status was first sent without an answer in the running container. It is zero
	// while it answers. unheard is true if the status of the object records this, from this process
	// or a previous one.
	askedAt time.Time
	unheard bool
	// resizeRefused is the last resize of the pod that the API server refused.
	resizeRefused refusedResize
	// touched is when this process last saw a change of the pod's container or readiness.
	touched time.Time

	known // set by derive
}

// Board reports which commands run in a pod and their results. It is implemented by podexec.Board.
type Board interface {
	Of(owner types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result)
	Keep(owner types.NamespacedName, pods ...types.UID)
}

// reader reads the state of sets, and keeps the memory of this process.
type reader struct {
	// Cache reads from the watches of this kind, and Nodes from those of Nodes and of the objects
	// themselves. Live reads from the API server.
	Cache, Nodes, Live client.Reader
	Board              Board
	// Now returns the current time.
	Now func() time.Time
	// Lease reports whether this process leads, and in which time it could observe the cluster.
	Lease *leadership.Lease

	memory  memory.Of[remembered]
	nodes   nodestate.Reader
	book    evictionBook
	hashing sync.Mutex // see hashRules
	// config reads ConfigMaps and Secrets. If it is nil, they are not followed.
	config *configReader
}

// observe reads the world of a set. It reads the Board before the pods. So if a command ends
// meanwhile, the next pass sees its result together with newer pods.
func (r *reader) observe(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, from engine.View) (*world, error) {
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
	disown(w)
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

// countUnclear counts and logs the commands with an unknown outcome.
func countUnclear(ctx context.Context, w *world) {
	for _, m := range w.members {
		for _, result := range m.unclear {
			unknownTotal.WithLabelValues(result.Name).Inc()
			ctrl.LoggerFrom(ctx).Info("the outcome of a command is unknown", "pod", m.name(), "command", result.Name, "why", result.Why)
		}
	}
}

// owns reports whether the pod belongs to this object by its owner references and was created for
// it (see whyStranger).
func (w *world) owns(m *member) bool {
	if w.stateful == nil || !w.ours(w.stateful) || !makes(w.stateful, m.pod) {
		return false
	}
	return w.whyStranger(m, w.isStored(m)) == ""
}

// readNamespace sets whether the namespace of a terminating object is terminating too.
func (r *reader) readNamespace(ctx context.Context, w *world, from engine.View) error {
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

// readMembers reads the pods of the set, and the facts of each.
func (r *reader) readMembers(ctx context.Context, w *world, from engine.View) error {
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
			noteForeign(w, pod)
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
		if m.node, err = r.readNode(ctx, w, m, from); err != nil {
			return err
		}
		w.members = append(w.members, m)
	}
	slices.SortFunc(w.members, func(a, b *member) int { return a.ordinal - b.ordinal })
	return nil
}

// readNode reads the relevant facts of a member's Node. A pass on the cache writes only the status. It
// may remove a grant of the stored status, because a Node is missing. All other consequences of a
// missing Node need a pass on live objects.
func (r *reader) readNode(ctx context.Context, w *world, m *member, from engine.View) (nodestate.Facts, error) {
	if from.Live || w.isStored(m) {
		return r.nodes.Read(ctx, r.Nodes, r.Live, m.pod.Spec.NodeName, r.Now())
	}
	return r.nodes.Glance(ctx, r.Nodes, r.Live, m.pod.Spec.NodeName, r.Now())
}

// counts reports whether a pod with the name of a member is a member. A pod that may be primary, or
// is terminating with our finalizer, always is, regardless of its owner. Otherwise pods with an
// ordinal of maxReplicas or more, and pods of another owner, are not.
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
		return owned.IsStatefulSet(owner, statefulSetName(w.set))
	}
	return true
}

// readChildren reads the children of the set by name, including objects with these names that
// belong to others. Services neither stop nor start a member, and their patches are bound to the
// version that was read. So they are read live only if the cache has none. A budget is closed
// before a role is handed over, so a live world reads budgets live.
func (r *reader) readChildren(ctx context.Context, w *world, from engine.View) error {
	var err error
	key := func(name string) types.NamespacedName {
		return types.NamespacedName{Namespace: w.set.Namespace, Name: name}
	}
	if w.stateful, err = find[appsv1.StatefulSet](ctx, from, key(statefulSetName(w.set))); err != nil {
		return err
	}
	budgets := r.Cache
	if handsOver(w.set) { // otherwise no budget is closed first, and the primaries have none
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

// object is a pointer to an API object.
type object[T any] interface {
	*T
	client.Object
}

// find reads an object. It returns nil if there is none.
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

// findCached reads an object from the cache. If the cache has none, a live view reads it from the
// API server.
func findCached[T any, O object[T]](ctx context.Context, cache client.Reader, from engine.View, key types.NamespacedName) (O, error) {
	found, err := find[T, O](ctx, cache, key)
	if err == nil && found == nil && from.Live {
		return find[T, O](ctx, from, key)
	}
	return found, err
}

// readSecrets sets which Secrets of spec.TLS are missing.
func (r *reader) readSecrets(ctx context.Context, w *world) error {
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
		case apierrors.IsForbidden(err): // the kubelet finds the Secret or reports it as missing
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

// metadataListOf returns an empty metadata list of the core kind.
func metadataListOf(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return l
}
