package rules

import (
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/claim"
)

// keepClaims creates the claims of all wanted ordinals, and expands existing claims to the size in
// their template. It never deletes claims, because they hold the user's data.
func keepClaims(f *facts.Facts, p *Plan) {
	created := 0
	for at, template := range facts.WantedClaims(f.World) {
		have := f.Claims[children.ClaimName(f.Set.Name, template.Name, at.Zone, at.Ordinal)]
		switch {
		case facts.ClaimTaken(f.World, template.Name, at):
		case have == nil && created < observe.NamesAtOnce && !f.IsUnread(at.Zone, at.Ordinal):
			p.Do(action.Chain{{
				Verb:   action.Create,
				Object: children.BuildClaim(f.Set, template, at.Zone, at.Ordinal),
				Reason: reasonClaim,
			}})
			created++
		case have != nil && have.DeletionTimestamp == nil:
			p.Do(keepClaim(f.Set, have, at, template)...)
		}
	}
}

// keepClaim returns the patch that expands a claim to its template, or labels a claim that its owner
// gave to the set.
func keepClaim(set *v1alpha1.ExtendedStatefulSet, have *corev1.PersistentVolumeClaim, at children.Place, from *corev1.PersistentVolumeClaim) []action.Chain {
	next, changes := claim.Adjust(have, from)
	switch {
	case have.Labels[v1alpha1.LabelSet] != set.Name:
		next = next.DeepCopy()
		next.Labels = children.Merged(have.Labels, children.BuildClaim(set, from, at.Zone, at.Ordinal).Labels)
		return []action.Chain{{{
			Verb:   action.Patch,
			Object: next,
			From:   have,
			Reason: reasonClaim,
			Detail: "adopted with the owner's consent",
		}}}
	case changes != "":
		return []action.Chain{{{
			Verb:   action.Patch,
			Object: next,
			From:   have,
			Reason: reasonClaim,
			Detail: changes,
		}}}
	}
	return nil
}
