package configuration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	names "k8s.io/apimachinery/pkg/api/validate/content"
)

// MaxSources is the max number of ConfigMaps and Secrets that are followed for one object.
const MaxSources = 256

// The kinds of sources.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Origin identifies a source, which is a ConfigMap or Secret in the namespace of the object that uses
// it.
type Origin struct{ Kind, Name string }

// String returns the kind and the name.
func (s Origin) String() string { return s.Kind + " " + s.Name }

// CompareOrigins orders by kind, then by name.
func CompareOrigins(a, b Origin) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// Possible reports whether an object of that name can exist. The API server rejects reads of other
// names, so they must be skipped.
func (s Origin) Possible() bool {
	return s.Name != "" && len(names.IsPathSegmentName(s.Name)) == 0
}

// usage is the part of one source that a pod template uses.
//
// Only values that containers can see count. If every reference specifies keys (env, items of a
// volume), only these keys count. Otherwise a change of one key in a shared ConfigMap would restart the
// users of all its keys.
type usage struct {
	Origin
	// whole is true if a reference uses all keys of the object.
	whole bool
	// keys are the keys that are used by name.
	keys []string
	// needs contains the parts without which no pod starts: "" for the object itself, else a key. The
	// values describe where they are required.
	needs map[string]string
}

// usages returns the usages of a pod template, sorted by kind and name.
func usages(pod *corev1.PodSpec) []usage {
	f := finder{}
	for i := range pod.Volumes {
		f.volume(&pod.Volumes[i])
	}
	for i := range pod.InitContainers {
		f.container("init container", &pod.InitContainers[i])
	}
	for i := range pod.Containers {
		f.container("container", &pod.Containers[i])
	}
	for i := range pod.EphemeralContainers {
		c := corev1.Container(pod.EphemeralContainers[i].EphemeralContainerCommon)
		f.container("ephemeral container", &c)
	}
	for _, ref := range pod.ImagePullSecrets {
		// The kubelet ignores missing image pull secrets.
		f.whole(KindSecret, ref.Name, true, "")
	}
	return f.sorted()
}

// finder collects usages by source.
type finder map[Origin]*found

// found is what finder has collected about one source. Its fields are as in usage.
type found struct {
	whole bool
	keys  map[string]bool
	needs map[string]string
}

// of returns the entry of a source, and adds it if it is missing.
func (f finder) of(kind, name string) *found {
	s := Origin{kind, name}
	if f[s] == nil {
		f[s] = &found{keys: map[string]bool{}, needs: map[string]string{}}
	}
	return f[s]
}

// require records where the object ("") or a key is required. The first caller wins.
func (u *found) require(part, by string) {
	if u.needs[part] == "" {
		u.needs[part] = by
	}
}

// whole records a usage of all keys.
func (f finder) whole(kind, name string, optional bool, by string) {
	if name == "" {
		return // it refers to nothing
	}
	u := f.of(kind, name)
	u.whole = true
	if !optional {
		u.require("", by)
	}
}

// key records a usage of one key.
func (f finder) key(kind, name, key string, optional bool, by string) {
	if name == "" {
		return
	}
	u := f.of(kind, name)
	u.keys[key] = true
	if !optional {
		u.require("", by)
		u.require(key, by)
	}
}

// items records a usage by a volume: of the listed keys, or of all keys.
func (f finder) items(kind, name string, items []corev1.KeyToPath, optional *bool, by string) {
	if len(items) == 0 {
		f.whole(kind, name, isTrue(optional), by)
	}
	for _, item := range items {
		f.key(kind, name, item.Key, isTrue(optional), by)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// volume records the sources of a volume.
func (f finder) volume(v *corev1.Volume) {
	by := fmt.Sprintf("volume %q", v.Name)
	if s := v.ConfigMap; s != nil {
		f.items(KindConfigMap, s.Name, s.Items, s.Optional, by)
	}
	if s := v.Secret; s != nil {
		f.items(KindSecret, s.SecretName, s.Items, s.Optional, by)
	}
	if v.Projected != nil {
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				f.items(KindConfigMap, s.ConfigMap.Name, s.ConfigMap.Items, s.ConfigMap.Optional, by)
			}
			if s.Secret != nil {
				f.items(KindSecret, s.Secret.Name, s.Secret.Items, s.Secret.Optional, by)
			}
		}
	}
	for _, name := range credentials(v) {
		f.whole(KindSecret, name, false, by)
	}
}

// credentials returns the names of the Secrets that the driver of a volume uses. Secrets in other
// namespaces are not followed.
func credentials(v *corev1.Volume) []string {
	var local []*corev1.LocalObjectReference
	if s := v.CSI; s != nil {
		local = append(local, s.NodePublishSecretRef)
	}
	if s := v.FlexVolume; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.ISCSI; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.RBD; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.CephFS; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.Cinder; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.ScaleIO; s != nil {
		local = append(local, s.SecretRef)
	}
	if s := v.StorageOS; s != nil {
		local = append(local, s.SecretRef)
	}
	var names []string
	for _, ref := range local {
		if ref != nil {
			names = append(names, ref.Name)
		}
	}
	if s := v.AzureFile; s != nil {
		names = append(names, s.SecretName)
	}
	return names
}

// container records the sources of the environment of a container. what is its kind, for messages.
func (f finder) container(what string, c *corev1.Container) {
	for _, from := range c.EnvFrom {
		by := fmt.Sprintf("envFrom of %s %q", what, c.Name)
		if s := from.ConfigMapRef; s != nil {
			f.whole(KindConfigMap, s.Name, isTrue(s.Optional), by)
		}
		if s := from.SecretRef; s != nil {
			f.whole(KindSecret, s.Name, isTrue(s.Optional), by)
		}
	}
	for i := range c.Env {
		from := c.Env[i].ValueFrom
		if from == nil {
			continue
		}
		by := fmt.Sprintf("env %s of %s %q", c.Env[i].Name, what, c.Name)
		if s := from.ConfigMapKeyRef; s != nil {
			f.key(KindConfigMap, s.Name, s.Key, isTrue(s.Optional), by)
		}
		if s := from.SecretKeyRef; s != nil {
			f.key(KindSecret, s.Name, s.Key, isTrue(s.Optional), by)
		}
	}
}

// sorted returns the usages, sorted by kind and name.
func (f finder) sorted() []usage {
	all := make([]usage, 0, len(f))
	for s, u := range f {
		all = append(all, usage{Origin: s, whole: u.whole, keys: slices.Sorted(maps.Keys(u.keys)), needs: u.needs})
	}
	slices.SortFunc(all, func(a, b usage) int { return CompareOrigins(a.Origin, b.Origin) })
	return all[:min(len(all), MaxSources+1)] // one extra usage indicates that there are too many
}

// Origins returns the distinct sources that any of the templates uses, in order.
func Origins(templates ...*corev1.PodSpec) []Origin {
	var all []Origin
	for _, t := range templates {
		for _, u := range usages(t) {
			all = append(all, u.Origin)
		}
	}
	slices.SortFunc(all, CompareOrigins)
	return slices.Compact(all)
}
