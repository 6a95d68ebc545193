package workloads

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// stage is a cluster with StatefulSet ns/db, its controller, kubelets and the garbage collector.
type stage struct {
	*Controller
	t *testing.T
}

// newStage returns a cluster with a StatefulSet of three replicas at rest.
func newStage(t *testing.T, changes ...func(*appsv1.StatefulSet)) *stage {
	t.Helper()
	c := simulation.New(noon)
	kubelet.Turn(c, "n1", true)
	labels := map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}, Spec: appsv1.StatefulSetSpec{
		Replicas: ptr.To[int32](3), ServiceName: "peers", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}}},
	}}
	for _, change := range changes {
		change(set)
	}
	c.Put(set)
	s := &stage{New(c), t}
	s.rest()
	return s
}

func (s *stage) set() *appsv1.StatefulSet {
	return objects.Clone(s.All[objects.Key{Kind: "StatefulSet", Namespace: "ns", Name: "db"}].(*appsv1.StatefulSet))
}

// edit changes the StatefulSet as a user.
func (s *stage) edit(changes ...func(*appsv1.StatefulSet)) {
	set := s.set()
	for _, change := range changes {
		change(set)
	}
	set.Generation++
	s.Put(set)
}

// play lets all act for some rounds of a second, and reports whether there is nothing more to do.
func (s *stage) play(rounds int) (rests bool) {
	s.t.Helper()
	for range rounds {
		moves := slices.Concat(simulation.Steps(s.Moves(s.set())), simulation.Garbage(s.Cluster), kubelet.Moves(s.Cluster))
		if len(moves) == 0 {
			return true
		}
		for _, move := range moves {
			move()
		}
		s.Now = s.Now.Add(time.Second)
	}
	return false
}

func (s *stage) rest() {
	s.t.Helper()
	if !s.play(200) {
		s.t.Fatalf("there is no rest:\n%s", strings.Join(s.Story[max(0, len(s.Story)-30):], "\n"))
	}
}

// pod returns a copy of the pod of that name; nil if there is none.
func (s *stage) pod(name string) *corev1.Pod {
	p, exists := s.All[objects.Key{Kind: "Pod", Namespace: "ns", Name: name}].(*corev1.Pod)
	if !exists {
		return nil
	}
	return p.DeepCopy()
}

// pods returns the pods with their images, and whether they are Ready.
func (s *stage) pods() (found []string) {
	for _, p := range kubelet.Pods(s.Cluster) {
		line := p.Name + " " + p.Spec.Containers[0].Image
		if !podstate.Ready(p) || podstate.Terminating(p) {
			line += " unready"
		}
		found = append(found, line)
	}
	return found
}

func (s *stage) has(why string, want ...string) {
	s.t.Helper()
	if got := s.pods(); !slices.Equal(got, want) {
		s.t.Errorf("%s: pods %q, want %q:\n%s", why, got, want, strings.Join(s.Story[max(0, len(s.Story)-30):], "\n"))
	}
}

// lines returns the lines of the story since that length that end with the text.
func (s *stage) lines(from int, text string) (names []string) {
	for _, line := range s.Story[from:] {
		if name, found := strings.CutSuffix(strings.TrimSpace(line), text); found {
			names = append(names, name)
		}
	}
	return names
}

func image(name string) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = name }
}

func scale(n int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n }
}

func parallel(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }

func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
}

func rolling(partition int32, maxUnavailable *intstr.IntOrString) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition, MaxUnavailable: maxUnavailable}}
	}
}

func startAt(ordinal int32) func(*appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: ordinal} }
}

// TestOrder tests the order in which pods are created and deleted.
func TestOrder(t *testing.T) {
	s := newStage(t)
	wantReady := []string{"db-0 is created", "db-0 is Ready", "db-1 is created", "db-1 is Ready", "db-2 is created", "db-2 is Ready"}
	order := func(texts ...string) (found []string) {
		for _, line := range s.Story {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.HasSuffix(line, text) }) {
				found = append(found, strings.TrimSpace(line))
			}
		}
		return found
	}
	if got := order("is created", "is Ready"); !slices.Equal(got, wantReady) {
		t.Errorf("ordered pods: %q", got)
	}
	s.Story = nil
	s.edit(scale(1))
	s.rest()
	if got := order("by its StatefulSet", "is gone"); !slices.Equal(got, []string{"db-2 is deleted by its StatefulSet", "db-2 is gone", "db-1 is deleted by its StatefulSet", "db-1 is gone"}) {
		t.Errorf("ordered pods are deleted: %q", got)
	}
	s = newStage(t, parallel)
	if got := order("is created", "is Ready"); !slices.Equal(got, []string{"db-0 is created", "db-1 is created", "db-2 is created", "db-0 is Ready", "db-1 is Ready", "db-2 is Ready"}) {
		t.Errorf("parallel pods: %q", got)
	}
	s.Story = nil
	s.edit(scale(0))
	s.rest()
	if got := order("by its StatefulSet", "is gone"); len(got) != 6 || strings.HasSuffix(got[2], "gone") {
		t.Errorf("parallel pods are deleted: %q", got)
	}
}

// TestAnUnhealthyPodBlocksOrderedOnes tests a scale up, and a scale down with two unhealthy pods: the lower one is the
// only one that may be unavailable when it is deleted.
func TestAnUnhealthyPodBlocksOrderedOnes(t *testing.T) {
	s := newStage(t, image(kubelet.BadImage))
	s.has("the first pod has a bad image", "db-0 bad unready")
	s = newStage(t, onDelete)
	for _, name := range []string{"db-1", "db-2"} {
		p := s.pod(name)
		p.Spec.Containers[0].Image = kubelet.BadImage
		s.Put(p)
	}
	s.rest()
	s.edit(scale(1))
	s.rest()
	s.has("two excess pods are unhealthy", "db-0 one", "db-1 bad unready", "db-2 bad unready")
	healthy := s.pod("db-1")
	healthy.Spec.Containers[0].Image = "one"
	s.Put(healthy)
	s.rest()
	s.has("only the last one is unhealthy", "db-0 one")

	s = newStage(t, onDelete)
	lower := s.pod("db-1")
	lower.Spec.Containers[0].Image = kubelet.BadImage
	s.Put(lower)
	s.rest()
	s.edit(scale(1))
	s.rest()
	s.has("only a lower one is unhealthy", "db-0 one")
}

// TestUpdates tests which pods an update replaces, and how many are unavailable meanwhile.
func TestUpdates(t *testing.T) {
	n, percent := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }, func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	all := []string{"db-0 two", "db-1 two", "db-2 two"}
	for _, row := range []struct {
		name   string
		change func(*appsv1.StatefulSet)
		want   []string
		most   int // pods that are unavailable at the same time
	}{
		{"all pods", rolling(0, nil), all, 1},
		{"no strategy", func(*appsv1.StatefulSet) {}, all, 1},
		{"parallel pods", parallel, all, 1},
		{"from the partition on", rolling(1, nil), []string{"db-0 one", "db-1 two", "db-2 two"}, 1},
		{"the partition counts pods", func(set *appsv1.StatefulSet) {
			rolling(2, nil)(set)
			startAt(5)(set)
		}, []string{"db-5 one", "db-6 one", "db-7 two"}, 1},
		{"OnDelete", onDelete, []string{"db-0 one", "db-1 one", "db-2 one"}, 0},
		{"two unavailable pods", rolling(0, n(2)), all, 2},
		{"a percentage is rounded down", rolling(0, percent("67%")), all, 2},
		{"a percentage of less than one pod", rolling(0, percent("1%")), all, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, row.change)
			s.edit(image("two"))
			most := 0
			for !s.play(1) {
				most = max(most, 3-len(slices.DeleteFunc(s.pods(), func(line string) bool { return strings.HasSuffix(line, "unready") })))
			}
			if s.has(row.name, row.want...); most != row.most {
				t.Errorf("%d pods were unavailable", most)
			}
		})
	}
}

// TestUpdatesOfUnhealthyPods tests that an update stops at a bad image, and that the next one replaces the bad pod unless
// maxUnavailable is set.
func TestUpdatesOfUnhealthyPods(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*appsv1.StatefulSet)
		want   []string
	}{
		{"without maxUnavailable", rolling(0, nil), []string{"db-0 two", "db-1 two", "db-2 two"}},
		{"with maxUnavailable", rolling(0, ptr.To(intstr.FromInt32(1))), []string{"db-0 one", "db-1 one", "db-2 bad unready"}},
	} {
		s := newStage(t, row.change, parallel)
		s.edit(image(kubelet.BadImage))
		s.rest()
		s.has(row.name, "db-0 one", "db-1 one", "db-2 bad unready")
		s.edit(image("two"))
		s.rest()
		s.has(row.name, row.want...)
	}
}

// TestPodsBelowThePartition tests that a deleted pod gets the template of the current revision.
func TestPodsBelowThePartition(t *testing.T) {
	s := newStage(t, rolling(1, nil))
	s.edit(image("two"))
	s.rest()
	for _, name := range []string{"db-0", "db-1"} {
		s.Delete(s.pod(name))
		s.rest()
	}
	s.has("a deleted pod", "db-0 one", "db-1 two", "db-2 two")
	if s.pod("db-0").Labels[appsv1.ControllerRevisionHashLabelKey] != s.set().Status.CurrentRevision {
		t.Error("the pod has another revision")
	}
}

// TestMinReadySeconds tests that a Ready pod is not available at once, and that its controller waits for it.
func TestMinReadySeconds(t *testing.T) {
	for _, row := range []struct {
		change func(*appsv1.StatefulSet)
		want   []string
	}{
		{func(*appsv1.StatefulSet) {}, []string{"db-0 one"}},
		{parallel, []string{"db-0 one", "db-1 one", "db-2 one"}},
	} {
		s := newStage(t, row.change, func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = 60 })
		s.has("all are Ready", row.want...)
		if got := s.set().Status; got.AvailableReplicas != 0 || got.ReadyReplicas != int32(len(row.want)) {
			t.Errorf("the status is %+v", got)
		}
		wait := s.Wait(s.set())
		if wait <= 30*time.Second || wait > time.Minute {
			t.Errorf("the controller waits for %s", wait)
		}
		for range 3 {
			s.Now = s.Now.Add(s.Wait(s.set()))
			s.rest()
		}
		if got := s.set().Status; got.AvailableReplicas != 3 || s.Wait(s.set()) != 0 {
			t.Errorf("the status is %+v, and the controller waits for %s", got, s.Wait(s.set()))
		}
	}
}

// TestOrdinals tests spec.ordinals.start.
func TestOrdinals(t *testing.T) {
	s := newStage(t, startAt(3), parallel)
	s.has("at first", "db-3 one", "db-4 one", "db-5 one")
	s.edit(startAt(4))
	s.rest()
	s.has("after a change", "db-4 one", "db-5 one", "db-6 one")
}

// TestEndedPodsAreReplaced tests a pod that a kubelet has ended.
func TestEndedPodsAreReplaced(t *testing.T) {
	s := newStage(t)
	p := s.pod("db-1")
	uid := p.UID
	p.Status.Phase = corev1.PodFailed
	s.Put(p)
	s.rest()
	if s.has("an ended pod", "db-0 one", "db-1 one", "db-2 one"); s.pod("db-1").UID == uid {
		t.Error("the pod was not replaced")
	}
}

// TestOutdatedSteps tests that a step has no effect if the spec or the pod has changed.
func TestOutdatedSteps(t *testing.T) {
	s := newStage(t, parallel)
	s.edit(scale(2), image("two"))
	outdated := s.Moves(s.set())
	s.edit(scale(3), image("one"))
	for _, m := range outdated {
		m.Do()
	}
	s.has("the spec has changed", "db-0 one", "db-1 one", "db-2 one")
	s.edit(scale(2))
	outdated = s.Moves(s.set())
	next := s.pod("db-2")
	s.DeleteNow(next)
	next.UID = ""
	s.Put(next)
	for _, m := range append(outdated, outdated...) {
		m.Do()
	}
	if p := s.pod("db-2"); p == nil || podstate.Terminating(p) {
		t.Error("a pod of the same name is deleted")
	}
}

// TestDeletedSets tests that the controller only updates the status of a StatefulSet that is being deleted.
func TestDeletedSets(t *testing.T) {
	s := newStage(t, func(set *appsv1.StatefulSet) { set.Finalizers = []string{"test/keep"} })
	s.edit(scale(5))
	s.Delete(s.set())
	moves := s.Moves(s.set())
	for _, m := range moves {
		m.Do()
	}
	if len(moves) != 1 || s.set().Status.ObservedGeneration != s.set().Generation || len(s.pods()) != 3 {
		t.Errorf("%d steps, status %+v, pods %q", len(moves), s.set().Status, s.pods())
	}
}

// TestObservesFirst tests the two orders of a status and of changes of pods.
func TestObservesFirst(t *testing.T) {
	for _, first := range []bool{true, false} {
		s := newStage(t, parallel)
		s.ObservesFirst = first
		s.edit(scale(0))
		for _, m := range s.Moves(s.set()) {
			m.Do()
		}
		deleted := len(s.lines(0, " is deleted by its StatefulSet"))
		if isObserved := s.set().Status.ObservedGeneration == s.set().Generation; !isObserved || (deleted == 0) != first {
			t.Errorf("observed first %t: %d pods are deleted, observed %t", first, deleted, isObserved)
		}
	}
}

// TestDeniedPods tests that a denied pod is created again only if the result may differ, and which others it blocks.
func TestDeniedPods(t *testing.T) {
	s := newStage(t, parallel, scale(0))
	tries := map[string]int{}
	isDenied := func(p *corev1.Pod) bool { return p.Name == "db-1" && s.set().Annotations["allows"] == "" }
	s.Create = func(_ *appsv1.StatefulSet, p *corev1.Pod) {
		if tries[p.Name]++; !isDenied(p) {
			s.Put(p)
		}
	}
	s.IsDenied = func(_ *appsv1.StatefulSet, p *corev1.Pod) bool { return tries[p.Name] > 0 && isDenied(p) }
	s.edit(scale(2))
	s.rest()
	s.edit(scale(5))
	s.rest()
	if s.has("db-1 is denied", "db-0 one", "db-2 one"); tries["db-1"] > 2 {
		t.Errorf("it was denied %d times", tries["db-1"])
	}
	s.edit(func(set *appsv1.StatefulSet) { metav1.SetMetaDataAnnotation(&set.ObjectMeta, "allows", "yes") })
	s.rest()
	s.has("no pod is denied", "db-0 one", "db-1 one", "db-2 one", "db-3 one", "db-4 one")
	s.Deletion = func(set *appsv1.StatefulSet, p *corev1.Pod) string { return fmt.Sprint(set.Name, " deletes ", p.Name) }
	s.edit(scale(4))
	s.rest()
	if !slices.Contains(s.Story, "    db deletes db-4") {
		t.Errorf("the story is %q", s.Story)
	}
}
