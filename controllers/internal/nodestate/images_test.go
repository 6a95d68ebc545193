package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodesThatMountImages(t *testing.T) {
	for _, row := range []struct {
		kubelet, runtime string
		want             bool
	}{
		{"v1.35.0", "containerd://2.1.0", true},
		{"v1.36.3", "containerd://2.4.2", true},
		{"v1.35.1-eks-1234567", "containerd://2.1.4", true},
		{"v1.36.0", "cri-o://1.36.0", true},
		{"v1.34.9", "containerd://2.1.0", false},
		{"v1.36.3", "containerd://1.7.28", false},
		{"v1.36.3", "containerd://2.0.5", false},
		{"v1.36.3", "cri-o://1.32.4", false},
		{"v1.36.3", "docker://29.0.0", false},
		{"v1.36.3", "containerd", false},
		{"fake", "fake://", false},
		{"", "", false},
	} {
		n := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: row.kubelet, ContainerRuntimeVersion: row.runtime}}}
		if got := MountsImages(n); got != row.want {
			t.Errorf("kubelet %q with %q: %v", row.kubelet, row.runtime, got)
		}
	}
}
