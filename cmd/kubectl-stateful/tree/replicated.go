package tree

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

func (r *Report) replicated(s *snapshot.Snapshot, set *rssv1alpha1.ReplicatedStatefulSet, now time.Time) {
	status := set.Status
	r.Phase = string(status.Phase)
	r.Summary = fmt.Sprintf("%d of %d members ready, %d of %d primaries, epoch %d",
		status.ReadyReplicas, ptr.Deref(set.Spec.Replicas, 3), status.Primaries, status.PrimariesWanted, status.Epoch)
	present := ""
	for i := range s.StatefulSets {
		if s.StatefulSets[i].Name == snapshot.StatefulSetOf(set) {
			present = s.StatefulSets[i].Spec.Template.Annotations[rssv1alpha1.AnnotationTemplate]
		}
	}
	for i := range s.Pods {
		m := &r.Members[i]
		m.Role = roleOf(status.Members, m.Name)
		m.Version = templateVersion(&s.Pods[i], present)
		m.Notes = append(m.Notes, replicatedNotes(&status, &s.Pods[i], m.Role, now)...)
	}
	for _, order := range []string{rssv1alpha1.AnnotationSwitchoverTo, rssv1alpha1.AnnotationSeedFrom} {
		if to, ordered := set.Annotations[order]; ordered {
			r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("annotation %s=%s, removed when it is executed or refused", order, to))
		}
	}
	for _, o := range status.Orders {
		if o.Result == rssv1alpha1.OrderWaiting || o.Result == rssv1alpha1.OrderStarted {
			r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("spec.%s %s, order %s: %s", o.Order, o.Member, o.ID, o.Result))
		}
	}
}

// roleOf returns the role of a member, by the last result of its status command.
func roleOf(members rssv1alpha1.Members, name string) string {
	switch {
	case slices.Contains(members.Primary, name):
		return "primary"
	case slices.Contains(members.Secondary, name):
		return "secondary"
	case slices.Contains(members.Failed, name):
		return "failed"
	case slices.Contains(members.Ready, name):
		return "idle"
	}
	return "unknown"
}

// templateVersion returns whether a pod was created from the present template.
func templateVersion(pod *corev1.Pod, present string) string {
	switch pod.Annotations[rssv1alpha1.AnnotationTemplate] {
	case "":
		return ""
	case present:
		return "up to date"
	}
	return "out of date"
}

// maintenance describes the state of a member in spec.maintenance.
var maintenance = map[rssv1alpha1.MaintenanceState]string{
	rssv1alpha1.MaintenanceParked:      "is parked",
	rssv1alpha1.MaintenanceWaiting:     "is parked when its command has ended",
	rssv1alpha1.MaintenanceHandingOver: "hands over its role, then is parked",
}

// replicatedNotes returns the information about a member in the status.
func replicatedNotes(status *rssv1alpha1.ReplicatedStatefulSetStatus, pod *corev1.Pod, role string, now time.Time) []string {
	var notes []string
	for _, listed := range status.Maintenance {
		if listed.Pod == pod.Name {
			notes = append(notes, fmt.Sprintf("%s (spec.maintenance), for %s", maintenance[listed.State], ago(now, listed.Since.Time)))
		}
	}
	for _, sequence := range status.Sequences {
		if sequence.Pod == pod.Name {
			notes = append(notes, fmt.Sprintf("sequence %s of epoch %d", sequence.Sequence, sequence.Epoch))
		}
	}
	for _, grant := range status.Grants {
		if grant.Pod == pod.Name && role != "primary" {
			notes = append(notes, fmt.Sprintf("may be primary, by a grant of %s ago", ago(now, grant.Since.Time)))
		}
	}
	for _, command := range status.Commands {
		if command.Pod == pod.Name {
			notes = append(notes, fmt.Sprintf("%s was sent %s ago, and has not ended yet; its timeout is %s", command.Name, ago(now, command.StartedAt.Time), command.Timeout.Duration))
		}
	}
	for _, failure := range status.Failures {
		if failure.Pod == pod.Name {
			notes = append(notes, fmt.Sprintf("%s failed %s ago with exit code %d; failures: %d", failure.Command, ago(now, failure.Last.Time), failure.Code, failure.Count))
		}
	}
	for _, silent := range status.Unanswered {
		if silent.Pod == pod.Name {
			notes = append(notes, fmt.Sprintf("status has had no result for %s", ago(now, silent.Since.Time)))
		}
	}
	return notes
}
