package podstate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(d)) }

// pod returns a pod that started at noon and has one relevant condition. turned is the time from noon
// to the transition of the condition.
func pod(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, turned time.Duration) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{StartTime: ptr.To(at(0)), Conditions: []corev1.PodCondition{
		{Type: "Other", Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: at(-time.Hour)},
		{Type: kind, Status: status, Reason: reason, LastTransitionTime: at(turned)},
	}}}
}

func TestSinceIsNeverBeforeTheCreation(t *testing.T) {
	created := pod(corev1.PodScheduled, corev1.ConditionTrue, "", 0)
	created.CreationTimestamp = at(time.Minute)
	for kind, want := range map[corev1.PodConditionType]bool{corev1.PodScheduled: true, corev1.PodReady: false} {
		since, has := Since(created, kind)
		if has != want || !since.Equal(noon.Add(time.Minute)) {
			t.Errorf("%s since %v, %t", kind, since, has)
		}
	}
}

func TestQuestions(t *testing.T) {
	yes, no, bare := corev1.ConditionTrue, corev1.ConditionFalse, &corev1.Pod{}
	unstarted := pod(corev1.PodReady, no, "", time.Hour)
	unstarted.Status.StartTime = nil
	phase := func(p corev1.PodPhase) *corev1.Pod { return &corev1.Pod{Status: corev1.PodStatus{Phase: p}} }
	endedFor := func(why string, containers ...corev1.Container) *corev1.Pod {
		p := phase(corev1.PodSucceeded)
		p.Status.Reason = why
		p.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: containers}
		return p
	}
	never := corev1.ContainerRestartPolicyNever
	for _, r := range []struct {
		name      string
		got, want bool
	}{
		{"EndedByNode: with a reason", EndedByNode(endedFor("Evicted")), true},
		{"EndedByNode: without a reason, in a pod with restartPolicy Always", EndedByNode(endedFor("", corev1.Container{})), true},
		{"EndedByNode: without a reason, where containers may exit", EndedByNode(endedFor("", corev1.Container{RestartPolicy: &never})), false},
		{"EndedByNode: without a reason, where a rule may end a container", EndedByNode(endedFor("", corev1.Container{RestartPolicyRules: []corev1.ContainerRestartRule{{}}})), false},
		{"EndedByNode: because of activeDeadlineSeconds", EndedByNode(endedFor("DeadlineExceeded")), false},
		{"EndedByNode: because its program exited", EndedByNode(phase(corev1.PodFailed)), false},

		{"Ready: True", Ready(pod(corev1.PodReady, yes, "", 0)), true},
		{"Ready: False", Ready(pod(corev1.PodReady, no, "", 0)), false},
		{"Ready: Unknown", Ready(pod(corev1.PodReady, corev1.ConditionUnknown, "", 0)), false},
		{"Ready: no condition", Ready(bare), false},

		{"WasReady: Ready is True", WasReady(pod(corev1.PodReady, yes, "", 0)), true},
		{"WasReady: turned False with the start", WasReady(pod(corev1.PodReady, no, "", 0)), false},
		{"WasReady: turned False in the same second", WasReady(pod(corev1.PodReady, no, "", time.Second)), false},
		{"WasReady: turned False later", WasReady(pod(corev1.PodReady, no, "", time.Second+1)), true},
		{"WasReady: never started", WasReady(unstarted), false},
		{"WasReady: no condition", WasReady(bare), false},

		{"Ended: Failed", Ended(phase(corev1.PodFailed)), true},
		{"Ended: Succeeded", Ended(phase(corev1.PodSucceeded)), true},
		{"Ended: Running", Ended(phase(corev1.PodRunning)), false},
		{"Scheduled: no node", Scheduled(bare), false},
		{"Scheduled: has a node", Scheduled(&corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}), true},
		{"Terminating: no deletionTimestamp", Terminating(bare), false},

		{"Evicted: through the API", Evicted(pod(corev1.DisruptionTarget, yes, "EvictionByEvictionAPI", 0)), true},
		{"Evicted: by a taint", Evicted(pod(corev1.DisruptionTarget, yes, "DeletionByTaintManager", 0)), false},
		{"Evicted: not evicted", Evicted(pod(corev1.DisruptionTarget, no, "EvictionByEvictionAPI", 0)), false},
		{"TaintEvicted: by a taint", TaintEvicted(pod(corev1.DisruptionTarget, yes, "DeletionByTaintManager", 0)), true},
		{"TaintEvicted: through the API", TaintEvicted(pod(corev1.DisruptionTarget, yes, "EvictionByEvictionAPI", 0)), false},
	} {
		if r.got != r.want {
			t.Errorf("%s: %t", r.name, r.got)
		}
	}
}

func TestAvailable(t *testing.T) {
	ready := pod(corev1.PodReady, corev1.ConditionTrue, "", 0)
	for _, r := range []struct {
		name     string
		pod      *corev1.Pod
		minReady time.Duration
		now      time.Duration
		ok       bool
		wait     time.Duration
	}{
		{"minReadySeconds is 0", ready, 0, 0, true, 0},
		{"one nanosecond before minReadySeconds elapsed", ready, time.Minute, time.Minute - 1, false, 1},
		{"minReadySeconds elapsed", ready, time.Minute, time.Minute, true, 0},
		{"a pod that is not Ready", pod(corev1.PodReady, corev1.ConditionFalse, "", 0), time.Minute, time.Hour, false, 0},
	} {
		if ok, wait := Available(r.pod, r.minReady, noon.Add(r.now)); ok != r.ok || wait != r.wait {
			t.Errorf("%s: %t, wait %v", r.name, ok, wait)
		}
	}
}

func TestTimes(t *testing.T) {
	if since, has := Since(pod(corev1.PodReady, corev1.ConditionTrue, "", time.Minute), corev1.PodReady); !has || !since.Equal(noon.Add(time.Minute)) {
		t.Errorf("Since: %v, %t", since, has)
	}
	if _, has := Since(&corev1.Pod{}, corev1.PodReady); has {
		t.Error("Since: a missing condition")
	}
	for _, r := range []struct {
		pod  *corev1.Pod
		want bool
	}{
		{pod(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, 0), true},
		{pod(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated, 0), false},
		{pod(corev1.PodScheduled, corev1.ConditionTrue, corev1.PodReasonUnschedulable, 0), false},
		{&corev1.Pod{}, false},
	} {
		if _, got := UnschedulableSince(r.pod); got != r.want {
			t.Errorf("UnschedulableSince %v: %t", r.pod.Status.Conditions, got)
		}
	}
	going := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ptr.To(at(30 * time.Second)), DeletionGracePeriodSeconds: ptr.To(int64(30))}}
	if got := DeletedAt(going); !got.Equal(noon) || !Terminating(going) {
		t.Errorf("DeletedAt: %v, want the time of the delete, not the end of the grace period", got)
	}
	going.DeletionGracePeriodSeconds = nil
	if got := DeletedAt(going); !got.Equal(noon.Add(30 * time.Second)) {
		t.Errorf("DeletedAt without a grace period: %v", got)
	}
	if !DeletedAt(&corev1.Pod{}).IsZero() {
		t.Error("DeletedAt: a pod without a deletionTimestamp")
	}
}
