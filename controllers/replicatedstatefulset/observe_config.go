package replicatedstatefulset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// indexUses is the index of sets by the configuration they use, if they are restarted when it
// changes.
const indexUses = "uses"

// maxConfigBytes is the max total size of the ConfigMaps and Secrets of one set.
const maxConfigBytes = 8 << 20

// configReader reads the ConfigMaps and Secrets that the pods of sets use.
type configReader struct {
	configuration.Reader
	turns   configuration.Turns
	secrets *configuration.Secrets
}

// configSettings configure a configReader.
type configSettings struct {
	// key is the key of the hashes of configurations, and account the user that must be able to read them.
	key     configuration.Key
	account string
	// restarts is the max number of sets that are restarted at the same time.
	restarts int
	lease    *leadership.Lease
}

// newConfigReader returns a configReader that wakes sets through a channel.
func newConfigReader(own, live client.Reader, secrets *configuration.Secrets, o configSettings, woken chan<- event.GenericEvent) *configReader {
	return &configReader{
		Reader: configuration.Reader{Cache: own, Live: live, Key: o.key, Account: o.account, MaxBytes: maxConfigBytes},
		turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: o.restarts, Watch: o.lease.Watch},
			Cache:   own,
			Kind:    "ReplicatedStatefulSet",
			Began:   restartsSince,
			Wake:    configuration.WakeBy(woken, named),
		},
		secrets: secrets,
	}
}

// readConfig reads the configuration that the pods use, and sets the stamp that the StatefulSet
// must have. It reads all contents again before a restart begins, because the cache may show an
// edit that was reverted.
func (r *reader) readConfig(ctx context.Context, w *world, from engine.View) error {
	carried, name := carriedStamp(w), client.ObjectKeyFromObject(w.set)
	w.config.target = configuration.Target{Stamp: carried}
	switch {
	case r.config == nil, w.invalid != "", w.deleting():
		return nil
	case !w.set.Spec.UpdateOnEnvChange:
		w.config.target = configuration.Unfollowed(carried)
		r.config.turns.Forget(name)
		return r.config.turns.WakeNext(ctx, name, w.now)
	}
	v, pod := &configuration.View{Carried: carried, Held: holdsConfig(w)}, podOfConfig(w.set)
	var err error
	if v.State, err = r.config.StateOf(ctx, w.set.Namespace, pod, v.Record()); err != nil {
		return err
	}
	if from.Live && v.Pending() {
		v.State = r.config.LiveStateOf(ctx, w.set.Namespace, pod)
	}
	if w.stateful == nil {
		w.config.target = firstTarget(v, len(w.members) > 0, w.now)
	} else {
		v.Idle = isIdle(w.stateful)
		if err := r.takeTurn(ctx, w, v); err != nil {
			return err
		}
		w.config.target, w.config.fresh = configTarget(v, w.now), freshStamp(v)
	}
	noteCached(w)
	return r.config.turns.WakeNext(ctx, name, w.now)
}

// takeTurn remembers when a change was first seen, and requests a slot for a restart.
func (r *reader) takeTurn(ctx context.Context, w *world, v *configuration.View) (err error) {
	name, known := client.ObjectKeyFromObject(w.set), r.of(w.set)
	if !v.Pending() {
		known.configSince = time.Time{}
		// A set that restarts keeps its slot until the cache shows the restart.
		if restartsSince(w.stateful).IsZero() {
			r.config.turns.Forget(name)
		}
		return nil
	}
	if known.configSince.IsZero() {
		known.configSince = w.now
	}
	v.Since = known.configSince
	if v.Held != "" || v.Idle || w.now.Before(v.Since.Add(configuration.Window)) {
		return nil
	}
	v.Slot, err = r.config.turns.Take(ctx, name, v.Since, w.now)
	return err
}

// indexConfig adds cache indexes of the sets that use a ConfigMap or Secret, and of the
// StatefulSets that restart.
func indexConfig(c client.FieldIndexer) error {
	if err := c.IndexField(context.Background(), &v1alpha1.ReplicatedStatefulSet{}, indexUses, usesIndex); err != nil {
		return err
	}
	return c.IndexField(context.Background(), &appsv1.StatefulSet{}, configuration.IndexRestarts, configuration.RestartIndex(restartsSince))
}

// usesIndex returns the values of indexUses for a set.
func usesIndex(o client.Object) (all []string) {
	set, ok := o.(*v1alpha1.ReplicatedStatefulSet)
	if !ok || !set.Spec.UpdateOnEnvChange {
		return nil
	}
	for _, from := range configuration.Origins(podOfConfig(set)) {
		all = append(all, from.String())
	}
	return all
}

// usersOf returns a function that lists the sets that follow a ConfigMap or Secret.
func (r *reader) usersOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, o client.Object) (requests []reconcile.Request) {
		var sets v1alpha1.ReplicatedStatefulSetList
		uses := client.MatchingFields{indexUses: configuration.Origin{Kind: kind, Name: o.GetName()}.String()}
		if err := r.Cache.List(ctx, &sets, client.InNamespace(o.GetNamespace()), uses, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list the users of a ConfigMap or Secret", "object", o.GetName())
		}
		for i := range sets.Items {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: sets.Items[i].Name}})
		}
		return requests
	}
}

// forget drops the configuration state of a deleted set.
func (r *configReader) forget(ctx context.Context, set types.NamespacedName) {
	r.turns.Forget(set)
	r.secrets.ReleaseUnused(ctx, r.Cache, &v1alpha1.ReplicatedStatefulSetList{}, set.Namespace)
}

// named returns a set with only a namespace and name.
func named(key types.NamespacedName) client.Object {
	return &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
