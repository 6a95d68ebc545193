package observe_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// TestMissingNodeIsReadLiveWhereItDecides has a Node that has been missing for ten minutes, and that
// exists again in the API server alone.
func TestMissingNodeIsReadLiveWhereItDecides(t *testing.T) {
	if nodestate.Undecided >= spec.FenceAfter {
		t.Errorf("a Node that is missing for %s may be fenced without a live read", nodestate.Undecided)
	}
	none := fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()
	back := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}).Build()
	for _, row := range []struct {
		says    string
		granted bool
		from    engine.View
		missing bool
	}{
		{"a pass on the cache", false, engine.View{}, true},
		{"a pass on the cache, which may remove a grant", true, engine.View{}, false},
		{"a pass on live objects", false, engine.View{Live: true}, false},
	} {
		m := fixture.Pod(0)
		if row.granted {
			m = m.WithGranted()
		}
		w := fixture.WorldOf(fixture.SetOf(2, 1), m)
		m.Pod.Spec.NodeName = "n"
		r := &observe.Reader{Nodes: none, Now: func() time.Time { return fixture.Noon }}
		look := func(live client.Reader) nodestate.Facts {
			t.Helper()
			r.Live = live
			got, err := r.ReadNode(context.Background(), w, m.Member, row.from)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		look(none)
		r.Now = func() time.Time { return fixture.Noon.Add(10 * time.Minute) }
		if got := look(none); !got.MissingSince.Equal(fixture.Noon) {
			t.Errorf("%s: the Node is missing since %s", row.says, got.MissingSince)
		}
		if got := look(back); got.Missing != row.missing {
			t.Errorf("%s: %+v", row.says, got)
		}
	}
}
