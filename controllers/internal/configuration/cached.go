package configuration

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A kubelet reads an immutable ConfigMap or Secret once, and caches it while a pod on its node uses it
// (kubelet/util/manager). If the object is deleted and recreated with the same name, the kubelet does
// not read it again before that. A pod that is restarted while another pod on the node uses the object
// gets the old contents.

// Pod is a pod of an object whose configuration is followed.
type Pod struct {
	UID        types.UID
	Name, Node string
	Hash       string // hash of its configuration
	Created    time.Time
}

// PodOf returns the fields of a pod that determine which contents it has. hash is the key of the
// annotation with the hash of its configuration.
func PodOf(pod *corev1.Pod, hash string) Pod {
	return Pod{UID: pod.UID, Name: pod.Name, Node: pod.Spec.NodeName, Hash: pod.Annotations[hash], Created: pod.CreationTimestamp.Time}
}

// WithCached returns the record with the pods that may have old contents of recreated sources. When
// such a pod was created, its node already ran a pod of an earlier configuration, or another pod with
// old contents. The earlier pod may never be seen beside it: it ran at that time if the next pod of its
// name was created later.
func (r Record) WithCached(pods []Pod) Record {
	if len(r.Recreated) == 0 {
		r.Cached, r.Before = nil, nil
		return r
	}
	before := nodesBefore(r, pods)
	cached := map[types.UID]bool{}
	for _, uid := range r.Cached {
		cached[uid] = true
	}
	r.Cached = nil
	byAge := slices.SortedFunc(slices.Values(pods), func(a, b Pod) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(string(a.UID), string(b.UID)))
	})
	for i, p := range byAge {
		holds := func(older Pod) bool {
			return older.Node == p.Node && (older.Hash != r.Hash || cached[older.UID])
		}
		held := func(later Pod) bool {
			return before[later.Name] == p.Node && later.Hash == r.Hash && later.Created.After(p.Created)
		}
		shared := slices.ContainsFunc(byAge[:i], holds) || slices.ContainsFunc(byAge[i+1:], held)
		if p.Node != "" && p.Hash == r.Hash && shared {
			cached[p.UID] = true
		}
		if cached[p.UID] {
			r.Cached = append(r.Cached, p.UID)
		}
	}
	slices.Sort(r.Cached)
	for _, p := range pods {
		if p.Hash == r.Hash {
			delete(before, p.Name)
		}
	}
	if r.Before = before; len(before) == 0 {
		r.Before = nil
	}
	return r
}

// nodesBefore returns Record.Before with the pods that have an earlier configuration now.
func nodesBefore(r Record, pods []Pod) map[string]string {
	before := map[string]string{}
	maps.Copy(before, r.Before)
	for _, p := range pods {
		if p.Hash != r.Hash && p.Node != "" {
			before[p.Name] = p.Node
		}
	}
	return before
}

// NoteCached adds the pods that may have old contents to the record of a target. It returns the message
// of a condition about them, or "" if there are none.
func (t *Target) NoteCached(namespace string, pods []Pod) string {
	r := ParseRecord(t.Record)
	if r == nil || len(r.Recreated) == 0 {
		return ""
	}
	next := r.WithCached(pods)
	t.Record = next.String()
	return next.CachedMessage(namespace, pods)
}

// ReasonCached is the reason of a condition: pods may have old contents of a source.
const ReasonCached = "ConfigCached"

// CachedMessage describes which pods may have old contents, and how to replace them. All such pods of a
// node must be deleted together.
func (r Record) CachedMessage(namespace string, pods []Pod) string {
	byNode := map[string][]string{}
	var nodes []string
	for _, p := range pods {
		if !slices.Contains(r.Cached, p.UID) {
			continue
		}
		if byNode[p.Node] == nil {
			nodes = append(nodes, p.Node)
		}
		byNode[p.Node] = append(byNode[p.Node], p.Name)
	}
	if len(nodes) == 0 {
		return ""
	}
	slices.Sort(nodes)
	first := nodes[0]
	slices.Sort(byNode[first])
	more := ""
	if len(nodes) > 1 {
		more = fmt.Sprintf(", and on %d more Nodes", len(nodes)-1)
	}
	names := strings.Join(byNode[first], " ")
	return fmt.Sprintf("%s was deleted and recreated, and is immutable: the kubelet of Node %s keeps the old contents while pods on it use them, so these pods may have the old contents: %s%s. "+
		"Use another name for the new contents, or replace these pods together: kubectl cordon %s && kubectl -n %s delete pod %s && kubectl uncordon %s",
		strings.Join(r.Recreated, ", "), first, names, more, first, namespace, names, first)
}
