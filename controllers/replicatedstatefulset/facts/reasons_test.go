package facts_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// TestReasonsOfConfigurationAreThoseOfTheAPI tests that the reasons of the shared reader equal
// those of the API.
func TestReasonsOfConfigurationAreThoseOfTheAPI(t *testing.T) {
	for said, want := range map[string]string{
		configuration.EventFollowed: v1alpha1.EventConfigFollowed, configuration.EventRestart: v1alpha1.EventConfigRestart,
		configuration.EventKeyChanged: v1alpha1.EventConfigKeyChanged, configuration.EventKeyLost: v1alpha1.EventConfigKeyLost,
		configuration.ReasonMissing: v1alpha1.ReasonConfigMissing, configuration.ReasonUnreadable: v1alpha1.ReasonConfigUnreadable,
		configuration.ReasonChanged: v1alpha1.ReasonConfigChanged, configuration.ReasonTurn: v1alpha1.ReasonConfigTurn,
	} {
		if said != want {
			t.Errorf("the reason is %s, want %s of the API", said, want)
		}
	}
}
