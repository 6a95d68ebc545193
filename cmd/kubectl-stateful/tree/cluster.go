package tree

import (
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

// shownLosses is the max number of lost members in the tree; status.lost has more.
const shownLosses = 3

func (r *Report) cluster(s *snapshot.Snapshot, set *stcv1alpha1.StatefulCluster, now time.Time) {
	status := set.Status
	r.Summary = fmt.Sprintf("%d of %d members ready, %d updated", status.ReadyReplicas, ptr.Deref(set.Spec.Replicas, 1), status.UpdatedReplicas)
	if status.LostReplicas > 0 {
		r.Summary += fmt.Sprintf(", %d being replaced", status.LostReplicas)
	}
	returning := map[string]bool{}
	for _, away := range status.Updating {
		returning[away.Name] = true
	}
	for i := range s.Pods {
		clusterMember(&r.Members[i], &s.Pods[i], returning)
		delete(returning, s.Pods[i].Name)
	}
	for _, name := range slices.Sorted(maps.Keys(returning)) {
		r.WaitsFor = append(r.WaitsFor, fmt.Sprintf("%s returns with its name and claims", name))
	}
	if len(status.Creating) > 0 {
		r.WaitsFor = append(r.WaitsFor, "creating members: "+list(status.Creating, 10))
	}
	r.clusterVersions(s, set)
	for i, lost := range status.Lost {
		if i == shownLosses {
			break
		}
		text := fmt.Sprintf("%s %s %s ago", lost.Name, lost.Reason, ago(now, lost.Time.Time))
		if len(lost.Claims) > 0 {
			text += "; its claims are kept: " + list(lost.Claims, 5)
		}
		r.Lost = append(r.Lost, text)
	}
	if aside := claimsSetAside(s); aside > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s kept of removed members: kubectl -n %s get pvc -l %s=%s,%s", counted(aside, "claim"), set.Namespace, stcv1alpha1.LabelCluster, set.Name, stcv1alpha1.LabelRetained))
	}
}

func clusterMember(m *Member, pod *corev1.Pod, returning map[string]bool) {
	m.Version = pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	m.Role = "member"
	if former := pod.Annotations[stcv1alpha1.AnnotationReplaces]; former != "" {
		m.Notes = append(m.Notes, "replaces "+former)
	}
	if pod.Annotations[stcv1alpha1.AnnotationInPlace] != "" {
		m.Notes = append(m.Notes, "is being updated in place")
	}
	if pod.Annotations[stcv1alpha1.AnnotationDeleteFirst] == "true" {
		m.Notes = append(m.Notes, "is removed first on scale-down")
	}
	if returning[pod.Name] && pod.DeletionTimestamp != nil {
		m.Notes = append(m.Notes, "returns with its name and claims")
	}
}

func (r *Report) clusterVersions(s *snapshot.Snapshot, set *stcv1alpha1.StatefulCluster) {
	pods := map[string]int{}
	for i := range s.Pods {
		pods[s.Pods[i].Labels[appsv1.ControllerRevisionHashLabelKey]]++
	}
	for _, revision := range s.Revisions {
		v := Version{Name: revision.Name, Pods: counted(pods[revision.Name], "pod")}
		switch revision.Name {
		case set.Status.UpdateRevision:
			v.Role = "of the spec"
		case set.Status.CurrentRevision:
			v.Role = "before"
		default:
			if pods[revision.Name] == 0 {
				continue
			}
			v.Role = "old"
		}
		v.Notes = fmt.Sprintf("revision %d", revision.Revision)
		r.Versions = append(r.Versions, v)
	}
}

func claimsSetAside(s *snapshot.Snapshot) int {
	count := 0
	for _, claim := range s.Claims {
		if claim.Labels[stcv1alpha1.LabelRetained] != "" {
			count++
		}
	}
	return count
}
