package observe

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
)

// ConfigReader reads the content of the ConfigMaps and Secrets that pod templates reference.
type ConfigReader struct {
	configuration.Reader
	Turns   configuration.Turns
	secrets *configuration.Secrets

	// changes maps the UID of a StatefulSet to the time when its configuration change was first
	// observed.
	changes memory.Of[map[types.UID]time.Time]
}

// ConfigSettings are the settings of a ConfigReader.
type ConfigSettings struct {
	Key     configuration.Key
	Account string
	// Restarts is the max number of objects that restart their pods at the same time.
	Restarts int
	Lease    *leadership.Lease
}

// NewConfigReader returns a reader that requeues objects through channel woken.
func NewConfigReader(own, live client.Reader, secrets *configuration.Secrets, s ConfigSettings, woken chan<- event.GenericEvent) *ConfigReader {
	return &ConfigReader{
		Reader:  configuration.Reader{Cache: own, Live: live, Key: s.Key, Account: s.Account},
		secrets: secrets,
		Turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: s.Restarts, Watch: s.Lease.Watch},
			Cache:   own,
			Kind:    v1alpha1.Kind,
			Began:   facts.RestartsSince,
			Wake:    configuration.WakeBy(woken, Named),
		},
	}
}

// Named returns an object that has only a namespace and a name.
func Named(key types.NamespacedName) client.Object {
	return &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

// Observe reads the configuration of the StatefulSets of an object. existing are its StatefulSets. held
// returns the reason why the pods of a StatefulSet must not be restarted now. template is the pod
// template of a StatefulSet that does not exist yet, or nil.
//
// If a StatefulSet must be restarted, it requests a slot for the object. A pass requests at most one
// slot, so that the StatefulSets of the zones are patched one after another.
func (r *ConfigReader) Observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, existing []*appsv1.StatefulSet,
	held func(*appsv1.StatefulSet) string, template *corev1.PodSpec, now time.Time) (facts.ConfigInput, error) {
	name := client.ObjectKeyFromObject(set)
	in := facts.ConfigInput{Views: map[types.UID]*configuration.View{}}
	if !set.Spec.UpdateOnEnvChange {
		r.Turns.Forget(name)
		return in, r.Turns.WakeNext(ctx, name, now)
	}
	requested := false
	for _, child := range existing {
		v := facts.ViewOf(child)
		v.Held = held(child)
		in.Views[child.UID] = v
		var err error
		if v.State, err = r.StateOf(ctx, set.Namespace, &child.Spec.Template.Spec, v.Record()); err != nil {
			return facts.ConfigInput{}, err
		}
		v.Since = r.outdatedSince(set, child.UID, v.Pending(), now)
		if !v.Pending() || now.Before(v.Since.Add(configuration.Window)) || v.Held != "" || requested || v.Idle {
			continue
		}
		requested = true
		if v.Slot, err = r.Turns.Take(ctx, name, v.Since, now); err != nil {
			return facts.ConfigInput{}, err
		}
	}
	// Keep the slot of a running restart until the cache shows it: children may be newer than the
	// cache.
	if !requested && !slices.ContainsFunc(existing, func(c *appsv1.StatefulSet) bool { return !facts.RestartsSince(c).IsZero() }) {
		r.Turns.Forget(name)
	}
	if template != nil {
		fresh, err := r.StateOf(ctx, set.Namespace, template, nil)
		if err != nil {
			return facts.ConfigInput{}, err
		}
		in.Fresh = &fresh
	}
	return in, r.Turns.WakeNext(ctx, name, now)
}

// readConfig reads the configuration and the owner references on it, and derives what each StatefulSet
// needs.
func (r *Reader) readConfig(ctx context.Context, w *facts.World) (err error) {
	if r.Config == nil {
		return nil
	}
	templates := []*corev1.PodSpec{&w.Set.Spec.Template.Spec.Template.Spec}
	var existing []*appsv1.StatefulSet
	numbers := map[types.UID]int64{} // versions of StatefulSets
	for _, c := range w.Children {
		templates = append(templates, &c.Set.Spec.Template.Spec)
		existing = append(existing, c.Set)
		numbers[c.Set.UID] = c.Version
	}
	switch w.Tracking, err = r.Config.tracking(ctx, w.Set, templates...); {
	case apierrors.IsForbidden(err):
		w.Untracked = err.Error()
	case err != nil:
		return err
	}
	if w.Set.DeletionTimestamp != nil {
		r.Config.Turns.Forget(client.ObjectKeyFromObject(w.Set))
		return nil
	}
	var coming []string // names of StatefulSets that do not exist yet
	for _, z := range w.Zones {
		for _, number := range []int64{w.Set.Status.CurrentVersion, w.Set.Status.UpdateVersion} {
			if number != 0 && w.Children.Find(z.Index, number) == nil {
				coming = append(coming, children.ChildName(w.Set.Name, z, number))
			}
		}
	}
	template := templates[0]
	if len(coming) == 0 {
		template = nil
	}
	held := func(c *appsv1.StatefulSet) string {
		return cmp.Or(w.Invalid, facts.HoldsRestart(&w.Set.Status, numbers[c.UID]), w.HoldsPods(numbers[c.UID]))
	}
	in, err := r.Config.Observe(ctx, w.Set, existing, held, template, w.Now)
	if err != nil {
		return err
	}
	w.Config = facts.Configure(w, in, coming)
	return nil
}

// outdatedSince returns since when the configuration of a StatefulSet is outdated; zero if changed is
// false. After a restart of the operator the time is later, by at most the window.
func (r *ConfigReader) outdatedSince(set *v1alpha1.ExtendedStatefulSet, child types.UID, changed bool, now time.Time) time.Time {
	since, _ := r.changes.Get(client.ObjectKeyFromObject(set), set.UID)
	if !changed {
		delete(*since, child)
		return time.Time{}
	}
	if *since == nil {
		*since = map[types.UID]time.Time{}
	}
	if _, stored := (*since)[child]; !stored {
		(*since)[child] = now
	}
	return (*since)[child]
}

// forget drops the state that is kept for a deleted object.
func (r *ConfigReader) forget(ctx context.Context, set types.NamespacedName) {
	r.Turns.Forget(set)
	r.changes.Forget(set)
	r.secrets.ReleaseUnused(ctx, r.Cache, &v1alpha1.ExtendedStatefulSetList{}, set.Namespace)
}
