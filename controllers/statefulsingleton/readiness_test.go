package statefulsingleton

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// readAsToolsDo returns the situations whose statuses the tests in test/readiness read as
// tools do.
func readAsToolsDo() map[golden.Situation]*facts.World {
	const current, moving, failed = "Current", "InProgress", "Failed"
	late := singleton("db").held("a", 1).with(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	})
	older := singleton("older").madeAt(1)
	younger := singleton("younger").madeAt(2)
	sees := func(s *singletonFixture) func(*facts.World) {
		return func(w *facts.World) { w.Rivals = []*v1.StatefulSingleton{&s.StatefulSingleton} }
	}
	old := func() *memberFixture { return granted("a", 1).of("d").old().serving() }
	next := func(reason string) *memberFixture { return waiting("b").of("d").stuck(reason) }
	kept := func(w *facts.World) { (&observe.Reader{}).ReadCauses(context.Background(), w, &observe.Remembered{}) }
	return map[golden.Situation]*facts.World{
		{Sentence: "one program runs, and one pod waits", Kstatus: current}:  worldOf(held(), granted("a", 1).serving(), waiting("b")),
		{Sentence: "there are no pods", Kstatus: current}:                    worldOf(singleton("db")),
		{Sentence: "a pod without the gate runs", Kstatus: current}:          worldOf(singleton("db"), ungated("a").serving()),
		{Sentence: "the older of two overlapping objects", Kstatus: current}: worldWith(worldOf(older, granted("a", 1).serving()), sees(younger)),
		{Sentence: "the guard policy is missing", Kstatus: current}: worldWith(worldOf(held(), granted("a", 1).serving()), func(w *facts.World) {
			w.Unguarded = engine.Notice{Reason: v1.ReasonNoPolicyAPI, Message: "the API server does not support ValidatingAdmissionPolicy"}
		}),
		{Sentence: "the program has started, and is not Ready yet", Kstatus: moving}:              worldOf(held(), granted("a", 1)),
		{Sentence: "the old program shuts down, and the new pod waits", Kstatus: moving}:          worldOf(held(), granted("a", 1).serving().deleted(), waiting("b")),
		{Sentence: "the new pod has not reached its gate", Kstatus: moving}:                       worldOf(held(), old(), next("ContainerCreating")),
		{Sentence: "the only pod is unschedulable", Kstatus: moving}:                              worldOf(singleton("db"), waiting("a").unscheduled()),
		{Sentence: "the node of the program is deleted", Kstatus: moving}:                         worldOf(held(), granted("a", 1).serving().onNode(goneSince(time.Second)), waiting("b")),
		{Sentence: "the program crashes repeatedly", Kstatus: failed}:                             worldWith(worldOf(held(), granted("a", 1).crashing(), waiting("b")), kept),
		{Sentence: "the program has just ended", Kstatus: moving}:                                 worldWith(worldOf(held(), granted("a", 1).age(0).crashing(), waiting("b")), kept),
		{Sentence: "the node of the program is unreachable", Kstatus: failed}:                     worldOf(held(), granted("a", 1).serving().onNode(unresponsive), waiting("b")),
		{Sentence: "the image of the new revision cannot be pulled for an hour", Kstatus: failed}: worldOf(late, old(), next("ErrImagePull")),
		{Sentence: "three pods without the gate run", Kstatus: failed}:                            worldOf(singleton("db"), ungated("a").serving(), ungated("b").serving(), ungated("c").serving()),
		{Sentence: "the younger of two overlapping objects", Kstatus: failed}:                     worldWith(worldOf(younger, waiting("a")), sees(older)),
		{Sentence: "the namespace has too many objects", Kstatus: failed}:                         worldWith(worldOf(singleton("db"), waiting("a")), func(w *facts.World) { w.Crowded = true }),
		{Sentence: "a policy refuses a write", Kstatus: failed}:                                   worldWith(worldOf(held(), granted("a", 1).serving()), func(w *facts.World) { w.Refused = "patch pod a: denied" }),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                        worldWith(worldOf(singleton("db"), waiting("a")), func(w *facts.World) { w.Invalid = "spec.selector: Invalid value" }),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	for situation, w := range readAsToolsDo() {
		w.Object.Generation = 2
		object := w.Object.DeepCopy()
		object.Kind, object.APIVersion = "StatefulSingleton", v1.GroupVersion.String()
		object.Status = status.Summarize(facts.Derive(w))
		situation.Check(t, "statefulsingleton", object)
	}
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "StatefulSingleton", status.Effects)
}
