package nodestate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// Versions from which image volumes (KEP-4639) work without configuration: their feature gate is on by
// default in the kubelet, and the container runtime supports them.
var (
	imageVolumesKubelet = version.MajorMinor(1, 35)
	imageVolumesRuntime = map[string]*version.Version{"containerd": version.MajorMinor(2, 1), "cri-o": version.MajorMinor(1, 33)}
)

// MountsImages reports whether a Node supports image volumes. A Node with an unknown version does not.
func MountsImages(n *corev1.Node) bool {
	runtime, number, ok := strings.Cut(n.Status.NodeInfo.ContainerRuntimeVersion, "://")
	since := imageVolumesRuntime[runtime]
	return ok && since != nil && isAtLeast(number, since) && isAtLeast(n.Status.NodeInfo.KubeletVersion, imageVolumesKubelet)
}

func isAtLeast(number string, since *version.Version) bool {
	v, err := version.ParseGeneric(number)
	return err == nil && v.AtLeast(since)
}
