package controllers

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
)

// +kubebuilder:rbac:groups="",namespace=system,roleName=webhook-own-namespace-role,resources=pods,verbs=get
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=pods,verbs=get

const (
	// ownContainer is the name of the container in config/manager.
	ownContainer = "manager"
	// ownPodTimeout is the timeout of one read.
	ownPodTimeout = 30 * time.Second
)

// gateImage returns the image with the gate and the agent that is added to pods. The default is the
// operator's own image, which has them in the same version. Only the operator's pod has its reference, because
// it may have been copied to another registry. The pod is read once, without a cache, because a
// pod's image changes only with the pod.
func (o Options) gateImage(ctx context.Context, pods client.Reader) (string, error) {
	if o.GateImage != "" {
		return o.GateImage, nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownPodTimeout)
	defer cancel()
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.pod}
	var pod corev1.Pod
	if err := pods.Get(ctx, key, &pod); err != nil {
		return "", fmt.Errorf("find the image of the gate and the agent in the operator's own pod %s, which $POD_NAME or the hostname names: %w; "+
			"set --gate-image if the operator does not run in a pod", key, err)
	}
	containers := pod.Spec.Containers
	for i := range containers {
		if containers[i].Name == ownContainer || len(containers) == 1 {
			return containers[i].Image, nil
		}
	}
	return "", fmt.Errorf("find the image of the gate and the agent in the operator's own pod %s: it has %d containers, and none is named %s; set --gate-image",
		key, len(containers), ownContainer)
}

// imageVolumes reports whether pods mount this image. It returns nil if they must not.
func (o Options) imageVolumes(mgr ctrl.Manager) *nodestate.ImageVolumes {
	if !o.ImageVolumes {
		return nil
	}
	return &nodestate.ImageVolumes{Nodes: mgr.GetCache(), Now: time.Now}
}

// agentImage returns a function that returns the same image. Only sets with spec.application need it,
// so an error is one of these objects. The function keeps the first result without an error.
func (o Options) agentImage(pods client.Reader) func(context.Context) (string, error) {
	var mu sync.Mutex
	known := ""
	return func(ctx context.Context) (image string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if known == "" {
			known, err = o.gateImage(ctx, pods)
		}
		return known, err
	}
}
