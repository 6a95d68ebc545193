package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	extendedfixture "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	replicatedfixture "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	clusterfixture "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	singletonfixture "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// many is the max number of members for which plans are measured.
const many = 100

// atRest returns a cluster in which an object has come to rest, and others that the cluster has from the beginning.
func atRest(tb testing.TB, kind string, object client.Object, others ...client.Object) *simulation.Cluster {
	tb.Helper()
	c := simulation.New(clusterfixture.Noon)
	for i := range 4 {
		kubelet.Turn(c, fmt.Sprintf("n%d", i+1), true)
	}
	for _, other := range others {
		c.Put(other)
	}
	object.SetUID("")
	c.Put(object)
	o := kinds[kind].Start(c, client.ObjectKeyFromObject(object))
	if !simulation.Run(c, o, 10*time.Minute) {
		tb.Fatalf("%s does not come to rest: %q", kind, c.Story[max(0, len(c.Story)-30):])
	}
	c.Changed = nil
	return c
}

func cluster(replicas int32) *stcv1alpha1.StatefulCluster {
	set := clusterfixture.Set("shop").StatefulCluster
	set.Spec.Replicas = &replicas
	return &set
}

func replicated(replicas int32) *rssv1alpha1.ReplicatedStatefulSet {
	return replicatedfixture.SetOf(replicas, 1)
}

// edited returns a live object after a change.
func edited[T client.Object](tb testing.TB, c *simulation.Cluster, object T, change func(T)) client.Object {
	tb.Helper()
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(object), object); err != nil {
		tb.Fatal(err)
	}
	change(object)
	object.SetGeneration(object.GetGeneration() + 1)
	return object
}

func TestMake(t *testing.T) {
	c := atRest(t, "StatefulCluster", cluster(3))
	after := edited(t, c, cluster(3), func(s *stcv1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Command = []string{"serve"} })
	p, err := Make(context.Background(), c, Request{Kind: "StatefulCluster", Key: client.ObjectKeyFromObject(after), Put: []client.Object{after}}, c.Now)
	if err != nil || p.Summary.PodsRecreated != 3 || p.State != Complete || len(p.InProgress) > 0 {
		t.Errorf("%v, %+v", err, p)
	}
	if _, err := Make(context.Background(), c, Request{Kind: "Deployment"}, c.Now); err == nil {
		t.Error("a kind without a simulation is planned")
	}

	c = atRest(t, "ReplicatedStatefulSet", replicated(3))
	after = edited(t, c, replicated(3), func(s *rssv1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = "db:2" })
	p, err = Make(context.Background(), c, Request{Kind: "ReplicatedStatefulSet", Key: client.ObjectKeyFromObject(after), Put: []client.Object{after}}, c.Now)
	if err != nil || p.Summary.PodsRecreated != 3 || p.Summary.Handovers != 1 || p.State != Complete || len(p.InProgress) > 0 {
		t.Errorf("%v, %+v", err, p)
	}
}

// TestMakeReportsThatNoNodeIsLeft drains a Node while all others are cordoned.
func TestMakeReportsThatNoNodeIsLeft(t *testing.T) {
	for kind, object := range map[string]client.Object{"ReplicatedStatefulSet": replicated(3), "ExtendedStatefulSet": extendedfixture.FakeSet(2)} {
		c, key := atRest(t, kind, object), client.ObjectKeyFromObject(object)
		node := ""
		for _, pod := range kubelet.Pods(c) {
			node = pod.Spec.NodeName
		}
		for i := range 4 {
			kubelet.Cordon(c, fmt.Sprintf("n%d", i+1), true)
		}
		p, err := Make(context.Background(), c, Request{Kind: kind, Key: key, Drain: node}, c.Now)
		if err != nil || p.State == Complete || !strings.Contains(p.Message, "Unschedulable") {
			t.Errorf("%s: %v, %+v", kind, err, p)
		}
	}
}

func TestMakeAssumesApprovals(t *testing.T) {
	set := extendedfixture.FakeSet(2)
	set.Spec.Approval = estsv1alpha1.ApprovalManual
	c := atRest(t, "ExtendedStatefulSet", set.DeepCopy())
	after := edited(t, c, set, func(s *estsv1alpha1.ExtendedStatefulSet) {
		s.Spec.Template.Spec.Template.Spec.Containers[0].Image = "db:2"
	})
	request := Request{Kind: "ExtendedStatefulSet", Key: client.ObjectKeyFromObject(after), Put: []client.Object{after}}
	waits, err := Make(context.Background(), c, request, c.Now)
	if err != nil || waits.State == Complete || waits.Reason != estsv1alpha1.ReasonWaitingForApproval {
		t.Errorf("%v, %+v", err, waits)
	}
	request.Approved = true
	approved, err := Make(context.Background(), c, request, c.Now)
	isApproval := func(s Step) bool { return s.Action == Approve }
	at := slices.IndexFunc(approved.Steps, isApproval)
	if err != nil || approved.State != Complete || at != len(waits.Steps) || len(approved.Steps) <= at+1 {
		t.Errorf("%v, %+v", err, approved)
	}
}

func BenchmarkPlan(b *testing.B) {
	b.Run("StatefulCluster", func(b *testing.B) {
		c := atRest(b, "StatefulCluster", cluster(many))
		after := edited(b, c, cluster(many), func(s *stcv1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].Command = []string{"serve"} })
		measure(b, c, "StatefulCluster", after)
	})
	b.Run("ReplicatedStatefulSet", func(b *testing.B) {
		c := atRest(b, "ReplicatedStatefulSet", replicated(many))
		after := edited(b, c, replicated(many), func(s *rssv1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = "db:2" })
		measure(b, c, "ReplicatedStatefulSet", after)
	})
	b.Run("ExtendedStatefulSet", func(b *testing.B) {
		c := atRest(b, "ExtendedStatefulSet", extended(many))
		after := edited(b, c, extended(many), func(s *estsv1alpha1.ExtendedStatefulSet) {
			s.Spec.Template.Spec.Template.Spec.Containers[0].Image = "db:2"
		})
		measure(b, c, "ExtendedStatefulSet", after)
	})
	b.Run("StatefulSingleton", func(b *testing.B) {
		c := atRest(b, "StatefulSingleton", singleton(), deployment(many))
		after := edited(b, c, deployment(many), func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "shop:2" })
		measure(b, c, "StatefulSingleton", after)
	})
}

// extended returns a set whose pods are recreated in order.
func extended(replicas int32) *estsv1alpha1.ExtendedStatefulSet {
	set := extendedfixture.FakeSet(replicas)
	set.Spec.Template.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	return set
}

// singleton returns an object that selects the pods of a Deployment.
func singleton() *ssnv1.StatefulSingleton {
	return &ssnv1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "shop"},
		Spec: ssnv1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}, Containers: []string{"app"}}}
}

func deployment(replicas int32) *appsv1.Deployment {
	pod := singletonfixture.Pod(singletonfixture.Container("app").WithCommand("serve"))
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "shop"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}}, Spec: pod.Spec},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}}}
}

func measure(b *testing.B, c *simulation.Cluster, kind string, after client.Object) {
	b.ReportAllocs()
	for b.Loop() {
		p, err := Make(context.Background(), c, Request{Kind: kind, Key: types.NamespacedName{Namespace: after.GetNamespace(), Name: after.GetName()}, Put: []client.Object{after}}, c.Now)
		if err != nil || p.State != Complete || p.Summary.PodsRecreated+p.Summary.PodsDeleted != many {
			b.Fatalf("%v, %+v", err, p.Summary)
		}
	}
}
