// Package rollout returns the progress of a rollout, and the changes that start, pause and revert
// one, according to the API of each kind. It reads no clock and writes nothing.
package rollout

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

// Progress is the progress of a rollout.
type Progress struct {
	// Line describes it for the user.
	Line string
	// Trouble is a problem that does not end the rollout; "" if there is none.
	Trouble string
	// Done is true if the rollout is complete.
	Done bool
	// Failed is the reason why it cannot succeed without manual intervention, or nil.
	Failed error
}

// judge is an object with its conditions.
type judge struct {
	*snapshot.Snapshot
	conditions []metav1.Condition
}

// Status returns the progress of the rollout of an object.
func Status(s *snapshot.Snapshot) Progress {
	state := kinds.StateOf(s.Object)
	if s.Object.GetDeletionTimestamp() != nil {
		return failed("%s %q is being deleted", s.Kind.Singular(), s.Object.GetName())
	}
	if state.ObservedGeneration < s.Object.GetGeneration() {
		return Progress{Line: "Waiting for the operator to reconcile the current spec..."}
	}
	j := judge{s, state.Conditions}
	for _, wrong := range []string{"InvalidSpec", "TooManySingletons"} {
		if c := j.condition("Degraded"); c.Reason == wrong {
			return failed("%s", c.Message)
		}
		if c := j.condition("Progressing"); c.Reason == wrong {
			return failed("%s", c.Message)
		}
	}
	progress := j.progress()
	if progress.Failed != nil {
		return progress
	}
	if c := j.condition("Stalled"); c.Status == metav1.ConditionTrue && !j.mends(c) {
		return failed("%s: %s", c.Reason, c.Message)
	}
	if c := j.condition("Degraded"); c.Status == metav1.ConditionTrue {
		progress.Trouble = fmt.Sprintf("%s: %s", c.Reason, c.Message)
	}
	return progress
}

// progress calls the function of the kind.
func (j judge) progress() Progress {
	switch o := j.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return j.cluster(o)
	case *rssv1alpha1.ReplicatedStatefulSet:
		return j.replicated(o)
	case *estsv1alpha1.ExtendedStatefulSet:
		return j.extended(o)
	case *ssnv1.StatefulSingleton:
		return j.singleton()
	}
	return failed("%s has no rollout", j.Kind.Kind)
}

// mends reports whether the rollout may fix the reason for which an object is stalled: members of
// an earlier template that do not become Ready.
func (j judge) mends(stalled metav1.Condition) bool {
	switch set := j.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		notReady := []string{stcv1alpha1.ReasonRevisionFailing, stcv1alpha1.ReasonMembersNotReady, stcv1alpha1.ReasonMembersCannotStart}
		return slices.Contains(notReady, stalled.Reason) && !j.blamesPresentTemplate(set, stalled.Message)
	case *rssv1alpha1.ReplicatedStatefulSet:
		notReady := []string{rssv1alpha1.ReasonNotServing, rssv1alpha1.ReasonMembersFailed, rssv1alpha1.ReasonMembersDegraded, rssv1alpha1.ReasonMembersCannotStart}
		return slices.Contains(notReady, stalled.Reason) && len(j.outOfDate(set)) > 0
	case *ssnv1.StatefulSingleton:
		return stalled.Reason == ssnv1.ReasonPodFailing // the object has no revisions; its Deployment has a deadline
	}
	return false
}

func failed(format string, args ...any) Progress {
	return Progress{Failed: fmt.Errorf(format, args...)}
}

func (j judge) condition(name string) metav1.Condition {
	for _, c := range j.conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{Type: name, Status: metav1.ConditionUnknown}
}

func (j judge) is(name string, status metav1.ConditionStatus) bool {
	return j.condition(name).Status == status
}

// settled reports whether the desired state is reached and no operation is in progress.
func (j judge) settled() bool {
	return j.is("Available", metav1.ConditionTrue) && j.is("Progressing", metav1.ConditionFalse)
}

func (j judge) done() Progress {
	return Progress{Done: true, Line: fmt.Sprintf("%s %q successfully rolled out", j.Kind.Singular(), j.Object.GetName())}
}

// waiting returns the reason to wait.
func (j judge) waiting() Progress {
	said := j.condition("Progressing")
	if said.Status != metav1.ConditionTrue {
		said = j.condition("Available")
	}
	return Progress{Line: fmt.Sprintf("Waiting for %s %q: %s: %s", j.Kind.Singular(), j.Object.GetName(), said.Reason, said.Message)}
}

func (j judge) cluster(set *stcv1alpha1.StatefulCluster) Progress {
	if set.Spec.UpdateStrategy.Type == stcv1alpha1.OnDeleteStrategy {
		return failed("rollout status is only available for updateStrategy %s: with %s a member keeps its template until its pod is deleted", stcv1alpha1.RollingUpdateStrategy, stcv1alpha1.OnDeleteStrategy)
	}
	if !j.settled() {
		if c := j.condition("Degraded"); c.Reason == stcv1alpha1.ReasonRevisionFailing && j.blamesPresentTemplate(set, c.Message) {
			return failed("%s", c.Message)
		}
		return j.waiting()
	}
	if partition := partitionOf(set); partition > 0 && set.Status.UpdatedReplicas < ptr.Deref(set.Spec.Replicas, 1) {
		return Progress{Done: true, Line: fmt.Sprintf("partitioned roll out complete: %d members have the current template, and spec.updateStrategy.rollingUpdate.partition keeps %d", set.Status.UpdatedReplicas, partition)}
	}
	return j.done()
}

func partitionOf(set *stcv1alpha1.StatefulCluster) int32 {
	if set.Spec.UpdateStrategy.RollingUpdate == nil {
		return 0
	}
	return set.Spec.UpdateStrategy.RollingUpdate.Partition
}

// blamesPresentTemplate reports whether the message names a pod of the present template. The
// rollout replaces members of an earlier template.
func (j judge) blamesPresentTemplate(set *stcv1alpha1.StatefulCluster, message string) bool {
	return slices.ContainsFunc(j.Pods, func(pod corev1.Pod) bool {
		present := pod.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision
		return present && strings.Contains(message, pod.Name)
	})
}

func (j judge) replicated(set *rssv1alpha1.ReplicatedStatefulSet) Progress {
	if c := j.condition(rssv1alpha1.ConditionPaused); c.Status == metav1.ConditionTrue {
		return failed("%s", c.Message)
	}
	if set.Status.Phase == rssv1alpha1.PhaseFailed {
		return failed("%s", set.Status.Reason)
	}
	nobodyWanted := j.condition("Available").Reason == rssv1alpha1.ReasonStopped
	nothingOnTheWay := j.is("Progressing", metav1.ConditionFalse)
	if nobodyWanted && nothingOnTheWay {
		return j.done()
	}
	if !j.settled() {
		return j.waiting()
	}
	if old := j.outOfDate(set); len(old) > 0 {
		return Progress{Line: fmt.Sprintf("Waiting for %s %q: %s still have an earlier template", j.Kind.Singular(), set.Name, strings.Join(old, ", "))}
	}
	return j.done()
}

// outOfDate returns the pods that were not created from the present template.
func (j judge) outOfDate(set *rssv1alpha1.ReplicatedStatefulSet) []string {
	present := ""
	for i := range j.StatefulSets {
		if j.StatefulSets[i].Name == snapshot.StatefulSetOf(set) {
			present = j.StatefulSets[i].Spec.Template.Annotations[rssv1alpha1.AnnotationTemplate]
		}
	}
	var old []string
	for i := range j.Pods {
		if has := j.Pods[i].Annotations[rssv1alpha1.AnnotationTemplate]; has != "" && present != "" && has != present {
			old = append(old, j.Pods[i].Name)
		}
	}
	return old
}

func (j judge) extended(set *estsv1alpha1.ExtendedStatefulSet) Progress {
	for _, ended := range []string{estsv1alpha1.ConditionStale, estsv1alpha1.ConditionAborted} {
		if c := j.condition(ended); c.Status == metav1.ConditionTrue {
			return failed("%s: %s", c.Reason, c.Message)
		}
	}
	if set.Status.Phase == estsv1alpha1.PhaseStable && j.settled() {
		return j.done()
	}
	p := j.waiting()
	if phase := fmt.Sprintf("phase %s", set.Status.Phase); set.Status.Phase != "" && !strings.Contains(p.Line, phase) {
		p.Line += " (" + phase + ")"
	}
	return p
}

func (j judge) singleton() Progress {
	for _, held := range []string{ssnv1.ConditionSelectorConflict, ssnv1.ConditionRolloutHeld, ssnv1.ConditionUnmanagedPod} {
		if c := j.condition(held); c.Status == metav1.ConditionTrue {
			return failed("%s: %s", c.Type, c.Message)
		}
	}
	for _, w := range j.Workloads {
		progress, known := w.Progress()
		if !known {
			continue
		}
		if !progress.Seen {
			return Progress{Line: fmt.Sprintf("Waiting for the template of %s to be observed...", w)}
		}
		if progress.Updated < progress.Wanted {
			return Progress{Line: fmt.Sprintf("Waiting for %s: %d out of %d new replicas have been updated...", w, progress.Updated, progress.Wanted)}
		}
	}
	if j.settled() {
		return j.done()
	}
	return j.waiting()
}
