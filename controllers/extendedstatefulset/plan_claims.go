package extendedstatefulset

import (
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// claimNames are those that the wanted ordinals need.
func (w *world) claimNames() []string {
	var names []string
	for _, z := range w.zones {
		for o := range w.replicas {
			for i := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
				names = append(names, claimName(w.set.Name, w.set.Spec.Template.Spec.VolumeClaimTemplates[i].Name, z, o))
			}
		}
	}
	return names
}

// keepClaims makes the claims of all wanted ordinals, and lets those that are there
// grow with their template. It deletes none, ever: they are the user's data.
func keepClaims(w *world, p *plan) {
	templates := w.set.Spec.Template.Spec.VolumeClaimTemplates
	for _, z := range w.zones {
		for o := range w.replicas {
			for i := range templates {
				want := buildClaim(w.set, &templates[i], z, o)
				have := w.claims[want.Name]
				if have == nil {
					p.do(action.Chain{{Verb: action.Create, Object: want, Reason: reasonClaim}})
					continue
				}
				if have.DeletionTimestamp != nil {
					continue
				}
				next, grows := claim.Grow(have, &templates[i])
				next = next.DeepCopy()
				if have.Labels[v1alpha1.LabelSet] != w.set.Name { // a person made it, for us
					next.Labels = merged(have.Labels, want.Labels)
					p.do(action.Chain{{Verb: action.Patch, Object: next, From: have, Reason: reasonClaim, Detail: "is taken as it is"}})
				} else if grows {
					p.do(action.Chain{{Verb: action.Patch, Object: next, From: have, Reason: reasonClaim, Detail: "grows to " + size(claim.Storage(next))}})
				}
			}
		}
	}
}

func size(q resource.Quantity) string { return q.String() }
