package action

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
}

func TestAnActionIsALine(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	for _, r := range []struct {
		action Action
		want   string
	}{
		{Action{Verb: Create, Object: pod("a"), Reason: "Missing"}, "create pod a: Missing"},
		{Action{Verb: Delete, Object: claim, Reason: "Lost", Detail: "as required by the policy"}, "delete persistentvolumeclaim data: Lost, as required by the policy"},
		{Action{Verb: Try, Object: pod("a"), Reason: "Trial"}, "try pod a: Trial"},
		{Action{Verb: PatchStatus, Object: pod("a"), Reason: "Observed"}, "patch status of pod a: Observed"},
	} {
		if got := r.action.String(); got != r.want {
			t.Errorf("%q, want %q", got, r.want)
		}
	}
}

func TestAChainIsALine(t *testing.T) {
	create := func(name string) Action { return Action{Verb: Create, Object: pod(name), Reason: "Missing"} }
	steps := Steps{{{create("a"), create("b")}, {create("c")}}, {{create("d")}}}
	want := []string{"create pod a: Missing > create pod b: Missing", "create pod c: Missing", "create pod d: Missing"}
	if got := steps.Strings(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
