package nodestate

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
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
		if got := mountsImages(n); got != row.want {
			t.Errorf("kubelet %q with %q: %v", row.kubelet, row.runtime, got)
		}
	}
}

func nodeOf(name, kubelet string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: "containerd://2.1.0"}}}
}

// TestImageVolumesNeedAllNodes also checks that the Nodes are read again after 10 seconds, that an error does
// not last, and that a caller whose context has ended does not cause one.
func TestImageVolumesNeedAllNodes(t *testing.T) {
	ctx, now, failure := t.Context(), time.Now(), error(nil)
	expired, cancel := context.WithCancel(ctx)
	cancel()
	cluster := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := cmp.Or(failure, ctx.Err()); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		}}).Build()
	volumes := &ImageVolumes{Nodes: cluster, Now: func() time.Time { return now }}
	expect := func(want, wantErr bool, when string) {
		t.Helper()
		if got, err := volumes.Supported(expired); got != want || (err != nil) != wantErr {
			t.Errorf("%s: %t, %v", when, got, err)
		}
	}
	create := func(n *corev1.Node) {
		t.Helper()
		if err := cluster.Create(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	expect(false, false, "without Nodes")
	now = now.Add(supportKept)
	create(nodeOf("new", "v1.35.0"))
	expect(true, false, "with one Node")
	create(nodeOf("old", "v1.34.0"))
	expect(true, false, "with a result that is not old")
	failure = errors.New("not synced")
	now = now.Add(supportKept)
	expect(false, true, "with an error")
	failure = nil
	expect(false, true, "with an error that is not old")
	now = now.Add(errorKept)
	expect(false, false, "with an older Node")
	volumes = nil
	expect(false, false, "if they are disabled")
}
