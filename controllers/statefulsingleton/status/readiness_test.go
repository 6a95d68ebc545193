package status_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// readAsToolsDo returns the situations whose statuses the tests in test/readiness read as
// tools do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	late := fixture.Singleton("db").Held("a", 1).With(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: fixture.Noon.Add(-time.Hour)}
	})
	older := fixture.Singleton("older").MadeAt(1)
	younger := fixture.Singleton("younger").MadeAt(2)
	sees := func(s *fixture.SingletonFixture) func(*facts.World) {
		return func(w *facts.World) { w.Rivals = []*v1.StatefulSingleton{&s.StatefulSingleton} }
	}
	old := func() *fixture.MemberFixture { return fixture.Granted("a", 1).Of("d").Old().Serving() }
	next := func(reason string) *fixture.MemberFixture { return fixture.Waiting("b").Of("d").Stuck(reason) }
	kept := func(w *facts.World) { (&observe.Reader{}).ReadCauses(context.Background(), w, &observe.Remembered{}) }
	return map[golden.Situation]*facts.World{
		{Sentence: "one program runs, and one pod waits", Kstatus: current}:  fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving(), fixture.Waiting("b")),
		{Sentence: "there are no pods", Kstatus: current}:                    fixture.WorldOf(fixture.Singleton("db")),
		{Sentence: "a pod without the gate runs", Kstatus: current}:          fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving()),
		{Sentence: "the older of two overlapping objects", Kstatus: current}: fixture.WorldWith(fixture.WorldOf(older, fixture.Granted("a", 1).Serving()), sees(younger)),
		{Sentence: "the guard policy is missing", Kstatus: current}: fixture.WorldWith(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving()), func(w *facts.World) {
			w.Unguarded = engine.Notice{Reason: v1.ReasonNoPolicyAPI, Message: "the API server does not support ValidatingAdmissionPolicy"}
		}),
		{Sentence: "the program has started, and is not Ready yet", Kstatus: moving}:              fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)),
		{Sentence: "the old program shuts down, and the new pod waits", Kstatus: moving}:          fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving().Deleted(), fixture.Waiting("b")),
		{Sentence: "the new pod has not reached its gate", Kstatus: moving}:                       fixture.WorldOf(fixture.Held(), old(), next("ContainerCreating")),
		{Sentence: "the only pod is unschedulable", Kstatus: moving}:                              fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Unscheduled()),
		{Sentence: "the node of the program is deleted", Kstatus: moving}:                         fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving().OnNode(fixture.GoneSince(time.Second)), fixture.Waiting("b")),
		{Sentence: "the program crashes repeatedly", Kstatus: failed}:                             fixture.WorldWith(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Crashing(), fixture.Waiting("b")), kept),
		{Sentence: "the program crashes repeatedly, and another pod takes over", Kstatus: moving}: fixture.WorldWith(handingOver(fixture.Leased("b")), kept),
		{Sentence: "the program has just ended", Kstatus: moving}:                                 fixture.WorldWith(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Age(0).Crashing(), fixture.Waiting("b")), kept),
		{Sentence: "the node of the program is unreachable", Kstatus: failed}:                     fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving().OnNode(fixture.Unresponsive), fixture.Waiting("b")),
		{Sentence: "the image of the new revision cannot be pulled for an hour", Kstatus: failed}: fixture.WorldOf(late, old(), next("ErrImagePull")),
		{Sentence: "three pods without the gate run", Kstatus: failed}:                            fixture.WorldOf(fixture.Singleton("db"), fixture.Ungated("a").Serving(), fixture.Ungated("b").Serving(), fixture.Ungated("c").Serving()),
		{Sentence: "the younger of two overlapping objects", Kstatus: failed}:                     fixture.WorldWith(fixture.WorldOf(younger, fixture.Waiting("a")), sees(older)),
		{Sentence: "the namespace has too many objects", Kstatus: failed}:                         fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.BeyondLimit = true }),
		{Sentence: "a policy refuses a write", Kstatus: failed}:                                   fixture.WorldWith(fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1).Serving()), func(w *facts.World) { w.Refused = "patch pod a: denied" }),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                        fixture.WorldWith(fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a")), func(w *facts.World) { w.Invalid = "spec.selector: Invalid value" }),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	var all golden.Statuses
	for situation, w := range readAsToolsDo() {
		w.Object.Generation = 2
		object := w.Object.DeepCopy()
		object.Kind, object.APIVersion = "StatefulSingleton", v1.GroupVersion.String()
		object.Status = status.Summarize(facts.Derive(w))
		all.Add(t, situation, object)
	}
	all.Check(t, "statefulsingleton")
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "StatefulSingleton", status.Effects)
}
