package nodestate

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func node(change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if change != nil {
		change(n)
	}
	return n
}

func offline(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func tainted(key string) *corev1.Node {
	return node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffectNoSchedule}} })
}

func silent(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(noon)}}
}

// only returns a reader that contains only the given objects.
func only(all ...client.Object) *objects.Objects {
	o := &objects.Objects{All: map[objects.Key]client.Object{}}
	for _, obj := range all {
		o.All[objects.KeyOf(obj)] = obj
	}
	return o
}

func TestRead(t *testing.T) {
	for _, row := range []struct {
		says        string
		cache, live client.Reader
		want        Facts
	}{
		{"a Ready Node", only(node(nil)), nil, Facts{Ready: true}},
		{"a Node with an unreachable kubelet is not read again", only(node(silent)), nil, Facts{NotReadySince: noon}},
		{"a Node whose taint was removed meanwhile", only(node(offline)), only(node(nil)), Facts{Ready: true}},
		{"a Node with a taint", only(node(offline)), only(node(offline)), Facts{Ready: true, OutOfService: true}},
		{"a cordon", only(node(cordoned)), nil, Facts{Ready: true, Cordoned: true}},
		{"a cordoned Node", only(tainted("node.kubernetes.io/unschedulable")), nil, Facts{Ready: true, Cordoned: true}},
		{"a Node that the Cluster Autoscaler removes", only(tainted("ToBeDeletedByClusterAutoscaler")), nil, Facts{Ready: true, Cordoned: true}},
		{"a Node that Karpenter removes", only(tainted("karpenter.sh/disrupted")), nil, Facts{Ready: true, Cordoned: true}},
		{"any other taint", only(tainted("dedicated")), nil, Facts{Ready: true}},
		{"a Node that the cache does not show yet", only(), only(node(nil)), Facts{Ready: true}},
		{"a deleted Node", only(), only(), Facts{Missing: true, MissingSince: noon}},
	} {
		if got, err := new(Reader).Read(context.Background(), row.cache, row.live, "n1", noon); err != nil || got != row.want {
			t.Errorf("%s: %+v, %v; want %+v", row.says, got, err, row.want)
		}
	}
	if got, err := new(Reader).Read(context.Background(), nil, nil, "", noon); err != nil || got != (Facts{}) {
		t.Errorf("a pod without a Node: %+v, %v", got, err)
	}
}

func TestAbsenceIsCountedFromTheFirstLook(t *testing.T) {
	var r Reader
	since := func(after time.Duration, all ...client.Object) time.Time {
		t.Helper()
		got, err := r.Read(context.Background(), only(all...), only(all...), "n1", noon.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return got.MissingSince
	}
	if got := since(0); !got.Equal(noon) {
		t.Errorf("missing since %s", got)
	}
	if got := since(time.Minute); !got.Equal(noon) {
		t.Errorf("missing since %s one minute later", got)
	}
	if got := since(2*time.Minute, node(nil)); !got.IsZero() {
		t.Errorf("a Node that returned is missing since %s", got)
	}
	if got := since(3 * time.Minute); !got.Equal(noon.Add(3 * time.Minute)) {
		t.Errorf("a Node that was deleted again is missing since %s", got)
	}
}

// failing is an API server that does not respond.
type failing struct{ client.Reader }

var errNoAnswer = errors.New("no response")

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errNoAnswer
}

func TestWhoCannotBeAskedIsNotMissing(t *testing.T) {
	if _, err := new(Reader).Read(context.Background(), only(), failing{}, "n1", noon); !errors.Is(err, errNoAnswer) {
		t.Errorf("got %v, want that the API server is unreachable", err)
	}
}
