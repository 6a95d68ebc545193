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

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
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
	named := fixture.Waiting("a")
	onRecord := fixture.Singleton("db")
	onRecord.Status.Holder = &v1.Holder{UID: named.Pod.UID}
	for _, row := range []struct {
		says    string
		object  *fixture.SingletonFixture
		m       *fixture.MemberFixture
		missing bool
	}{
		{"a pod that waits", fixture.Singleton("db"), fixture.Waiting("a"), true},
		{"a pod whose grant is pending", onRecord, named, false},
		{"a pod that was granted", fixture.Singleton("db"), fixture.Granted("a", 1), false},
		{"a pod that lost its grant", fixture.Singleton("db"), fixture.Granted("a", 1).With(func(p *corev1.Pod) { p.Annotations = nil }), false},
		{"a pod without the gate", fixture.Singleton("db"), fixture.Ungated("a"), false},
	} {
		w := fixture.WorldOf(row.object, row.m)
		r := &observe.Reader{Cache: none, Now: func() time.Time { return fixture.Noon }}
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
		r.Now = func() time.Time { return fixture.Noon.Add(10 * time.Minute) }
		if got := look(none); !got.MissingSince.Equal(fixture.Noon) {
			t.Errorf("%s: the Node has been missing since %s", row.says, got.MissingSince)
		}
		if got := look(back); got.Missing != row.missing {
			t.Errorf("%s: %+v", row.says, got)
		}
	}
}

// TestV14TheMirrorOfAStaticPodIsDeleted checks that no pod starts before the kubelet has
// had time to recreate a deleted mirror of a static pod, whose program keeps running.
func TestV14TheMirrorOfAStaticPodIsDeleted(t *testing.T) {
	var m observe.Remembered
	look := func(at time.Duration, members ...*fixture.MemberFixture) (steps int, wait time.Duration) {
		w := fixture.WorldOf(fixture.Singleton("db"), append(members, fixture.Waiting("b").Coming())...)
		w.Now = fixture.Noon.Add(at)
		m.Recall(w)
		w.FirstSeen = fixture.Noon.Add(-time.Hour)
		p := rules.Decide(facts.Derive(w))
		return p.Acts(), p.Wait
	}
	expect := func(what string, at time.Duration, steps int, wait time.Duration, members ...*fixture.MemberFixture) {
		t.Helper()
		if gotSteps, gotWait := look(at, members...); gotSteps != steps || gotWait != wait {
			t.Errorf("V14 %s: %d actions, and a requeue after %s; want %d, %s", what, gotSteps, gotWait, steps, wait)
		}
	}
	expect("the mirror pod exists", 0, 0, 0, fixture.Ungated("s").Static())
	expect("the mirror pod is missing", time.Second, 0, spec.MirrorReturns)
	expect("the kubelet has recreated the mirror pod", 3*time.Second, 0, 0, fixture.Ungated("s").Static())
	expect("the manifest is removed, and the mirror pod is missing", 4*time.Second, 0, spec.MirrorReturns)
	expect("the mirror pod has been missing for 5 s", 9*time.Second, 0, spec.MirrorReturns-5*time.Second)
	expect("the mirror pod has been missing long enough to have ended", 4*time.Second+spec.MirrorReturns, 1, 0)
	expect("another mirror pod exists", time.Hour, 0, 0, fixture.Ungated("s").Static())
	expect("the other mirror pod has ended", time.Hour+time.Second, 1, 0, fixture.Ungated("s").Static().Ended())
	expect("the ended mirror pod is missing", time.Hour+2*time.Second, 1, 0)
}

func TestAPodOfAnotherObjectIsNoOrphan(t *testing.T) {
	other := fixture.Singleton("other")
	p := fixture.Pod().With(func(p *corev1.Pod) {
		p.Labels, p.Finalizers = map[string]string{v1.LabelSingleton: "other"}, []string{v1.FinalizerPod}
	})
	r := &observe.Reader{Live: fixture.Only(&p.Pod, &other.StatefulSingleton)}
	if got, err := r.ReadOrphans(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}); err != nil || len(got) > 0 {
		t.Errorf("a pod that was created for another object is an orphan: %d, %v", len(got), err)
	}
}
