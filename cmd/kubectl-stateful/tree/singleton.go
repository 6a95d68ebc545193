package tree

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

func (r *Report) singleton(s *snapshot.Snapshot, one *ssnv1.StatefulSingleton, now time.Time) {
	status := one.Status
	r.Phase = string(status.Phase)
	r.Summary = "no pod may run its program"
	if status.ActivePod != "" {
		r.Summary = status.ActivePod + " may run its program"
	}
	r.Summary += fmt.Sprintf(", %d waiting", status.WaitingCount)
	if status.Holder != nil {
		r.Summary += fmt.Sprintf(", epoch %d", status.Holder.Epoch)
	}
	for i := range s.Pods {
		pod, m := &s.Pods[i], &r.Members[i]
		m.Role = singletonRole(&status, pod)
		m.Version = pod.Labels["pod-template-hash"]
		if m.Version == "" {
			m.Version = pod.Labels["controller-revision-hash"]
		}
		if holder := status.Holder; holder != nil && holder.UID == pod.UID && holder.Since != nil {
			m.Notes = append(m.Notes, fmt.Sprintf("has the grant for %s", ago(now, holder.Since.Time)))
		}
		if pod.Labels[ssnv1.LabelManaged] != ssnv1.True {
			m.Notes = append(m.Notes, "has no gate")
		}
	}
	if began := status.TransitionTimestamp; began != nil {
		r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("the end of a handover that started %s ago", ago(now, began.Time)))
	}
	for _, w := range s.Workloads {
		r.Versions = append(r.Versions, workloadVersion(w))
	}
}

func singletonRole(status *ssnv1.StatefulSingletonStatus, pod *corev1.Pod) string {
	if pod.Name == status.ActivePod {
		return "active"
	}
	switch turn := slices.Index(status.Waiting, pod.Name); turn {
	case -1:
		return "starting"
	case 0:
		return "next"
	default:
		return fmt.Sprintf("waits at position %d", turn+1)
	}
}

// workloadVersion returns the owner of the pods, and the progress of its rollout.
func workloadVersion(w snapshot.Workload) Version {
	v := Version{Name: w.String(), Role: "owns the pods"}
	if progress, known := w.Progress(); known {
		v.Pods = fmt.Sprintf("%d of %d updated", progress.Updated, progress.Wanted)
	}
	return v
}
