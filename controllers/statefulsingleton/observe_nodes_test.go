package statefulsingleton

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// TestMissingNodeIsReadLiveWhereItFences has a Node that has been missing for ten minutes, and that
// exists again in the API server alone.
func TestMissingNodeIsReadLiveWhereItFences(t *testing.T) {
	if nodestate.Undecided >= spec.FenceAfter {
		t.Errorf("a Node that has been missing for %s may be fenced without a live read", nodestate.Undecided)
	}
	none := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	back := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}).Build()
	named := waiting("a")
	onRecord := singleton("db")
	onRecord.Status.Holder = &v1.Holder{UID: named.Pod.UID}
	for _, row := range []struct {
		says    string
		object  *singletonFixture
		m       *memberFixture
		missing bool
	}{
		{"a pod that waits", singleton("db"), waiting("a"), true},
		{"a pod whose grant is pending", onRecord, named, false},
		{"a pod that was granted", singleton("db"), granted("a", 1), false},
		{"a pod that lost its grant", singleton("db"), granted("a", 1).with(func(p *corev1.Pod) { p.Annotations = nil }), false},
		{"a pod without the gate", singleton("db"), ungated("a"), false},
	} {
		w := worldOf(row.object, row.m)
		r := &observe.Reader{Cache: none, Now: func() time.Time { return noon }}
		look := func(live client.Reader) nodestate.Facts {
			t.Helper()
			r.Live = live
			got, err := r.ReadNode(context.Background(), w, &row.m.Member)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		look(none)
		r.Now = func() time.Time { return noon.Add(10 * time.Minute) }
		if got := look(none); !got.MissingSince.Equal(noon) {
			t.Errorf("%s: the Node has been missing since %s", row.says, got.MissingSince)
		}
		if got := look(back); got.Missing != row.missing {
			t.Errorf("%s: %+v", row.says, got)
		}
	}
}
