package configuration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Key provides the operator's key for hashes.
type Key interface {
	// Current returns the key. With stored, it first compares the key with the one in the API server,
	// and stores the key again if it is missing there.
	Current(ctx context.Context, stored bool) ([]byte, error)
}

// Reader reads the contents of the ConfigMaps and Secrets that pod templates use.
type Reader struct {
	// Cache contains their metadata; Live reads their contents.
	Cache, Live client.Reader
	Key         Key
	// Account is the operator's service account as namespace:name, for messages about missing
	// permissions; "" if it is unknown.
	Account string
	// MaxBytes is the max total size of the sources of one template; 0 means no limit. Larger
	// configurations are unreadable.
	MaxBytes int

	read readMemory
}

// Metadata returns an empty metadata object of a core kind.
func Metadata(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// StateOf returns the current configuration of a pod template. It reads only metadata if that shows
// that nothing was edited since the record was made. It returns an error only if the cache does.
func (r *Reader) StateOf(ctx context.Context, namespace string, pod *corev1.PodSpec, rec *Record) (State, error) {
	all := usages(pod)
	editions := map[Origin]edition{}
	for i := range all {
		e, err := r.editionOf(ctx, namespace, all[i].Origin)
		if apierrors.IsForbidden(err) {
			return State{Unreadable: r.unreadable(namespace, all[i].Origin, err)}, nil
		}
		if err != nil {
			return State{}, err
		}
		editions[all[i].Origin] = e
	}
	key, problem := r.currentKey(ctx, false)
	if problem != "" {
		return State{Unreadable: problem}, nil
	}
	s := State{Key: key.name(), Seen: versionsDigest(all, editions)}
	if rec.atRest(s.Key, s.Seen) {
		return s, nil
	}
	if s = r.hash(ctx, key, namespace, all, editions, rec == nil); rec != nil && rec.Key == s.Key && !s.Changed(rec) {
		return s, nil
	}
	// A hash is about to be written: it must not be of a key that is stored nowhere.
	stored, problem := r.currentKey(ctx, true)
	if problem != "" {
		return State{Unreadable: problem}, nil
	}
	if stored.name() != s.Key {
		return r.hash(ctx, stored, namespace, all, editions, rec == nil), nil
	}
	return s, nil
}

// LiveStateOf is like StateOf, but reads everything from the API server now. The cache may contain a
// state that was edited again or reverted.
func (r *Reader) LiveStateOf(ctx context.Context, namespace string, pod *corev1.PodSpec) State {
	key, problem := r.currentKey(ctx, true)
	if problem != "" {
		return State{Unreadable: problem}
	}
	all := usages(pod)
	for i := range all {
		r.read.forget(address{namespace, all[i].Origin})
	}
	return r.hash(ctx, key, namespace, all, map[Origin]edition{}, true)
}

// currentKey returns the key, or why there is none.
func (r *Reader) currentKey(ctx context.Context, stored bool) (key hashKey, problem string) {
	text, err := r.Key.Current(ctx, stored)
	if err != nil {
		return nil, "the operator's own key cannot be read: " + err.Error()
	}
	return text, ""
}

// hash reads the contents that are not cached, and hashes them. With confirm, it asks the API server
// about sources that are missing in the cache.
func (r *Reader) hash(ctx context.Context, key hashKey, namespace string, all []usage, editions map[Origin]edition, confirm bool) State {
	s := State{Key: key.name()}
	digests, left := make([]string, 0, len(all)), r.MaxBytes
	for i := range all {
		u := &all[i]
		got, e, err := r.resultOf(ctx, key, namespace, u, editions[u.Origin], confirm)
		if err != nil {
			return State{Key: s.Key, Unreadable: r.unreadable(namespace, u.Origin, err)}
		}
		if left -= got.bytes; r.MaxBytes > 0 && left < 0 {
			return State{Key: s.Key, Unreadable: fmt.Sprintf("the referenced ConfigMaps and Secrets exceed %d MiB in total; use fewer or smaller ones", r.MaxBytes>>20)}
		}
		editions[u.Origin] = e
		s.note(u.Origin, e, got.immutable)
		digests = append(digests, got.digest)
		s.Missing = append(s.Missing, got.missing...)
	}
	s.Seen, s.Hash = versionsDigest(all, editions), key.combined(digests)
	return s
}

// unreadable returns why a source cannot be read, and how an administrator can grant the permission to
// read this source only.
func (r *Reader) unreadable(namespace string, o Origin, err error) string {
	message := fmt.Sprintf("%s cannot be read: %v", o, err)
	if !apierrors.IsForbidden(err) || r.Account == "" {
		return message
	}
	resource := map[string]string{KindSecret: "secrets", KindConfigMap: "configmaps"}[o.Kind]
	name := "stateful-operator-reads-" + o.Name
	return message + fmt.Sprintf(". To allow it: kubectl -n %s create role %s --verb=get --resource=%s --resource-name=%s && kubectl -n %s create rolebinding %s --role=%s --serviceaccount=%s",
		namespace, name, resource, o.Name, namespace, name, name, r.Account)
}

// resultOf returns the result for one source. It reads the source if the result for this version is not
// cached.
func (r *Reader) resultOf(ctx context.Context, key hashKey, namespace string, u *usage, e edition, confirm bool) (result, edition, error) {
	at, shape := address{namespace, u.Origin}, u.shape()
	exists := e != (edition{})
	if !exists && (!confirm || !u.Possible()) { // there is nothing to read
		r.read.forget(at)
		return key.result(u, nil), e, nil
	}
	if got, ok := r.read.find(at, e, key.name(), shape); ok {
		return got, e, nil
	}
	held, e, err := r.contentOf(ctx, namespace, u.Origin)
	if err != nil {
		return result{}, edition{}, err
	}
	got := key.result(u, held)
	if held == nil {
		r.read.forget(at)
	} else {
		r.read.store(at, e, key.name(), shape, got)
	}
	return got, e, nil
}

// result computes the data that are kept of a content.
func (k hashKey) result(u *usage, c *content) result {
	return result{digest: k.digest(u, c), missing: u.lacks(c), bytes: c.bytes(), immutable: c.isImmutable()}
}

// contentOf reads the contents of a source from the API server; nil if the source does not exist.
func (r *Reader) contentOf(ctx context.Context, namespace string, o Origin) (*content, edition, error) {
	at := types.NamespacedName{Namespace: namespace, Name: o.Name}
	var m client.Object
	var c content
	var err error
	if o.Kind == KindSecret {
		var secret corev1.Secret
		err = r.Live.Get(ctx, at, &secret)
		m, c.data, c.immutable = &secret, secret.Data, isTrue(secret.Immutable)
	} else {
		var config corev1.ConfigMap
		err = r.Live.Get(ctx, at, &config)
		m, c.binary, c.data, c.immutable = &config, config.BinaryData, map[string][]byte{}, isTrue(config.Immutable)
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

// editionOf returns the edition of a source in the cache.
func (r *Reader) editionOf(ctx context.Context, namespace string, o Origin) (edition, error) {
	if !o.Possible() {
		return edition{}, nil
	}
	m := Metadata(o.Kind)
	if err := r.Cache.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.Name}, m); apierrors.IsNotFound(err) {
		return edition{}, nil
	} else if err != nil {
		return edition{}, fmt.Errorf("get %s: %w", o, err)
	}
	return edition{string(m.UID), m.ResourceVersion}, nil
}
