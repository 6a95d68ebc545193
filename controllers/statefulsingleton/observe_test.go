package statefulsingleton

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
)

// views returns an old list of pods and a current single pod, as consecutive reads may.
type views struct {
	simulate.Live
	lists *objects.Objects
}

func (v views) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return v.lists.List(ctx, into, opts...)
}

func (s *stage) asItIs() *objects.Objects { return &objects.Objects{All: maps.Clone(s.All)} }

// handedOver returns a stage on which web-1-a is the holder and web-1-b waits.
func handedOver(t *testing.T) *stage {
	s := newStage(t, 1)
	for _, act := range []act{makeObject(), makeDeployment(2, rolling)} {
		act.do(s)
		s.settle(4 * time.Second)
	}
	if h := s.Object().Status.Holder; h == nil || h.Name != "web-1-a" {
		s.Fatal(t, "web-1-a is not the holder")
	}
	return s
}

// seen returns the member that observe returns for a pod with these lists.
func (s *stage) seen(lists *objects.Objects, name string) *facts.Member {
	o := s.operators[0]
	o.Reconciler.Reader.Live = views{simulate.Live{Operator: o}, lists}
	w, err := o.Reconciler.Reader.Observe(context.Background(), fixture.Key)
	if err != nil {
		s.Fatal(s.t, err.Error())
	}
	for _, m := range w.Pods {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// TestTheHolderIsLookedUpByItsName checks the rule of the model that the holder is read by
// its name.
func TestTheHolderIsLookedUpByItsName(t *testing.T) {
	s := handedOver(t)
	a := s.Pods()[0]
	edit(s, a, func(p *corev1.Pod) { p.Labels = nil })
	if s.seen(s.asItIs(), a.Name) == nil {
		t.Error("the holder is not found after it has lost its labels")
	}
	edit(s, a, func(p *corev1.Pod) { p.UID = "another" })
	if s.seen(s.asItIs(), a.Name) != nil {
		t.Error("another pod with the holder's name is mistaken for the holder")
	}
}

// TestTheLastViewOfAPodCounts checks the rule of the model that the last read of a pod
// counts. It does not change the order of waiting pods.
func TestTheLastViewOfAPodCounts(t *testing.T) {
	s := handedOver(t)
	before := s.asItIs()
	a := s.Pods()[0]
	edit(s, a, func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationReminder) })
	now := s.Pods()[0].ResourceVersion
	if got := s.seen(before, a.Name); got.Pod.ResourceVersion != now {
		t.Errorf("version %s of the holder from a list is used, although %s was read later", got.Pod.ResourceVersion, now)
	}
	view := func(name, version string, age time.Duration) corev1.Pod {
		m := fixture.NewMember(name)
		m.Pod.ResourceVersion, m.Pod.CreationTimestamp.Time = version, fixture.Noon.Add(-age)
		return *m.Pod
	}
	got := observe.Latest([]corev1.Pod{view("b", "2", time.Minute), view("a", "1", time.Hour), view("b", "3", time.Minute), view("a", "4", time.Hour)})
	if len(got) != 2 || got[0].ResourceVersion != "4" || got[1].ResourceVersion != "3" {
		t.Errorf("latest returns %v", got)
	}
}
