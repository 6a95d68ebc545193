package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// recreating returns a set that recreates unresponsive members after that time.
func recreating(set *v1alpha1.ReplicatedStatefulSet, after v1alpha1.Duration) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Failover = &v1alpha1.FailoverPolicy{RecreateUnresponsiveAfter: after}
	return set
}

// restarting returns a set that compares the former primary with its secondaries.
func restarting(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Failover = &v1alpha1.FailoverPolicy{RestartPrimary: v1alpha1.RestartIfNewest}
	return set
}

// unclaimed returns a set whose data is deleted with its pods.
func unclaimed(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.VolumeClaimTemplates = nil
	return set
}

// quiet makes the member a secondary of ten minutes ago that has not answered status for that long.
func (f *podFixture) quiet(age time.Duration) *podFixture {
	return f.statusSince(0, 10*time.Minute).hangs(age)
}

func TestW9AnUnresponsiveMemberBlocksAFailover(t *testing.T) {
	const gone = "delete pod 1: Unresponsive, status has not responded since 2026-03-01T11:56:00Z, and a primary is missing"
	heard := func() *podFixture { return pod(2).secondary().sequence("9") }
	check(t, []row{
		{"W9 wait forever by default", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), nil},
		{"W9 recreate the unresponsive pod after the timeout", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), []string{gone}},
		{"W9 recreate a pod that never answered after the timeout", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).hangs(4*time.Minute), heard(), lost(5*time.Minute)), []string{gone}},
		{"W9 promote a secondary when the terminating pod has ended", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).ended().deleted(), heard(), lost(5*time.Minute)), []string{"2: Promote, alone", "patch pod 1: Release"}},
		{"W9 promote a secondary when the new pod is pending", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).pending().born(time.Second), heard(), lost(5*time.Minute)), []string{"2: Promote, alone"}},
		{"W9 wait while the primary has been lost for less than the timeout", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(119*time.Second)), nil},
		{"W9 wait while status has not answered for less than the timeout", worldOf(recreating(setOf(3, 1), "5m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(9*time.Minute)), nil},
		{"W9 the minimum timeout is a minute", worldOf(recreating(setOf(3, 1), "1s"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(59*time.Second)), nil},
		{"W9 wait without a majority of the copies", worldOf(recreating(setOf(3, 1), "2m"), pod(0).pending(), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), nil},
		{"W9 query the sequences of the other members first", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle(), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), []string{"0 asked sequence"}},
		{"W9 wait when the unresponsive member has no claim", worldOf(unclaimed(recreating(setOf(3, 1), "2m")), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), nil},
		{"W9 no recreation while a primary runs", worldOf(recreating(setOf(3, 1), "2m"), pod(0).primary(), pod(1).quiet(4*time.Minute), heard(), lost(5*time.Minute)), nil},
		{"W9 no recreation of a member that may be primary", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).hangs(4*time.Minute).granted(), heard(), lost(5*time.Minute)), nil},
		{"W9 promote a secondary when the unresponsive member is on an unreachable Node", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute).onNode(off), heard(), lost(5*time.Minute)), []string{"2: Promote, alone"}},
	})
}

func TestW9TheDeleteIsTriedFirst(t *testing.T) {
	p := rules.Decide(worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), pod(2).secondary().sequence("9"), lost(5*time.Minute)))
	lines := strings.Join(p.Steps.Strings(), "\n")
	if !strings.Contains(lines, "try pod rss-db-1: Trial, dry run before the pod is recreated > delete pod rss-db-1") {
		t.Errorf("the plan is\n%s", lines)
	}
}

// conditionOf returns a condition of the status of a world.
func conditionOf(t *testing.T, w *facts.World, kind string) *metav1.Condition {
	t.Helper()
	p := rules.Decide(w)
	c := meta.FindStatusCondition(status.Summarize(&p).Conditions, kind)
	if c == nil {
		t.Fatalf("condition %s is missing", kind)
	}
	return c
}

func TestW9ConditionsTellHowToGoOn(t *testing.T) {
	blocked := func(set *v1alpha1.ReplicatedStatefulSet) *facts.World {
		return worldOf(set, pod(0).idle().sequence("9"), pod(1).quiet(40*time.Second), pod(2).secondary().sequence("9"), lost(45*time.Second))
	}
	const command = "To continue without it, delete its pod: kubectl -n ns delete pod rss-db-1; "
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"by default", blocked(setOf(3, 1)), command + "its claims are kept. The operator deletes the pod automatically if spec.failover.recreateUnresponsiveAfter is set"},
		{"with a timeout", blocked(recreating(setOf(3, 1), "2m")), command + "its claims are kept. The operator deletes the pod after 12:01:20 (spec.failover.recreateUnresponsiveAfter), when the sequences of 2 members are known"},
		{"W10 with a refused trial of the new pod", worldOf(recreating(setOf(3, 1), "2m"), pod(0).idle().sequence("9"), pod(1).quiet(4*time.Minute), pod(2).secondary().sequence("9"), lost(5*time.Minute),
			with(func(w *facts.World) {
				w.Trial = facts.RefusedTrial{Text: "pods are forbidden: policy", At: ago(9 * time.Second)}
			})),
			command + "its claims are kept; the operator does not delete it, because the API server would not create its new pod; correct the policy or quota that refuses it: pods are forbidden: policy"},
		{"without claims", blocked(unclaimed(setOf(3, 1))), command + "the operator does not delete it, because it has no claim, and its data would be lost"},
	} {
		for _, kind := range []string{v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded} {
			if c := conditionOf(t, r.world, kind); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, r.want) {
				t.Errorf("%s: %s is %s, %q, want it to contain %q", r.name, kind, c.Status, c.Message, r.want)
			}
		}
	}
	slow := worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).quiet(20*time.Second), pod(2).secondary().sequence("9"), lost(25*time.Second))
	if c := conditionOf(t, slow, v1alpha1.ConditionProgressing); strings.Contains(c.Message, "kubectl") {
		t.Errorf("the message for a slow member is %q", c.Message)
	}
}

func TestW12TheFormerPrimaryIsCompared(t *testing.T) {
	ends := func() *podFixture { return pod(0).looping(8 * time.Second) }
	check(t, []row{
		{"W12 promote a secondary by default", worldOf(setOf(3, 1), pod(0).idle(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: query the sequence of the former primary", worldOf(restarting(setOf(3, 1)), pod(0).idle(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), []string{"0 asked sequence"}},
		{"W12 IfNewest: seed the former primary when it is newer", worldOf(restarting(setOf(3, 1)), pod(0).idle().sequence("10"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), []string{"0: Seed, alone"}},
		{"W12 IfNewest: promote a secondary that is as new as the former primary", worldOf(restarting(setOf(3, 1)), pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: stop the failed former primary first", worldOf(restarting(setOf(3, 1)), pod(0).status(1), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), []string{"0: Stop, alone"}},
		{"W12 IfNewest: wait for the container of the former primary", worldOf(restarting(setOf(3, 1)), ends(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), nil},
		{"W12 IfNewest: wait for the pod of the former primary", worldOf(restarting(setOf(3, 1)), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), nil},
		{"W12 IfNewest: promote a secondary after waiting a minute for the former primary", worldOf(restarting(setOf(3, 1)), ends(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8")), []string{"1: Promote, alone"}},
		{"W12 IfNewest: promote a secondary after a handover", worldOf(restarting(setOf(3, 1)), pod(0).changed("stop", 12*time.Second).idle(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), provenStop, lost(11*time.Second)), []string{"1: Promote, alone"}},
		{"W12 IfNewest: no promotion of an older copy when the former primary cannot be started", worldOf(restarting(setOf(3, 1)), pod(0).idle().sequence("10").failures(1, "seed", 5, false), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), recordedSequence("rss-db-0", "10"), lost(15*time.Second)), nil},
	})
}

func TestW12ACopyThatWasNotComparedIsTold(t *testing.T) {
	third := with(func(w *facts.World) { w.Set.Status.Epoch = 3 })
	lastWas := with(func(w *facts.World) { w.LossOf, w.LossPod = w.Members[0].Pod.UID, w.Members[0].Name() })
	told := "epoch 4: rss-db-1 was promoted with sequence 9. The sequence of rss-db-0 was not read, and may have been higher: data that only its copy had is lost. " +
		"To compare that copy before a promotion, set spec.failover.restartPrimary to IfNewest"
	toldBefore := with(func(w *facts.World) {
		meta.SetStatusCondition(&w.Set.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDataLossRisk, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonPrimaryNotCompared, Message: told})
	})
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"the former primary was killed", worldOf(setOf(3, 1), third, pod(0).idle(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second), lastWas), told},
		{"the former primary was killed, and its sequence is known", worldOf(setOf(3, 1), third, pod(0).idle().sequence("12"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second), lastWas),
			strings.Replace(told, "was not read, and may have been higher", "was 12", 1)},
		{"the former primary is not newer", worldOf(setOf(3, 1), third, pod(0).idle().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second), lastWas), ""},
		{"the pod of the former primary was recreated", worldOf(setOf(3, 1), third, pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second), lastWas,
			with(func(w *facts.World) { w.LossOf = "gone" })), told},
		{"the role was handed over", worldOf(setOf(3, 1), third, pod(0).changed("stop", 12*time.Second).idle(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), provenStop, lost(11*time.Second)), ""},
		{"the former primary was demoted and compared", worldOf(setOf(3, 1), third, pod(0).secondary().sequence("9"), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Second)), ""},
		{"the first primary of the set", worldOf(setOf(3, 1), pod(0).pending(), pod(1).secondary().sequence("9"), pod(2).secondary().sequence("8"), lost(15*time.Minute)), ""},
		{"the promoted primary still runs", worldOf(setOf(2, 1), with(func(w *facts.World) { w.Set.Status.Epoch = 4 }), pod(0).secondary(), pod(1).primary(), toldBefore), told},
		{"a later primary runs", worldOf(setOf(2, 1), with(func(w *facts.World) { w.Set.Status.Epoch = 5 }), pod(0).secondary(), pod(1).primary(), toldBefore), ""},
	} {
		c := conditionOf(t, r.world, v1alpha1.ConditionDataLossRisk)
		reason, want := v1alpha1.ReasonPrimaryNotCompared, r.want
		if want == "" {
			reason, want = v1alpha1.ReasonNewestPresent, "the newest known data is available"
		}
		if c.Status != metav1.ConditionFalse || c.Reason != reason || c.Message != want {
			t.Errorf("%s: %s %s, %q, want %s, %q", r.name, c.Status, c.Reason, c.Message, reason, want)
		}
	}
}

// seenFor sets for how long the StatefulSet has had its current spec, which its controller has
// observed.
func seenFor(age time.Duration, replicas int32) thing {
	return with(func(w *facts.World) {
		w.StatefulSince = ago(age)
		w.Stateful.Spec.Replicas = ptr.To(replicas)
		w.Stateful.Generation, w.Stateful.Status.ObservedGeneration = 5, 5
	})
}

func TestW8MembersThatLeftAreRemoved(t *testing.T) {
	const gone = "delete pod 2: Surplus, it is scaled down, and the StatefulSet controller deletes no pod until it has created the 1 missing pods"
	check(t, []row{
		{"W8 delete a surplus pod while a missing pod cannot be created", worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), seenFor(10*time.Second, 2)), []string{gone}},
		{"W8 delete the surplus pod with the highest ordinal first", worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), pod(3).idle(), seenFor(time.Minute, 2)), []string{strings.Replace(gone, "pod 2", "pod 3", 1)}},
		{"W8 no deletion while another surplus pod is terminating", worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), pod(3).idle().deleted(), seenFor(time.Minute, 2)), nil},
		{"W8 no deletion while the StatefulSet's controller still has time", worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), seenFor(9*time.Second, 2)), nil},
		{"W8 no deletion before the StatefulSet's controller has observed the replicas", worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), seenFor(time.Minute, 2), with(func(w *facts.World) { w.Stateful.Generation++ })), nil},
		{"W8 no deletion while no pod is missing", worldOf(setOf(2, 1), pod(0).secondary(), pod(1).primary(), pod(2).idle(), seenFor(time.Minute, 2)), nil},
		{"W8 stop a surplus secondary before its pod is deleted", worldOf(setOf(2, 1), pod(1).primary(), pod(2).secondary().sequence("9"), seenFor(time.Minute, 2)), []string{"2: Stop, with 1"}},
		{"W8 no deletion of a surplus pod whose data no other member has", worldOf(setOf(2, 1), pod(1).idle().sequence("8"), pod(2).idle().sequence("9"), seenFor(time.Minute, 2)), nil},
	})
	w := worldOf(setOf(2, 1), pod(1).primary(), pod(2).idle(), seenFor(time.Second, 2))
	if c := conditionOf(t, w, v1alpha1.ConditionProgressing); c.Message != "scaling down from 3 to 2 pods" {
		t.Errorf("W8 the message is %q", c.Message)
	}
}

func TestW11SecondariesThatAreNotReady(t *testing.T) {
	running := func(others ...thing) *facts.World {
		return worldOf(setOf(3, 1), append([]thing{pod(0).primary()}, others...)...)
	}
	two := running(pod(1).secondary().unready(time.Minute), pod(2).secondary().unready(time.Hour))
	const want = "2 of 3 members run as secondaries, but their pods are not Ready: rss-db-1, rss-db-2. For details: kubectl -n ns describe pod rss-db-1"
	if c := conditionOf(t, two, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonMembersNotReady || c.Message != want {
		t.Errorf("W11 Degraded is %s, %q", c.Reason, c.Message)
	}
	for kind, status := range map[string]metav1.ConditionStatus{v1alpha1.ConditionReady: "False", v1alpha1.ConditionReconciling: "True", v1alpha1.ConditionAvailable: "True"} {
		if c := conditionOf(t, two, kind); c.Status != status {
			t.Errorf("W11 %s is %s, want %s", kind, c.Status, status)
		}
	}
	for name, w := range map[string]*facts.World{
		"a pod has not been Ready for less than a minute": running(pod(1).secondary().unready(59*time.Second), pod(2).secondary()),
		"a pod has not been Ready since a recent start":   running(pod(1).changed("secondary", 12*time.Second).secondary().unready(time.Hour), pod(2).secondary()),
		"an unready pod is terminating":                   running(pod(1).secondary().unready(time.Hour).deleted(), pod(2).secondary()),
		"a command is running in an unready pod":          running(pod(1).runs("secondary", time.Hour).unready(time.Hour), pod(2).secondary()),
		"no member runs as secondary":                     worldOf(setOf(3, 1, "secondary", "promote", "demote"), pod(0).primary(), pod(1).idle().unready(time.Hour), pod(2).idle()),
		"all secondaries are Ready":                       running(pod(1).secondary(), pod(2).secondary()),
	} {
		if c := conditionOf(t, w, v1alpha1.ConditionDegraded); c.Reason == v1alpha1.ReasonMembersNotReady {
			t.Errorf("W11 %s: Degraded is %q", name, c.Message)
		}
	}
}

func TestW10NoMemberIsTakenDownUntried(t *testing.T) {
	const trial = "try pod rss-db-%: Trial, dry run before the pod is recreated > "
	for _, r := range []struct {
		name  string
		world *facts.World
		pod   string
	}{
		{"a secondary is stopped", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().outdated()), "2"},
		{"the primary is stopped", worldOf(setOf(1, 1), pod(0).primary().outdated().sequence("9")), "0"},
		{"the pod of an idle member is deleted", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).idle().outdated()), "2"},
	} {
		p := rules.Decide(r.world)
		lines := strings.Join(p.Steps.Strings(), "\n")
		if !strings.HasPrefix(lines, strings.Replace(trial, "%", r.pod, 1)) {
			t.Errorf("W10 when %s, the plan is\n%s", r.name, lines)
		}
	}
	refused := with(func(w *facts.World) {
		w.Trial = facts.RefusedTrial{Text: "pods are forbidden: policy", At: ago(29 * time.Second)}
	})
	check(t, []row{
		{"W10 no stop after a refused trial", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().outdated(), refused), nil},
		{"W10 no deletion after a refused trial", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).idle().outdated().sequence("9"), refused), []string{"2: Secondary, with 0"}},
		{"W10 stop a secondary again after the refused trial expired", worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary().outdated(), pod(2).secondary().outdated(), refused, with(func(w *facts.World) { w.Now = w.Now.Add(time.Second) })), []string{"2: Stop, with 0"}},
	})
	outdated := worldOf(setOf(3, 1), pod(0).primary().outdated(), pod(1).secondary(), pod(2).secondary(), refused)
	if c := conditionOf(t, outdated, v1alpha1.ConditionDegraded); c.Reason != v1alpha1.ReasonWriteRefused || !strings.Contains(c.Message, "no member is stopped for the update") || !strings.Contains(c.Message, "policy") {
		t.Errorf("W10 Degraded is %+v", c)
	}
	done := worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary(), pod(2).secondary(), refused)
	if c := conditionOf(t, done, v1alpha1.ConditionDegraded); c.Status != metav1.ConditionFalse {
		t.Errorf("W10 with nothing to recreate, Degraded is %+v", c)
	}
}

func TestW10TheTrialIsAPodOfTheStatefulSet(t *testing.T) {
	stateful := children.BuildStatefulSet(spec.WithDefaults(setOf(3, 1)), 3, children.Hashes{})
	stateful.UID = "uid"
	pod := children.BuildPod(stateful, 2)
	owner := metav1.GetControllerOf(pod)
	switch {
	case pod.Name != "rss-db-2", pod.Spec.Hostname != "rss-db-2", pod.Spec.Subdomain != "db-svc":
		t.Errorf("the names of the pod are %s, %s, %s", pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain)
	case pod.Labels["statefulset.kubernetes.io/pod-name"] != "rss-db-2", pod.Labels["apps.kubernetes.io/pod-index"] != "2":
		t.Errorf("the labels of the pod are %v", pod.Labels)
	case owner == nil || owner.Kind != "StatefulSet" || owner.UID != "uid":
		t.Errorf("the controller of the pod is %+v", owner)
	}
	for _, template := range stateful.Spec.VolumeClaimTemplates {
		var found *corev1.PersistentVolumeClaimVolumeSource
		for _, v := range pod.Spec.Volumes {
			if v.Name == template.Name {
				found = v.PersistentVolumeClaim
			}
		}
		if found == nil || found.ClaimName != template.Name+"-rss-db-2" {
			t.Errorf("the volume of claim template %s is %+v", template.Name, found)
		}
	}
}
