package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",namespace=system,roleName=webhook-own-namespace-role,resources=pods,verbs=get

const (
	// ownContainer is the name in config/manager.
	ownContainer = "manager"
	// ownPodTimeout is for one read.
	ownPodTimeout = 30 * time.Second
)

// gateImage is the image that the webhook puts into pods. The operator's own has
// the gate of the same version, and what it is called is known to its pod only:
// whoever deploys may have moved it to a registry of theirs. It is read once,
// live, because a pod's image changes with the pod.
func (o Options) gateImage(pods client.Reader) (string, error) {
	if o.GateImage != "" {
		return o.GateImage, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), ownPodTimeout)
	defer cancel()
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.pod}
	var pod corev1.Pod
	if err := pods.Get(ctx, key, &pod); err != nil {
		return "", fmt.Errorf("looking for the gate's image in the operator's own pod %s, which $POD_NAME or the hostname names: %w; "+
			"set --gate-image if the operator does not run in a pod", key, err)
	}
	containers := pod.Spec.Containers
	for i := range containers {
		if containers[i].Name == ownContainer || len(containers) == 1 {
			return containers[i].Image, nil
		}
	}
	return "", fmt.Errorf("looking for the gate's image in the operator's own pod %s: it has %d containers, and none is named %s; set --gate-image",
		key, len(containers), ownContainer)
}
