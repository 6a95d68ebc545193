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
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// ownerless removes the owner reference of the first member.
var ownerless = with(func(w *facts.World) { w.Members[0].Pod.OwnerReferences = nil })

// orphan returns a pod with that id, the set's labels, no owner, and the claims of a member.
func orphan(id string) thing {
	return with(func(w *facts.World) {
		stray(id).into(w)
		w.OrphanIDs = map[string]bool{id: true}
	})
}

// stray returns an orphan without claims.
func stray(id string) thing {
	return with(func(w *facts.World) { w.Orphans = append(w.Orphans, &corev1.Pod{ObjectMeta: named("db-" + id)}) })
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "ns"} }

func TestAdopt(t *testing.T) {
	check(t, []row{
		{name: "W5 the owner reference of a member is restored", world: seen(set("db"), a(), b(), c(), ownerless),
			want: []string{"patch pod db-a: Adopted, its owner reference was missing"}},
		{name: "W5 a member that is being recreated waits while an orphan has its name",
			world: seen(set("db"), a(), b(), updating("c", "uid-of-c", "now"), orphan("c"))},
		{name: "W5 other slots are filled while an orphan has the name of a returning member", world: seen(set("db"), a(), updating("c", "uid-of-c", "now"), orphan("c")), want: creates("f1")},
		{name: "W5 a terminating pod is not adopted", world: seen(set("db"), a().going(), b(), c(), ownerless), want: []string{createsInPlaceOf("a", "f1")}},
		{name: "W5 a refused adoption is retried later", world: seen(set("db"), a(), b(), c(), ownerless, refused(facts.ReasonAdopted, "no", time.Minute)), wait: time.Minute},
		{name: "W5 an orphan with claims is not replaced", world: seen(set("db"), b(), c(), orphan("a"))},
		{name: "W5 other missing members are created despite an orphan with claims", world: seen(set("db"), c(), orphan("a")), want: creates("f1")},
		{name: "W5 no member is retired because of an orphan with claims", world: seen(set("db"), a(), b(), c(), orphan("x"))},
		{name: "W5 an orphan without claims blocks no replacement", world: seen(set("db"), b(), c(), stray("a")), want: append(creates("f1"), losesLabels("a"))},
	})
}

func TestOrphanedPodsCondition(t *testing.T) {
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"W5 an orphan with claims is reported", seen(set("db"), b(), c(), orphan("a")), "True OrphanedPods: pods have the labels of members but no owner. The operator cannot determine whether they were members, " +
			"so it ignores them and creates no replacement for 1 member: db-a; " +
			"if db-a was a member: `kubectl -n ns patch pod db-a --type=merge -p '{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"enge.me/v1alpha1\",\"kind\":\"StatefulCluster\",\"name\":\"db\",\"uid\":\"uid-of-set\",\"controller\":true,\"blockOwnerDeletion\":true}]}}'`; " +
			"if not: `kubectl -n ns delete pod db-a`"},
		{"W5 the command in the message names an orphan with claims", seen(set("db"), b(), c(), stray("0"), orphan("a")), "if not: `kubectl -n ns delete pod db-a`"},
		{"W5 an orphan without claims is not reported", seen(set("db"), a(), b(), c(), stray("x")), "False "},
	} {
		if got := says(told(r.world), v1alpha1.ConditionDegraded); !strings.Contains(got, r.want) {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

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
	s.restart()
	s.settle(2 * time.Second)
	if got := uidsOf(s); !slices.Equal(got, before) {
		t.Errorf("W5 pods are %q, want %q", got, before)
	}
	if got := says(s.set().Status, v1alpha1.ConditionDegraded); !strings.HasPrefix(got, "True OrphanedPods: ") || !strings.Contains(got, left.Name) {
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
	if got := planOf(w).Steps.Strings(); len(got) > 0 {
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
