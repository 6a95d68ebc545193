package observe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

func nodeWith(name, kubelet string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet, ContainerRuntimeVersion: "containerd://2.1.4"}}}
}

func TestTheAgentOfAnOperator(t *testing.T) {
	unpinned := func(s *v1alpha1.ReplicatedStatefulSet) { s.Status.Agent = nil }
	for _, row := range []struct {
		name  string
		set   *v1alpha1.ReplicatedStatefulSet
		nodes []client.Object
		image string
		err   error
		want  v1alpha1.AgentStatus
		why   string
	}{
		{"all Nodes support image volumes", fixture.PostgreSQL(unpinned), []client.Object{nodeWith("a", "v1.35.0"), nodeWith("b", "v1.36.3")}, "new", nil, v1alpha1.AgentStatus{Image: "new", Mount: v1alpha1.AgentImageVolume}, ""},
		{"one Node is older", fixture.PostgreSQL(unpinned), []client.Object{nodeWith("a", "v1.35.0"), nodeWith("b", "v1.34.1")}, "new", nil, v1alpha1.AgentStatus{Image: "new", Mount: v1alpha1.AgentInitContainer}, ""},
		{"there are no Nodes", fixture.PostgreSQL(unpinned), nil, "new", nil, v1alpha1.AgentStatus{Image: "new", Mount: v1alpha1.AgentInitContainer}, ""},
		{"an older Node has joined", fixture.PostgreSQL(), []client.Object{nodeWith("b", "v1.34.1")}, fixture.AgentImage, nil, v1alpha1.AgentStatus{Image: fixture.AgentImage, Mount: v1alpha1.AgentInitContainer}, ""},
		{"another image", fixture.PostgreSQL(), []client.Object{nodeWith("b", "v1.34.1")}, "new", nil, v1alpha1.AgentStatus{Image: "new", Mount: v1alpha1.AgentInitContainer}, ""},
		{"the image is unknown", fixture.PostgreSQL(unpinned), nil, "", errors.New("no pod"), v1alpha1.AgentStatus{}, "no pod"},
		{"no spec.application", fixture.SetOf(3, 1), nil, "new", nil, v1alpha1.AgentStatus{}, ""},
	} {
		r := observe.Reader{
			ImageVolumes: &nodestate.ImageVolumes{Nodes: fake.NewClientBuilder().WithObjects(row.nodes...).Build(), Now: time.Now},
			AgentImage:   func(context.Context) (string, error) { return row.image, row.err }}
		w := &facts.World{Set: row.set}
		if err := r.ReadAgent(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		if w.Agent != row.want || w.WhyNoAgent != row.why {
			t.Errorf("%s: %+v %q, want %+v %q", row.name, w.Agent, w.WhyNoAgent, row.want, row.why)
		}
	}
}
