package status_test

import (
	"context"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// TestS24TheGrantOnTheWire checks that the grant is sent with the UID and resourceVersion
// that were read.
func TestS24TheGrantOnTheWire(t *testing.T) {
	w := fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").With(func(p *corev1.Pod) { p.ResourceVersion = "7" }))
	w.Object.ResourceVersion = "5"
	p := rules.Decide(facts.Derive(w))
	sent := map[string]map[string]any{}
	note := func(obj client.Object, patch client.Patch) error {
		data, err := patch.Data(obj)
		if err != nil {
			return err
		}
		var content struct{ Metadata map[string]any }
		err = json.Unmarshal(data, &content)
		sent[obj.GetName()] = content.Metadata
		return err
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			return note(obj, patch)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			return note(obj, patch)
		},
	}).Build()
	runner := &action.Runner{Client: c, Live: c}
	for _, o := range runner.Run(context.Background(), types.NamespacedName{}, p.Steps) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	if got := sent["db"]["resourceVersion"]; got != "5" {
		t.Errorf("the holder is set for version %v of the object, want 5", got)
	}
	grant := sent["a"]
	if grant["uid"] != "uid-of-a" || grant["resourceVersion"] != "7" || grant["annotations"] == nil || grant["finalizers"] == nil {
		t.Errorf("the grant is %v; want it bound to UID uid-of-a and version 7, with annotation and finalizer", grant)
	}
}

// TestWhatIsToldOfAnAct checks that the event for the first grant of an object is a start,
// and that of each later grant a handover (S7, S8).
func TestWhatIsToldOfAnAct(t *testing.T) {
	first, second := rules.Grant(&fixture.Waiting("a").Member, 1), rules.Grant(&fixture.Waiting("b").Member, 2)
	letGo := action.Action{Verb: action.Patch, Object: fixture.Waiting("a").Pod, Reason: rules.ReasonLetGo}
	for _, r := range []struct {
		act  action.Action
		want string
	}{
		{first, v1.EventPodStarted},
		{second, v1.EventPodTransition},
		{rules.Deletion(&fixture.Granted("a", 1).Member, rules.ReasonSuperseded, "")[0], v1.EventPodDeleted},
		{letGo, v1.EventPodReleased},
		{action.Action{Verb: action.Patch, Object: fixture.Waiting("a").Pod, Reason: rules.ReasonCrashLoop}, v1.EventPodTransition},
		{rules.Unprotect(&fixture.Granted("a", 1).Member, rules.ReasonRelease), ""},
	} {
		if got, _, _ := status.EventOf(action.Outcome{Action: r.act}); got != r.want {
			t.Errorf("the event of %s is %q, want %q", r.act, got, r.want)
		}
	}
}
