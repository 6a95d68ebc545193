package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// application is a workload whose program must not run twice at a time. The program is a witness: the
// measurements come from its run log.
type application struct {
	*site
	witnessset.Set
	pods     int // number of pods, only one of them runs the program
	gate     v1.GateMode
	folder   *observer.Folder
	workload client.Object
}

// rule changes a StatefulSingleton before it is created.
type rule func(*v1.StatefulSingletonSpec)

func replaceFirst(s *v1.StatefulSingletonSpec) { s.OnEviction = v1.EvictionReplacesFirst }

// newApplication creates a namespace, the StatefulSingleton unless gate is "", and the workload. Then
// it waits until the program runs.
func (s *site) newApplication(ctx context.Context, name string, gate v1.GateMode, pods int, workload func(*application) client.Object, rules ...rule) *application {
	s.makeNamespace(ctx, name)
	folder := must(observer.Open(filepath.Join(s.cluster.Dir(), "witness", name)))
	a := &application{site: s, pods: pods, gate: gate, folder: folder,
		Set: witnessset.Set{Name: name, Namespace: name, Image: s.witness, Folder: folder.Dir(), Grace: 5}}
	s.open = append(s.open, a)
	if gate != "" {
		a.hold(ctx, rules...)
	}
	a.workload = workload(a)
	check(s.client.Create(ctx, a.workload))
	a.settled(ctx)
	return a
}

// hold creates the StatefulSingleton and waits until admission injects the gate into matching pods. The
// webhook's cache lags by some milliseconds, and the guard would reject earlier pods.
func (a *application) hold(ctx context.Context, rules ...rule) {
	singleton := a.Singleton()
	singleton.Spec.GateMode = a.gate
	for _, change := range rules {
		change(&singleton.Spec)
	}
	check(a.client.Create(ctx, singleton))
	waitFor(ctx, time.Minute, "the gate to be added to pods", func() (bool, string) {
		pod := a.Pod("try")
		err := a.client.Create(ctx, pod, client.DryRunAll)
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) { // rejected by the guard
			return false, err.Error()
		}
		check(err)
		return pod.Labels[v1.LabelManaged] == v1.True, ""
	})
}

func deployment(strategy appsv1.DeploymentStrategy) func(*application) client.Object {
	return func(a *application) client.Object {
		d := a.Deployment(int32(a.pods), strategy)
		d.Spec.RevisionHistoryLimit = new(int32(1))
		return d
	}
}

func setOfOne(a *application) client.Object {
	set := a.StatefulSet(int32(a.pods))
	set.Spec.RevisionHistoryLimit = new(int32(1))
	return set
}

// Functions that end the program.

func rollOut(ctx context.Context, a *application, _ testimony.Run) {
	check(witnessset.RollOut(ctx, a.client, a.workload))
}

func deletePod(ctx context.Context, a *application, old testimony.Run) {
	check(a.Delete(ctx, a.client, old))
}

// drain does what `kubectl drain` does with this pod: it retries rejected evictions.
func drain(ctx context.Context, a *application, old testimony.Run) {
	a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Unschedulable = true })
	waitFor(ctx, time.Minute, "the eviction of "+old.Pod, func() (bool, string) {
		err := a.Evict(ctx, a.client, old)
		if apierrors.IsTooManyRequests(err) {
			return false, err.Error()
		}
		check(client.IgnoreNotFound(err)) // the pod may be deleted between two attempts
		return true, ""
	})
}

func uncordon(ctx context.Context, a *application, old testimony.Run) {
	a.changeNode(ctx, old.Node, func(node *corev1.Node) { node.Spec.Unschedulable = false })
}

// alive returns the run that has not ended. one is false if there is not exactly one.
func (a *application) alive() (run testimony.Run, one bool) {
	live := slices.DeleteFunc(must(a.folder.Runs()), func(r testimony.Run) bool { return !r.Alive() })
	if len(live) != 1 {
		return run, false
	}
	return live[0], true
}

// active returns the only live run, and fails if there is not exactly one.
func (a *application) active() testimony.Run {
	run, one := a.alive()
	if !one {
		fail("no program of %s runs", a.Name)
	}
	return run
}

// next waits for the run that follows another one. It returns both, the old one with its end.
func (a *application) next(ctx context.Context, before testimony.Run) (old, next testimony.Run) {
	waitFor(ctx, 3*time.Minute, "the next program of "+a.Name, func() (bool, string) {
		runs := must(a.folder.Runs())
		at := slices.IndexFunc(runs, func(r testimony.Run) bool { return r.ID == before.ID })
		if at < 0 {
			fail("a run is missing in its diary")
		}
		if at == len(runs)-1 || runs[at].Alive() {
			return false, ""
		}
		old, next = runs[at], runs[at+1]
		return true, ""
	})
	return old, next
}

// settled waits until one program runs in a Ready pod, all other pods of the application wait at their
// gates, and the number of pods is right. The fastest handover starts from this state.
func (a *application) settled(ctx context.Context) {
	waitFor(ctx, 5*time.Minute, a.Name+" to be at rest", func() (bool, string) {
		pods := a.podsIn(ctx, a.Namespace)
		run, one := a.alive()
		if !one || len(pods) != a.pods {
			return false, fmt.Sprintf("(%d pods)", len(pods))
		}
		ours := 0
		for i := range pods {
			pod := &pods[i]
			switch runs := string(pod.UID) == run.UID; {
			case pod.DeletionTimestamp != nil, runs && !ready(pod), !runs && !witnessset.AtGate(pod):
				return false, "(pod " + pod.Name + " does not match)"
			case runs:
				ours++
			}
		}
		return ours == 1, ""
	})
}
