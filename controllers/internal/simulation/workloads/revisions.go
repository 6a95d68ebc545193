package workloads

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// revision is a template of a StatefulSet, and the name of its ControllerRevision.
type revision struct {
	name     string
	template *corev1.PodTemplateSpec
}

const (
	// hashLength is the number of hexadecimal digits of the hash in the name of a revision.
	hashLength = 13
	// maxHistory is the default of spec.revisionHistoryLimit.
	maxHistory = 10
)

// revision returns the name of the revision of the present template, which need not be stored.
func (s *sync) revision() string {
	is := func(template *corev1.PodTemplateSpec) bool {
		return template != nil && apiequality.Semantic.DeepEqual(template, &s.set.Spec.Template)
	}
	if known := s.learned[s.set.UID]; is(known.template) {
		return known.name
	}
	for _, r := range slices.Backward(s.stored) {
		if is(s.templateIn(r)) {
			return r.Name
		}
	}
	return fmt.Sprintf("%s-%x", s.set.Name, sha256.Sum256(s.data()))[:len(s.set.Name)+1+hashLength]
}

// data returns the content of the ControllerRevision of the present template.
func (s *sync) data() []byte {
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": s.set.Spec.Template}})
	if err != nil {
		panic(err) // a template of the API can be encoded
	}
	return data
}

// revisionFor returns the revision of a new pod. Pods below the partition have the current revision, if it is known.
func (s *sync) revisionFor(ordinal int) revision {
	current := s.set.Status.CurrentRevision
	if ordinal < firstUpdated(s.set) && current != "" {
		if known := s.learned[s.set.UID]; known.name == current {
			return known
		}
		for _, r := range s.stored {
			if template := s.templateIn(r); r.Name == current && template != nil {
				return revision{current, template}
			}
		}
	}
	return revision{s.revision(), &s.set.Spec.Template}
}

// templateIn returns the template in a ControllerRevision. It returns nil if there is none. The API server does not
// validate it.
func (c *Controller) templateIn(r *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	template, isKnown := c.templates[r]
	if isKnown {
		return template
	}
	var data struct {
		Spec struct{ Template *corev1.PodTemplateSpec }
	}
	if bounds.Quantities(r.Data.Raw) == nil && json.Unmarshal(r.Data.Raw, &data) == nil {
		template = data.Spec.Template
	}
	c.templates[r] = template
	return template
}

// revise stores the revision of the present template, or makes it the newest one.
func (s *sync) revise() {
	name, newest := s.revision(), int64(0)
	if len(s.stored) > 0 {
		newest = s.stored[len(s.stored)-1].Revision
	}
	i := slices.IndexFunc(s.stored, func(r *appsv1.ControllerRevision) bool { return r.Name == name })
	isNew := i < 0 && s.learned[s.set.UID].name != name
	switch {
	case isNew:
		s.Put(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Namespace, Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(s.Now.Truncate(time.Second)),
				Labels: maps.Clone(s.set.Spec.Template.Labels), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.set, kind)}},
			Data: runtime.RawExtension{Raw: s.data()}, Revision: newest + 1,
		})
	case i >= 0 && s.stored[i].Revision < newest:
		next := objects.Clone(s.stored[i])
		next.Revision = newest + 1
		s.Put(next)
	}
}

// truncate deletes the oldest revisions beyond the limit. It keeps those in the status and those of pods.
func (s *sync) truncate() {
	live := map[string]bool{s.set.Status.CurrentRevision: true, s.set.Status.UpdateRevision: true}
	for _, p := range s.pods {
		live[p.Labels[appsv1.ControllerRevisionHashLabelKey]] = true
	}
	history := slices.DeleteFunc(slices.Clone(s.stored), func(r *appsv1.ControllerRevision) bool { return live[r.Name] })
	for _, r := range history[:max(0, len(history)-int(ptr.Deref(s.set.Spec.RevisionHistoryLimit, maxHistory)))] {
		s.Delete(r)
	}
}
