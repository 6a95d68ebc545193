package extendedstatefulset

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// machines returns the possible next steps of the Kubernetes controllers, the operator's pod webhook,
// the scheduler and the kubelets.
func (s *stage) machines() (moves []func()) {
	for _, set := range s.children() {
		moves = append(moves, s.statefulSetMoves(set)...)
	}
	moves = append(moves, s.garbage()...)
	moves = append(moves, s.jobMoves()...)
	return append(moves, kubelet.Moves(s.Cluster)...)
}

// revisionOf returns the revision of a StatefulSet's template.
func revisionOf(set *appsv1.StatefulSet) string {
	raw, _ := json.Marshal(set.Spec.Template) // a template can always be marshaled
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:10]
}

// statefulSetMoves returns the next steps of the StatefulSet controller with Parallel pod management.
func (s *stage) statefulSetMoves(set *appsv1.StatefulSet) (moves []func()) {
	sp := (&facts.Child{Set: set}).Span()
	now := func() bool { // reports whether the StatefulSet is unchanged
		var is appsv1.StatefulSet
		return s.Get(context.Background(), client.ObjectKeyFromObject(set), &is) == nil && is.ResourceVersion == set.ResourceVersion
	}
	if set.Status.ObservedGeneration != set.Generation {
		moves = append(moves, func() {
			if now() {
				next := set.DeepCopy()
				next.Status.ObservedGeneration = set.Generation
				s.Put(next)
			}
		})
	}
	there, whole := map[int32]*corev1.Pod{}, true
	for _, pod := range s.pods() {
		cut := strings.LastIndex(pod.Name, "-")
		if pod.Name[:cut] != set.Name {
			continue
		}
		n, _ := strconv.ParseInt(pod.Name[cut+1:], 10, 32)
		ordinal := int32(n)
		there[ordinal] = pod
		if !sp.Has(ordinal) && metav1.IsControlledBy(pod, set) && !podstate.Terminating(pod) {
			moves = append(moves, func() {
				if now() {
					s.Say("    %s is deleted by its StatefulSet", pod.Name)
					s.Delete(pod)
				}
			})
		}
	}
	for o := sp.Start; o < sp.End(); o++ {
		if pod := there[o]; pod == nil {
			moves = append(moves, func() {
				if now() {
					s.createPod(set, o)
				}
			})
		}
	}
	for o := sp.End() - 1; o >= sp.Start && whole; o-- {
		switch pod := there[o]; {
		case pod == nil || podstate.Terminating(pod):
			whole = false
		case pod.Annotations["revision"] != revisionOf(set):
			whole = false
			moves = append(moves, func() {
				if now() {
					s.Say("    %s is deleted by its StatefulSet, for its new template", pod.Name)
					s.Delete(pod)
				}
			})
		case !podstate.Ready(pod):
			whole = false
		}
	}
	return moves
}

// createPod creates a pod like the StatefulSet controller, with the changes of the operator's webhook.
func (s *stage) createPod(set *appsv1.StatefulSet, ordinal int32) {
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-%d", set.Name, ordinal), set.Namespace
	if s.Get(context.Background(), client.ObjectKeyFromObject(pod), &corev1.Pod{}) == nil {
		return
	}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	pod.Annotations = children.Merged(pod.Annotations, map[string]string{"revision": revisionOf(set)})
	pod.Labels = children.Merged(pod.Labels, map[string]string{appsv1.PodIndexLabel: strconv.Itoa(int(ordinal))})
	asked, why := fixture.Injected(s.t, pod)
	if why != "" {
		s.Fatal(s.t, pod.Name+" has no claims: "+why)
	}
	if why, err := webhooks.Denial(context.Background(), s.Cluster, set.Namespace, asked); err != nil || why != "" {
		s.Say("    %s is refused: %s", pod.Name, why)
		return
	}
	pod.Status.Phase = corev1.PodPending
	s.Say("    %s is created", pod.Name)
	s.Put(pod)
}

// garbage deletes objects whose owner was deleted.
func (s *stage) garbage() (moves []func()) {
	living := map[string]bool{}
	for _, obj := range s.All {
		living[string(obj.GetUID())] = true
	}
	for _, key := range sortedKeys(s.All) {
		obj := s.All[key]
		if owner := metav1.GetControllerOf(obj); owner != nil && !living[string(owner.UID)] && obj.GetDeletionTimestamp() == nil {
			moves = append(moves, func() {
				if s.All[key] != nil {
					s.Say("    %s is garbage", obj.GetName())
					s.Delete(obj)
				}
			})
		}
	}
	return moves
}

func (s *stage) jobMoves() (moves []func()) {
	var list batchv1.JobList
	_ = s.List(context.Background(), &list) // the fake never fails
	for i := range list.Items {
		job := &list.Items[i]
		if ptr.Deref(job.Spec.Suspend, false) || len(job.Status.Conditions) > 0 {
			continue
		}
		ends := map[string]batchv1.JobConditionType{"hangs": "", kubelet.BadImage: batchv1.JobFailed}
		end, special := ends[job.Spec.Template.Spec.Containers[0].Image]
		if !special {
			end = batchv1.JobComplete
		}
		if end == "" {
			continue
		}
		moves = append(moves, func() {
			now, ok := s.All[objects.KeyOf(job)].(*batchv1.Job)
			if !ok || ptr.Deref(now.Spec.Suspend, false) {
				return
			}
			s.Say("    Job %s is %s", job.Name, end)
			next := now.DeepCopy()
			next.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue}}
			s.Put(next)
		})
	}
	return moves
}

func sortedKeys(all map[objects.Key]client.Object) []objects.Key {
	keys := make([]objects.Key, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b objects.Key) int { return strings.Compare(a.Kind+a.Name, b.Kind+b.Name) })
	return keys
}
