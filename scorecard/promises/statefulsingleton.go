package promises

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// StatefulSingleton are the promises of this kind. Each of them but the last,
// which wants that, fails where two programs of one application ran at the same
// time.
var StatefulSingleton = []Promise{
	// It takes longest, and the others go on beside it.
	together("S14 a program that crashes again and again keeps its turn", crashLoop),
	together("S7 the first pod starts, and is told of", firstPod),
	scribed(together("S8 a rollout with surge hands over, and ends", surgeRollout)),
	together("S10 a drained pod starts elsewhere", drained),
	scribed(together("S11 Recreate, no surge and a StatefulSet hand over", otherOwners)),
	scribed(together("S12 the next one waits for the end of a slow shutdown", slowShutdown)),
	together("S13 a handover that takes too long is told of once, and ends", timeout),
	together("S13 onTimeout DeleteOld deletes the pod that is waited for", timeoutDeletes),
	together("S14 a broken side container ends nobody's turn", brokenSide),
	together("S14 a pod whose program never started gives way", neverStarted),
	together("S14 a script without a shell is told of", noShell),
	scribed(together("S15 of three replicas one runs, and one other takes over", replicas)),
	together("S16 a pod from before the object blocks, and is told of", unmanaged),
	{Name: "V14 three programs from before the object are told of, with the command that helps", Faults: true, Together: true, Keep: threeFromBefore},
	together("V14 pods of a DaemonSet take turns", daemonSet),
	together("V14 pods of a Parallel StatefulSet take turns", parallelSet),
	together("V14 a native sidecar that stops late holds the next one back", nativeSidecar),
	together("V14 a static pod blocks until its manifest is gone", staticPod),
	together("S17 a pod of nobody waits as others do", orphan),
	together("S18 arguments arrive as they are", arguments),
	together("S18 a program without a command is not guessed at", noCommand),
	together("S19 the program is process 1, and a waiting pod ends at once", process1),
	together("S19 a container that restarts keeps its turn", restarts),
	together("S20 probes leave a waiting program alone", probes),
	together("S20 in Init mode nothing of a waiting pod runs", nothingRuns),
	together("S21 side containers do not wait, and images need no shell", sideContainers),
	together("S21 a restricted namespace takes the gate", restrictedNamespace),
	together("S22 the next one is on another node where it can be", placement),
	together("S22 a volume of one node is handed over", oneNodeVolume),
	scribed(together("S23 a pod deleted by force has stopped before the next one starts", deletedByForce)),
	together("S25 a deleted object lets its pods go one after another", objectDeleted),
	together("S25 release-now lets all pods go", releaseNow),
	together("S25 a namespace with waiting pods can be deleted", namespaceDeleted),
	together("S27 without pods it says so", noPods),
	alone("S16 an outage of the webhook refuses our pods and no others", webhookDown),
	alone("S23 a node without its kubelet blocks until it is declared off", nodeOff),
	alone("S24 an operator that dies in a handover is succeeded", operatorDiesInHandover),
	alone("S9 no overlap over mixed handovers", soak),
	{Name: "S9 the witness sees overlaps without the gate", Faults: true, Keep: soakWithoutGate},
}

// scribed is a promise whose programs may tell a scribe what they do.
func scribed(p Promise) Promise {
	p.Scribed = true
	return p
}

func together(name string, keep func(context.Context, *Cluster) error) Promise {
	return Promise{Name: name, Faults: true, Together: true, Keep: witnessed(keep)}
}

func alone(name string, keep func(context.Context, *Cluster) error) Promise {
	return Promise{Name: name, Faults: true, Keep: witnessed(keep)}
}

func firstPod(ctx context.Context, c *Cluster) error {
	a, err := c.application("first")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	run, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.ready(ctx, run); err != nil {
		return err
	}
	if err := a.active(ctx, run); err != nil {
		return err
	}
	s, err := a.says(ctx, "that it is available", isTrue(v1.ConditionAvailable, v1.ReasonActive))
	if err != nil {
		return err
	}
	if h := s.Status.Holder; h == nil || h.Name != run.Pod || string(h.UID) != run.UID || h.Node != run.Node || h.Epoch < 1 {
		return fmt.Errorf("%+v holds, and %s runs", h, run.Pod)
	}
	_, err = a.event(ctx, v1.EventPodStarted)
	return err
}

// ready waits until the pod of a run is Ready, which takes the gate's condition.
func (a *application) ready(ctx context.Context, run testimony.Run) error {
	return until(ctx, run.Pod+" to be Ready", func(ctx context.Context) error {
		pod, err := a.podOf(ctx, run)
		if err != nil {
			return err
		}
		if !podCondition(pod, corev1.PodReady) || !podCondition(pod, v1.ReadinessGate) {
			return fmt.Errorf("it is Ready: %t, and %s: %t", podCondition(pod, corev1.PodReady), v1.ReadinessGate, podCondition(pod, v1.ReadinessGate))
		}
		return nil
	})
}

func podCondition(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func surgeRollout(ctx context.Context, c *Cluster) error {
	a, err := c.application("surge", behave("WITNESS_STOP_AFTER", "4s"), grace(30))
	if err != nil {
		return err
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace},
		Spec: corev1.ServiceSpec{Selector: a.labels(), Ports: []corev1.ServicePort{{Port: 80}}}}
	if err := errors.Join(a.hold(ctx), a.Client.Create(ctx, service)); err != nil {
		return err
	}
	d, err := a.deploy(ctx, 1, surge())
	if err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(a.active(ctx, old), a.ready(ctx, old), a.rollOut(ctx, d)); err != nil {
		return err
	}
	if err := a.waitsForOld(ctx, old); err != nil {
		return err
	}
	next, err := a.one(ctx, old)
	if err != nil {
		return err
	}
	if err := errors.Join(a.active(ctx, next), a.rolledOut(ctx, d)); err != nil {
		return err
	}
	if s, err := a.singleton(ctx); err != nil || s.Status.TransitionTimestamp != nil {
		return errors.Join(err, fmt.Errorf("the handover is over, and the status says it began at %v", s.Status.TransitionTimestamp))
	}
	_, err = a.event(ctx, v1.EventPodTransition)
	return errors.Join(err, a.oldStopped(old))
}

// waitsForOld looks at the pod that waits while the old one shuts down.
func (a *application) waitsForOld(ctx context.Context, old testimony.Run) error {
	s, err := a.says(ctx, "that a handover goes on", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseTransitioning && s.Status.TransitionTimestamp != nil && len(s.Status.Waiting) > 0 &&
			meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionProgressing)
	})
	if err != nil {
		return err
	}
	pods, err := a.held(ctx, len(s.Status.Waiting))
	if err != nil {
		return err
	}
	waiting := &pods[0]
	if podCondition(waiting, corev1.PodReady) {
		return fmt.Errorf("%s waits and is Ready", waiting.Name)
	}
	log, err := a.log(ctx, waiting)
	if err != nil {
		return err
	}
	if !strings.Contains(log, "StatefulSingleton: waiting for the start signal") || strings.Contains(log, "witness:") {
		return fmt.Errorf("the log of %s, which waits, says %q", waiting.Name, log)
	}
	if err := a.noEndpoint(ctx, waiting.Name); err != nil {
		return err
	}
	live, err := a.living()
	if err == nil && (len(live) != 1 || live[0].ID != old.ID) {
		// Then nothing was seen of the wait; the shutdown takes 4 s.
		err = errors.New("the old program has ended before its successor was looked at")
	}
	return err
}

func (a *application) log(ctx context.Context, pod *corev1.Pod) (string, error) {
	stream, err := a.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: programName}).Stream(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the log of %s: %w", pod.Name, err)
	}
	defer stream.Close()
	text, err := io.ReadAll(stream)
	return string(text), err
}

// noEndpoint checks that a pod gets no requests of the application's Service.
func (a *application) noEndpoint(ctx context.Context, pod string) error {
	var slices discoveryv1.EndpointSliceList
	if err := a.Client.List(ctx, &slices, client.InNamespace(a.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: a.name}); err != nil {
		return err
	}
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && e.TargetRef.Name == pod && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return fmt.Errorf("%s waits and gets requests", pod)
			}
		}
	}
	return nil
}

// oldStopped checks that a program stopped by itself, and was not killed.
func (a *application) oldStopped(old testimony.Run) error {
	runs, err := a.folder.Runs()
	for _, r := range runs {
		if r.ID == old.ID && !r.Stopped {
			return fmt.Errorf("the program of %s was killed before it had stopped", r.Pod)
		}
	}
	return err
}

func drained(ctx context.Context, c *Cluster) error {
	a, err := c.application("drained")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	if _, err := a.deploy(ctx, 1, surge()); err != nil {
		return err
	}
	old, err := a.one(ctx)
	if err != nil {
		return err
	}
	if err := a.closed(ctx, old.Node, true); err != nil {
		return err
	}
	defer func() { _ = a.closed(context.WithoutCancel(ctx), old.Node, false) }()
	next, err := a.handover(ctx, "drain", func(old testimony.Run) error { return a.evict(ctx, old) })
	if err == nil && next.Node == old.Node {
		err = fmt.Errorf("%s is on the drained node", next.Pod)
	}
	return errors.Join(err, a.active(ctx, next))
}

func otherOwners(ctx context.Context, c *Cluster) error {
	for name, strategy := range map[string]appsv1.DeploymentStrategy{"recreate": recreate(), "nosurge": rolling(0, 1)} {
		a, err := c.application(name)
		if err != nil {
			return err
		}
		if err := a.hold(ctx); err != nil {
			return err
		}
		d, err := a.deploy(ctx, 1, strategy)
		if err != nil {
			return err
		}
		if _, err := a.handover(ctx, "rollout with strategy "+name, func(testimony.Run) error { return a.rollOut(ctx, d) }); err != nil {
			return err
		}
		if err := a.rolledOut(ctx, d); err != nil {
			return err
		}
	}
	a, err := c.application("set")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	set, err := a.statefulSet(ctx)
	if err != nil {
		return err
	}
	next, err := a.handover(ctx, "rollout of a StatefulSet", func(testimony.Run) error { return a.rollOut(ctx, set) })
	if err != nil {
		return err
	}
	return errors.Join(a.ready(ctx, next), a.active(ctx, next))
}

func noPods(ctx context.Context, c *Cluster) error {
	a, err := c.application("nobody")
	if err != nil {
		return err
	}
	if err := a.hold(ctx); err != nil {
		return err
	}
	_, err = a.says(ctx, "that there are no pods", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseRunning && s.Status.Message == "No pods found" && s.Status.ActivePod == ""
	})
	return err
}
