package facts_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

func TestARestartIsSeenInTheStatefulSet(t *testing.T) {
	begun := &configuration.Record{Key: "k", Seen: "s", Hash: "h", Restarted: &metav1.Time{Time: fixture.Noon}}
	for _, row := range []struct {
		sentence string
		change   func(*appsv1.StatefulSet)
		want     bool
	}{
		{"just written", func(c *appsv1.StatefulSet) { c.Generation = 2; c.Status.ObservedGeneration = 1 }, true},
		{"pods of two revisions", func(c *appsv1.StatefulSet) { c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b" }, true},
		{"all are new and Ready", func(c *appsv1.StatefulSet) { c.Status.CurrentRevision, c.Status.UpdateRevision = "b", "b" }, false},
		{"scaled to 0 meanwhile", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.Spec.Replicas = ptr.To(int32(0))
		}, false},
		{"terminating", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
		}, false},
		{"pods of two revisions for another reason", func(c *appsv1.StatefulSet) {
			c.Status.CurrentRevision, c.Status.UpdateRevision = "a", "b"
			c.Annotations = nil
		}, false},
	} {
		child := fixture.Carrying(begun, "h")
		row.change(child)
		if got := !facts.RestartsSince(child).IsZero(); got != row.want {
			t.Errorf("%s: restarts: got %v", row.sentence, got)
		}
	}
}

// TestReasonsAreThoseOfTheAPI verifies that the shared reader uses the reasons of the API.
func TestReasonsAreThoseOfTheAPI(t *testing.T) {
	for said, want := range map[string]string{
		configuration.EventFollowed: v1alpha1.EventConfigFollowed, configuration.EventRestart: v1alpha1.EventConfigRestart,
		configuration.EventKeyChanged: v1alpha1.EventConfigKeyChanged, configuration.EventKeyLost: v1alpha1.EventConfigKeyLost,
		configuration.ReasonMissing: v1alpha1.ReasonConfigMissing, configuration.ReasonUnreadable: v1alpha1.ReasonConfigUnreadable,
		configuration.ReasonChanged: v1alpha1.ReasonConfigChanged, configuration.ReasonTurn: v1alpha1.ReasonConfigTurn,
		configuration.ReasonCached: v1alpha1.ReasonConfigCached,
	} {
		if said != want {
			t.Errorf("got %s, but the constant of the API is %s", said, want)
		}
	}
}

// TestHoldsRestart verifies E14: the current version is not restarted during an upgrade, which also
// takes pods from it.
func TestHoldsRestart(t *testing.T) {
	const held = "an upgrade is in progress"
	under := func(phase v1alpha1.Phase) *v1alpha1.ExtendedStatefulSetStatus {
		return &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1, UpdateVersion: 2, Phase: phase, Update: &v1alpha1.UpdateStatus{}}
	}
	for _, row := range []struct {
		says   string
		status *v1alpha1.ExtendedStatefulSetStatus
		number int64
		want   string
	}{
		{"without an upgrade restarts are not delayed", &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1}, 1, ""},
		{"restarts of the current version wait in phase PreJob", under(v1alpha1.PhasePreJob), 1, held},
		{"restarts of the current version wait in phase Promoting", under(v1alpha1.PhasePromoting), 1, held},
		{"restarts of the new version do not wait", under(v1alpha1.PhaseCanary), 2, ""},
		{"restarts of the current version do not wait in phase Stale", under(v1alpha1.PhaseStale), 1, ""},
		{"restarts of the current version do not wait in phase Aborted", under(v1alpha1.PhaseAborted), 1, ""},
	} {
		if got := facts.HoldsRestart(row.status, row.number); got != row.want {
			t.Errorf("%s: %q, want %q", row.says, got, row.want)
		}
	}
}

// TestW20APodWithOldContentsIsTold verifies W20: the kubelet keeps the content of an immutable
// ConfigMap while a pod on its Node uses it.
func TestW20APodWithOldContentsIsTold(t *testing.T) {
	s := fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2})
	r := configuration.Record{Key: "k", Seen: "s", Hash: "new", Recreated: []string{"ConfigMap web"}}
	c := s.W.Children[0]
	c.Set.Annotations[v1alpha1.AnnotationConfigRecord] = r.String()
	c.Set.Spec.Template.Annotations = map[string]string{v1alpha1.AnnotationConfigHash: "new"}
	for o, hash := range map[int32]string{0: "old", 1: "new"} {
		pod := c.Pods[o]
		pod.UID, pod.Spec.NodeName, pod.Annotations = types.UID(pod.Name), "n1", map[string]string{v1alpha1.AnnotationConfigHash: hash}
		if hash == "new" {
			pod.CreationTimestamp = metav1.NewTime(fixture.Noon)
		}
	}
	view := facts.ViewOf(c.Set)
	view.State = configuration.State{Key: "k", Seen: "s"} // there was no edit since
	s.W.Config = facts.Configure(s.W, facts.ConfigInput{Views: map[types.UID]*configuration.View{c.Set.UID: view}}, nil)
	if got := configuration.ParseRecord(s.W.Config.Stamps["db-v1"].Record); len(got.Cached) != 1 || got.Cached[0] != "db-v1-1" {
		t.Errorf("got cached pods %q", got.Cached)
	}
	f, p := fixture.Decided(s.W)
	const want = "kubectl cordon n1 && kubectl -n ns delete pod db-v1-1 && kubectl uncordon n1"
	if c := status.Degraded(f, p); c.Reason != v1alpha1.ReasonConfigCached || !strings.Contains(c.Message, want) {
		t.Errorf("Degraded: %s: %s", c.Reason, c.Message)
	}
}
