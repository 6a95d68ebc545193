package statefulsingleton

import (
	"context"
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// views returns an old list of pods and a current single pod, as consecutive reads may.
type views struct {
	live
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
	if h := s.now().Status.Holder; h == nil || h.Name != "web-1-a" {
		s.Fatal(t, "web-1-a is not the holder")
	}
	return s
}

// seen returns the member that observe returns for a pod with these lists.
func (s *stage) seen(lists *objects.Objects, name string) *facts.Member {
	o := s.operators[0]
	o.r.reader.Live = views{live{o}, lists}
	w, err := o.r.reader.Observe(context.Background(), key)
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
	a := s.pods()[0]
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
	a := s.pods()[0]
	edit(s, a, func(p *corev1.Pod) { delete(p.Annotations, v1.AnnotationReminder) })
	now := s.pods()[0].ResourceVersion
	if got := s.seen(before, a.Name); got.Pod.ResourceVersion != now {
		t.Errorf("version %s of the holder from a list is used, although %s was read later", got.Pod.ResourceVersion, now)
	}
	view := func(name, version string, age time.Duration) corev1.Pod {
		m := newMember(name)
		m.Pod.ResourceVersion, m.Pod.CreationTimestamp.Time = version, noon.Add(-age)
		return *m.Pod
	}
	got := observe.Latest([]corev1.Pod{view("b", "2", time.Minute), view("a", "1", time.Hour), view("b", "3", time.Minute), view("a", "4", time.Hour)})
	if len(got) != 2 || got[0].ResourceVersion != "4" || got[1].ResourceVersion != "3" {
		t.Errorf("latest returns %v", got)
	}
}

// TestV14TheMirrorOfAStaticPodIsDeleted checks that no pod starts before the kubelet has
// had time to recreate a deleted mirror of a static pod, whose program keeps running.
func TestV14TheMirrorOfAStaticPodIsDeleted(t *testing.T) {
	var m observe.Remembered
	look := func(at time.Duration, members ...*memberFixture) (steps int, wait time.Duration) {
		w := worldOf(singleton("db"), append(members, waiting("b").coming())...)
		w.Now = noon.Add(at)
		m.Recall(w)
		w.FirstSeen = noon.Add(-time.Hour)
		p := rules.Decide(facts.Derive(w))
		return p.Acts(), p.Wait
	}
	expect := func(what string, at time.Duration, steps int, wait time.Duration, members ...*memberFixture) {
		t.Helper()
		if gotSteps, gotWait := look(at, members...); gotSteps != steps || gotWait != wait {
			t.Errorf("V14 %s: %d actions, and a requeue after %s; want %d, %s", what, gotSteps, gotWait, steps, wait)
		}
	}
	expect("the mirror pod exists", 0, 0, 0, ungated("s").static())
	expect("the mirror pod is missing", time.Second, 0, spec.MirrorReturns)
	expect("the kubelet has recreated the mirror pod", 3*time.Second, 0, 0, ungated("s").static())
	expect("the manifest is removed, and the mirror pod is missing", 4*time.Second, 0, spec.MirrorReturns)
	expect("the mirror pod has been missing for 5 s", 9*time.Second, 0, spec.MirrorReturns-5*time.Second)
	expect("the mirror pod has been missing long enough to have ended", 4*time.Second+spec.MirrorReturns, 1, 0)
	expect("another mirror pod exists", time.Hour, 0, 0, ungated("s").static())
	expect("the other mirror pod has ended", time.Hour+time.Second, 1, 0, ungated("s").static().ended())
	expect("the ended mirror pod is missing", time.Hour+2*time.Second, 1, 0)
}

// only returns a reader that has only these objects.
func only(all ...client.Object) *objects.Objects {
	o := &objects.Objects{All: map[objects.Key]client.Object{}}
	for _, obj := range all {
		o.All[objects.KeyOf(obj)] = obj
	}
	return o
}

func TestAPodOfAnotherObjectIsNoOrphan(t *testing.T) {
	other := singleton("other")
	p := pod().with(func(p *corev1.Pod) {
		p.Labels, p.Finalizers = map[string]string{v1.LabelSingleton: "other"}, []string{v1.FinalizerPod}
	})
	r := &observe.Reader{Live: only(&p.Pod, &other.StatefulSingleton)}
	if got, err := r.ReadOrphans(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db"}); err != nil || len(got) > 0 {
		t.Errorf("a pod that was created for another object is an orphan: %d, %v", len(got), err)
	}
}
