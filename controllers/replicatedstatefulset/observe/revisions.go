package observe

import (
	"context"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// maxRevisions is the max number of templates that are read in one pass. Members of any other
// template are recreated.
const maxRevisions = 8

// readRevisions reads the templates of the outdated members and the current template, if members
// may be changed in place. The pod itself does not show its template, because defaults and
// admission changed it.
func readRevisions(ctx context.Context, w *facts.World, from engine.View) error {
	if !from.Live || !w.ChangesInPlace() || w.Stateful == nil {
		return nil
	}
	w.Revisions = map[string]*corev1.PodTemplateSpec{}
	for _, name := range revisionsToRead(w) {
		key := types.NamespacedName{Namespace: w.Set.Namespace, Name: name}
		revision, err := Find[appsv1.ControllerRevision](ctx, from, key)
		if err != nil {
			return err
		}
		if revision != nil && facts.Controls(w.Stateful, revision) {
			w.Revisions[name] = TemplateIn(revision)
		}
	}
	return nil
}

// revisionsToRead returns the names of the current revision and of the revisions of outdated
// members. It returns nothing if all members are up to date.
func revisionsToRead(w *facts.World) []string {
	present := w.Stateful.Status.UpdateRevision
	var names []string
	for _, m := range w.Members {
		if w.IsUpToDate(m) {
			continue
		}
		note, _ := facts.InPlaceNoteOf(m.Pod)
		names = append(names, m.Pod.Labels[appsv1.ControllerRevisionHashLabelKey])
		names = append(names, note.Revisions()...)
	}
	if len(names) == 0 || present == "" {
		return nil
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return slices.Contains([]string{"", present}, name)
	})
	most := min(len(names), maxRevisions)
	return append(names[:most], present)
}

// TemplateIn returns the pod template in a revision of a StatefulSet. It returns nil if the
// revision cannot be read. Revisions written by others are not validated. So a revision larger than
// any of ours is not read.
func TemplateIn(revision *appsv1.ControllerRevision) *corev1.PodTemplateSpec {
	raw := revision.Data.Raw
	if len(raw) > 2*bounds.Bytes || bounds.Quantities(raw) != nil {
		return nil
	}
	var counted struct {
		Spec struct {
			Template struct {
				Spec struct {
					InitContainers, Containers []json.RawMessage
				}
			}
		}
	}
	if json.Unmarshal(raw, &counted) != nil {
		return nil
	}
	if of := counted.Spec.Template.Spec; len(of.InitContainers)+len(of.Containers) > spec.MaxContainers {
		return nil
	}
	var data struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if json.Unmarshal(raw, &data) != nil {
		return nil
	}
	return data.Spec.Template
}
