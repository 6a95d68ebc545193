package configuration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A kubelet reads an immutable ConfigMap or Secret once, and keeps it for as long as a pod on
// its node uses it (kubelet/util/manager). One that was deleted and created again under its name
// is not read again before that: a pod that is restarted beside another one gets the old
// contents.

// Pod is a pod of an object whose configuration is followed.
type Pod struct {
	UID        types.UID
	Name, Node string
	Hash       string // that of its configuration
	Created    time.Time
}

// PodOf returns what of a pod says which contents it has. hash is the annotation that holds the
// hash of its configuration.
func PodOf(pod *corev1.Pod, hash string) Pod {
	return Pod{UID: pod.UID, Name: pod.Name, Node: pod.Spec.NodeName, Hash: pod.Annotations[hash], Created: pod.CreationTimestamp.Time}
}

// WithCached returns the record with the pods that may have old contents of what was recreated:
// those that were created on a node beside a pod of an earlier configuration, or beside another
// such pod.
func (r Record) WithCached(pods []Pod) Record {
	if len(r.Recreated) == 0 {
		r.Cached = nil
		return r
	}
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
		if p.Node != "" && p.Hash == r.Hash && slices.ContainsFunc(byAge[:i], holds) {
			cached[p.UID] = true
		}
		if cached[p.UID] {
			r.Cached = append(r.Cached, p.UID)
		}
	}
	slices.Sort(r.Cached)
	return r
}

// NoteCached adds to the record of a target the pods that may have old contents, and returns
// what a condition says of them; "" if there are none.
func (t *Target) NoteCached(namespace string, pods []Pod) string {
	r := ParseRecord(t.Record)
	if r == nil || len(r.Recreated) == 0 {
		return ""
	}
	next := r.WithCached(pods)
	t.Record = next.String()
	return next.CachedMessage(namespace, pods)
}

// ReasonCached is a reason of conditions: pods may have old contents of a source.
const ReasonCached = "ConfigCached"

// CachedMessage says which pods may have old contents, and how to replace them: all pods of a
// node have to be gone at one time.
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
	return fmt.Sprintf("%s was deleted and created again, and is immutable: the kubelet of Node %s keeps its old contents while pods use it there, so these pods may have them: %s%s. "+
		"Take another name for the new contents, or replace these pods at one time: kubectl cordon %s && kubectl -n %s delete pod %s && kubectl uncordon %s",
		strings.Join(r.Recreated, ", "), first, names, more, first, namespace, names, first)
}
