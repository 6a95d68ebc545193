package simulate

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// wanted returns the ReplicaSets with their replicas.
func wanted(s *Simulation) map[string]int32 {
	found := map[string]int32{}
	for _, set := range Every[appsv1.ReplicaSet](s.Cluster) {
		found[set.Name] = replicas(set)
	}
	return found
}

// TestLimitsOfARollout checks maxSurge and maxUnavailable.
func TestLimitsOfARollout(t *testing.T) {
	n, percent := func(n int) *intstr.IntOrString { return ptr.To(intstr.FromInt(n)) }, func(s string) *intstr.IntOrString { return ptr.To(intstr.FromString(s)) }
	for _, r := range []struct {
		replicas          int32
		surge, missing    *intstr.IntOrString
		wantSurge, wantMU int32
	}{
		{1, nil, nil, 1, 0},
		{5, nil, nil, 2, 1},
		{3, percent("50%"), percent("50%"), 2, 1},
		{3, n(0), n(0), 0, 1},
		{2, n(0), n(5), 0, 2},
		{0, n(0), n(0), 0, 0},
		{3, percent("many"), n(1), 0, 1},
	} {
		d := newDeployment("shop", r.replicas)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: r.surge, MaxUnavailable: r.missing}
		if surge, missing := maxSurge(d), maxUnavailable(d); surge != r.wantSurge || missing != r.wantMU {
			t.Errorf("replicas %d, %v and %v: surge %d, unavailable %d", r.replicas, r.surge, r.missing, surge, missing)
		}
	}
}

// TestARollbackUsesTheEarlierReplicaSet checks that templates are compared, and not only images.
func TestARollbackUsesTheEarlierReplicaSet(t *testing.T) {
	c := newCluster(newDeployment("shop", 1))
	s := New(c, shop)
	setEnv := func(value string) {
		Edit(c, Every[appsv1.Deployment](c)[0], func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[1].Env = []corev1.EnvVar{{Name: "LEVEL", Value: value}}
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "note", value)
		})
		rest(s)
	}
	setEnv("1")
	setEnv("2")
	if got := wanted(s); len(got) != 2 || got["shop-2"] != 1 {
		t.Fatalf("ReplicaSets %v:\n%s", got, tail(c))
	}
	setEnv("1")
	if got := wanted(s); len(got) != 2 || got["shop-1"] != 1 || got["shop-2"] != 0 {
		t.Errorf("after the rollback: %v", got)
	}
	d := Every[appsv1.Deployment](c)[0]
	if observe.RevisionOf(d) != 3 || d.Annotations["note"] != "1" {
		t.Errorf("the annotations are %v", d.Annotations)
	}
}

// TestRecreateStopsOldPodsFirst checks strategy Recreate.
func TestRecreateStopsOldPodsFirst(t *testing.T) {
	d := newDeployment("shop", 2)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	c := newCluster(d)
	s := New(c, shop)
	rest(s)
	setImage(c, "two")
	rest(s)
	created, last := slices.Index(c.Story, "    shop-2-c is created without a gate"), 0
	for i, line := range c.Story {
		if line == "    shop-1-a stops" || line == "    shop-1-b stops" {
			last = i
		}
	}
	if created < last || last == 0 || wanted(s)["shop-2"] != 2 {
		t.Errorf("story:\n%s", tail(c))
	}
}

// TestPausedDeploymentsDoNotRollOut checks a paused Deployment.
func TestPausedDeploymentsDoNotRollOut(t *testing.T) {
	c := newCluster(newDeployment("shop", 1))
	s := New(c, shop)
	rest(s)
	Edit(c, Every[appsv1.Deployment](c)[0], func(d *appsv1.Deployment) { d.Spec.Paused = true })
	setImage(c, "two")
	if rest(s); len(wanted(s)) != 1 {
		t.Errorf("ReplicaSets %v", wanted(s))
	}
}

// TestReplicaSetsAdoptTheirPods checks a pod whose owner was removed.
func TestReplicaSetsAdoptTheirPods(t *testing.T) {
	c := newCluster(newDeployment("shop", 1))
	s := New(c, shop)
	rest(s)
	Edit(c, s.pod("shop-1-a"), func(p *corev1.Pod) { p.OwnerReferences = nil })
	if rest(s); metav1.GetControllerOf(s.pod("shop-1-a")) == nil || len(s.Pods()) != 1 {
		t.Errorf("story:\n%s", tail(c))
	}
}

// TestDependentsAreDeletedWithTheirOwner checks that the pods of a deleted Deployment are deleted.
func TestDependentsAreDeletedWithTheirOwner(t *testing.T) {
	c, o := run(t, nil, newDeployment("shop", 2))
	for _, d := range Every[appsv1.Deployment](c) {
		if d.Name == "shop" {
			c.Delete(d)
		}
	}
	settle(t, c, o)
	if len(roles(c)) > 0 || len(Every[appsv1.ReplicaSet](c)) > 0 {
		t.Errorf("pods %q remain:\n%s", roles(c), tail(c))
	}
	if h := present(c).Status.Holder; h == nil || h.Epoch != 1 {
		t.Errorf("the holder is %v", h)
	}
}
