package webhooks_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
)

func TestV20WarningsOfAdmission(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.ReplicatedStatefulSet)
		want   string
	}{
		{"a timeout below the minimum", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "1s"}
		}, "spec.pod.commands[stop].timeout is 1s, which is replaced by 10s, the min; set 10s or more"},
		{"a reconcileInterval below the minimum", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ReconcileInterval = "10ms" },
			"spec.reconcileInterval is 10ms, which is replaced by 100ms, the min; set 100ms or more"},
		{"a timeout of 0", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands["stop"] = v1alpha1.Command{Command: []string{"/stop"}, Timeout: "0"}
		}, ""},
		{"an empty ruleSelector", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.RuleSelector = &metav1.LabelSelector{} },
			"spec.ruleSelector is empty and selects every ConfigMap of the namespace"},
		{"a ruleSelector with a label", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.RuleSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}, ""},
		{"RS-92 a missing member in maintenance", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Maintenance = []string{"rss-db-1", "rss-db-3"} },
			"spec.maintenance[1] is rss-db-3, and there is no such member; it will be parked when it is created. The members are rss-db-0 to rss-db-2"},
		{"an order with a typo", annotate(v1alpha1.Prefix + "switchover"),
			"metadata.annotations[clusterlabs.org/switchover] is unknown and ignored; the operator supports clusterlabs.org/seed-from and clusterlabs.org/switchover-to"},
		{"an order with another prefix", annotate("clusterlab.org/seed-from"), "metadata.annotations[clusterlab.org/seed-from] is unknown and ignored"},
		{"an order without a prefix", annotate("switchoverTo"), "metadata.annotations[switchoverTo] is unknown and ignored"},
		{"an annotation of another object", annotate("example.org/owner"), ""},
		{"an order", annotate(v1alpha1.AnnotationSeedFrom), ""},
	} {
		set := fixture.SetOf(3, 1)
		r.change(set)
		warned := strings.Join(webhooks.Warnings(spec.WithDefaults(set)), "\n")
		if r.want == "" && warned != "" || !strings.HasPrefix(warned, r.want) {
			t.Errorf("V20 %s: the warning is %q, want %q", r.name, warned, r.want)
		}
	}
}

func annotate(key string) func(*v1alpha1.ReplicatedStatefulSet) {
	return func(s *v1alpha1.ReplicatedStatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, key, "rss-db-1") }
}
