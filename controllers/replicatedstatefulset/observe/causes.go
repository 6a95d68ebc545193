package observe

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// readCauses finds out what keeps members from running. The causes are only reported, so no
// decision waits for them.
func (r *Reader) readCauses(ctx context.Context, w *facts.World) {
	causesKnown := &r.MemoryOf(w.Set).causes
	if w.Invalid != "" || w.Wanted() == 0 {
		*causesKnown = KnownCauses{}
		return
	}
	if causesKnown.Trail == nil {
		causesKnown.Trail, causesKnown.Starts = causes.Trail{}, map[string]FailedStarts{}
	}
	pods := map[string]*corev1.Pod{}
	for _, m := range w.Members {
		pods[m.Name()] = m.Pod
	}
	inEvents := causesKnown.causesInEvents(ctx, r.Live, w, pods)
	causesKnown.NoteStarts(w)
	wanted := map[string]bool{}
	for name := range w.WantedNames() {
		wanted[name] = true
		pod := pods[name]
		w.Causes.Add(name, causesKnown.Follow(w, name, pod, inEvents[podKey(name, pod)]))
	}
	causesKnown.Trail.Forget(func(name string) bool { return wanted[name] })
}

// Follow returns the cause that keeps one member from running. pod is nil if it is missing.
// inEvents is the cause in its events.
func (k *KnownCauses) Follow(w *facts.World, name string, pod *corev1.Pod, inEvents causes.Cause) causes.Found {
	found := k.Trail.Find(name, pod, inEvents, w.Now, v1alpha1.FinalizerMember)
	if pod == nil || found.Known() || pod.DeletionTimestamp != nil {
		return found
	}
	if f := k.Starts[name]; f.Times > 1 {
		return causes.Found{Cause: causes.Cause{Word: causes.StartFails, Detail: f.Text},
			Lasts: w.Now.Sub(f.Since) >= causes.Patience, Again: f.Since.Add(causes.Patience).Sub(w.Now)}
	}
	return found
}

// NoteStarts counts the failed starts since members last ran.
func (k *KnownCauses) NoteStarts(w *facts.World) {
	for i := range w.Set.Status.Failures {
		x := &w.Set.Status.Failures[i]
		f := k.Starts[x.Pod]
		if !spec.Starts(x.Command) || !x.Last.After(f.Last) {
			continue
		}
		if f.Times == 0 {
			f.Since = x.Last.Time
		}
		f.Last, f.Times, f.Text = x.Last.Time, f.Times+1, x.Command+" "+record.HowFailed(int(x.Code))
		k.Starts[x.Pod] = f
	}
	window := spec.FailureWindow(&w.Set.Spec)
	for name, f := range k.Starts {
		if w.Now.Sub(f.Last) > window || facts.IsShownRunning(&w.Set.Status.Members, name) {
			delete(k.Starts, name)
		}
	}
}

// causesInEvents returns the causes in the events of missing members, and of members that have had
// no containers for a long time.
func (k *KnownCauses) causesInEvents(ctx context.Context, live client.Reader, w *facts.World, pods map[string]*corev1.Pod) map[string]causes.Cause {
	absent, exist := false, []*corev1.Pod(nil)
	for name := range w.WantedNames() {
		if pod := pods[name]; pod != nil {
			exist = append(exist, pod)
		} else {
			absent = true
		}
	}
	hanging := w.Causes.Hanging(exist, w.Now)
	turns := &k.events
	if !absent && len(hanging) == 0 {
		*turns = causes.Turns[map[string]causes.Cause]{}
		return nil
	}
	if turns.Begin(w.Now); !w.Now.Before(turns.Due) {
		turns.Learn(readEvents(ctx, live, w, pods, hanging), w.Now)
	}
	w.Causes.Unread = turns.Result == nil
	w.Causes.LookAgain(turns.Due.Sub(w.Now))
	return turns.Result
}

// readEvents returns the causes in the events of the StatefulSet and of hanging pods, by podKey.
func readEvents(ctx context.Context, live client.Reader, w *facts.World, pods map[string]*corev1.Pod, hanging []*corev1.Pod) map[string]causes.Cause {
	found := map[string]causes.Cause{}
	if w.Stateful != nil {
		events, err := causes.ReadEvents(ctx, live, w.Set.Namespace, "StatefulSet", w.Stateful.UID)
		causes.LogUnread(ctx, err)
		for name, why := range causes.RefusalsIn(events, func(name string) bool { return pods[name] == nil }) {
			found[podKey(name, nil)] = causes.Refused(why)
		}
	}
	for uid, cause := range causes.ReadPodEvents(ctx, live, hanging) {
		found[string(uid)] = cause
	}
	return found
}

// podKey returns the UID of the pod, because a cause does not apply to another pod of the same
// name. It returns the name of a missing pod.
func podKey(name string, pod *corev1.Pod) string {
	if pod == nil {
		return name
	}
	return string(pod.UID)
}
