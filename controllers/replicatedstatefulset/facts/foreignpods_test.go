package facts_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestWhoIsNoStranger tests that clock skew between API servers, or the loss of the StatefulSet,
// does not make the set's own pods strangers.
func TestWhoIsNoStranger(t *testing.T) {
	object := fixture.With(func(w *facts.World) { w.Set.CreationTimestamp = metav1.NewTime(fixture.Ago(time.Hour)) })
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want bool
	}{
		{"a pod that is younger than the object", fixture.Pod(0).Born(time.Minute), false},
		{"a pod that is older than the object within the clock skew", fixture.Pod(0).Born(time.Hour + spec.ClocksDiffer), false},
		{"a pod that is older than the object", fixture.Pod(0).Born(time.Hour + spec.ClocksDiffer + time.Second), true},
		{"an older pod with a grant", fixture.Pod(0).Born(2 * time.Hour).WithGranted(), false},
		{"an older pod that is terminating", fixture.Pod(0).Born(2 * time.Hour).Deleted(), false},
		{"a younger pod without our annotation", fixture.Pod(0).Born(time.Minute).But(func(w *facts.World) { w.Members[0].Pod.Annotations = nil }), true},
	} {
		w := fixture.WorldOf(fixture.SetOf(1, 1), r.pod, object)
		if got := facts.Derive(w).Members[0].WhyForeign != ""; got != r.want {
			t.Errorf("%s is foreign: %t", r.name, got)
		}
	}
}

// A StatefulSet that was deleted and made again finds pods of the one before: they are waited for.
func TestWhoIsMadeByAnother(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "rss-db", UID: "now", CreationTimestamp: metav1.NewTime(fixture.Noon)}}
	made := func(uid string, at time.Time) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "rss-db-0", CreationTimestamp: metav1.NewTime(at),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "rss-db", UID: types.UID(uid), Controller: ptr.To(true)}}}}
	}
	for _, row := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"a pod of this StatefulSet", made("now", fixture.Noon.Add(time.Minute)), false},
		{"a pod of this StatefulSet with clock skew", made("now", fixture.Noon.Add(-time.Minute)), false},
		{"a pod of the previous StatefulSet", made("before", fixture.Noon.Add(-time.Second)), false},
		{"a younger pod of another StatefulSet", made("never", fixture.Noon.Add(time.Second)), true},
		{"a pod without an owner", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(fixture.Noon.Add(time.Minute))}}, false},
	} {
		if got := observe.IsMadeByAnother(set, row.pod); got != row.want {
			t.Errorf("%s: made by another StatefulSet: %t", row.name, got)
		}
	}
}
