package pass_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/consistency"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/pass"
)

// written are the steps that a pass wants.
type written []string

func (w *written) Run(_ context.Context, _ types.NamespacedName, steps action.Steps) []action.Outcome {
	*w = append(*w, steps.Strings()...)
	return nil
}

var key = types.NamespacedName{Namespace: "ns", Name: "db"}

// reconcileOn runs a pass with a cache and an API server. It returns the steps, and whether they were
// decided on live objects.
func reconcileOn(cache, live client.Reader) (steps []string, decidedLive bool, err error) {
	var w written
	reader := &observe.Reader{Cache: cache, Live: live, Now: func() time.Time { return fixture.Noon }}
	r := pass.New(reader, &w, &consistency.Tracker{}, &events.FakeRecorder{})
	r.Decided = func(f *facts.Facts) { decidedLive = f.Live }
	_, err = r.Reconcile(context.Background(), reconcile.Request{NamespacedName: key})
	return w, decidedLive, err
}

func clusterOf(all ...client.Object) *simulation.Cluster {
	c := simulation.New(fixture.Noon)
	for _, obj := range all {
		c.Put(obj)
	}
	return c
}

// failing is an API server that does not respond.
type failing struct{ client.Reader }

var errFails = errors.New("no response")

func (failing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errFails
}

func TestReconcile(t *testing.T) {
	set := &fixture.Set("db").Replicas(0).StatefulCluster
	unread := set.DeepCopy()
	unread.Spec = v1alpha1.StatefulClusterSpec{Problem: "too large"}
	other := set.DeepCopy()
	other.UID = "another"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-data-a",
		Labels: map[string]string{v1alpha1.LabelCluster: "db", v1alpha1.LabelClusterUID: string(set.UID)}}}
	label := []string{"patch persistentvolumeclaim db-data-a: Retention, labeled enge.me/retained=Deleted"}
	for _, row := range []struct {
		name        string
		cache, live client.Reader
		want        []string
		decidedLive bool
		fails       error
	}{
		{"a new set", clusterOf(set), clusterOf(set), []string{"create controllerrevision db-", "create poddisruptionbudget db", "patch status of statefulcluster db: Observed"}, true, nil},
		{"a set that the cache does not contain yet", clusterOf(), clusterOf(set), nil, false, nil},
		{"a set that the cache still contains", clusterOf(set), clusterOf(), nil, false, nil},
		{"a set that was replaced under its name", clusterOf(set), clusterOf(other), nil, false, nil},
		{"a set that cannot be read", clusterOf(unread), clusterOf(unread), []string{"patch status of statefulcluster db: Unread"}, false, nil},
		{"a deleted set with a claim", clusterOf(claim), clusterOf(claim), label, false, nil},
		{"a cache without a set, and an API server that does not respond", clusterOf(claim), failing{}, nil, false, errFails},
		{"an API server that does not respond", clusterOf(set), failing{clusterOf()}, nil, false, errFails},
	} {
		t.Run(row.name, func(t *testing.T) {
			steps, decidedLive, err := reconcileOn(row.cache, row.live)
			if !slices.EqualFunc(steps, row.want, strings.HasPrefix) || decidedLive != row.decidedLive || !errors.Is(err, row.fails) {
				t.Errorf("steps %q, live %t, error %v; want %q, %t, %v", steps, decidedLive, err, row.want, row.decidedLive, row.fails)
			}
		})
	}
}
