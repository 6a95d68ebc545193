package simulation

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// TestCollector tests owners that never were in the cluster, and objects that are not collected.
func TestCollector(t *testing.T) {
	c := New(noon)
	owned := func(name string, owners ...metav1.OwnerReference) client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, OwnerReferences: owners}}
	}
	read, unread := metav1.OwnerReference{Kind: "Set", Name: "read", UID: "1"}, metav1.OwnerReference{Kind: "Set", Name: "unread", UID: "2"}
	c.Put(owned("gone", read))
	c.Put(owned("unknown", unread))
	c.Put(owned("both", read, unread))
	c.Put(owned("spared", read))
	c.Put(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "revision", OwnerReferences: []metav1.OwnerReference{read}}})
	collector := Collector{Text: "is collected", IsRead: func(o metav1.OwnerReference) bool { return o.Name == read.Name },
		Collects: func(obj client.Object) bool { return obj.GetName() != "spared" }}
	for _, m := range append(collector.Moves(c), collector.Moves(c)...) { // others may act in between
		m.Do()
	}
	var left []string
	for key := range c.All {
		left = append(left, key.Name)
	}
	slices.Sort(left)
	if got := strings.Join(left, " "); got != "both spared unknown" || !slices.Equal(c.Story, []string{"    gone is collected"}) {
		t.Errorf("left are %s, and the story is %q", got, c.Story)
	}
	c.Unlisted = map[string]bool{read.Kind: true}
	c.Put(owned("unlisted", read))
	if n := len(collector.Moves(c)); n != 0 {
		t.Errorf("%d objects are garbage although objects of the kind of their owner could not be listed", n)
	}
	c.Unlisted = nil
	c.Remove(c.All[objects.Key{Kind: "ConfigMap", Namespace: "ns", Name: "unlisted"}])
	owner := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: read.UID}}
	c.Put(owner)
	c.Put(owned("gone", read))
	if n := len(collector.Moves(c)); n != 0 {
		t.Errorf("%d objects are garbage although their owner exists", n)
	}
	c.Remove(owner)
	outdated := collector.Moves(c)
	c.Remove(c.All[objects.Key{Kind: "ConfigMap", Namespace: "ns", Name: "gone"}])
	c.Put(owned("gone"))
	for _, m := range outdated {
		m.Do()
	}
	if c.All[objects.Key{Kind: "ConfigMap", Namespace: "ns", Name: "gone"}] == nil {
		t.Error("an object that replaced garbage is deleted")
	}
}
