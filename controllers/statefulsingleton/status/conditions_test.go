package status_test

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
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

func TestWhatIsSaidOfADrain(t *testing.T) {
	leaving := func() *fixture.MemberFixture { return fixture.Serving().OnNode(fixture.IsCordoned).Apart() }
	for _, r := range []struct {
		name string
		w    *facts.World
		want string
	}{
		{"no successor exists", fixture.WorldOf(fixture.Replacing(), leaving()),
			"pod a has to leave cordoned Node n1 and keeps running until its ReplicaSet has created a pod that waits on another Node; see: kubectl -n ns describe replicaset web-1; to keep it there: kubectl uncordon n1"},
		{"the successor is starting", fixture.WorldOf(fixture.Replacing(), leaving(), fixture.Waiting("b").Of("web").On("n2").Coming()),
			"pod a has to leave cordoned Node n1 and keeps running until its replacement, pod b, waits at its gate; to keep it there: kubectl uncordon n1"},
		{"the successor is unschedulable", fixture.WorldOf(fixture.Replacing(), leaving(), fixture.Waiting("b").Of("web").Unscheduled()),
			"pod a has to leave cordoned Node n1 and keeps running; pod b will replace it, but has no Node yet; see: kubectl -n ns describe pod b; to keep it there: kubectl uncordon n1"},
	} {
		s := status.Summarize(facts.Derive(r.w))
		c := meta.FindStatusCondition(s.Conditions, v1.ConditionProgressing)
		if c.Reason != v1.ReasonWaitingForPod || c.Message != r.want || s.Phase != v1.PhaseTransitioning {
			t.Errorf("S42 %s: %s, %s\n  %s\nwant\n  %s", r.name, s.Phase, c.Reason, c.Message, r.want)
		}
	}
}

func TestAPodThatLacksAContainerIsNamed(t *testing.T) {
	lacks := func(m *fixture.MemberFixture) *fixture.MemberFixture {
		m.Lacks = []string{"db", "web"}
		return m
	}
	for name, r := range map[string]struct {
		m    *fixture.MemberFixture
		want string
	}{
		"a waiting pod":                 {lacks(fixture.Waiting("a")), v1.ReasonContainersMissing},
		"a running pod":                 {lacks(fixture.Granted("a", 1)), v1.ReasonContainersMissing},
		"a pod without the gate":        {lacks(fixture.Ungated("a")), v1.ReasonHealthy},
		"a pod that has ended":          {lacks(fixture.Granted("a", 1)).Ended(), v1.ReasonHealthy},
		"a pod that has all containers": {fixture.Granted("a", 1), v1.ReasonHealthy},
	} {
		if got := status.Degraded(facts.Derive(fixture.WorldOf(fixture.Held(), r.m))); got.Reason != r.want || got.Reason == v1.ReasonContainersMissing && !strings.HasPrefix(got.Message, "pod a has no container db, web, which") {
			t.Errorf("%s: %s, %q; want %s", name, got.Reason, got.Message, r.want)
		}
	}
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
				if fixture.IsSilent(c) {
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
	newImage := func(reason string) *fixture.MemberFixture { return fixture.Waiting("b").Of("d").Stuck(reason) }
	late := fixture.Singleton("db").Held("a", 1).With(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: fixture.Noon.Add(-time.Hour)}
	})
	say(t, []situation{
		{"V13 there are no pods", fixture.WorldOf(fixture.Singleton("db")), "Running, , 0",
			[]string{"Available=False NoPods: no pod matches the selector", steady, healthy}},
		{"V13 one program runs and is Ready, and one pod waits", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving(), fixture.Waiting("b")), "Running, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy}},
		{"V13 the program has started, and is not Ready yet", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but is not Ready yet", steady, healthy}},
		{"V13 the program crashes repeatedly", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Crashing(), fixture.Waiting("b")), "Running, a, 1",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: CrashLoopBackOff of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: CrashLoopBackOff of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the program crashed, was restarted, and is not Ready", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).With(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 7}
		})), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but is not Ready yet", steady,
				"Degraded=True PodFailing: pod a has its turn, but its container app ended with exit code 7 and was restarted; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the only pod has its turn, and its image cannot be pulled", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Stuck("ErrImagePull")), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: ErrImagePull of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous"}},
		{"V13 the node of the program is unreachable", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving().OnNode(fixture.Unresponsive), fixture.Waiting("b")), "Running, a, 1",
			[]string{"Available=False ActivePodNotReady: cannot determine whether pod a is running: its Node n1 is unreachable", steady, lostA}},
		{"V13 the old program shuts down, and the new pod waits", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving().Deleted(), fixture.Waiting("b")), "Transitioning, a, 1",
			[]string{"Available=False ActivePodNotReady: pod a is being deleted",
				"Progressing=True WaitingForStop: pod a is being deleted; still running: container app; waiting: b", healthy}},
		{"V13 the image of the new revision cannot be pulled, and the old program keeps running", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old().Serving(), newImage("ErrImagePull")), "Transitioning, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running; pod b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod b", healthy}},
		{"V13 the image of the new revision has not been pulled for an hour", fixture.WorldOf(late, fixture.Granted("a", 1).Of("d").Old().Serving(), newImage("ErrImagePull")), "Failed, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running; pod b will replace it, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod b",
				"Degraded=True TransitionTimeout: the handover takes longer than maxTransitionTime (300 s): pod a keeps running; pod b will replace it, but cannot start: " +
					"ErrImagePull of container app; see: kubectl -n ns describe pod b; waiting: b; it continues as soon as this changes"}},
		{"V13 the new pod has not reached its gate yet", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Of("d").Old().Serving(), newImage("ContainerCreating")), "Transitioning, a, 1",
			[]string{"Available=True ActivePodReady: pod a is running",
				"Progressing=True WaitingForPod: pod a keeps running until its replacement, pod b, waits at its gate", healthy}},
		{"V13 no program runs, and the only pod is unschedulable", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Unscheduled()), "Transitioning, , 1",
			[]string{"Available=False NoActivePod: no pod may run its program yet",
				"Progressing=True WaitingForPod: pod a is next, but has no Node yet; see: kubectl -n ns describe pod a", healthy}},
		{"V13 no program runs, and two pods have not reached their gates", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Coming(), fixture.Waiting("b").Coming()), "Transitioning, , 2",
			[]string{"Available=False NoActivePod: no pod may run its program yet",
				"Progressing=True WaitingForPod: pod a is next, and starts when it has reached its gate", healthy}},
	})
}

func TestV14ProgramsBesideEachOther(t *testing.T) {
	const three = "3 pods may be running the program at the same time, but at most one should: "
	older := fixture.Singleton("older").MadeAt(1)
	say(t, []situation{
		{"V14 three pods without the gate run at the same time", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving(), fixture.Ungated("b").Serving(), fixture.Ungated("c").Serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: " + three + "a, b, c", steady,
				"Degraded=True SeveralPodsRunning: " + three + "a, b, c. Stop all but one: kubectl -n ns delete pod b c",
				noGateThere + "a, b, c. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b c"}},
		{"V14 two of three pods without the gate are shutting down", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving(), fixture.Ungated("b").Serving().Deleted(), fixture.Ungated("c").Deleted(), fixture.Waiting("d")), "Failed, a, 1",
			[]string{"Available=False SeveralPodsRunning: " + three + "a, b (being deleted), c (being deleted)",
				"Progressing=True WaitingForStop: pods that may be running the program have to stop first: a, b (being deleted), c (being deleted); waiting: d",
				"Degraded=True SeveralPodsRunning: " + three + "a, b (being deleted), c (being deleted). Wait until the pods that are being deleted have stopped",
				noGateThere + "a, b (being deleted), c (being deleted). No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a"}},
		{"V14 a static pod runs at the same time as the holder", fixture.WorldOf(fixture.Held(), fixture.Ungated("s").Static().Serving(), fixture.Granted("a", 1).Serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: s, a", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: s, a. " +
					"Stop all but one: remove the manifest of static pod s from the kubelet's manifest directory on Node n1",
				noGateThere + "s. No other pod starts until they have stopped. To continue: remove the manifest of static pod s from the kubelet's manifest directory on Node n1"}},
		{"V14 two pods that a deleted object released run at the same time", fixture.WorldOf(fixture.Singleton("db"), fixture.Granted("a", 1).Serving(), fixture.Granted("b", 2).Serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b"}},
		{"V14 one of two pods without the gate is on an unreachable node", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Silent().OnNode(fixture.Unresponsive), fixture.Ungated("b").Serving()), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b"}},
		{"V14 the younger of two overlapping objects reports the running pods", fixture.WorldWith(fixture.WorldOf(fixture.Singleton("younger").MadeAt(2), fixture.Ungated("a").Serving(), fixture.Ungated("b").Serving()), func(w *facts.World) {
			w.Rivals = []*v1.StatefulSingleton{&older.StatefulSingleton}
		}), "Failed, a, 0",
			[]string{"Available=False SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b", steady,
				"Degraded=True SeveralPodsRunning: 2 pods may be running the program at the same time, but at most one should: a, b. Stop all but one: kubectl -n ns delete pod b",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b",
				"SelectorConflict=True SelectorsOverlap: " + spec.OverlapText(&older.StatefulSingleton) + "; that one is older, and this one starts no pod"}},
		{"V14 a single pod without the gate runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving()), "Running, a, 0",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy,
				noGateThere + "a. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a"}},
		{"V14 the images of two pods without the gate cannot be pulled", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Stuck("ErrImagePull"), fixture.Ungated("b").Stuck("ErrImagePull")), "Running, a, 0",
			[]string{"Available=False ActivePodNotReady: pod a may run its program, but cannot start: ErrImagePull of container app; see: kubectl -n ns describe pod a", steady,
				"Degraded=True PodFailing: pod a has its turn, but its program cannot start: ErrImagePull of container app; no other pod starts until it is deleted. " +
					"See: kubectl -n ns describe pod a, and: kubectl -n ns logs a --previous",
				noGateThere + "a, b. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b"}},
		{"V14 one of three pods without the gate runs, and two are unschedulable", fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving(), fixture.Ungated("b").Unscheduled(), fixture.Ungated("c").Unscheduled()), "Running, a, 0",
			[]string{"Available=True ActivePodReady: pod a is running", steady, healthy,
				noGateThere + "a, b, c. No other pod starts until they have stopped. To continue: kubectl -n ns delete pod a b c"}},
	})
}

// TestV14ProgramsOfUnknownContainers checks that names in spec.containers that no container
// has do not hide a program.
func TestV14ProgramsOfUnknownContainers(t *testing.T) {
	w := fixture.WorldOf(fixture.Singleton("db").Containers("other"), fixture.Ungated("a").Serving(), fixture.Ungated("b").Serving())
	for _, m := range w.Pods {
		m.Inspect(w.Object)
	}
	if s := status.Summarize(facts.Derive(w)); !meta.IsStatusConditionTrue(s.Conditions, v1.ConditionDegraded) || s.Phase != v1.PhaseFailed {
		t.Errorf("two programs run, and the phase is %s, with conditions %v", s.Phase, s.Conditions)
	}
}

// TestV14TheCommandIsWhole checks that a command is never truncated: a partial name deletes
// a different pod, or nothing.
func TestV14TheCommandIsWhole(t *testing.T) {
	var many []*fixture.MemberFixture
	for i := range 15 {
		many = append(many, fixture.Ungated(fmt.Sprintf("%s-%02d", strings.Repeat("n", 60), i)).Serving())
	}
	s := status.Summarize(facts.Derive(fixture.WorldOf(fixture.Singleton("db"), many...)))
	for _, kind := range []string{v1.ConditionDegraded, v1.ConditionUnmanagedPod} {
		_, names, found := strings.Cut(meta.FindStatusCondition(s.Conditions, kind).Message, "delete pod ")
		pods := strings.Fields(names)
		if !found || len(pods) != status.MaxNamed {
			t.Errorf("V14 the command of %s has %d pods, want %d", kind, len(pods), status.MaxNamed)
		}
		for _, name := range pods {
			if !slices.ContainsFunc(many, func(m *fixture.MemberFixture) bool { return m.Name() == name }) {
				t.Errorf("V14 the command of %s has pod %q, which does not exist", kind, name)
			}
		}
	}
}
