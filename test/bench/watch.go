package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// tally is what a namespace holds.
type tally struct{ pods, good, claims int }

// spectator counts the pods and claims of a namespace as its watch sees them.
// It is the same for all contestants, and belongs to none.
type spectator struct {
	stop   context.CancelFunc
	mu     sync.Mutex
	pods   map[types.UID]bool // and whether they are good
	claims map[types.UID]bool
	good   int
	goals  []*milestone
}

// milestone is a state to reach, and when it was.
type milestone struct {
	reached func(tally) bool
	done    chan time.Time
}

// spectate starts to count. A pod is good when the predicate says so.
func (s *site) spectate(ctx context.Context, namespace string, good func(*corev1.Pod) bool) (*spectator, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &spectator{stop: stop, pods: map[types.UID]bool{}, claims: map[types.UID]bool{}}
	core := s.admin.CoreV1().RESTClient()
	pods := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.sawPod(obj, good) },
		UpdateFunc: func(_, obj any) { w.sawPod(obj, good) },
		DeleteFunc: w.lostPod,
	}
	claims := cache.ResourceEventHandlerFuncs{AddFunc: w.sawClaim}
	var synced []cache.InformerSynced
	for _, each := range []struct {
		resource string
		object   runtime.Object
		handler  cache.ResourceEventHandler
	}{{"pods", &corev1.Pod{}, pods}, {"persistentvolumeclaims", &corev1.PersistentVolumeClaim{}, claims}} {
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: cache.NewListWatchFromClient(core, each.resource, namespace, fields.Everything()),
			ObjectType:    each.object, Handler: each.handler,
		})
		go informer.RunWithContext(ctx)
		synced = append(synced, informer.HasSynced)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		stop()
		return nil, fmt.Errorf("watching namespace %s: interrupted", namespace)
	}
	return w, nil
}

func (w *spectator) sawPod(obj any, good func(*corev1.Pod) bool) {
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		return
	}
	now := good(pod)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setGood(w.pods[pod.UID], now)
	w.pods[pod.UID] = now
	w.look()
}

func (w *spectator) lostPod(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	pod, isPod := obj.(*corev1.Pod)
	if !isPod {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setGood(w.pods[pod.UID], false)
	delete(w.pods, pod.UID)
	w.look()
}

func (w *spectator) setGood(was, is bool) {
	if is && !was {
		w.good++
	}
	if was && !is {
		w.good--
	}
}

func (w *spectator) sawClaim(obj any) {
	claim, isClaim := obj.(*corev1.PersistentVolumeClaim)
	if !isClaim {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.claims[claim.UID] = true
	w.look()
}

// look sees whether a milestone is reached. The caller holds mu.
func (w *spectator) look() {
	now, left := w.tally(), w.goals[:0]
	for _, m := range w.goals {
		if m.reached(now) {
			m.done <- time.Now()
		} else {
			left = append(left, m)
		}
	}
	w.goals = left
}

func (w *spectator) tally() tally { return tally{len(w.pods), w.good, len(w.claims)} }

func (w *spectator) now() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tally()
}

// when is to be asked before the clock starts.
func (w *spectator) when(reached func(tally) bool) *milestone {
	m := &milestone{reached: reached, done: make(chan time.Time, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.goals = append(w.goals, m)
	w.look()
	return m
}

// await gives the time when the milestone was reached, and says every few
// seconds how it stands.
func (w *spectator) await(ctx context.Context, m *milestone, what string) (time.Time, error) {
	began := time.Now()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case at := <-m.done:
			return at, nil
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("waiting for %s: interrupted", what)
		case <-ticker.C:
			now := w.now()
			if time.Since(began) > 15*time.Minute {
				return time.Time{}, fmt.Errorf("%s does not come within 15 minutes: %+v", what, now)
			}
			step("%s after %s: %d pods, %d claims, %d as wanted", what, time.Since(began).Round(time.Second), now.pods, now.claims, now.good)
		}
	}
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
