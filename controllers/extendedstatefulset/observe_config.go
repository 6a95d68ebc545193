package extendedstatefulset

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
)

// Key hands out the operator's key for hashes.
type Key interface {
	// Current is the key. With stored it asks the API server whether that is the
	// one that is stored, and stores it again if there is none.
	Current(ctx context.Context, stored bool) ([]byte, error)
}

// configReader reads what ConfigMaps and Secrets hold for pod templates.
type configReader struct {
	// cache holds their metadata; live has their contents.
	cache, live client.Reader
	key         Key
	limiter     restartLimiter
	// wake makes the controller look at an object.
	wake func(types.NamespacedName)

	// changes is when a change was seen first, by the UIDs of the StatefulSets of a set.
	changes memory.Of[map[types.UID]time.Time]
	read    readMemory
}

// observe looks at the configuration of the StatefulSets of an object. held says of
// each why its pods must not be restarted now. template is that of a StatefulSet that
// is yet to be made; nil if none is.
func (r *configReader) observe(ctx context.Context, set *v1alpha1.ExtendedStatefulSet, children []*appsv1.StatefulSet,
	held func(*appsv1.StatefulSet) string, template *corev1.PodSpec, now time.Time) (look, error) {
	name := client.ObjectKeyFromObject(set)
	l := look{views: map[types.UID]*configView{}}
	if !set.Spec.UpdateOnEnvChange {
		r.limiter.forget(name)
		return l, r.wakeNext(ctx, name, now)
	}
	asks := false
	for _, child := range children {
		v := &configView{child: child, held: held(child)}
		l.views[child.UID] = v
		rec := recordOf(child)
		var err error
		if v.configuration, err = r.configurationOf(ctx, set.Namespace, &child.Spec.Template.Spec, rec); err != nil {
			return look{}, err
		}
		changed := v.changed(rec) && len(v.missing) == 0 && v.unreadable == ""
		v.since = r.seenFirst(set, child.UID, changed, now)
		if !changed || now.Before(v.since.Add(configWindow)) || v.held != "" || asks || idle(child) {
			continue
		}
		asks = true // one zone after another
		restarting, err := r.restarting(ctx, now)
		if err != nil {
			return look{}, err
		}
		v.slot = r.limiter.ask(name, v.since, now, restarting)
	}
	// One that restarts holds its place until the cache shows it: children may be newer.
	if !asks && !slices.ContainsFunc(children, func(c *appsv1.StatefulSet) bool { return !restartsSince(c).IsZero() }) {
		r.limiter.forget(name)
	}
	if template != nil {
		fresh, err := r.configurationOf(ctx, set.Namespace, template, nil)
		if err != nil {
			return look{}, err
		}
		l.fresh = &fresh
	}
	return l, r.wakeNext(ctx, name, now)
}

// readConfig reads what there is to know about configuration, and what follows from it
// for each StatefulSet.
func (r *Reconciler) readConfig(ctx context.Context, w *world) (err error) {
	if r.config == nil {
		return nil
	}
	templates := []*corev1.PodSpec{&w.set.Spec.Template.Spec.Template.Spec}
	var children []*appsv1.StatefulSet
	numbers := map[types.UID]int64{}
	for _, c := range w.children {
		templates = append(templates, &c.set.Spec.Template.Spec)
		children = append(children, c.set)
		numbers[c.set.UID] = c.version
	}
	if w.tracking, err = r.config.tracking(ctx, w.set, templates...); err != nil {
		return err
	}
	if w.set.DeletionTimestamp != nil {
		r.config.limiter.forget(client.ObjectKeyFromObject(w.set))
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
	l, err := r.config.observe(ctx, w.set, children, held, template, w.now)
	if err != nil {
		return err
	}
	w.config = configure(w, l, coming)
	return nil
}

// configurationOf reads as little as it can: nothing but metadata when that says that
// nothing was edited since the record was made.
func (r *configReader) configurationOf(ctx context.Context, namespace string, pod *corev1.PodSpec, rec *configRecord) (configuration, error) {
	all := usages(pod)
	editions := map[origin]edition{}
	for i := range all {
		e, err := r.editionOf(ctx, namespace, all[i].origin)
		if err != nil {
			return configuration{}, err
		}
		editions[all[i].origin] = e
	}
	key, problem := r.currentKey(ctx, false)
	if problem != "" {
		return configuration{unreadable: problem}, nil
	}
	c := configuration{key: key.name(), seen: seenOf(all, editions)}
	if rec.atRest(c.key, c.seen) {
		return c, nil
	}
	if c = r.hash(ctx, key, namespace, all, editions, rec == nil); rec != nil && rec.Key == c.key && !c.changed(rec) {
		return c, nil
	}
	if mutant.Is("ests-unstored-key") { // a hash is written with a key that is stored nowhere
		return c, nil
	}
	// A hash is about to be written: it must not be of a key that is stored nowhere.
	stored, problem := r.currentKey(ctx, true)
	if problem != "" {
		return configuration{unreadable: problem}, nil
	}
	if stored.name() != c.key {
		return r.hash(ctx, stored, namespace, all, editions, rec == nil), nil
	}
	return c, nil
}

// currentKey is the key, or why there is none.
func (r *configReader) currentKey(ctx context.Context, stored bool) (key hashKey, problem string) {
	text, err := r.key.Current(ctx, stored)
	if err != nil {
		return nil, "the operator's own key cannot be read: " + err.Error()
	}
	return text, ""
}

// hash reads what is not known yet. With confirm it asks the API server about what
// the cache says is absent.
func (r *configReader) hash(ctx context.Context, key hashKey, namespace string, all []usage, editions map[origin]edition, confirm bool) configuration {
	c := configuration{key: key.name()}
	digests := make([]string, 0, len(all))
	for i := range all {
		u := &all[i]
		got, e, err := r.resultOf(ctx, key, namespace, u, editions[u.origin], confirm)
		if err != nil {
			return configuration{key: c.key, unreadable: fmt.Sprintf("%s cannot be read: %v", u.origin, err)}
		}
		editions[u.origin] = e
		digests = append(digests, got.digest)
		c.missing = append(c.missing, got.missing...)
	}
	c.seen, c.hash = seenOf(all, editions), key.combined(digests)
	return c
}

// resultOf reads one source, unless what came of this version of it is known.
func (r *configReader) resultOf(ctx context.Context, key hashKey, namespace string, u *usage, e edition, confirm bool) (result, edition, error) {
	at, shape := address{namespace, u.origin}, u.shape()
	exists := e != (edition{})
	if !exists && (!confirm || !u.possible()) { // there is nothing to read
		got := result{key.digest(u, nil), u.lacks(nil)}
		r.read.forget(at)
		return got, e, nil
	}
	if got, ok := r.read.find(at, e, key.name(), shape); ok {
		return got, e, nil
	}
	held, e, err := r.contentOf(ctx, namespace, u.origin)
	if err != nil {
		return result{}, edition{}, err
	}
	got := result{key.digest(u, held), u.lacks(held)}
	if held == nil {
		r.read.forget(at)
	} else {
		r.read.learn(at, e, key.name(), shape, got)
	}
	return got, e, nil
}

// contentOf reads what is in a source from the API server; nil: it is not there.
func (r *configReader) contentOf(ctx context.Context, namespace string, o origin) (*content, edition, error) {
	at := types.NamespacedName{Namespace: namespace, Name: o.name}
	var m client.Object
	var c content
	var err error
	if o.kind == kindSecret {
		var secret corev1.Secret
		err = r.live.Get(ctx, at, &secret)
		m, c.data = &secret, secret.Data
	} else {
		var config corev1.ConfigMap
		err = r.live.Get(ctx, at, &config)
		m, c.binary, c.data = &config, config.BinaryData, map[string][]byte{}
		for k, v := range config.Data {
			c.data[k] = []byte(v)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil, edition{}, nil
	}
	if err != nil {
		return nil, edition{}, err
	}
	return &c, edition{string(m.GetUID()), m.GetResourceVersion()}, nil
}

// editionOf is what the cache knows of a source.
func (r *configReader) editionOf(ctx context.Context, namespace string, o origin) (edition, error) {
	if !o.possible() {
		return edition{}, nil
	}
	m := partial(o.kind)
	if err := r.cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.name}, m); apierrors.IsNotFound(err) {
		return edition{}, nil
	} else if err != nil {
		return edition{}, fmt.Errorf("get %s: %w", o, err)
	}
	return edition{string(m.UID), m.ResourceVersion}, nil
}

// seenFirst remembers since when a StatefulSet is behind its configuration. A restart
// of the operator makes that later, by as much as the window at most.
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

// restarting finds the objects that restart pods for a change, and since when. Of one
// that restarts several StatefulSets the last began last.
func (r *configReader) restarting(ctx context.Context, now time.Time) (map[types.NamespacedName]time.Time, error) {
	var all appsv1.StatefulSetList
	restart := client.MatchingFields{indexRestarts: v1alpha1.True}
	if err := r.cache.List(ctx, &all, restart, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list StatefulSets that restart: %w", err)
	}
	began := map[types.NamespacedName]time.Time{}
	for i := range all.Items {
		owner := metav1.GetControllerOf(&all.Items[i])
		if owner == nil || owner.Kind != v1alpha1.Kind {
			continue
		}
		key := types.NamespacedName{Namespace: all.Items[i].Namespace, Name: owner.Name}
		if at := restartsSince(&all.Items[i]); began[key].Before(at) && !at.After(now) {
			began[key] = at
		}
	}
	return began, nil
}

// wakeNext wakes those whose turn it is now.
func (r *configReader) wakeNext(ctx context.Context, self types.NamespacedName, now time.Time) error {
	if r.limiter.none() {
		return nil
	}
	restarting, err := r.restarting(ctx, now)
	if err != nil {
		return err
	}
	for _, key := range r.limiter.next(now, restarting) {
		if key != self {
			r.wake(key)
		}
	}
	return nil
}

// forget drops what is remembered of an object that is gone.
func (r *configReader) forget(set types.NamespacedName) {
	r.limiter.forget(set)
	r.changes.Forget(set)
}
