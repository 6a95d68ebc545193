package singleton

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// application is a user's application that may have only one running program at a time. Its
// programs are witnesses: assertions about it use the witness's records.
type application struct {
	*kit.Cluster
	*kit.Probe
	change []podChange
}

// newApplication returns an application with an overlap probe. Its objects are created later.
func newApplication(c *kit.Cluster, name string, change ...podChange) *application {
	return &application{Cluster: c, Probe: c.Probe(name), change: change}
}

// one waits until exactly one program runs, and it is not one of the given runs.
func (a *application) one(ctx context.Context, before ...testimony.Run) testimony.Run {
	var found testimony.Run
	a.Until(ctx, "one program of "+a.Name+" to run", func(context.Context) {
		runs := a.runs()
		live := slices.DeleteFunc(slices.Clone(runs), func(r testimony.Run) bool { return !r.Alive() })
		a.Expect(live).To(HaveLen(1), "%d programs run: %s", len(live), kit.Story(runs))
		a.Expect(slices.ContainsFunc(before, func(b testimony.Run) bool { return b.ID == live[0].ID })).To(BeFalse(), "%d programs run: %s", len(live), kit.Story(runs))
		found = live[0]
	})
	return found
}

// none waits until no program runs.
func (a *application) none(ctx context.Context) {
	a.Until(ctx, "no program of "+a.Name+" to run", func(context.Context) {
		a.Expect(pods(a.living())).To(BeEmpty(), "they run")
	})
}

// several waits until the given number of programs run at the same time.
func (a *application) several(ctx context.Context, want int) {
	a.Until(ctx, fmt.Sprintf("%d programs of %s to run", want, a.Name), func(context.Context) {
		a.Expect(pods(a.living())).To(HaveLen(want))
	})
}

// runs returns all programs so far.
func (a *application) runs() []testimony.Run {
	runs, err := a.Folder.Runs()
	a.Check(err)
	return runs
}

// pods returns the names of the pods of runs.
func pods(runs []testimony.Run) []string {
	names := make([]string, len(runs))
	for i, r := range runs {
		names[i] = r.Pod
	}
	return names
}

// living returns the programs that are running.
func (a *application) living() []testimony.Run {
	return slices.DeleteFunc(a.runs(), func(r testimony.Run) bool { return !r.Alive() })
}

// stays checks that a run is alive and is the only one.
func (a *application) stays(run testimony.Run) {
	live := a.living()
	a.Expect(live).To(HaveLen(1), "only the program of %s should run: %s", run.Pod, kit.Story(a.runs()))
	a.Expect(live[0].ID).To(Equal(run.ID), "only the program of %s should run: %s", run.Pod, kit.Story(a.runs()))
}

// handover calls do, and waits until a different program runs.
func (a *application) handover(ctx context.Context, what string, do func(old testimony.Run)) (next testimony.Run) {
	old := a.one(ctx)
	a.During(what, func() { do(old) })
	a.During("after "+what, func() { next = a.one(ctx, old) })
	if gaps := testimony.Gaps(a.runs()); len(gaps) > 0 {
		a.Log("%s: the next program started %s after the last one had ended", what, gaps[len(gaps)-1].Length.Round(time.Millisecond))
	}
	return next
}

// Objects and pods of an application.

// endFile is the file that endsByFile waits for.
const endFile = "may-end"

// endsByFile lets programs continue after SIGTERM until end is called.
var endsByFile = behave("WITNESS_STOP_FILE", endFile)

// end lets the programs end that endsByFile applies to.
func (a *application) end() {
	a.Check(os.WriteFile(filepath.Join(a.Folder.Dir(), endFile), nil, 0o644))
}

// startApplication creates an application with its object and a Deployment of the given number of pods. It
// waits until all pods except one are at the gate.
func startApplication(ctx context.Context, c *kit.Cluster, replicas int32, name string, change ...podChange) (*application, *appsv1.Deployment) {
	a := newApplication(c, name, change...)
	a.hold(ctx)
	d := a.deploy(ctx, replicas, surge())
	if replicas > 1 {
		a.held(ctx, int(replicas)-1)
	}
	return a, d
}

// hold creates the StatefulSingleton of the application, and waits until it applies to new pods.
// The API server and the webhooks learn of it through a watch, and a pod that is created before
// that counts as an earlier pod.
func (a *application) hold(ctx context.Context, change ...func(*v1.StatefulSingletonSpec)) {
	s := a.set().Singleton()
	for _, f := range change {
		f(&s.Spec)
	}
	a.Put(ctx, s)
	a.Until(ctx, "a pod to be refused or to get the gate", func(ctx context.Context) {
		pod := a.set().Pod("asks")
		err := a.Client.Create(ctx, pod, client.DryRunAll)
		a.Expect(err != nil || pod.Labels[v1.LabelSingleton] != "").To(BeTrue(), "a pod without the gate would be accepted")
	})
}

func (a *application) singleton(ctx context.Context) *v1.StatefulSingleton {
	var s v1.StatefulSingleton
	a.Check(a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, &s))
	return &s
}

// says waits until the status is as wanted.
func (a *application) says(ctx context.Context, what string, want func(*v1.StatefulSingleton) bool) *v1.StatefulSingleton {
	var s *v1.StatefulSingleton
	a.Until(ctx, "the status to report "+what, func(ctx context.Context) {
		s = a.singleton(ctx)
		a.Expect(want(s)).To(BeTrue(), "%s", describe(s))
	})
	return s
}

// describe formats a status as one line.
func describe(s *v1.StatefulSingleton) string {
	words := []string{fmt.Sprintf("phase %q, active pod %q, %d waiting, message %q", s.Status.Phase, s.Status.ActivePod, s.Status.WaitingCount, s.Status.Message)}
	for _, c := range s.Status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, "; ")
}

// isTrue returns a predicate for a condition that is True with the given reason.
func isTrue(condition, reason string) func(*v1.StatefulSingleton) bool {
	return func(s *v1.StatefulSingleton) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, condition)
		return found != nil && found.Status == metav1.ConditionTrue && found.Reason == reason
	}
}

// active waits until the status reports the pod of this run as the active one.
func (a *application) active(ctx context.Context, run testimony.Run) {
	a.says(ctx, "that "+run.Pod+" runs", func(s *v1.StatefulSingleton) bool {
		return s.Status.ActivePod == run.Pod && s.Status.Phase == v1.PhaseRunning && s.Status.ObservedGeneration == s.Generation
	})
}

// event waits for an event with the given reason about the object, and returns its note.
func (a *application) event(ctx context.Context, reason string) (note string) {
	return a.Cluster.Event(ctx, a.singleton(ctx), reason, "").Message
}

// pods lists the application's pods that have not ended, the oldest first.
func (a *application) pods(ctx context.Context) []corev1.Pod {
	var list corev1.PodList
	a.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingLabels(a.set().Labels()))
	live := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(live, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return live
}

// held waits until the given number of pods are at their gate, and returns them. It also requires
// that a program has run, so that the first pod is not among these.
func (a *application) held(ctx context.Context, want int) []corev1.Pod {
	var found []corev1.Pod
	a.Until(ctx, fmt.Sprintf("%d pods of %s to be at the gate", want, a.Name), func(ctx context.Context) {
		pods := a.pods(ctx)
		runs := a.runs()
		found = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			ran := slices.ContainsFunc(runs, func(r testimony.Run) bool { return r.UID == string(p.UID) })
			return ran || p.DeletionTimestamp != nil || !witnessset.AtGate(&p)
		})
		a.Expect(found).To(HaveLen(want), "%d are, and %d programs have run", len(found), len(runs))
		a.Expect(runs).NotTo(BeEmpty(), "%d are, and %d programs have run", len(found), len(runs))
	})
	return found
}

// podOf returns the pod of a run.
func (a *application) podOf(ctx context.Context, run testimony.Run) *corev1.Pod {
	var pod corev1.Pod
	a.Check(a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: run.Pod}, &pod))
	a.Expect(string(pod.UID)).To(Equal(run.UID), "pod %s is not the pod that was running", run.Pod)
	return &pod
}

// ready waits until the pod of a run is Ready, which requires the gate's condition.
func (a *application) ready(ctx context.Context, run testimony.Run) {
	a.Until(ctx, run.Pod+" to be Ready", func(ctx context.Context) {
		pod := a.podOf(ctx, run)
		a.Expect(!kit.PodCondition(pod, corev1.PodReady) || !kit.PodCondition(pod, v1.ReadinessGate)).To(BeFalse(), "it is Ready: %t, and %s: %t", kit.PodCondition(pod, corev1.PodReady), v1.ReadinessGate, kit.PodCondition(pod, v1.ReadinessGate))
	})
}

func (a *application) log(ctx context.Context, pod *corev1.Pod) string {
	text, err := a.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: witnessset.Program}).DoRaw(ctx)
	a.Check(err)
	return string(text)
}

// oldStopped checks that a program stopped itself, and was not killed.
func (a *application) oldStopped(old testimony.Run) {
	runs := a.runs()
	for _, r := range runs {
		a.Expect(r.ID == old.ID && !r.Stopped).To(BeFalse(), "the program of %s was killed before it had stopped", r.Pod)
	}
}
