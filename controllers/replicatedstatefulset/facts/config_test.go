package facts_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func TestASetThatIsNotFollowedKeepsItsTemplate(t *testing.T) {
	set := spec.WithDefaults(fixture.SetOf(3, 1))
	plain := children.BuildTemplate(set, children.Hashes{})
	if plain.Annotations[v1alpha1.AnnotationTemplate] != children.TemplateHash(set, &plain.Spec, children.Hashes{}) || plain.Annotations[v1alpha1.AnnotationConfigHash] != "" {
		t.Error("the template of a set without the field has a hash of its configuration")
	}
	set.Spec.UpdateOnEnvChange = true
	if followed := children.BuildTemplate(set, children.Hashes{}); followed.Annotations[v1alpha1.AnnotationTemplate] != plain.Annotations[v1alpha1.AnnotationTemplate] {
		t.Error("setting the field recreates the members")
	}
	if changed := children.BuildTemplate(set, children.Hashes{Config: "h"}); changed.Annotations[v1alpha1.AnnotationTemplate] == plain.Annotations[v1alpha1.AnnotationTemplate] {
		t.Error("a change recreates no member")
	}
}

func TestTheNextStatefulSetComparesWhatPodsHave(t *testing.T) {
	complete := configuration.State{Key: "k", Seen: "s", Hash: "now"}
	for _, row := range []struct {
		says    string
		view    configuration.View
		adopts  bool
		hash    string
		records string // the hash of the record; "-" for no record
	}{
		{"a new set records its configuration", configuration.View{State: complete}, false, "now", "now"},
		{"a new set with missing configuration records nothing yet", configuration.View{State: configuration.State{Key: "k", Hash: "x", Missing: []string{"it"}}}, false, "", "-"},
		{"adopted pods without a hash keep none", configuration.View{State: complete}, true, "", "-"},
		{"adopted pods with a hash keep it, and it is compared", configuration.View{State: complete, Carried: configuration.Stamp{Hash: "old"}}, true, "old", "old"},
		{"adopted pods with a hash keep it while the configuration is unreadable", configuration.View{State: configuration.State{Key: "k", Unreadable: "no"}, Carried: configuration.Stamp{Hash: "old"}}, true, "old", "old"},
	} {
		got := facts.FirstTarget(&row.view, row.adopts, fixture.Noon)
		records := "-"
		if r := configuration.ParseRecord(got.Record); r != nil && got.Record != "" {
			records = r.Hash
		}
		if row.adopts && row.view.Carried.Hash == "" {
			records = "-" // its record is the base, and the pods have none
		}
		if got.Hash != row.hash || records != row.records {
			t.Errorf("%s: hash %q, record of %q", row.says, got.Hash, records)
		}
	}
}

func TestARestartIsSeenInTheStatefulSetOfASet(t *testing.T) {
	begun := configuration.Record{Key: "k", Restarted: &metav1.Time{Time: fixture.Noon}}
	for _, row := range []struct {
		says   string
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		{"the spec was just written", func(s *appsv1.StatefulSet) { s.Generation = 2 }, true},
		{"a member has the previous template", func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 2 }, true},
		{"all members have the current template", func(*appsv1.StatefulSet) {}, false},
		{"the StatefulSet has 0 replicas", func(s *appsv1.StatefulSet) { s.Spec.Replicas, s.Generation = ptr.To(int32(0)), 2 }, false},
		{"the StatefulSet is terminating", func(s *appsv1.StatefulSet) { s.DeletionTimestamp, s.Generation = &metav1.Time{Time: fixture.Noon}, 2 }, false},
		{"the restart has another reason", func(s *appsv1.StatefulSet) { s.Annotations, s.Generation = nil, 2 }, false},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{v1alpha1.AnnotationConfigRecord: begun.String()}},
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3))}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdatedReplicas: 3}}
		row.change(set)
		if got := !facts.RestartsSince(set).IsZero(); got != row.want {
			t.Errorf("%s: restarting is %v", row.says, got)
		}
	}
}

// TestW20AMemberWithOldContentsIsTold tests W20: the kubelet keeps the contents of an immutable
// ConfigMap while a pod on its node uses it.
func TestW20AMemberWithOldContentsIsTold(t *testing.T) {
	w := &facts.World{Set: fixture.SetOf(2, 1)}
	for name, hash := range map[string]string{"db-0": "old", "db-1": "new"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{v1alpha1.AnnotationConfigHash: hash}}}
		if pod.Spec.NodeName = "n1"; hash == "new" {
			pod.CreationTimestamp = metav1.NewTime(fixture.Noon)
		}
		w.Members = append(w.Members, &facts.Member{Pod: pod})
	}
	r := configuration.Record{Key: "k", Hash: "new", Recreated: []string{"Secret creds"}}
	w.Config.Target = configuration.Target{Stamp: configuration.Stamp{Hash: "new", Record: r.String()}}
	facts.NoteCached(w)
	if got := configuration.ParseRecord(w.Config.Target.Record); len(got.Cached) != 1 || got.Cached[0] != "db-1" {
		t.Errorf("the record names %q", got.Cached)
	}
	if !strings.Contains(w.Config.Cached, "kubectl cordon n1 && kubectl -n "+w.Set.Namespace+" delete pod db-1 && kubectl uncordon n1") {
		t.Errorf("the message is %s", w.Config.Cached)
	}
}
