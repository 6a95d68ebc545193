package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
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
	mount, err := r.mount.get(r.Now(), func() (v1alpha1.AgentMount, error) { return r.agentMount(ctx) })
	w.Agent = v1alpha1.AgentStatus{Image: image, Mount: mount}
	return err
}

// mountKept is how long the support of the Nodes is not read again.
const mountKept = 10 * time.Second

// keptMount is the last result of agentMount.
type keptMount struct {
	mu    sync.Mutex
	mount v1alpha1.AgentMount
	until time.Time
}

func (k *keptMount) get(now time.Time, read func() (v1alpha1.AgentMount, error)) (mount v1alpha1.AgentMount, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Before(k.until) {
		return k.mount, nil
	}
	if k.mount, err = read(); err == nil {
		k.until = now.Add(mountKept)
	}
	return k.mount, err
}

// agentMount returns how new pods get the agent: by an image volume if all Nodes support it.
func (r *Reader) agentMount(ctx context.Context) (v1alpha1.AgentMount, error) {
	var nodes corev1.NodeList
	if err := r.Nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return v1alpha1.AgentInitContainer, nil // they are not created yet
	}
	for i := range nodes.Items {
		if !nodestate.MountsImages(&nodes.Items[i]) {
			return v1alpha1.AgentInitContainer, nil
		}
	}
	return v1alpha1.AgentImageVolume, nil
}
