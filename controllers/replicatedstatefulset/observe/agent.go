package observe

import (
	"context"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
)

// ReadAgent sets the agent that a set with spec.application would get now.
func (r *Reader) ReadAgent(ctx context.Context, w *facts.World) error {
	if w.Set.Spec.Application == nil || r.AgentImage == nil {
		return nil
	}
	image, err := r.AgentImage(ctx)
	if err != nil { // a condition reports it, and a set that has an agent needs no other
		w.WhyNoAgent = err.Error()
		image = ""
	}
	if image == "" {
		return nil
	}
	w.Agent = v1alpha1.AgentStatus{Image: image, Mount: v1alpha1.AgentInitContainer}
	supported, err := r.ImageVolumes.Supported(ctx)
	if supported {
		w.Agent.Mount = v1alpha1.AgentImageVolume
	}
	return err
}
