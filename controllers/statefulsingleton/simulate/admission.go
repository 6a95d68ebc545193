package simulate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// create creates a pod as the API server does, including the webhook and the guard. It returns why the webhook rejects
// the pod; "" if it does not.
func (s *Simulation) create(p *corev1.Pod) (refusal string) {
	what := "is created without a gate"
	if object := s.ruler(p); object != nil && (s.Blind == nil || !s.Blind()) {
		around := s.Around
		around.OneNodeClaims = s.oneNodeClaims(p)
		if errs := children.Inject(p, object, around); len(errs) > 0 {
			s.Say("    %s is rejected by the webhook", p.Name)
			return errs.ToAggregate().Error()
		}
		what = "is created"
	}
	s.Say("    %s %s", p.Name, what)
	p.Status.Phase = corev1.PodPending
	s.Put(p)
	return ""
}

// refusal identifies the versions of an owner and of the object with which the webhook has rejected a pod.
type refusal struct {
	version    string
	generation int64
}

// refusalOf returns the refusal of a pod of an owner now.
func (s *Simulation) refusalOf(owner client.Object) refusal {
	r := refusal{version: s.All[objects.KeyOf(owner)].GetResourceVersion()}
	if object := s.Object(); object != nil {
		r.generation = object.Generation
	}
	return r
}

// isRefused reports whether the webhook rejects the pods of an owner. The owner tries again when it or the object
// changes.
func (s *Simulation) isRefused(owner client.Object) bool {
	before, refused := s.refused[owner.GetUID()]
	return refused && before == s.refusalOf(owner)
}

// ruler returns the object whose gate the webhook adds to a new pod; nil if there is none.
func (s *Simulation) ruler(p *corev1.Pod) *v1.StatefulSingleton {
	var all []v1.StatefulSingleton
	for _, object := range Every[v1.StatefulSingleton](s.Cluster) {
		if object.Namespace == p.Namespace {
			all = append(all, *object)
		}
	}
	return spec.RulerOf(spec.LabelsOf(p), all)
}

// oneNodeClaims returns the claims of a pod that only one node at a time can mount.
func (s *Simulation) oneNodeClaims(p *corev1.Pod) sets.Set[string] {
	found := sets.New[string]()
	for _, name := range claimsOf(p) {
		claim, exists := s.All[objects.Key{Kind: "PersistentVolumeClaim", Namespace: p.Namespace, Name: name}].(*corev1.PersistentVolumeClaim)
		if !exists || children.OnOneNode(claim) {
			found.Insert(name)
		}
	}
	return found
}

// unknownImage is the image of the gate if no pod has one.
const unknownImage = "stateful-operator"

// aroundOf returns the inputs of the webhook with which pods were created. The newest one counts.
func aroundOf(pods []*corev1.Pod) children.Surroundings {
	around, newest := children.Surroundings{Image: unknownImage}, metav1.Time{}
	for _, p := range pods {
		image, mounted := gateOf(p)
		if image != "" && !p.CreationTimestamp.Before(&newest) {
			around, newest = children.Surroundings{Image: image, ImageVolumes: mounted}, p.CreationTimestamp
		}
	}
	return around
}

// gateOf returns the image with the gate of a pod, and whether the pod mounts it; "" if the pod has no gate.
func gateOf(p *corev1.Pod) (image string, mounted bool) {
	for i := range p.Spec.Volumes {
		if v := &p.Spec.Volumes[i]; v.Name == v1.VolumeGate && v.Image != nil {
			return v.Image.Reference, true
		}
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; children.IsOurs(c) && !children.IsImage(c) {
			return c.Image, false
		}
	}
	return "", false
}
