package simulation

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
)

// with returns an action that patches the current pod a.
func (c *Cluster) with(t *testing.T, verb action.Verb, change func(*corev1.Pod)) action.Action {
	t.Helper()
	from := read(t, c, &corev1.Pod{}, "a")
	to := from.DeepCopy()
	change(to)
	return action.Action{Verb: verb, Object: to, From: from}
}

func finalizers(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Finalizers = names }
}

func (c *Cluster) has(name string) bool {
	return c.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: name}, &corev1.Pod{}) == nil
}

func TestFinalizersHoldAPod(t *testing.T) {
	c := newCluster()
	for _, names := range [][]string{{"x"}, {"x", "y"}} {
		if got := c.tell(c.with(t, action.Patch, finalizers(names...))); got != "done" {
			t.Fatal(got)
		}
	}
	c.tell(action.Action{Verb: action.Delete, Object: read(t, c, &corev1.Pod{}, "a")})
	if got := c.tell(c.with(t, action.Patch, finalizers("x", "y", "z"))); got != "Invalid" {
		t.Errorf("a new finalizer on a pod that is being deleted: %s", got)
	}
	c.tell(c.with(t, action.Patch, finalizers("x")))
	c.tell(c.with(t, action.Patch, finalizers()))
	if !c.has("a") {
		t.Fatal("the pod was removed before its kubelet reported its end")
	}
	c.DeleteNow(read(t, c, &corev1.Pod{}, "a"))
	if c.has("a") {
		t.Error("the pod is not removed although nothing blocks it")
	}
}

func TestTheLastFinalizerLetsItGo(t *testing.T) {
	c := newCluster()
	c.tell(c.with(t, action.Patch, finalizers("x")))
	c.Delete(read(t, c, &corev1.Pod{}, "a"))
	soft := read(t, c, &corev1.Pod{}, "a")
	c.Now = c.Now.Add(5 * time.Second)
	c.DeleteNow(soft)
	forced := read(t, c, &corev1.Pod{}, "a")
	if *soft.DeletionGracePeriodSeconds != 30 || *forced.DeletionGracePeriodSeconds != 0 || !forced.DeletionTimestamp.Time.Equal(noon) {
		t.Errorf("the pod has %d and then %d seconds, until %s", *soft.DeletionGracePeriodSeconds, *forced.DeletionGracePeriodSeconds, forced.DeletionTimestamp)
	}
	c.tell(c.with(t, action.Patch, finalizers()))
	if c.has("a") {
		t.Error("the pod is not removed with its last finalizer")
	}
}

func TestPatchesThatAreBound(t *testing.T) {
	c := newCluster()
	label := func(p *corev1.Pod) { p.Labels = map[string]string{"mine": "1"} }
	late := c.with(t, action.Patch, label)
	late.Unchanged = true
	c.tell(c.with(t, action.Patch, finalizers("x")))
	if got := c.tell(late); got != "Conflict" {
		t.Errorf("patching an older version: %s", got)
	}
	now := c.with(t, action.Patch, label)
	now.Unchanged = true
	if got := c.tell(now); got != "done" || read(t, c, &corev1.Pod{}, "a").Labels["mine"] != "1" {
		t.Errorf("patching the current version: %s", got)
	}
}

func TestOneConditionOfMany(t *testing.T) {
	c := newCluster()
	condition := func(kind corev1.PodConditionType) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
			p.Labels["lost"] = "here"
		}
	}
	mine := c.with(t, action.SetCondition, condition("mine"))
	c.tell(c.with(t, action.SetCondition, condition("theirs")))
	c.tell(mine)
	now := read(t, c, &corev1.Pod{}, "a")
	if len(now.Status.Conditions) != 2 || now.Labels["lost"] != "" {
		t.Errorf("the pod has %v and %v", now.Status.Conditions, now.Labels)
	}
}
