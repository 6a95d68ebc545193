package extendedstatefulset

import (
	"cmp"
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
)

// configReader reads the content of the ConfigMaps and Secrets that pod templates reference.
type configReader struct {
	configuration.Reader
	turns   configuration.Turns
	secrets *configuration.Secrets

	// changes maps the UID of a StatefulSet to the time when its configuration change was first
	// observed.
	changes memory.Of[map[types.UID]time.Time]
}

// configSettings are the settings of a configReader.
type configSettings struct {
	key     configuration.Key
	account string
	// restarts is the max number of objects that restart their pods at the same time.
	restarts int
	lease    *leadership.Lease
}

// newConfigReader returns a reader that requeues objects through channel woken.
func newConfigReader(own, live client.Reader, secrets *configuration.Secrets, s configSettings, woken chan<- event.GenericEvent) *configReader {
	return &configReader{
		Reader:  configuration.Reader{Cache: own, Live: live, Key: s.key, Account: s.account},
		secrets: secrets,
		turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: s.restarts, Watch: s.lease.Watch},
			Cache:   own,
			Kind:    v1alpha1.Kind,
			Began:   restartsSince,
			Wake:    configuration.WakeBy(woken, named),
		},
	}
}

// observe reads the configuration of the StatefulSets of an object. held returns the reason why the
// pods of a StatefulSet must not be restarted now. template is the pod template of a StatefulSet that
// does not exist yet, or nil.
func (r *configReader) observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, made []*appsv1.StatefulSet,
	held func(*appsv1.StatefulSet) string, template *corev1.PodSpec, now time.Time) (look, error) {
	name := client.ObjectKeyFromObject(set)
	l := look{views: map[types.UID]*configuration.View{}}
	if !set.Spec.UpdateOnEnvChange {
		r.turns.Forget(name)
		return l, r.turns.WakeNext(ctx, name, now)
	}
	asks := false
	for _, child := range made {
		v := viewOf(child)
		v.Held = held(child)
		l.views[child.UID] = v
		var err error
		if v.State, err = r.StateOf(ctx, set.Namespace, &child.Spec.Template.Spec, v.Record()); err != nil {
			return look{}, err
		}
		v.Since = r.seenFirst(set, child.UID, v.Pending(), now)
		if !v.Pending() || now.Before(v.Since.Add(configuration.Window)) || v.Held != "" || asks || v.Idle {
			continue
		}
		asks = true // one zone after another
		if v.Slot, err = r.turns.Take(ctx, name, v.Since, now); err != nil {
			return look{}, err
		}
	}
	// Keep the slot of a running restart until the cache shows it: children may be newer than the
	// cache.
	if !asks && !slices.ContainsFunc(made, func(c *appsv1.StatefulSet) bool { return !restartsSince(c).IsZero() }) {
		r.turns.Forget(name)
	}
	if template != nil {
		fresh, err := r.StateOf(ctx, set.Namespace, template, nil)
		if err != nil {
			return look{}, err
		}
		l.fresh = &fresh
	}
	return l, r.turns.WakeNext(ctx, name, now)
}

// readConfig reads the configuration, and derives what each StatefulSet needs.
func (r *reader) readConfig(ctx context.Context, w *world) (err error) {
	if r.config == nil {
		return nil
	}
	templates := []*corev1.PodSpec{&w.set.Spec.Template.Spec.Template.Spec}
	var made []*appsv1.StatefulSet
	numbers := map[types.UID]int64{}
	for _, c := range w.children {
		templates = append(templates, &c.set.Spec.Template.Spec)
		made = append(made, c.set)
		numbers[c.set.UID] = c.version
	}
	switch w.tracking, err = r.config.tracking(ctx, w.set, templates...); {
	case apierrors.IsForbidden(err):
		w.untracked = err.Error()
	case err != nil:
		return err
	}
	if w.set.DeletionTimestamp != nil {
		r.config.turns.Forget(client.ObjectKeyFromObject(w.set))
		return nil
	}
	var coming []string
	for _, z := range w.zones {
		for _, number := range []int64{w.set.Status.CurrentVersion, w.set.Status.UpdateVersion} {
			if number != 0 && w.children.find(z.index, number) == nil {
				coming = append(coming, childName(w.set.Name, z, number))
			}
		}
	}
	template := templates[0]
	if len(coming) == 0 {
		template = nil
	}
	held := func(c *appsv1.StatefulSet) string {
		return cmp.Or(w.invalid, holdsRestart(&w.set.Status, numbers[c.UID]), w.holdsPods(numbers[c.UID]))
	}
	l, err := r.config.observe(ctx, w.set, made, held, template, w.now)
	if err != nil {
		return err
	}
	w.config = configure(w, l, coming)
	return nil
}

// seenFirst returns since when the configuration of a StatefulSet is outdated. After a restart of the
// operator the time is later, by at most the window.
func (r *configReader) seenFirst(set *v1alpha1.ExtendedStatefulSet, child types.UID, changed bool, now time.Time) time.Time {
	since, _ := r.changes.Get(client.ObjectKeyFromObject(set), set.UID)
	if !changed {
		delete(*since, child)
		return time.Time{}
	}
	if *since == nil {
		*since = map[types.UID]time.Time{}
	}
	if _, known := (*since)[child]; !known {
		(*since)[child] = now
	}
	return (*since)[child]
}

// forget drops the state that is kept for a deleted object.
func (r *configReader) forget(ctx context.Context, set types.NamespacedName) {
	r.turns.Forget(set)
	r.changes.Forget(set)
	r.secrets.ReleaseUnused(ctx, r.Cache, &v1alpha1.ExtendedStatefulSetList{}, set.Namespace)
}
