package statefulsingleton

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Simplified controllers of Deployments, ReplicaSets and StatefulSets: they create, delete
// and wait for pods in the same order as the real ones.

func ownedBy(kind string, owner metav1.Object) []metav1.OwnerReference {
	return []metav1.OwnerReference{{Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}}
}

func template(image string) corev1.PodTemplateSpec {
	p := fixture.Pod(fixture.Container("app").WithCommand("serve").WithImage(image))
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels}, Spec: p.Spec}
}

// deployment creates a Deployment. Its standbys need not be Ready.
func (s *stage) deployment(replicas int32, strategy appsv1.DeploymentStrategyType, tolerates ...corev1.Toleration) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Template: template("one"), Strategy: appsv1.DeploymentStrategy{Type: strategy}}}
	d.Spec.Template.Spec.Tolerations = tolerates
	if strategy == appsv1.RollingUpdateDeploymentStrategyType {
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(standbys))}
	}
	s.Put(d)
}

// standbys is how many pods of a Deployment need not be Ready. At least one pod always has
// to be.
const standbys = 2

func (s *stage) ownerMoves() (moves []move) {
	for _, d := range every[appsv1.Deployment](s) {
		if do := s.rollOut(d); do != nil {
			moves = append(moves, move{"roll" + d.Name, do})
		}
	}
	for _, set := range every[appsv1.ReplicaSet](s) {
		if do := s.replicate(set); do != nil {
			moves = append(moves, move{"replicate" + set.Name, do})
		}
	}
	for _, set := range every[appsv1.StatefulSet](s) {
		for ordinal := range 4 {
			if do := s.order(set, ordinal); do != nil {
				moves = append(moves, move{"order" + set.Name + strconv.Itoa(ordinal), do})
			}
		}
	}
	return moves
}

// rollOut returns the next step of the deployment controller.
func (s *stage) rollOut(d *appsv1.Deployment) func() {
	sets, newest := every[appsv1.ReplicaSet](s), int64(0)
	var current *appsv1.ReplicaSet
	var old []*appsv1.ReplicaSet
	for _, set := range sets {
		if set.Spec.Template.Spec.Containers[0].Image == d.Spec.Template.Spec.Containers[0].Image {
			current = set
			continue
		}
		old, newest = append(old, set), max(newest, observe.RevisionOf(set))
	}
	switch {
	case current == nil:
		return func() {
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", d.Name, len(sets)+1), Namespace: "ns", OwnerReferences: ownedBy("Deployment", d),
				Annotations: map[string]string{observe.RevisionAnnotation: strconv.FormatInt(newest+1, 10)}},
				Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(s.wantNew(d, nil, old)), Template: *d.Spec.Template.DeepCopy()}}
			s.Put(set)
		}
	case observe.RevisionOf(current) < newest:
		return s.number(current, newest+1)
	case observe.RevisionOf(d) != observe.RevisionOf(current):
		return s.number(d, observe.RevisionOf(current))
	case s.wantNew(d, current, old) != *current.Spec.Replicas:
		return s.scale(current, s.wantNew(d, current, old))
	}
	if len(old) == 0 {
		return nil
	}
	return s.scaleDown(d, current, old)
}

func (s *stage) number(obj facts.Object, revision int64) func() {
	return func() {
		next := obj.DeepCopyObject().(client.Object)
		next.SetAnnotations(map[string]string{observe.RevisionAnnotation: strconv.FormatInt(revision, 10)})
		s.Put(next)
	}
}

func (s *stage) scale(set *appsv1.ReplicaSet, replicas int32) func() {
	return func() {
		s.Say("    %s is scaled to %d", set.Name, replicas)
		edit(s, set, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = &replicas })
	}
}

// wantNew returns how many pods the newest ReplicaSet may have now.
func (s *stage) wantNew(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) int32 {
	var have, total int32
	if current != nil {
		have = *current.Spec.Replicas
	}
	total = have
	for _, set := range old {
		total += *set.Spec.Replicas
		if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType && slices.ContainsFunc(s.of(set), func(p *corev1.Pod) bool { return !podstate.Ended(p) }) {
			return have
		}
	}
	if have > *d.Spec.Replicas || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return *d.Spec.Replicas
	}
	surge := max((*d.Spec.Replicas+3)/4, 1)
	return min(*d.Spec.Replicas, have+max(*d.Spec.Replicas+surge-total, 0))
}

// scaleDown deletes old pods: first those that are not Ready, then others as long as enough
// are Ready.
func (s *stage) scaleDown(d *appsv1.Deployment, current *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) func() {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		for _, set := range old {
			if *set.Spec.Replicas > 0 {
				return s.scale(set, 0)
			}
		}
		return nil
	}
	total, available := *current.Spec.Replicas, s.ready(current)
	for _, set := range old {
		total, available = total+*set.Spec.Replicas, available+s.ready(set)
	}
	least := *d.Spec.Replicas - maxUnavailable(d)
	room := total - least - (*current.Spec.Replicas - s.ready(current))
	for _, set := range old {
		if unhealthy := *set.Spec.Replicas - s.ready(set); room > 0 && unhealthy > 0 {
			return s.scale(set, *set.Spec.Replicas-min(room, unhealthy))
		}
	}
	for _, set := range old {
		if more := available - least; more > 0 && *set.Spec.Replicas > 0 {
			return s.scale(set, *set.Spec.Replicas-min(more, *set.Spec.Replicas))
		}
	}
	return nil
}

func maxUnavailable(d *appsv1.Deployment) int32 {
	if *d.Spec.Replicas == 1 {
		return 0
	}
	return min(d.Spec.Strategy.RollingUpdate.MaxUnavailable.IntVal, *d.Spec.Replicas-1)
}

func (s *stage) of(owner metav1.Object) (pods []*corev1.Pod) {
	for _, p := range s.pods() {
		if o := metav1.GetControllerOf(p); o != nil && o.UID == owner.GetUID() {
			pods = append(pods, p)
		}
	}
	return pods
}

func (s *stage) ready(set *appsv1.ReplicaSet) (n int32) {
	for _, p := range s.of(set) {
		if podstate.Ready(p) && !podstate.Terminating(p) {
			n++
		}
	}
	return n
}

// replicate returns the next step of the ReplicaSet controller. It adopts its pods without
// a controller. It first deletes pods that are not Ready, and the youngest of them first.
func (s *stage) replicate(set *appsv1.ReplicaSet) func() {
	for _, p := range s.pods() {
		if metav1.GetControllerOf(p) == nil && p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == set.Name && p.Labels["app"] == "db" && !podstate.Terminating(p) && !podstate.Ended(p) {
			return func() {
				s.Say("    %s adopts %s", set.Name, p.Name)
				edit(s, p, func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, ownedBy("ReplicaSet", set)...) })
			}
		}
	}
	pods := slices.DeleteFunc(s.of(set), func(p *corev1.Pod) bool { return podstate.Terminating(p) || podstate.Ended(p) })
	switch missing := int(*set.Spec.Replicas) - len(pods); {
	case missing > 0:
		return func() {
			s.letter++
			name := set.Name + "-" + letters(s.letter)
			s.born(name, set.Spec.Template, ownedBy("ReplicaSet", set), "")
			edit(s, s.pod(name), func(p *corev1.Pod) {
				metav1.SetMetaDataLabel(&p.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, set.Name)
			})
		}
	case missing < 0:
		victim := slices.MinFunc(pods, func(a, b *corev1.Pod) int {
			return cmp.Or(rank(a)-rank(b), cmp.Compare(b.Name, a.Name))
		})
		return func() {
			s.Say("    %s deletes %s", set.Name, victim.Name)
			s.Delete(victim)
		}
	}
	return nil
}

// pod returns the pod of that name.
func (s *stage) pod(name string) *corev1.Pod {
	p, _ := s.All[objects.Key{Kind: "Pod", Namespace: "ns", Name: name}].(*corev1.Pod)
	return p
}

func rank(p *corev1.Pod) int {
	switch {
	case !podstate.Scheduled(p):
		return 0
	case !podstate.Ready(p):
		return 1
	}
	return 2
}

func letters(n int) string {
	if n > 26 {
		return letters((n-1)/26) + letters((n-1)%26+1)
	}
	return string(rune('a' + n - 1))
}

// statefulSet creates a StatefulSet whose updateRevision is that of its image.
func (s *stage) statefulSet(replicas int32, strategy appsv1.StatefulSetUpdateStrategyType) {
	s.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"},
		Spec: appsv1.StatefulSetSpec{Replicas: &replicas, Template: template("one"), PodManagementPolicy: appsv1.ParallelPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: strategy}},
		Status: appsv1.StatefulSetStatus{UpdateRevision: "web-one", Replicas: replicas}})
}

// order returns the next step of the StatefulSet controller for one of its pods.
func (s *stage) order(set *appsv1.StatefulSet, ordinal int) func() {
	name, wanted := fmt.Sprintf("%s-%d", set.Name, ordinal), ordinal < int(*set.Spec.Replicas)
	image := set.Spec.Template.Spec.Containers[0].Image
	if revision := set.Name + "-" + image; set.Status.UpdateRevision != revision {
		return func() { edit(s, set, func(set *appsv1.StatefulSet) { set.Status.UpdateRevision = revision }) }
	}
	have, exists := s.All[objects.Key{Kind: "Pod", Namespace: "ns", Name: name}].(*corev1.Pod)
	switch {
	case !exists && wanted:
		return func() { s.born(name, set.Spec.Template, ownedBy("StatefulSet", set), set.Status.UpdateRevision) }
	case !exists, podstate.Terminating(have):
		return nil
	case !wanted, podstate.Ended(have),
		have.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision && set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType:
		return func() {
			s.Say("    %s deletes %s", set.Name, name)
			s.Delete(have)
		}
	}
	return nil
}

// born creates a pod, including the webhook and the guard.
func (s *stage) born(name string, of corev1.PodTemplateSpec, owner []metav1.OwnerReference, revision string) {
	p := &corev1.Pod{ObjectMeta: *of.ObjectMeta.DeepCopy(), Spec: *of.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodPending}}
	p.Name, p.Namespace, p.OwnerReferences = name, "ns", owner
	if revision != "" {
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	}
	what := "is created without a gate"
	if object := s.ruler(p); object != nil && !s.blind() {
		if errs := children.Inject(p, object, fixture.Around()); len(errs) > 0 {
			s.t.Fatal(errs.ToAggregate())
		}
		what = "is created"
	}
	s.Say("    %s %s", name, what)
	s.Put(p)
}

// ruler returns the object whose gate the webhook adds to a new pod; nil if there is none.
func (s *stage) ruler(p *corev1.Pod) *v1.StatefulSingleton {
	object := s.now()
	if object == nil {
		return nil
	}
	return spec.RulerOf(spec.LabelsOf(p), []v1.StatefulSingleton{*object})
}

// blindFor is less than SettleAfter minus the resolution of a creationTimestamp.
const blindFor = 500 * time.Millisecond

// blind reports whether webhook and guard do not know the object yet.
func (s *stage) blind() bool {
	return s.chance != nil && s.Now.Sub(s.madeAt) < blindFor && s.chance.Intn(2) == 0
}
