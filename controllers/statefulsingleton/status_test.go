package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// serving makes the pod Ready.
func (m *memberFixture) serving() *memberFixture {
	m.Pod.Status.Conditions = append(m.Pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	return m
}

// crashing makes the container one that exited with code 1 and waits for its back-off.
func (m *memberFixture) crashing() *memberFixture {
	m.stuck("CrashLoopBackOff")
	m.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	m.Pod.Status.ContainerStatuses[0].ContainerID = "c1"
	return m
}

// static makes the pod the mirror of a static pod.
func (m *memberFixture) static() *memberFixture {
	return m.with(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
}

// situation is one sentence about the pods and nodes, as an administrator would describe
// them, and the expected status: the columns of kubectl get, and each condition.
type situation struct {
	sentence string
	w        *facts.World
	columns  string
	want     []string
}

const (
	steady  = "Progressing=False Steady: no handover in progress"
	healthy = "Degraded=False Healthy: no problems detected"
	lostA   = "Degraded=True NodeUnreachable: pod a may be running its program on Node n1, which is unreachable, and no other pod starts until this one has stopped. " +
		"If the machine is off, taint the Node: kubectl taint nodes n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
	noGateThere = "UnmanagedPod=True PodWithoutGate: these pods match the selector and may be running the program without the gate, because they were created before the StatefulSingleton, " +
		"without its webhook, before spec.containers listed their containers, or with a gate that is not the operator's: "
)

// isSilent reports whether a condition adds no information. Ready, Reconciling and Stalled
// follow from the others. Conditions other than the first three add nothing while they are
// False.
func isSilent(c metav1.Condition) bool {
	switch c.Type {
	case v1.ConditionReady, v1.ConditionReconciling, v1.ConditionStalled:
		return true
	case v1.ConditionAvailable, v1.ConditionProgressing, v1.ConditionDegraded:
		return false
	}
	return c.Status == metav1.ConditionFalse
}

func say(t *testing.T, situations []situation) {
	t.Helper()
	for _, r := range situations {
		t.Run(r.sentence, func(t *testing.T) {
			s := status.Summarize(facts.Derive(r.w))
			if columns := fmt.Sprintf("%s, %s, %d", s.Phase, s.ActivePod, s.WaitingCount); columns != r.columns {
				t.Errorf("the columns are %q, want %q", columns, r.columns)
			}
			var got []string
			for _, c := range s.Conditions {
				if isSilent(c) {
					continue
				}
				got = append(got, fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message))
			}
			if !slices.Equal(got, r.want) {
				t.Errorf("the conditions are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(r.want, "\n"))
			}
		})
	}
}

func TestV13WhatAPersonWouldSay(t *testing.T) {
	newImage := func(reason string) *memberFixture { return waiting("b").of("d").stuck(reason) }
	late := singleton("db").held("a", 1).with(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	})
	say(t, []situation{
		{"V13 there are no pods", worldOf(singleton("db")), "Running, , 0",
			[]string{"Available=False NoPods: no pod matches the selector", steady, healthy}},
		{"V13 one program runs and is Ready, and one pod waits", worldOf(held(), granted("a", 1).serving(), waiting("b")), "Running, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy}},
		{"V13 the program has started, and is not Ready yet", worldOf(held(), granted("a", 1)), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but is not Ready yet", steady, healthy}},
		{"V13 the program crashes repeatedly", worldOf(held(), granted("a", 1).crashing(), waiting("b")), "Running, a, 1",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: CrashLoopBackOff of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: CrashLoopBackOff of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the program crashed, was restarted, and is not Ready", worldOf(held(), granted("a", 1).with(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7}
		})), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but is not Ready yet", steady,
				"Degraded=True PodFailing: pod a has its turn, but its container app ended with exit code 7 and was restarted; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the only pod has its turn, and its image cannot be pulled", worldOf(held(), granted("a", 1).stuck("ErrImagePull")), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: ErrImagePull of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the node of the program is unreachable", worldOf(held(), granted("a", 1).serving().onNode(unresponsive), waiting("b")), "Running, a, 1",
			[]string{"Available=False ActivePodNotReady: cannot determine whether pod a is running: its Node n1 is unreachable", steady, lostA}},
		{"V13 the old program shuts down, and the new pod waits", worldOf(held(), granted("a", 1).serving().deleted(), waiting("b")), "Transitioning, a, 1",
			[]string{"Available=False ActivePodNotReady: pod a is being deleted",
				"Progressing=True WaitingForStop: pod a is being deleted; still running: container app; waiting: b", healthy}},
		{"V13 the image of the new revision cannot be pulled, and the old program keeps running", worldOf(held(), granted("a", 1).of("d").old().serving(), newImage("ErrImagePull")), "Transitioning, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running; pod b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod b", healthy}},
		{"V13 the image of the new revision has not been pulled for an hour", worldOf(late, granted("a", 1).of("d").old().serving(), newImage("ErrImagePull")), "Failed, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running; pod b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod b",
				"Degraded=True TransitionTimeout: the handover takes longer than maxTransitionTime (300 s): pod a keeps running; pod b will replace it, but cannot start: " +
					"ErrImagePull of container app; see: kubectl -n ns describe pod b; waiting: b; it continues as soon as this changes"}},
		{"V13 the new pod has not reached its gate yet", worldOf(held(), granted("a", 1).of("d").old().serving(), newImage("ContainerCreating")), "Transitioning, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running until its replacement, pod b, waits at its gate", healthy}},
		{"V13 no program runs, and the only pod is unschedulable", worldOf(singleton("db"), waiting("a").unscheduled()), "Transitioning, , 1",
			[]string{"Available=False NoActivePod: no pod may run its program yet",
				"Progressing=True WaitingForPod: pod a is next, but has no Node yet; see: kubectl -n ns describe pod a", healthy}},
		{"V13 no program runs, and two pods have not reached their gates", worldOf(singleton("db"), waiting("a").coming(), waiting("b").coming()), "Transitioning, , 2",
			[]string{"Available=False NoActivePod: no pod may run its program yet",
				"Progressing=True WaitingForPod: pod a is next, and starts when it has reached its gate", healthy}},
	})
}

func TestV14ProgramsBesideEachOther(t *testing.T) {
	const three = "3 pods may be running the program at the same time, but at most one should: "
	older := singleton("older").madeAt(1)
	say(t, []situation{
		{"V14 three pods without the gate run at the same time", worldOf(singleton("db"), ungated("a").serving(), ungated("b").serving(), ungated("c").serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: " + three + "a, b, c", steady,
				"Degraded=True SeveralPodsRunning: " + three + "a, b, c. Stop all but one: kubectl -n ns delete pod b c",
				noGateThere + "a, b, c. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b c"}},
		{"V14 two of three pods without the gate are shutting down", worldOf(singleton("db"), ungated("a").serving(), ungated("b").serving().deleted(), ungated("c").deleted(), waiting("d")), "Failed, a, 1",
			[]string{"Available=False SeveralPodsRunning: " + three + "a, b (being deleted), c (being deleted)",
				"Progressing=True WaitingForStop: pods that may be running the program have to stop first: a, b (being deleted), c (being deleted); waiting: d",
				"Degraded=True SeveralPodsRunning: " + three + "a, b (being deleted), c (being deleted). Wait until the pods that are being deleted have stopped",
				noGateThere + "a, b (being deleted), c (being deleted). No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a"}},
		{"V14 a static pod runs at the same time as the holder", worldOf(held(), ungated("s").static().serving(), granted("a", 1).serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: s, a", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: s, a. " +
					"Stop all but one: remove the manifest of static pod s from the kubelet's manifest directory on Node n1",
				noGateThere + "s. No other pod starts until they have stopped. To continue: remove the manifest of static pod s from the kubelet's manifest directory on Node n1"}},
		{"V14 two pods that a deleted object released run at the same time", worldOf(singleton("db"), granted("a", 1).serving(), granted("b", 2).serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b"}},
		{"V14 one of two pods without the gate is on an unreachable node", worldOf(singleton("db"), ungated("a").silent().onNode(unresponsive), ungated("b").serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b"}},
		{"V14 the younger of two overlapping objects reports the running pods", worldWith(worldOf(singleton("younger").madeAt(2), ungated("a").serving(), ungated("b").serving()), func(w *facts.World) {
			w.Rivals = []*v1.StatefulSingleton{&older.StatefulSingleton}
		}), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b",
				"SelectorConflict=True SelectorsOverlap: " + spec.OverlapText(&older.StatefulSingleton) + "; that one is older, and this one starts no pod"}},
		{"V14 a single pod without the gate runs", worldOf(singleton("db"), ungated("a").serving()), "Running, a, 0",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy,
				noGateThere + "a. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a"}},
		{"V14 the images of two pods without the gate cannot be pulled", worldOf(singleton("db"), ungated("a").stuck("ErrImagePull"), ungated("b").stuck("ErrImagePull")), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: ErrImagePull of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b"}},
		{"V14 one of three pods without the gate runs, and two are unschedulable", worldOf(singleton("db"), ungated("a").serving(), ungated("b").unscheduled(), ungated("c").unscheduled()), "Running, a, 0",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy,
				noGateThere + "a, b, c. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b c"}},
	})
}

// TestV14ProgramsOfUnknownContainers checks that names in spec.containers that no container
// has do not hide a program.
func TestV14ProgramsOfUnknownContainers(t *testing.T) {
	w := worldOf(singleton("db").containers("other"), ungated("a").serving(), ungated("b").serving())
	for _, m := range w.Pods {
		m.LookAt(w.Object)
	}
	if s := status.Summarize(facts.Derive(w)); !meta.IsStatusConditionTrue(s.Conditions, v1.ConditionDegraded) || s.Phase != v1.PhaseFailed {
		t.Errorf("two programs run, and the phase is %s, with conditions %v", s.Phase, s.Conditions)
	}
}

// TestV14TheCommandIsWhole checks that a command is never truncated: a partial name deletes
// a different pod, or nothing.
func TestV14TheCommandIsWhole(t *testing.T) {
	var many []*memberFixture
	for i := range 15 {
		many = append(many, ungated(fmt.Sprintf("%s-%02d", strings.Repeat("n", 60), i)).serving())
	}
	s := status.Summarize(facts.Derive(worldOf(singleton("db"), many...)))
	for _, kind := range []string{v1.ConditionDegraded, v1.ConditionUnmanagedPod} {
		_, names, found := strings.Cut(meta.FindStatusCondition(s.Conditions, kind).Message, "delete pod ")
		pods := strings.Fields(names)
		if !found || len(pods) != status.MaxNamed {
			t.Errorf("V14 the command of %s has %d pods, want %d", kind, len(pods), status.MaxNamed)
		}
		for _, name := range pods {
			if !slices.ContainsFunc(many, func(m *memberFixture) bool { return m.Name() == name }) {
				t.Errorf("V14 the command of %s has pod %q, which does not exist", kind, name)
			}
		}
	}
}
