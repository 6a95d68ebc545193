package statefulcluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/revision"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// podFixture is a member that is an hour old, on no node, with its claims.
type podFixture struct {
	ID       string
	revision string
	node     facts.Node
	bare     bool
	claims   []func(*corev1.PersistentVolumeClaim)
	pod      corev1.Pod
}

func pod(id string) *podFixture {
	return &podFixture{ID: id, revision: "now", pod: corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: ago(time.Hour), Annotations: map[string]string{}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}}
}

func (p *podFixture) into(w *facts.World) {
	built := children.BuildPod(w.Settings, revision.ByName(w.Revisions, p.revision), p.ID)
	built.UID, built.CreationTimestamp, built.DeletionTimestamp = types.UID("uid-of-"+p.ID), p.pod.CreationTimestamp, p.pod.DeletionTimestamp
	built.DeletionGracePeriodSeconds = p.pod.DeletionGracePeriodSeconds
	built.Spec.NodeName, built.Status = p.pod.Spec.NodeName, *p.pod.Status.DeepCopy()
	built.Spec.RestartPolicy = p.pod.Spec.RestartPolicy
	built.Generation = p.pod.Generation
	built.Labels[spec.LabelRevision] = p.revision
	for k, v := range p.pod.Annotations {
		built.Annotations[k] = v
	}
	for k, v := range p.pod.Labels {
		built.Labels[k] = v
	}
	copy(built.Spec.Containers, p.pod.Spec.Containers)
	m := &facts.Member{ID: p.ID, Pod: built, Node: p.node}
	if !p.bare {
		m.Claims = claimsOf(w, p.ID)
		for _, c := range m.Claims {
			for _, f := range p.claims {
				f(c)
			}
		}
	}
	w.Members = append(w.Members, m)
}

func (p *podFixture) condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, since metav1.Time) *podFixture {
	for i, c := range p.pod.Status.Conditions {
		if c.Type == kind {
			p.pod.Status.Conditions = append(p.pod.Status.Conditions[:i], p.pod.Status.Conditions[i+1:]...)
			break
		}
	}
	p.pod.Status.Conditions = append(p.pod.Status.Conditions,
		corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: since})
	return p
}

// on sets the node of the pod, scheduled when the pod was created.
func (p *podFixture) on(node string) *podFixture {
	p.pod.Spec.NodeName = node
	return p.condition(corev1.PodScheduled, corev1.ConditionTrue, "", p.pod.CreationTimestamp)
}

// neverBound removes the conditions, as of a pod whose template names the node, so that no
// scheduler handled it.
func (p *podFixture) neverBound() *podFixture {
	p.pod.Status.Conditions = nil
	return p
}

// restarted sets the number of container restarts. Call it after ready or unready.
func (p *podFixture) restarted(n int32) *podFixture {
	p.pod.Status.ContainerStatuses[0].RestartCount = n
	return p
}

// withoutContainers removes the container statuses, as the cache does while the pod is Ready.
func (p *podFixture) withoutContainers() *podFixture {
	p.pod.Status.ContainerStatuses = nil
	return p
}

func (p *podFixture) started(restarts int32) *podFixture {
	p.pod.Status.Phase = corev1.PodRunning
	start := p.pod.CreationTimestamp
	p.pod.Status.StartTime = &start
	p.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "id-" + p.ID, ImageID: "id-of-one", RestartCount: restarts,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: start}}}}
	return p
}

// ready makes the pod Ready since shortly after it started.
func (p *podFixture) ready() *podFixture { return p.readyFor(30 * time.Minute) }

func (p *podFixture) readyFor(d time.Duration) *podFixture {
	return p.started(0).condition(corev1.PodReady, corev1.ConditionTrue, "", ago(d))
}

// starting makes the pod run and never be Ready.
func (p *podFixture) starting() *podFixture {
	return p.started(0).condition(corev1.PodReady, corev1.ConditionFalse, "", p.pod.CreationTimestamp)
}

// waiting makes the containers wait, for these reasons.
func (p *podFixture) waiting(reasons ...string) *podFixture {
	if len(reasons) > 0 {
		p.pod.Status.ContainerStatuses = waiting(reasons...)
	}
	return p
}

func waiting(reasons ...string) (statuses []corev1.ContainerStatus) {
	for _, r := range reasons {
		statuses = append(statuses, corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: r}}})
	}
	return statuses
}

// unreadyFor makes the pod not Ready for that long, after it was Ready.
func (p *podFixture) unreadyFor(d time.Duration) *podFixture {
	return p.started(0).condition(corev1.PodReady, corev1.ConditionFalse, "", ago(d))
}

func (p *podFixture) unschedulableFor(d time.Duration) *podFixture {
	return p.condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable, ago(d))
}

// aged sets the creation time of the pod. Call it before on.
func (p *podFixture) aged(d time.Duration) *podFixture {
	p.pod.CreationTimestamp = ago(d)
	return p
}

func (p *podFixture) failed() *podFixture { p.pod.Status.Phase = corev1.PodFailed; return p }

func (p *podFixture) nodeNotReadyFor(d time.Duration) *podFixture {
	p.node.NotReadySince = noon.Add(-d)
	return p
}

func (p *podFixture) nodeGone() *podFixture         { p.node.Gone = true; return p }
func (p *podFixture) nodeOutOfService() *podFixture { p.node.OutOfService = true; return p }

// nodeCordoned cordons the node.
func (p *podFixture) nodeCordoned() *podFixture { p.node.Cordoned = true; return p }

// going makes the pod terminate.
func (p *podFixture) going() *podFixture { return p.goingFor(10 * time.Second) }

func (p *podFixture) goingFor(d time.Duration) *podFixture {
	at, grace := ago(d-30*time.Second), int64(30)
	p.pod.DeletionTimestamp, p.pod.DeletionGracePeriodSeconds = &at, &grace
	return p
}

// disrupted makes the pod terminate because of a disruption with that reason.
func (p *podFixture) disrupted(reason string) *podFixture {
	return p.going().condition(corev1.DisruptionTarget, corev1.ConditionTrue, reason, ago(10*time.Second))
}

// endedByNode makes the pod failed, ended by its kubelet for that reason.
func (p *podFixture) endedByNode(reason string) *podFixture {
	p.pod.Status.Reason = reason
	return p.failed()
}

// restartPolicy sets the restart policy of the pod.
func (p *podFixture) restartPolicy(policy corev1.RestartPolicy) *podFixture {
	p.pod.Spec.RestartPolicy = policy
	return p
}

// nodeMissingFor removes the Node, first seen missing that long ago.
func (p *podFixture) nodeMissingFor(d time.Duration) *podFixture {
	p.node.GoneSince = noon.Add(-d)
	return p.nodeGone()
}

func (p *podFixture) evicted() *podFixture {
	return p.going().condition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", ago(10*time.Second))
}

// takenByTaint makes the control plane evict the pod from its node, which is not Ready.
func (p *podFixture) takenByTaint() *podFixture {
	return p.going().nodeNotReadyFor(time.Minute).condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByTaintManager", ago(10*time.Second))
}

func (p *podFixture) of(revision string) *podFixture { p.revision = revision; return p }

func (p *podFixture) annotated(key, value string) *podFixture {
	p.pod.Annotations[key] = value
	return p
}

func (p *podFixture) labelled(key, value string) *podFixture {
	if p.pod.Labels == nil {
		p.pod.Labels = map[string]string{}
	}
	p.pod.Labels[key] = value
	return p
}

func (p *podFixture) deleteFirst() *podFixture {
	return p.annotated(v1alpha1.AnnotationDeleteFirst, "true")
}

// inPlaceOf makes the member fill the slot of a lost one, as the nth successive replacement.
func (p *podFixture) inPlaceOf(id string, nth int) *podFixture {
	return p.annotated(v1alpha1.AnnotationReplaces, "db-"+id).annotated(v1alpha1.AnnotationReplacements, strconv.Itoa(nth))
}

func (p *podFixture) recreated() *podFixture {
	return p.annotated(v1alpha1.AnnotationUpdated, string(v1alpha1.UpdatingUpdate))
}

// patching puts the pod into an in-place update with that annotation.
func (p *podFixture) patching(note string) *podFixture {
	return p.annotated(v1alpha1.AnnotationInPlace, note)
}

func (p *podFixture) withoutClaims() *podFixture { p.bare = true; return p }

func (p *podFixture) claimsAre(change func(*corev1.PersistentVolumeClaim)) *podFixture {
	p.claims = append(p.claims, change)
	return p
}

// claimsRetained labels the claims, as a pass that was interrupted before it deleted the pod.
func (p *podFixture) claimsRetained() *podFixture {
	return p.claimsAre(func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelRetained] = scaled })
}
