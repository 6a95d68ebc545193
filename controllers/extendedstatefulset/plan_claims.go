package extendedstatefulset

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// claimNames are those that the wanted ordinals need.
func (w *world) claimNames() iter.Seq2[place, string] {
	return func(yield func(place, string) bool) {
		for _, z := range w.zones {
			for o := range w.replicas {
				for i := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
					if !yield(place{z, o}, claimName(w.set.Name, w.set.Spec.Template.Spec.VolumeClaimTemplates[i].Name, z, o)) {
						return
					}
				}
			}
		}
	}
}

// keepClaims makes the claims of all wanted ordinals, and lets those that are there
// grow with their template. It deletes none, ever: they are the user's data.
func keepClaims(w *world, p *plan) {
	templates, made := w.set.Spec.Template.Spec.VolumeClaimTemplates, 0
	for _, z := range w.zones {
		for o := range w.replicas {
			for i := range templates {
				name := claimName(w.set.Name, templates[i].Name, z, o)
				have := w.claims[name]
				switch {
				case w.foreign[name] != nil, have == nil && w.claimants[claimStem(templates[i].Name, z.stem(w.set.Name))] != "":
				case have == nil && made < namesAtOnce && !w.left(z, o):
					p.Do(action.Chain{{Verb: action.Create, Object: buildClaim(w.set, &templates[i], z, o), Reason: reasonClaim}})
					made++
				case have != nil && have.DeletionTimestamp == nil:
					w.keepClaim(have, place{z, o}, i, p)
				}
			}
		}
	}
}

// keepClaim lets a claim grow with its template, and takes one that was given to us.
func (w *world) keepClaim(have *corev1.PersistentVolumeClaim, at place, template int, p *plan) {
	from := &w.set.Spec.Template.Spec.VolumeClaimTemplates[template]
	next, grows := claim.Grow(have, from)
	if have.Labels[v1alpha1.LabelSet] != w.set.Name {
		next = next.DeepCopy()
		next.Labels = merged(have.Labels, buildClaim(w.set, from, at.zone, at.ordinal).Labels)
		p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Reason: reasonClaim, Detail: "is taken, as its owner says"}})
	} else if grows {
		p.Do(action.Chain{{Verb: action.Patch, Object: next, From: have, Reason: reasonClaim, Detail: "grows to " + size(claim.Storage(next))}})
	}
}

func size(q resource.Quantity) string { return q.String() }
