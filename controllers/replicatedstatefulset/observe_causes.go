package replicatedstatefulset

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// knownCauses is what this process remembers about causes.
type knownCauses struct {
	trail  causes.Trail
	events causes.Turns[map[string]causes.Cause] // by podKey
	starts map[string]failedStarts               // by pod name
}

// failedStarts counts the failed starts of a member since it last ran. It includes starts in pods
// that were recreated for that reason.
type failedStarts struct {
	since, last time.Time
	times       int
	text        string // of the last one
}

// readCauses finds out what keeps members from running. The causes are only reported, so no
// decision waits for them.
func (r *reader) readCauses(ctx context.Context, w *world) {
	known := &r.of(w.set).causes
	if w.invalid != "" || w.wanted() == 0 {
		*known = knownCauses{}
		return
	}
	if known.trail == nil {
		known.trail, known.starts = causes.Trail{}, map[string]failedStarts{}
	}
	pods := map[string]*corev1.Pod{}
	for _, m := range w.members {
		pods[m.name()] = m.pod
	}
	told := known.readTold(ctx, r.Live, w, pods)
	known.noteStarts(w)
	wanted := map[string]bool{}
	for name := range w.wantedNames() {
		wanted[name] = true
		pod := pods[name]
		w.causes.Add(name, known.follow(w, name, pod, told[podKey(name, pod)]))
	}
	known.trail.Forget(func(name string) bool { return wanted[name] })
}

// follow returns what keeps one member from running.
func (k *knownCauses) follow(w *world, name string, pod *corev1.Pod, told causes.Cause) causes.Found {
	found := k.trail.Find(name, pod, told, w.now, v1alpha1.FinalizerMember)
	if pod == nil || found.Known() || pod.DeletionTimestamp != nil {
		return found
	}
	if f := k.starts[name]; f.times > 1 {
		return causes.Found{Cause: causes.Cause{Word: causes.StartFails, Detail: f.text},
			Lasts: w.now.Sub(f.since) >= causes.Patience, Again: f.since.Add(causes.Patience).Sub(w.now)}
	}
	return found
}

// noteStarts counts the failed starts since members last ran.
func (k *knownCauses) noteStarts(w *world) {
	for i := range w.set.Status.Failures {
		x := &w.set.Status.Failures[i]
		f := k.starts[x.Pod]
		if !starts(x.Command) || !x.Last.After(f.last) {
			continue
		}
		if f.times == 0 {
			f.since = x.Last.Time
		}
		f.last, f.times, f.text = x.Last.Time, f.times+1, x.Command+" "+howFailed(int(x.Code))
		k.starts[x.Pod] = f
	}
	window := failureWindow(&w.set.Spec)
	for name, f := range k.starts {
		if w.now.Sub(f.last) > window || isShownRunning(&w.set.Status.Members, name) {
			delete(k.starts, name)
		}
	}
}

// readTold returns the causes in the events of missing members, and of members that have had no
// containers for a long time.
func (k *knownCauses) readTold(ctx context.Context, live client.Reader, w *world, pods map[string]*corev1.Pod) map[string]causes.Cause {
	absent, exist := false, []*corev1.Pod(nil)
	for name := range w.wantedNames() {
		if pod := pods[name]; pod != nil {
			exist = append(exist, pod)
		} else {
			absent = true
		}
	}
	hanging := w.causes.Hanging(exist, w.now)
	turns := &k.events
	if !absent && len(hanging) == 0 {
		*turns = causes.Turns[map[string]causes.Cause]{}
		return nil
	}
	if turns.Begin(w.now); !w.now.Before(turns.Due) {
		turns.Learn(askEvents(ctx, live, w, pods, hanging), w.now)
	}
	w.causes.Unread = turns.Said == nil
	w.causes.LookAgain(turns.Due.Sub(w.now))
	return turns.Said
}

// askEvents reads the events of the StatefulSet and of hanging pods.
func askEvents(ctx context.Context, live client.Reader, w *world, pods map[string]*corev1.Pod, hanging []*corev1.Pod) map[string]causes.Cause {
	said := map[string]causes.Cause{}
	if w.stateful != nil {
		events, err := causes.ReadEvents(ctx, live, w.set.Namespace, "StatefulSet", w.stateful.UID)
		causes.LogUnread(ctx, err)
		for name, why := range causes.RefusalsIn(events, func(name string) bool { return pods[name] == nil }) {
			said[podKey(name, nil)] = causes.Refused(why)
		}
	}
	for uid, cause := range causes.ReadPodEvents(ctx, live, hanging) {
		said[string(uid)] = cause
	}
	return said
}

// podKey returns the UID of the pod, because a cause does not apply to another pod of the same
// name. It returns the name of a missing pod.
func podKey(name string, pod *corev1.Pod) string {
	if pod == nil {
		return name
	}
	return string(pod.UID)
}
