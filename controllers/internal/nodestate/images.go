package nodestate

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions from which image volumes (KEP-4639) work without configuration: their feature gate is on by
// default in the kubelet, and the container runtime supports them.
var (
	imageVolumesKubelet = version.MajorMinor(1, 35)
	imageVolumesRuntime = map[string]*version.Version{"containerd": version.MajorMinor(2, 1), "cri-o": version.MajorMinor(1, 33)}
)

// ImageVolumes reports whether new pods can have image volumes. If it is nil, none can.
type ImageVolumes struct {
	// Nodes lists the Nodes, from a cache.
	Nodes client.Reader
	// Now returns the current time.
	Now func() time.Time

	mu        sync.Mutex
	supported bool
	err       error
	until     time.Time
}

const (
	// supportKept is how long the Nodes are not read again, and errorKept is the same after an error.
	supportKept = 10 * time.Second
	errorKept   = time.Second
	// nodesTimeout is the timeout of a list. A cache blocks until it has synced, which never happens
	// without the right to list Nodes, and the API server waits 2 s for the webhook for pods.
	nodesTimeout = time.Second
)

// Supported reports whether all Nodes support image volumes. It returns false if there are no Nodes,
// because their versions are not known before they are created. A result is kept for 10 seconds, and an
// error for one second, so that the Nodes are not read for each pod.
func (v *ImageVolumes) Supported(ctx context.Context) (bool, error) {
	if v == nil {
		return false, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.Now()
	if now.Before(v.until) {
		return v.supported, v.err
	}
	// The result is for other callers too, so it must not depend on the deadline of this one.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nodesTimeout)
	defer cancel()
	var nodes corev1.NodeList
	err := v.Nodes.List(ctx, &nodes, client.UnsafeDisableDeepCopy)
	v.supported, v.err, v.until = err == nil && allMountImages(nodes.Items), nil, now.Add(supportKept)
	if err != nil {
		v.err, v.until = fmt.Errorf("list nodes: %w", err), now.Add(errorKept)
	}
	return v.supported, v.err
}

// allMountImages reports whether there are Nodes, and all of them support image volumes.
func allMountImages(nodes []corev1.Node) bool {
	for i := range nodes {
		if !mountsImages(&nodes[i]) {
			return false
		}
	}
	return len(nodes) > 0
}

// mountsImages reports whether a Node supports image volumes. A Node with an unknown version does not.
func mountsImages(n *corev1.Node) bool {
	runtime, number, ok := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, "://")
	since := imageVolumesRuntime[runtime]
	return ok && since != nil && isAtLeast(number, since) && isAtLeast(n.Status.NodeInfo.KubeletVersion, imageVolumesKubelet)
}

func isAtLeast(number string, since *version.Version) bool {
	v, err := version.ParseGeneric(number)
	return err == nil && v.AtLeast(since)
}
