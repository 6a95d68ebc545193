package promises

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
	"github.com/stateful-operator/stateful-operator/test/faults/witnessset"
)

// StatefulSingleton lists the promises of this kind. Each of them fails if two programs of one
// application ran at the same time, except the last one, which requires that.
var StatefulSingleton = []Promise{
	// It takes longest. The others run at the same time.
	together("S14 a program that crashes repeatedly keeps the grant", crashLoop),
	together("S7 the first pod starts, and is reported", firstPod),
	scribed(together("S8 a rollout with surge hands over, and ends", surgeRollout)),
	together("S10 a drained pod starts on another node", drained),
	core(together("S42 a drained pod is replaced before it is deleted", drainedFirst)),
	together("S43 a pod that need not leave its node is returned to its owner", givenBack),
	scribed(together("S11 Recreate, no surge and a StatefulSet hand over", otherOwners)),
	scribed(together("S12 the next one waits for the end of a slow shutdown", slowShutdown)),
	together("S13 a handover that takes too long is reported once, and ends", timeout),
	together("S13 onTimeout DeleteOld deletes the blocking pod", timeoutDeletes),
	together("S13 onTimeout DeleteOld keeps a pod that existed before the object", timeoutSpares),
	together("S14 a failing side container does not end a grant", brokenSide),
	together("S14 a pod whose program never started loses the grant", neverStarted),
	beside("W7 obstacles of the pod of a StatefulSingleton are reported with the command that helps", singletonReports),
	together("S14 a script without a shell is reported", noShell),
	scribed(together("S15 of three replicas one runs, and one other takes over", replicas)),
	core(together("S16 a pod that existed before the object blocks, and is reported", unmanaged)),
	{Name: "V14 three programs that ran before the object are reported, with the command that helps", Faults: true, Site: SharedSite, Run: threeFromBefore},
	together("V14 pods of a DaemonSet run one after another", daemonSet),
	together("V14 pods of a Parallel StatefulSet run one after another", parallelSet),
	together("V14 a native sidecar that stops late blocks the next pod", nativeSidecar),
	together("V14 a static pod blocks until its manifest is removed", staticPod),
	together("S17 a pod without an owner waits like others", orphan),
	together("S18 arguments are passed unchanged", arguments),
	together("S18 a program without a command is refused", noCommand),
	together("S19 the program is process 1, and a waiting pod ends immediately", process1),
	together("S19 a container that restarts keeps the grant", restarts),
	together("S20 probes do not affect a waiting program", probes),
	together("S20 in Init mode no container of a waiting pod runs", nothingRuns),
	together("S21 side containers do not wait, and images need no shell", sideContainers),
	together("S21 a restricted namespace accepts the gate", restrictedNamespace),
	together("W16 the gate counts against no limit of storage", smallStorage),
	together("S22 the next pod is on another node if possible", placement),
	together("S22 a volume of one node is handed over", oneNodeVolume),
	scribed(together("S23 a pod deleted by force has stopped before the next one starts", deletedByForce)),
	together("S25 the pods of a deleted object are released one after another", objectDeleted),
	together("W14 a rollout continues under an object that is being deleted", deletedInRollout),
	together("S25 release-now releases all pods", releaseNow),
	together("S25 a namespace with waiting pods can be deleted", namespaceDeleted),
	together("S27 the status reports that there are no pods", noPods),
	alone(OperatorSite, "S16 an outage of the webhook blocks only pods of the object", webhookDown),
	core(alone(NodeSite, "S23 a node without its kubelet blocks until it is declared off", nodeOff)),
	core(alone(OperatorSite, "S24 an operator that crashes in a handover is succeeded", operatorDiesInHandover)),
	alone(NodeSite, "S9 no overlap over mixed handovers", soak),
	{Name: "S9 the overlap probe detects overlaps without the gate", Site: NodeSite, Faults: true, Run: soakWithoutGate},
}

// scribed marks a promise whose programs may report to a scribe.
func scribed(p Promise) Promise {
	p.Scribed = true
	return p
}

// together returns a promise whose programs must not overlap. It can run at the same time as others.
func together(name string, keep func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Faults: true, Site: SharedSite, Run: witnessed(keep)}
}

// alone returns a promise whose programs must not overlap. It runs on a site of its own.
func alone(site Site, name string, keep func(context.Context, *Cluster)) Promise {
	return Promise{Name: name, Faults: true, Site: site, Run: witnessed(keep)}
}

func firstPod(ctx context.Context, c *Cluster) {
	a, _ := c.running(ctx, 1, "first")
	run := a.one(ctx)
	a.ready(ctx, run)
	a.active(ctx, run)
	s := a.says(ctx, "that it is available", isTrue(v1.ConditionAvailable, v1.ReasonActive))
	h := s.Status.Holder
	c.Expect(h).NotTo(BeNil(), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Name).To(Equal(run.Pod), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(string(h.UID)).To(Equal(run.UID), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Node).To(Equal(run.Node), "%+v holds, and %s runs", h, run.Pod)
	c.Expect(h.Epoch).To(BeNumerically(">=", 1), "%+v holds, and %s runs", h, run.Pod)
	a.event(ctx, v1.EventPodStarted)
}

// ready waits until the pod of a run is Ready, which requires the gate's condition.
func (a *application) ready(ctx context.Context, run testimony.Run) {
	a.until(ctx, run.Pod+" to be Ready", func(ctx context.Context) {
		pod := a.podOf(ctx, run)
		a.Expect(!podCondition(pod, corev1.PodReady) || !podCondition(pod, v1.ReadinessGate)).To(BeFalse(), "it is Ready: %t, and %s: %t", podCondition(pod, corev1.PodReady), v1.ReadinessGate, podCondition(pod, v1.ReadinessGate))
	})
}

// podCondition reports whether a condition of a pod is True.
func podCondition(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func surgeRollout(ctx context.Context, c *Cluster) {
	a := c.application("surge", behave("WITNESS_STOP_AFTER", "4s"), grace(30))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: a.Name, Namespace: a.Namespace},
		Spec: corev1.ServiceSpec{Selector: a.set().Labels(), Ports: []corev1.ServicePort{{Port: 80}}}}
	a.hold(ctx)
	c.put(ctx, service)
	d := a.deploy(ctx, 1, surge())
	old := a.one(ctx)
	a.active(ctx, old)
	a.ready(ctx, old)
	a.rollOut(ctx, d)
	a.waitsForOld(ctx, old)
	next := a.one(ctx, old)
	a.active(ctx, next)
	a.rolledOut(ctx, d)
	s := a.singleton(ctx)
	c.Expect(s.Status.TransitionTimestamp).To(BeNil(), "the handover is over, and the status has start time %v", s.Status.TransitionTimestamp)
	a.event(ctx, v1.EventPodTransition)
	a.oldStopped(old)
}

// waitsForOld checks the pod that waits while the old one shuts down.
func (a *application) waitsForOld(ctx context.Context, old testimony.Run) {
	s := a.says(ctx, "that a handover is in progress", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseTransitioning && s.Status.TransitionTimestamp != nil && len(s.Status.Waiting) > 0 &&
			meta.IsStatusConditionTrue(s.Status.Conditions, v1.ConditionProgressing)
	})
	pods := a.held(ctx, len(s.Status.Waiting))
	waiting := &pods[0]
	a.Expect(podCondition(waiting, corev1.PodReady)).To(BeFalse(), "%s waits and is Ready", waiting.Name)
	log := a.log(ctx, waiting)
	a.Expect(!strings.Contains(log, "StatefulSingleton: waiting for the start signal") || strings.Contains(log, "witness:")).To(BeFalse(), "the log of %s, which waits, contains %q", waiting.Name, log)
	a.noEndpoint(ctx, waiting.Name)
	live := a.living()
	a.Expect(live).To(HaveLen(1), "the old program ended before its successor was checked")
	a.Expect(live[0].ID).To(Equal(old.ID), "the old program ended before its successor was checked")
}

func (a *application) log(ctx context.Context, pod *corev1.Pod) string {
	text, err := a.Kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: witnessset.Program}).DoRaw(ctx)
	a.check(err)
	return string(text)
}

// noEndpoint checks that a pod is not a Ready endpoint of the application's Service.
func (a *application) noEndpoint(ctx context.Context, pod string) {
	var slices discoveryv1.EndpointSliceList
	a.list(ctx, &slices, client.InNamespace(a.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: a.Name})
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			a.Expect(e.TargetRef != nil && e.TargetRef.Name == pod && (e.Conditions.Ready == nil || *e.Conditions.Ready)).To(BeFalse(), "%s waits and gets requests", pod)
		}
	}
}

// oldStopped checks that a program stopped itself, and was not killed.
func (a *application) oldStopped(old testimony.Run) {
	runs := a.runs()
	for _, r := range runs {
		a.Expect(r.ID == old.ID && !r.Stopped).To(BeFalse(), "the program of %s was killed before it had stopped", r.Pod)
	}
}

func drained(ctx context.Context, c *Cluster) {
	a, _ := c.running(ctx, 1, "drained")
	old := a.one(ctx)
	a.closed(ctx, old.Node, true)
	defer a.closed(context.WithoutCancel(ctx), old.Node, false)
	next := a.handover(ctx, "drain", func(old testimony.Run) { a.evict(ctx, old) })
	c.Expect(next.Node).NotTo(Equal(old.Node), "%s is on the drained node", next.Pod)
	a.active(ctx, next)
}

func otherOwners(ctx context.Context, c *Cluster) {
	for name, strategy := range map[string]appsv1.DeploymentStrategy{"recreate": witnessset.Recreate(), "nosurge": witnessset.Rolling(0, 1)} {
		a := c.application(name)
		a.hold(ctx)
		d := a.deploy(ctx, 1, strategy)
		a.handover(ctx, "rollout with strategy "+name, func(testimony.Run) { a.rollOut(ctx, d) })
		a.rolledOut(ctx, d)
	}
	a := c.application("set")
	a.hold(ctx)
	set := a.statefulSet(ctx)
	next := a.handover(ctx, "rollout of a StatefulSet", func(testimony.Run) { a.rollOut(ctx, set) })
	a.ready(ctx, next)
	a.active(ctx, next)
}

func noPods(ctx context.Context, c *Cluster) {
	a := c.application("nobody")
	a.hold(ctx)
	a.says(ctx, "that there are no pods", func(s *v1.StatefulSingleton) bool {
		return s.Status.Phase == v1.PhaseRunning && s.Status.Message == "No pods found" && s.Status.ActivePod == ""
	})
}
