package statefulsingleton

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func template(image string) corev1.PodTemplateSpec {
	p := fixture.Pod(fixture.Container("app").WithCommand("serve").WithImage(image))
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
}

// deployment creates a Deployment. Its standbys need not be Ready.
func (s *stage) deployment(replicas int32, strategy appsv1.DeploymentStrategyType, tolerates ...corev1.Toleration) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Template: template("one"), Strategy: appsv1.DeploymentStrategy{Type: strategy}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}
	d.Spec.Template.Spec.Tolerations = tolerates
	allowStandbys(d)
	s.Put(d)
}

// standbys is how many pods of a Deployment need not be Ready. At least one pod always has
// to be.
const standbys = 2

// allowStandbys sets maxUnavailable of a Deployment.
func allowStandbys(d *appsv1.Deployment) {
	if d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		most := max(min(standbys, *d.Spec.Replicas-1), 0)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(most))}
	}
}

// statefulSet creates a StatefulSet whose updateRevision is that of its image.
func (s *stage) statefulSet(replicas int32, strategy appsv1.StatefulSetUpdateStrategyType) {
	s.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Template: template("one"), PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy}},
		Status: appsv1.StatefulSetStatus{UpdateRevision: "web-one", Replicas: replicas}})
}

// blindFor is less than SettleAfter minus the resolution of a creationTimestamp.
const blindFor = 500 * time.Millisecond

// blind reports whether webhook and guard do not know the object yet.
func (s *stage) blind() bool {
	return s.chance != nil && s.Now.Sub(s.madeAt) < blindFor && s.chance.Intn(2) == 0
}
