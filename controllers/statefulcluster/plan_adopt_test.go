package statefulcluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// orphanOne removes the owner reference of a member.
func orphanOne(s *stage) *corev1.Pod {
	p := s.members()[0]
	p.OwnerReferences = nil
	s.Put(p)
	return p
}

// uidsOf returns the UIDs of all pods that are not terminating.
func uidsOf(s *stage) (uids []types.UID) {
	for _, p := range s.members() {
		uids = append(uids, p.UID)
	}
	slices.Sort(uids)
	return uids
}

func TestW5AMemberThatLostItsOwnerIsAdopted(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	before := uidsOf(s)
	orphanOne(s)
	s.settle(2 * time.Second)
	for _, p := range s.members() {
		if !metav1.IsControlledBy(p, s.set()) {
			t.Errorf("W5 %s has no owner", p.Name)
		}
	}
	if got := uidsOf(s); !slices.Equal(got, before) || len(s.set().Status.Lost) > 0 {
		t.Errorf("W5 pods are %q, want %q; status.lost is %v", got, before, s.set().Status.Lost)
	}
	s.ends()
	s.Check(t)
}

// After a restart the operator does not know whether the pod was a member.
func TestW5AnOrphanOfBeforeARestartWaitsForAPerson(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	before := uidsOf(s)
	left := orphanOne(s)
	s.Restart()
	s.settle(2 * time.Second)
	if got := uidsOf(s); !slices.Equal(got, before) {
		t.Errorf("W5 pods are %q, want %q", got, before)
	}
	if got := fixture.Says(s.set().Status, v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True OrphanedPods: ") || !strings.Contains(got, left.Name) {
		t.Errorf("W5 condition Degraded is %s", got)
	}
	for _, p := range kubelet.Pods(s.Cluster) {
		if p.Name == left.Name && len(p.OwnerReferences) > 0 {
			t.Errorf("W5 %s was adopted because of its labels", p.Name)
		}
	}
	left = s.members()[0]
	left.OwnerReferences = []metav1.OwnerReference{children.Owner(spec.Settings{Set: s.set()})}
	s.Put(left) // as the command in the condition does
	s.settle(2 * time.Second)
	s.ends()
	s.Check(t)
}

// `kubectl delete --cascade=orphan` marks the set as deleted before it removes the owner
// references. A pod adopted after that would be deleted with the set.
func TestW5NothingIsAdoptedBySetsThatAreDeleted(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	read := s.set()
	orphanOne(s)
	going := s.set()
	going.Finalizers, going.DeletionTimestamp = []string{metav1.FinalizerOrphanDependents}, &metav1.Time{Time: s.Now}
	s.Put(going)
	w := s.observe(read, engine.View{Reader: s.Cluster, Live: true})
	if got := fixture.PlanOf(w).Steps.Strings(); len(got) > 0 {
		t.Errorf("W5 the plan has steps %q, want none", got)
	}
}

// A user who also removes the labels of the selector releases the pod.
func TestW5AReleasedPodIsNoMember(t *testing.T) {
	s := newStage(t, three())
	s.settle(2 * time.Second)
	left := orphanOne(s)
	delete(left.Labels, "app")
	s.Put(left)
	s.settle(2 * time.Second)
	for _, p := range kubelet.Pods(s.Cluster) {
		if p.Name == left.Name && len(p.OwnerReferences) > 0 {
			t.Errorf("W5 %s was adopted", p.Name)
		}
	}
}
