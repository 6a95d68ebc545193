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

// MostSources is how many ConfigMaps and Secrets are followed for one object.
const MostSources = 256

// The kinds that a pod template takes configuration from.
const (
	KindConfigMap = "ConfigMap"
	KindSecret    = "Secret"
)

// Origin names a ConfigMap or Secret in the namespace of its user.
type Origin struct{ Kind, Name string }

func (s Origin) String() string { return s.Kind + " " + s.Name }

// CompareOrigins orders by kind, then by name.
func CompareOrigins(a, b Origin) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
}

// Possible reports whether there can be an object of that name at all. The API server
// is not asked for others: it would answer that the question is wrong, for ever.
func (s Origin) Possible() bool {
	return s.Name != "" && len(names.IsPathSegmentName(s.Name)) == 0
}

// usage is what a pod template uses of one source.
//
// What counts is what containers can see. Where every use names keys (env, items
// of a volume), only those keys count: a ConfigMap shared by many, each with a key
// of its own, would else restart all of them for the key of one.
type usage struct {
	Origin
	// whole is true when one use takes the object with all its keys.
	whole bool
	// keys that are used by name.
	keys []string
	// needs are those parts without which no pod starts: "" for the object itself,
	// else a key; and who says so.
	needs map[string]string
}

// usages lists what a pod template takes of ConfigMaps and Secrets, in order of kind
// and name.
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
		// The kubelet goes on without one that is missing.
		f.whole(KindSecret, ref.Name, true, "")
	}
	return f.sorted()
}

// finder gathers uses by source.
type finder map[Origin]*found

type found struct {
	whole bool
	keys  map[string]bool
	needs map[string]string
}

func (f finder) of(kind, name string) *found {
	s := Origin{kind, name}
	if f[s] == nil {
		f[s] = &found{keys: map[string]bool{}, needs: map[string]string{}}
	}
	return f[s]
}

// require notes who needs the object ("") or a key; the first has the word.
func (u *found) require(part, by string) {
	if u.needs[part] == "" {
		u.needs[part] = by
	}
}

// whole notes a use of all keys.
func (f finder) whole(kind, name string, optional bool, by string) {
	if name == "" {
		return // it names nothing
	}
	u := f.of(kind, name)
	u.whole = true
	if !optional {
		u.require("", by)
	}
}

// key notes a use of one key.
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

// items notes a use by a volume: of the keys it lists, or of all.
func (f finder) items(kind, name string, items []corev1.KeyToPath, optional *bool, by string) {
	if len(items) == 0 {
		f.whole(kind, name, isTrue(optional), by)
	}
	for _, item := range items {
		f.key(kind, name, item.Key, isTrue(optional), by)
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

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

// credentials names the Secrets that the driver of a volume is given. A Secret in
// another namespace is none of ours to follow.
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

func (f finder) sorted() []usage {
	all := make([]usage, 0, len(f))
	for s, u := range f {
		all = append(all, usage{Origin: s, whole: u.whole, keys: slices.Sorted(maps.Keys(u.keys)), needs: u.needs})
	}
	slices.SortFunc(all, func(a, b usage) int { return CompareOrigins(a.Origin, b.Origin) })
	return all[:min(len(all), MostSources+1)] // one too many tells that there are too many
}

// Origins are the sources that any of these templates uses, each once, in order.
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
