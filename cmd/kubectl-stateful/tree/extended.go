package tree

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

func (r *Report) extended(s *snapshot.Snapshot, set *estsv1alpha1.ExtendedStatefulSet) {
	status := set.Status
	r.Phase = string(status.Phase)
	wanted := ptr.Deref(set.Spec.Template.Spec.Replicas, 1) * int32(max(len(set.Spec.Zones), 1))
	r.Summary = fmt.Sprintf("%d of %d pods ready, version %d serves", status.ReadyReplicas, wanted, status.CurrentVersion)
	if status.Update != nil {
		r.Summary += fmt.Sprintf(", attempt %d of version %d", status.Attempts, status.UpdateVersion)
	}
	for i := range s.Pods {
		pod, m := &s.Pods[i], &r.Members[i]
		version := pod.Labels[estsv1alpha1.LabelVersion]
		m.Version, m.Role = "version "+version, versionRole(&status, version)
		if zone := pod.Labels[estsv1alpha1.LabelZoneName]; zone != "" {
			m.Notes = append(m.Notes, "zone "+zone)
		}
		if pod.Labels[estsv1alpha1.LabelPodActive] == estsv1alpha1.PodActive {
			m.Notes = append(m.Notes, "active according to its probe")
		}
	}
	for i := range s.StatefulSets {
		r.Versions = append(r.Versions, versionOf(&status, &s.StatefulSets[i]))
	}
	if u := status.Update; u != nil && u.Returning {
		r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("version %d to release its resources", status.UpdateVersion))
	}
}

func versionOf(status *estsv1alpha1.ExtendedStatefulSetStatus, set *appsv1.StatefulSet) Version {
	version := set.Annotations[estsv1alpha1.AnnotationVersion]
	v := Version{
		Name: set.Name, Role: versionRole(status, version),
		Pods: fmt.Sprintf("%d of %d ready", set.Status.ReadyReplicas, ptr.Deref(set.Spec.Replicas, 1)),
	}
	if set.Annotations[estsv1alpha1.AnnotationStale] == estsv1alpha1.True {
		v.Role, v.Notes = "stale", set.Annotations[estsv1alpha1.AnnotationStaleReason]
	}
	return v
}

// versionRole returns the present role of a version.
func versionRole(status *estsv1alpha1.ExtendedStatefulSetStatus, version string) string {
	switch version {
	case strconv.FormatInt(status.CurrentVersion, 10):
		return "serves"
	case strconv.FormatInt(status.UpdateVersion, 10):
		if status.Phase == estsv1alpha1.PhaseCanary {
			return "canary"
		}
		return "new"
	}
	return "goes"
}
