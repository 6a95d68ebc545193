package observe

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// indexUses is the index of sets by the configuration they use, if they are restarted when it
// changes.
const indexUses = "uses"

// MaxConfigBytes is the max total size of the ConfigMaps and Secrets of one set.
const MaxConfigBytes = 8 << 20

// ConfigSettings configure a ConfigReader.
type ConfigSettings struct {
	// Key is the key of the hashes of configurations.
	Key configuration.Key
	// Account is the operator's service account, for messages about missing rights.
	Account string
	// Restarts is the max number of sets that are restarted at the same time.
	Restarts int
	Lease    *leadership.Lease
}

// NewConfigReader returns a ConfigReader that wakes sets through a channel.
func NewConfigReader(cache, live client.Reader, secrets *configuration.Secrets, o ConfigSettings, restartDue chan<- event.GenericEvent) *ConfigReader {
	return &ConfigReader{
		Reader: configuration.Reader{Cache: cache, Live: live, Key: o.Key, Account: o.Account, MaxBytes: MaxConfigBytes},
		Turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: o.Restarts, Watch: o.Lease.Watch},
			Cache:   cache,
			Kind:    "ReplicatedStatefulSet",
			Began:   facts.RestartsSince,
			Wake:    configuration.WakeBy(restartDue, Named),
		},
		Secrets: secrets,
	}
}

// readConfig reads the configuration that the pods use, and sets the stamp that the StatefulSet
// must have. It reads all contents again before a restart begins, because the cache may show an
// edit that was reverted.
func (r *Reader) readConfig(ctx context.Context, w *facts.World, from engine.View) error {
	carried, name := facts.CarriedStamp(w), client.ObjectKeyFromObject(w.Set)
	w.Config.Target = configuration.Target{Stamp: carried}
	switch {
	case r.Config == nil, w.Invalid != "", w.Deleting():
		return nil
	case !w.Set.Spec.UpdateOnEnvChange:
		w.Config.Target = configuration.Unfollowed(carried)
		r.Config.Turns.Forget(name)
		return r.Config.Turns.WakeNext(ctx, name, w.Now)
	}
	v, pod := &configuration.View{Carried: carried, Held: facts.HoldsConfig(w)}, spec.PodOfConfig(w.Set)
	var err error
	if v.State, err = r.Config.StateOf(ctx, w.Set.Namespace, pod, v.Record()); err != nil {
		return err
	}
	if from.Live && v.Pending() {
		v.State = r.Config.LiveStateOf(ctx, w.Set.Namespace, pod)
	}
	if w.Stateful == nil {
		w.Config.Target = facts.FirstTarget(v, len(w.Members) > 0, w.Now)
	} else {
		v.Idle = facts.IsIdle(w.Stateful)
		if err := r.takeTurn(ctx, w, v); err != nil {
			return err
		}
		w.Config.Target, w.Config.Fresh = facts.ConfigTarget(v, w.Now), facts.FreshStamp(v)
	}
	facts.NoteCached(w)
	return r.Config.Turns.WakeNext(ctx, name, w.Now)
}

// takeTurn remembers when a change was first seen, and requests a slot for a restart.
func (r *Reader) takeTurn(ctx context.Context, w *facts.World, v *configuration.View) (err error) {
	name, remembered := client.ObjectKeyFromObject(w.Set), r.MemoryOf(w.Set)
	if !v.Pending() {
		remembered.configSince = time.Time{}
		// A set that restarts keeps its slot until the cache shows the restart.
		if facts.RestartsSince(w.Stateful).IsZero() {
			r.Config.Turns.Forget(name)
		}
		return nil
	}
	if remembered.configSince.IsZero() {
		remembered.configSince = w.Now
	}
	v.Since = remembered.configSince
	if v.Held != "" || v.Idle || w.Now.Before(v.Since.Add(configuration.Window)) {
		return nil
	}
	v.Slot, err = r.Config.Turns.Take(ctx, name, v.Since, w.Now)
	return err
}

// IndexConfig adds cache indexes of the sets that use a ConfigMap or Secret, and of the
// StatefulSets that restart.
func IndexConfig(c client.FieldIndexer) error {
	if err := c.IndexField(context.Background(), &v1alpha1.ReplicatedStatefulSet{}, indexUses, UsesIndex); err != nil {
		return err
	}
	return c.IndexField(context.Background(), &appsv1.StatefulSet{}, configuration.IndexRestarts, configuration.RestartIndex(facts.RestartsSince))
}

// UsesIndex returns the values of indexUses for a set, also for what spec.application fills.
func UsesIndex(o client.Object) (all []string) {
	set, ok := o.(*v1alpha1.ReplicatedStatefulSet)
	if !ok || !set.Spec.UpdateOnEnvChange {
		return nil
	}
	for _, from := range configuration.Origins(spec.PodOfConfig(spec.WithDefaults(set))) {
		all = append(all, from.String())
	}
	return all
}

// UsersOf returns a function that lists the sets that follow a ConfigMap or Secret.
func (r *Reader) UsersOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, o client.Object) (requests []reconcile.Request) {
		var sets v1alpha1.ReplicatedStatefulSetList
		uses := client.MatchingFields{indexUses: configuration.Origin{Kind: kind, Name: o.GetName()}.String()}
		if err := r.Cache.List(ctx, &sets, client.InNamespace(o.GetNamespace()), uses, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "list the users of a ConfigMap or Secret", "object", o.GetName())
		}
		for i := range sets.Items {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: sets.Items[i].Namespace, Name: sets.Items[i].Name}})
		}
		return requests
	}
}

// forget drops the configuration state of a deleted set.
func (r *ConfigReader) forget(ctx context.Context, set types.NamespacedName) {
	r.Turns.Forget(set)
	r.Secrets.ReleaseUnused(ctx, r.Cache, &v1alpha1.ReplicatedStatefulSetList{}, set.Namespace)
}

// Named returns a set with only a namespace and name.
func Named(key types.NamespacedName) client.Object {
	return &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}
