package rules_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// TestClaimsThatGoAreLeftAlone verifies that terminating claims are not patched.
func TestClaimsThatGoAreLeftAlone(t *testing.T) {
	s := fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3})
	for o := range int32(3) {
		c := children.BuildClaim(s.W.Set, &s.W.Set.Spec.Template.Spec.VolumeClaimTemplates[0], children.Zone{Index: children.NoZone}, o)
		c.Spec.Resources.Requests = nil // otherwise it would be expanded
		c.DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon))
		s.W.Claims[c.Name] = c
	}
	if _, p := fixture.Decided(s.W); p.DoesSomething() {
		t.Errorf("got actions %v", p.Steps.Strings())
	}
}
