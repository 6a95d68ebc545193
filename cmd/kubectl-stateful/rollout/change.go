package rollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
)

// AnnotationRestartedAt is the annotation that kubectl rollout restart sets on a pod template.
const AnnotationRestartedAt = "kubectl.kubernetes.io/restartedAt"

// Change is an object as it was read, and its desired state.
type Change struct {
	From, To client.Object
	// What describes the change for the user.
	What string
	// Dangerous is the risk that the user must confirm; "" if there is none.
	Dangerous string
}

// Restart recreates all pods, in the order that the kind uses.
func Restart(s *snapshot.Snapshot, now time.Time) ([]Change, error) {
	if s.Object.GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%s %q is being deleted", s.Kind.Singular(), s.Object.GetName())
	}
	at := now.Format(time.RFC3339)
	switch o := s.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return restartCluster(o, at)
	case *rssv1alpha1.ReplicatedStatefulSet:
		if o.Spec.Paused {
			return nil, fmt.Errorf("replicatedstatefulsets.clusterlabs.org %q can't restart paused replicatedstatefulset (run rollout resume first)", o.Name)
		}
		to := o.DeepCopy()
		to.Spec.Pod.Annotations = with(to.Spec.Pod.Annotations, at)
		return one(o, to, "restarted"), nil
	case *estsv1alpha1.ExtendedStatefulSet:
		return restartExtended(o, at)
	case *ssnv1.StatefulSingleton:
		return restartWorkloads(s, at)
	}
	return nil, fmt.Errorf("%s cannot be restarted", s.Kind.Kind)
}

func one(from, to client.Object, what string) []Change {
	return []Change{{From: from, To: to, What: what}}
}

func with(annotations map[string]string, at string) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationRestartedAt] = at
	return annotations
}

func restartCluster(set *stcv1alpha1.StatefulCluster, at string) ([]Change, error) {
	strategy := set.Spec.UpdateStrategy
	if strategy.Type == stcv1alpha1.OnDeleteStrategy {
		return nil, fmt.Errorf("updateStrategy is OnDelete, so a change of the template restarts no member; delete the pod of a member to replace it: the new one has a new name and empty claims")
	}
	if strategy.InPlace != stcv1alpha1.InPlaceNever && !surges(set) {
		return nil, fmt.Errorf("updateStrategy.inPlace is IfPossible, so the annotation is written to the running pods, and none is restarted; set it to Never first: kubectl -n %s patch stc %s --type=merge -p '%s'",
			set.Namespace, set.Name, `{"spec":{"updateStrategy":{"inPlace":"Never"}}}`)
	}
	to := set.DeepCopy()
	to.Spec.Template.Annotations = with(to.Spec.Template.Annotations, at)
	changes := one(set, to, "restarted")
	changes[0].Dangerous = emptied(set)
	return changes, nil
}

// emptied returns the effect on the data of an update with a surge.
func emptied(set *stcv1alpha1.StatefulCluster) string {
	if !surges(set) {
		return ""
	}
	return "updateStrategy.rollingUpdate.maxSurge is set, so every member is replaced by one with a new name and empty claims"
}

func surges(set *stcv1alpha1.StatefulCluster) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxSurge == nil {
		return false
	}
	none := []intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("0%")}
	return !slices.Contains(none, *rolling.MaxSurge)
}

func restartExtended(set *estsv1alpha1.ExtendedStatefulSet, at string) ([]Change, error) {
	resting := []estsv1alpha1.Phase{estsv1alpha1.PhaseStable, estsv1alpha1.PhaseStale, estsv1alpha1.PhaseAborted}
	if !slices.Contains(resting, set.Status.Phase) {
		return nil, fmt.Errorf("an upgrade is in progress (phase %s), and a restart would supersede it; wait for it: kubectl stateful rollout status ests/%s", set.Status.Phase, set.Name)
	}
	to := set.DeepCopy()
	to.Spec.Template.Annotations = with(to.Spec.Template.Annotations, at)
	return one(set, to, "restarted, as an upgrade to a new version"), nil
}

// restartWorkloads restarts the owners of the pods, because the operator does not own them.
func restartWorkloads(s *snapshot.Snapshot, at string) ([]Change, error) {
	var changes []Change
	for _, w := range s.Workloads {
		from := w.Object
		if from == nil {
			return nil, fmt.Errorf("%s owns pods of statefulsingleton %q and cannot be restarted; delete the pod that should be recreated", w, s.Object.GetName())
		}
		to := from.DeepCopyObject().(client.Object)
		switch o := to.(type) {
		case *appsv1.Deployment:
			if o.Spec.Paused {
				return nil, fmt.Errorf("deployments.apps %q can't restart paused deployment (run rollout resume first)", o.Name)
			}
			o.Spec.Template.Annotations = with(o.Spec.Template.Annotations, at)
		case *appsv1.StatefulSet:
			o.Spec.Template.Annotations = with(o.Spec.Template.Annotations, at)
		case *appsv1.DaemonSet:
			o.Spec.Template.Annotations = with(o.Spec.Template.Annotations, at)
		}
		changes = append(changes, Change{From: from, To: to, What: "restarted"})
	}
	if len(changes) == 0 {
		return nil, fmt.Errorf("no pod of statefulsingleton %q has an owner that can be restarted", s.Object.GetName())
	}
	return changes, nil
}

// Pause starts or ends the pause of a kind that supports it.
func Pause(s *snapshot.Snapshot, paused bool) ([]Change, error) {
	verb, word := "pause", "paused"
	if !paused {
		verb, word = "resume", "resumed"
	}
	switch o := s.Object.(type) {
	case *rssv1alpha1.ReplicatedStatefulSet:
		if o.Spec.Paused == paused {
			return nil, fmt.Errorf("replicatedstatefulsets.clusterlabs.org %q is %s", o.Name, map[bool]string{true: "already paused", false: "not paused"}[paused])
		}
		to := o.DeepCopy()
		to.Spec.Paused = paused
		return one(o, to, word), nil
	case *stcv1alpha1.StatefulCluster:
		return nil, fmt.Errorf("StatefulCluster has no pause. To hold an update, keep members at the previous revision: kubectl -n %s patch stc %s --type=merge -p '%s'",
			o.Namespace, o.Name, `{"spec":{"updateStrategy":{"rollingUpdate":{"partition":<members to keep>}}}}`)
	case *estsv1alpha1.ExtendedStatefulSet:
		return nil, fmt.Errorf("ExtendedStatefulSet has no pause. To end an upgrade, apply the template of version %d, which serves", o.Status.CurrentVersion)
	}
	return nil, fmt.Errorf("the rollout belongs to the owner of the pods: %s", commands(s, "rollout "+verb))
}

// commands returns kubectl commands for the owners of the pods.
func commands(s *snapshot.Snapshot, command string) string {
	var all []string
	for _, w := range s.Workloads {
		all = append(all, fmt.Sprintf("kubectl -n %s %s %s", s.Object.GetNamespace(), command, w))
	}
	if len(all) == 0 {
		return fmt.Sprintf("kubectl -n %s %s deployment/<name>", s.Object.GetNamespace(), command)
	}
	return strings.Join(all, "; ")
}

// content is the content of a StatefulCluster's revision.
type content struct {
	Template    corev1.PodTemplateSpec `json:"template"`
	ServiceName string                 `json:"serviceName,omitempty"`
}

// Undo returns to the previous revision, or to the one with the given number. Sizes of claims are
// kept: volumes cannot shrink.
func Undo(s *snapshot.Snapshot, revision int64) ([]Change, error) {
	namespace, name := s.Object.GetNamespace(), s.Object.GetName()
	switch o := s.Object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return undoCluster(s, o, revision)
	case *rssv1alpha1.ReplicatedStatefulSet:
		return nil, fmt.Errorf("ReplicatedStatefulSet keeps no revisions. Apply the previous manifest, or edit it: kubectl -n %s edit rss %s. Members that already have the new template are recreated one at a time", namespace, name)
	case *estsv1alpha1.ExtendedStatefulSet:
		return nil, fmt.Errorf("ExtendedStatefulSet keeps no template of a version that could be restored. Apply the manifest of version %d, which serves: that ends an upgrade in progress, and clears a stale version. A version that is not healthy in time is rolled back automatically", o.Status.CurrentVersion)
	}
	return nil, fmt.Errorf("the rollout belongs to the owner of the pods: %s", commands(s, "rollout undo"))
}

func undoCluster(s *snapshot.Snapshot, set *stcv1alpha1.StatefulCluster, number int64) ([]Change, error) {
	if set.Status.ObservedGeneration < set.Generation {
		return nil, fmt.Errorf("the operator has not reconciled the current template yet, so the previous revision is unknown; retry in a moment")
	}
	target, err := revisionToGoTo(s, set, number)
	if err != nil {
		return nil, err
	}
	var back content
	if err := json.Unmarshal(target.Data.Raw, &back); err != nil {
		return nil, fmt.Errorf("revision %d cannot be read: %w", target.Revision, err)
	}
	to := set.DeepCopy()
	to.Spec.Template, to.Spec.ServiceName = back.Template, back.ServiceName
	if apiequality.Semantic.DeepEqual(set.Spec, to.Spec) {
		return nil, fmt.Errorf("skipped rollback (current template already matches revision %d)", target.Revision)
	}
	changes := one(set, to, fmt.Sprintf("rolled back to revision %d", target.Revision))
	changes[0].Dangerous = emptied(set)
	return changes, nil
}

func revisionToGoTo(s *snapshot.Snapshot, set *stcv1alpha1.StatefulCluster, number int64) (*appsv1.ControllerRevision, error) {
	for i := len(s.Revisions) - 1; i >= 0; i-- {
		revision := &s.Revisions[i]
		if number > 0 && revision.Revision == number {
			return revision, nil
		}
		if number == 0 && revision.Name != set.Status.UpdateRevision {
			return revision, nil
		}
	}
	if number > 0 {
		return nil, fmt.Errorf("unable to find specified revision %d in history", number)
	}
	return nil, fmt.Errorf("no rollout history found for statefulcluster %q", set.Name)
}
