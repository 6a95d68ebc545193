package status_test

import (
	"testing"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
)

// readAsToolsDo returns situations whose statuses the tests in test/readiness read like tools.
func readAsToolsDo() map[golden.Situation]*fixture.Scene {
	const current, moving, failed = "Current", "InProgress", "Failed"
	const canary, coexist = v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist
	well := func() *fixture.Scene { return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}) }
	ill := func() *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(fixture.States(1, fixture.Crashing(2)))
	}
	gaveUp := func(reason string) func(*facts.World) {
		return func(w *facts.World) { w.Set.Status.Update.Reason, w.Set.Status.Update.Message = reason, "why" }
	}
	configIs := func(reason, message string) func(*facts.World) {
		return func(w *facts.World) {
			w.Config.Missing = map[string]facts.Notice{"db-v1": {Reason: reason, Message: message}}
		}
	}
	return map[golden.Situation]*fixture.Scene{
		{Sentence: "all pods are available", Kstatus: current}:                           well(),
		{Sentence: "the set is scaled to 0", Kstatus: current}:                           fixture.Of(fixture.FakeSet(0)).Has(1, children.Span{}),
		{Sentence: "the first version starts", Kstatus: moving}:                          fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(withStatus(func(s *v1alpha1.ExtendedStatefulSetStatus) { s.Phase = v1alpha1.PhasePromoting })),
		{Sentence: "all three pods crash", Kstatus: failed}:                              ill(),
		{Sentence: "the canary cannot pull its image", Kstatus: moving}:                  well().Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).But(fixture.States(2, fixture.Pulling)),
		{Sentence: "an attempt failed, and the next one follows", Kstatus: moving}:       well().Upgrading(canary, coexist).Has(2, children.Span{}).But(givesBack),
		{Sentence: "an upgrade waits for the current version", Kstatus: moving}:          fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0).Edited(),
		{Sentence: "one of three pods is not Ready", Kstatus: moving}:                    fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2),
		{Sentence: "a ConfigMap is missing", Kstatus: moving}:                            well().But(follows).But(configIs(v1alpha1.ReasonConfigMissing, "ConfigMap greeter does not exist")),
		{Sentence: "a Secret cannot be read", Kstatus: failed}:                           well().But(follows).But(configIs(v1alpha1.ReasonConfigUnreadable, "Secret db cannot be read: forbidden")),
		{Sentence: "the upgrade is Stale, and the old version serves", Kstatus: failed}:  well().Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(fixture.Stale2).But(gaveUp(v1alpha1.ReasonCanaryFailed)),
		{Sentence: "the upgrade is Stale, and the old version crashes", Kstatus: failed}: ill().Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(fixture.Stale2).But(gaveUp(v1alpha1.ReasonUpdateTimeout)),
		{Sentence: "the job before the upgrade failed", Kstatus: failed}:                 well().Upgrading(v1alpha1.PhaseAborted, coexist).But(gaveUp(v1alpha1.ReasonPreJobFailed)),
		{Sentence: "the Service name belongs to another application", Kstatus: failed}: well().But(serviceOf("uid", nil)).But(func(w *facts.World) {
			for _, s := range w.Services {
				s.OwnerReferences = nil
			}
		}),
		{Sentence: "a policy refuses a write", Kstatus: failed}: fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).But(func(w *facts.World) { w.Refused = "patch statefulset db-v1: denied" }),
		{Sentence: "the spec is invalid", Kstatus: failed}:      well().But(func(w *facts.World) { w.Invalid = "spec.zones: what" }),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	var all golden.Statuses
	for situation, s := range readAsToolsDo() {
		s.W.Set.Generation = 2
		f, p := fixture.Decided(s.W)
		set := s.W.Set.DeepCopy()
		set.Kind, set.APIVersion = "ExtendedStatefulSet", v1alpha1.GroupVersion.String()
		set.Status = status.Summarize(f, p)
		all.Add(t, situation, set)
	}
	all.Check(t, "extendedstatefulset")
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "ExtendedStatefulSet", status.Effects)
}
