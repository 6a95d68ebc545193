package statefulcluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Objects that the cache does not show, because they lack the operator's labels.

func TestABudgetOfAnotherOwner(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	theirs := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "theirs"}}
	s.Put(theirs)
	s.settle(15 * time.Minute)
	degraded := func() string { return fixture.Says(s.set().Status, v1alpha1.ConditionDegraded) }
	if !strings.HasPrefix(degraded(), "True WriteRefused: PodDisruptionBudget db exists and belongs to another owner") {
		t.Errorf("condition Degraded is %s", degraded())
	}
	for range 100 { // at rest nothing is written or retried
		tried := len(s.Story)
		s.Now = s.Now.Add(spec.ForeignInterval)
		s.Look()
		if s.Pass(); len(s.Story) != tried {
			t.Fatalf("steps at rest are %q, want none", s.Story[tried:])
		}
	}
	s.Remove(theirs)
	s.Now = s.Now.Add(spec.ForeignInterval)
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(s.t)
	if !strings.HasPrefix(degraded(), "False") {
		t.Errorf("condition Degraded after the budget was deleted is %s", degraded())
	}
}

func TestARevisionWithoutOurLabels(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	var revisions appsv1.ControllerRevisionList
	if err := s.List(context.Background(), &revisions); err != nil || len(revisions.Items) != 1 {
		t.Fatal(err, revisions.Items)
	}
	revisions.Items[0].Labels = nil
	s.Put(&revisions.Items[0])
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { *spec.Replicas = 5 })
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(s.t)
}

// A member that lost the operator's labels is still a member, however many foreign pods there are.
func TestAMemberAmongForeignPods(t *testing.T) {
	s := newStage(t, fixture.Set("db").Retention(v1alpha1.RetainClaims, v1alpha1.RetainClaims, v1alpha1.DeleteClaims))
	s.settle(15 * time.Minute)
	for i := range 2 * observe.ForeignKept {
		s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("api-%03d", i), Labels: map[string]string{"app": "db"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}}})
	}
	s.strip(&corev1.Pod{}, "db-a", map[string]string{"app": "db"})
	before := kubelet.Pods(s.Cluster)
	s.settle(15 * time.Minute)
	s.Check(s.t)
	if now := kubelet.Pods(s.Cluster); len(now) != len(before) {
		t.Errorf("%d pods before, %d pods now:\n%s", len(before), len(now), strings.Join(s.Story, "\n"))
	}
	if lines := strings.Join(s.Story, "\n"); strings.Contains(lines, "delete persistentvolumeclaim") {
		t.Errorf("a claim was deleted:\n%s", lines)
	}
}

// W3: the claim of a member loses its labels while the member is recreated.
func TestW3AnUpdateKeepsAMemberWhoseClaimLostItsLabels(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	s.Now = s.Now.Add(time.Hour)
	command("serve").do(s)
	for stripped := false; !stripped; {
		s.Look()
		s.Pass()
		for _, pod := range kubelet.Pods(s.Cluster) {
			if pod.DeletionTimestamp != nil && !stripped {
				s.strip(&corev1.PersistentVolumeClaim{}, "db-data-"+strings.TrimPrefix(pod.Name, "db-"), nil)
				stripped = true
			}
		}
	}
	s.losesNoMember()
}

// strip removes all labels of an object except these.
func (s *stage) strip(obj client.Object, name string, left map[string]string) {
	if err := s.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, obj); err != nil {
		s.t.Fatal(err)
	}
	obj.SetLabels(left)
	s.Put(obj)
}

// losesNoMember checks that a story ends with the three members that it began with.
func (s *stage) losesNoMember() {
	s.settle(15 * time.Minute)
	s.ends()
	s.Check(s.t)
	if now := len(kubelet.Pods(s.Cluster)); now != 3 || len(s.set().Status.Lost) > 0 {
		s.t.Errorf("%d pods, status.lost is %v:\n%s", now, s.set().Status.Lost, strings.Join(s.Story, "\n"))
	}
}

// A pod may lose the operator's label after the list of pods without it, and before the list of
// pods with it. Then neither list has the pod.
func TestALabelThatGoesBetweenTwoLists(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	var others sync.WaitGroup
	others.Add(2)
	first := true
	live := listsBy(func(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
		if _, pods := into.(*corev1.PodList); !pods {
			err := s.List(ctx, into, opts...)
			if first {
				others.Done()
			}
			return err
		}
		if first {
			others.Wait()
			first = false
			s.strip(&corev1.Pod{}, "db-a", map[string]string{"app": "db"})
		}
		return s.List(ctx, into, opts...)
	}, s.Cluster)
	if w := s.observe(s.set(), engine.View{Reader: live, Live: true}); len(w.Members) != 3 {
		t.Errorf("the cache has %d of 3 members", len(w.Members))
	}
}

func TestAMemberThatIsGivenUpIsNotLost(t *testing.T) {
	s := newStage(t, fixture.Set("db").Change(func(spec *v1alpha1.StatefulClusterSpec) {
		spec.VolumeClaimTemplates = nil
		spec.UpdateStrategy.InPlace = v1alpha1.InPlaceNever
	}))
	s.settle(15 * time.Minute)
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { spec.Template.Spec.Containers[0].Image = "two" })
	for len(s.set().Status.Updating) == 0 {
		s.Look()
		s.Pass()
	}
	s.edit(func(spec *v1alpha1.StatefulClusterSpec) { *spec.Replicas = 2 })
	for range 3 { // while the old pod is still terminating
		s.Look()
		s.Pass()
	}
	s.settle(15 * time.Minute)
	s.Check(s.t)
	if lost := s.set().Status.Lost; len(lost) > 0 {
		t.Errorf("status.lost after a scale-down is %v", lost)
	}
}

// listsBy returns a Reader with that List function.
func listsBy(list func(context.Context, client.ObjectList, ...client.ListOption) error, all client.Reader) client.Reader {
	return lister{all, list}
}

type lister struct {
	client.Reader
	list func(context.Context, client.ObjectList, ...client.ListOption) error
}

func (l lister) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	return l.list(ctx, into, opts...)
}

// A pod without any label is found by name, as long as its claims have their labels.
func TestAMemberWithoutAnyLabel(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	s.strip(&corev1.Pod{}, "db-a", nil)
	s.losesNoMember()
}

// A claim without any label is found by name, so it does not count as gone.
func TestAClaimWithoutAnyLabel(t *testing.T) {
	s := newStage(t, fixture.Set("db"))
	s.settle(15 * time.Minute)
	var bare corev1.PersistentVolumeClaim
	s.strip(&bare, "db-data-a", map[string]string{"app": "db"})
	s.losesNoMember()
	if err := s.Get(context.Background(), client.ObjectKeyFromObject(&bare), &bare); err != nil || bare.Labels[v1alpha1.LabelMember] != "a" {
		t.Errorf("the claim has the labels %v (%v)", bare.Labels, err)
	}
}
