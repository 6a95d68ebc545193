package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
)

// revisions are the known revisions of StatefulSets.
type revisions struct {
	// names are the names of revisions, by the StatefulSet and a hash of its template.
	names map[[2]string]string
	// templates are the templates of revisions, by name.
	templates map[string]corev1.PodTemplateSpec
}

// revisionsIn returns the revisions that the StatefulSet controller has stored. The status of a StatefulSet
// that it has observed is the revision of the present template.
func revisionsIn(c *simulation.Cluster) revisions {
	r := revisions{map[[2]string]string{}, map[string]corev1.PodTemplateSpec{}}
	var stored appsv1.ControllerRevisionList
	_ = c.List(context.Background(), &stored) // the simulated cluster never fails
	for i := range stored.Items {
		one := &stored.Items[i]
		var data struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if owner := metav1.GetControllerOfNoCopy(one); owner != nil && json.Unmarshal(one.Data.Raw, &data) == nil {
			r.learn(owner.Name, &data.Spec.Template, one.Name)
		}
	}
	var sets appsv1.StatefulSetList
	_ = c.List(context.Background(), &sets) // the simulated cluster never fails
	for i := range sets.Items {
		if set := &sets.Items[i]; set.Status.UpdateRevision != "" && set.Status.ObservedGeneration == set.Generation {
			r.learn(set.Name, &set.Spec.Template, set.Status.UpdateRevision)
		}
	}
	return r
}

func (r revisions) learn(set string, template *corev1.PodTemplateSpec, name string) {
	r.names[[2]string{set, hashOf(template)}] = name
	r.templates[name] = *template.DeepCopy()
}

// of returns the revision of the present template of a StatefulSet.
func (r revisions) of(set *appsv1.StatefulSet) string {
	hash := hashOf(&set.Spec.Template)
	if name, known := r.names[[2]string{set.Name, hash}]; known {
		return name
	}
	name := set.Name + "-" + hash
	r.learn(set.Name, &set.Spec.Template, name)
	return name
}

// template returns the template of a new pod, and its revision. The pods below the partition keep the
// current revision of the StatefulSet.
func (r revisions) template(set *appsv1.StatefulSet, ordinal int32) (*corev1.PodTemplateSpec, string) {
	if current, known := r.templates[set.Status.CurrentRevision]; known && ordinal < firstUpdated(set) {
		return current.DeepCopy(), set.Status.CurrentRevision
	}
	return set.Spec.Template.DeepCopy(), r.of(set)
}

func hashOf(template *corev1.PodTemplateSpec) string {
	raw, _ := json.Marshal(template) // a template can always be marshaled
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:10]
}
