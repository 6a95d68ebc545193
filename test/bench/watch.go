package main

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// tally is the number of pods and claims in a namespace.
type tally struct{ pods, good, claims int }

// spectator counts the pods and claims of a namespace with a watch. It is the same for all contestants
// and independent of them.
type spectator struct {
	stop   context.CancelFunc
	isGood func(*corev1.Pod) bool
	mu     sync.Mutex
	tally  tally
	pods   map[types.UID]bool // the value is whether the pod is good
	claims map[types.UID]bool
	goals  []*milestone
}

// milestone is a state to reach, and the time when it was reached.
type milestone struct {
	reached func(tally) bool
	done    chan time.Time
}

// spectate starts to count. good decides which pods are good.
func (s *site) spectate(ctx context.Context, namespace string, good func(*corev1.Pod) bool) *spectator {
	ctx, stop := context.WithCancel(ctx)
	w := &spectator{stop: stop, isGood: good, pods: map[types.UID]bool{}, claims: map[types.UID]bool{}}
	seen := cache.ResourceEventHandlerFuncs{AddFunc: w.saw, UpdateFunc: func(_, obj any) { w.saw(obj) }, DeleteFunc: w.lost}
	pods, claims := s.watch(ctx, namespace, "pods", &corev1.Pod{}, seen), s.watch(ctx, namespace, "persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, seen)
	if !cache.WaitForCacheSync(ctx.Done(), pods, claims) {
		stop()
		fail("watching namespace %s: interrupted", namespace)
	}
	return w
}

// watch starts an informer for all objects of a resource in a namespace.
func (s *site) watch(ctx context.Context, namespace, resource string, object runtime.Object, handler cache.ResourceEventHandler) cache.InformerSynced {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(s.admin.CoreV1().RESTClient(), resource, namespace, fields.Everything()),
		ObjectType:    object, Handler: handler,
	})
	go informer.RunWithContext(ctx)
	return informer.HasSynced
}

// saw records the current state of a pod or a claim.
func (w *spectator) saw(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := obj.(type) {
	case *corev1.Pod:
		w.forget(o.UID)
		w.pods[o.UID] = w.isGood(o)
		if w.pods[o.UID] {
			w.tally.good++
		}
	case *corev1.PersistentVolumeClaim:
		w.claims[o.UID] = true
	}
	w.look()
}

// lost records the deletion of a pod. Deleted claims stay counted.
func (w *spectator) lost(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(pod.UID)
	w.look()
}

func (w *spectator) forget(pod types.UID) {
	if w.pods[pod] {
		w.tally.good--
	}
	delete(w.pods, pod)
}

// look checks which milestones are reached. The caller holds mu.
func (w *spectator) look() {
	w.tally.pods, w.tally.claims = len(w.pods), len(w.claims)
	left := w.goals[:0]
	for _, m := range w.goals {
		if m.reached(w.tally) {
			m.done <- time.Now()
		} else {
			left = append(left, m)
		}
	}
	w.goals = left
}

func (w *spectator) now() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tally
}

// when returns a milestone. Call it before the measurement starts.
func (w *spectator) when(reached func(tally) bool) *milestone {
	m := &milestone{reached: reached, done: make(chan time.Time, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goals = append(w.goals, m)
	w.look()
	return m
}

// await returns the time when the milestone was reached, and prints the state every few seconds.
func (w *spectator) await(ctx context.Context, m *milestone, what string) time.Time {
	began := time.Now()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case at := <-m.done:
			return at
		case <-ctx.Done():
			fail("waiting for %s: interrupted", what)
		case <-ticker.C:
			now := w.now()
			if time.Since(began) > 15*time.Minute {
				fail("%s not reached within 15 minutes: %+v", what, now)
			}
			step("%s after %s: %d pods, %d claims, %d as wanted", what, time.Since(began).Round(time.Second), now.pods, now.claims, now.good)
		}
	}
}

func ready(pod *corev1.Pod) bool { return saysReady(pod) && pod.DeletionTimestamp == nil }

// saysReady reports whether the pod has condition Ready. A terminating pod may have it too.
func saysReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}
