package statefulcluster_test

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// newSet builds a StatefulCluster with one claim and applies change to it.
func newSet(namespace string, replicas int32, change ...func(*v1alpha1.StatefulCluster)) *v1alpha1.StatefulCluster {
	set := &v1alpha1.StatefulCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace},
		Spec: v1alpha1.StatefulClusterSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "db"}, Annotations: map[string]string{}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "one"}}, TerminationGracePeriodSeconds: ptr.To(int64(5))},
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claimTemplate("data", "1Gi")},
		},
	}
	for _, c := range change {
		c(set)
	}
	return set
}

func claimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

// edit changes the live object and retries on conflict.
func edit[T client.Object](ctx context.Context, obj T, change func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return user.Update(ctx, obj)
	}).Should(Succeed())
}

func scaleTo(ctx context.Context, set *v1alpha1.StatefulCluster, n int32) {
	GinkgoHelper()
	edit(ctx, set, func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = &n })
}

// pods returns the pods of a set that are not being deleted, by name.
func pods(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(user.List(ctx, &list, client.InNamespace(set.Namespace))).To(Succeed())
	found := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if metav1.IsControlledBy(&p, set) && p.DeletionTimestamp == nil {
			found[p.Name] = p
		}
	}
	return found
}

// claims returns the claims of the namespace that are not being deleted.
func claims(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]corev1.PersistentVolumeClaim {
	GinkgoHelper()
	var list corev1.PersistentVolumeClaimList
	Expect(user.List(ctx, &list, client.InNamespace(set.Namespace))).To(Succeed())
	found := map[string]corev1.PersistentVolumeClaim{}
	for _, c := range list.Items {
		if c.DeletionTimestamp == nil { // nothing removes the protection finalizer here
			found[c.Name] = c
		}
	}
	return found
}

// settled waits until n members are available, no operation is in progress and the status has
// observed the current spec. It returns the pods.
func settled(ctx context.Context, set *v1alpha1.StatefulCluster, n int32) map[string]corev1.Pod {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		s := set.Status
		if s.ObservedGeneration != set.Generation || s.AvailableReplicas != n || s.Replicas != n ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing) || s.LostReplicas != 0 {
			return fmt.Errorf("not settled at %d: %+v", n, s)
		}
		if live := pods(ctx, set); len(live) != int(n) {
			return fmt.Errorf("%d pods, want %d", len(live), n)
		}
		return nil
	}).Should(Succeed())
	return pods(ctx, set)
}

func names[T any](m map[string]T) []string {
	var out []string
	for name := range m {
		out = append(out, name)
	}
	return out
}

func uids(pods map[string]corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	return all
}

// anyOf returns one of the pods.
func anyOf(m map[string]corev1.Pod) *corev1.Pod {
	for _, p := range m {
		return &p
	}
	return nil
}

// whole checks that each pod has exactly its own claims, and that no claim without a pod could be
// attached again.
func whole(ctx context.Context, set *v1alpha1.StatefulCluster) {
	GinkgoHelper()
	Eventually(func() error {
		live, all := pods(ctx, set), claims(ctx, set)
		used := map[string]bool{}
		for name, p := range live {
			id := strings.TrimPrefix(name, set.Name+"-")
			for _, t := range set.Spec.VolumeClaimTemplates {
				want := set.Name + "-" + t.Name + "-" + id
				if all[want].Labels[v1alpha1.LabelMember] != id || all[want].Labels[v1alpha1.LabelRetained] != "" {
					return fmt.Errorf("pod %s: claim %s is missing or set aside", name, want)
				}
				if !mounts(&p, t.Name, want) {
					return fmt.Errorf("pod %s does not mount %s", name, want)
				}
				used[want] = true
			}
		}
		for name, c := range all {
			if !used[name] && c.Labels[v1alpha1.LabelRetained] == "" && c.DeletionTimestamp == nil {
				return fmt.Errorf("claim %s has no pod and no reason", name)
			}
		}
		return nil
	}).Should(Succeed())
}

func mounts(p *corev1.Pod, volume, claim string) bool {
	for _, v := range p.Spec.Volumes {
		if v.Name == volume && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim {
			return true
		}
	}
	return false
}

// degraded waits for the Degraded condition with that reason and returns its message.
func degraded(ctx context.Context, set *v1alpha1.StatefulCluster, reason string) string {
	GinkgoHelper()
	var message string
	Eventually(func() string {
		Expect(user.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		c := meta.FindStatusCondition(set.Status.Conditions, v1alpha1.ConditionDegraded)
		if c == nil {
			return ""
		}
		message = c.Message
		return c.Reason
	}).Should(Equal(reason))
	return message
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// notes returns the messages of the set's events with that reason.
func notes(ctx context.Context, set *v1alpha1.StatefulCluster, reason string) []string {
	GinkgoHelper()
	var list corev1.EventList
	Expect(user.List(ctx, &list, client.InNamespace(set.Namespace))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.UID == set.UID {
			out = append(out, e.Message)
		}
	}
	return out
}

// unschedule sets the status of a pod that the scheduler found no node for.
func unschedule(ctx context.Context, p *corev1.Pod) {
	GinkgoHelper()
	Eventually(func() error {
		if err := user.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.Now()}}
		return user.Status().Update(ctx, p)
	}).Should(Succeed())
}

// clean returns an error's text without the prefix that names the webhook.
func clean(err error) string { return apiserver.Said(err) }

// revisions returns the names of the set's ControllerRevisions.
func revisions(ctx context.Context, set *v1alpha1.StatefulCluster) []string {
	GinkgoHelper()
	var list appsv1.ControllerRevisionList
	Expect(user.List(ctx, &list, client.InNamespace(set.Namespace))).To(Succeed())
	var out []string
	for _, r := range list.Items {
		out = append(out, r.Name)
	}
	return out
}

// versions returns the resourceVersions of the set and of everything that the operator writes for
// it, by kind and name.
func versions(ctx context.Context, set *v1alpha1.StatefulCluster) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for kind, list := range map[string]client.ObjectList{
		"StatefulCluster": &v1alpha1.StatefulClusterList{}, "Pod": &corev1.PodList{}, "PersistentVolumeClaim": &corev1.PersistentVolumeClaimList{},
		"ControllerRevision": &appsv1.ControllerRevisionList{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{},
	} {
		Expect(user.List(ctx, list, client.InNamespace(set.Namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(o runtime.Object) error {
			item := o.(client.Object)
			found[kind+" "+item.GetName()] = item.GetResourceVersion()
			return nil
		})).To(Succeed())
	}
	return found
}

// bindClaims makes the claims expandable: bound, with a storage class that allows expansion.
func bindClaims(ctx context.Context, set *v1alpha1.StatefulCluster) {
	GinkgoHelper()
	class := &storagev1.StorageClass{ObjectMeta: named("grows"), Provisioner: "fake", AllowVolumeExpansion: new(true)}
	Expect(client.IgnoreAlreadyExists(user.Create(ctx, class))).To(Succeed())
	for _, c := range claims(ctx, set) {
		edit(ctx, &c, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Spec.StorageClassName = "v-"+c.Name, &class.Name
		})
		c.Status.Phase = corev1.ClaimBound
		Expect(user.Status().Update(ctx, &c)).To(Succeed())
	}
}
