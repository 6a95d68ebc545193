package simulate

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// images returns the images of the pods.
func images(s *Simulation) (found []string) {
	for _, p := range s.Pods() {
		found = append(found, p.Name+" "+p.Spec.Containers[0].Image)
	}
	return found
}

// TestUpdatesOfStatefulSets checks which pods an update replaces.
func TestUpdatesOfStatefulSets(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*appsv1.StatefulSet)
		want   []string
	}{
		{"all", func(*appsv1.StatefulSet) {}, []string{"shop-0 two", "shop-1 two", "shop-2 two"}},
		{"those from the partition on", func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(int32(1))}
		}, []string{"shop-0 one", "shop-1 two", "shop-2 two"}},
		{"none", func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, []string{"shop-0 one", "shop-1 one", "shop-2 one"}},
		{"all, with other ordinals", func(set *appsv1.StatefulSet) {
			set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 5}
			set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
		}, []string{"shop-5 two", "shop-6 two", "shop-7 two"}},
	} {
		t.Run(r.name, func(t *testing.T) {
			set := newStatefulSet()
			set.Spec.Replicas = ptr.To(int32(3))
			r.change(set)
			c := newCluster(set)
			s := New(c, shop)
			rest(s)
			setImage(c, "two")
			if rest(s); !slices.Equal(images(s), r.want) {
				t.Errorf("pods %q, want %q:\n%s", images(s), r.want, tail(c))
			}
			if got := Every[appsv1.StatefulSet](c)[0].Status; got.UpdateRevision == "shop-abc" || got.Replicas != 3 {
				t.Errorf("the status is %v", got)
			}
			setImage(c, "one")
			if rest(s); Every[appsv1.StatefulSet](c)[0].Status.UpdateRevision != "shop-abc" {
				t.Error("the revision of the earlier template is not used again")
			}
		})
	}
}

// TestAnUpdateWaitsForReadyPods checks that an update stops at a pod that does not become Ready.
func TestAnUpdateWaitsForReadyPods(t *testing.T) {
	set := newStatefulSet()
	set.Spec.Replicas = ptr.To(int32(2))
	c := newCluster(set)
	s := New(c, shop)
	rest(s)
	setImage(c, "bad")
	if rest(s); !slices.Equal(images(s), []string{"shop-0 one", "shop-1 bad"}) {
		t.Errorf("pods %q:\n%s", images(s), tail(c))
	}
}

// TestPodsOfStatefulSets checks the identity of a pod, and that scaling removes the last pods.
func TestPodsOfStatefulSets(t *testing.T) {
	set := newStatefulSet()
	set.Spec.Replicas = ptr.To(int32(2))
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	c := newCluster(set)
	s := New(c, shop)
	rest(s)
	p := s.pod("shop-1")
	if got := claimsOf(p); !slices.Equal(got, []string{"data-shop-1"}) || p.Labels[appsv1.PodIndexLabel] != "1" || p.Labels[appsv1.ControllerRevisionHashLabelKey] != "shop-abc" || p.Spec.Hostname != "shop-1" {
		t.Errorf("claims %q, labels %v, hostname %s", got, p.Labels, p.Spec.Hostname)
	}
	Edit(c, Every[appsv1.StatefulSet](c)[0], func(set *appsv1.StatefulSet) { set.Spec.Replicas = ptr.To(int32(1)) })
	if rest(s); !slices.Equal(images(s), []string{"shop-0 one"}) {
		t.Errorf("pods %q:\n%s", images(s), tail(c))
	}
	s.DeleteNow(s.pod("shop-0"))
	if rest(s); !slices.Equal(images(s), []string{"shop-0 one"}) {
		t.Error("a deleted pod is not created again")
	}
}
