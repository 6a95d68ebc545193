package statefulsingleton

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
)

// readAsToolsDo returns the situations whose statuses the tests in test/readiness read as
// tools do.
func readAsToolsDo() map[golden.Situation]*world {
	const current, moving, failed = "Current", "InProgress", "Failed"
	late := singleton("db").held("a", 1).with(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	})
	older := singleton("older").madeAt(1)
	younger := singleton("younger").madeAt(2)
	sees := func(s *singletonFixture) func(*world) {
		return func(w *world) { w.rivals = []*v1.StatefulSingleton{&s.StatefulSingleton} }
	}
	old := func() *memberFixture { return granted("a", 1).of("d").old().serving() }
	next := func(reason string) *memberFixture { return waiting("b").of("d").stuck(reason) }
	kept := func(w *world) { (&reader{}).readCauses(context.Background(), w, &remembered{}) }
	return map[golden.Situation]*world{
		{Sentence: "one program runs, and one pod waits", Kstatus: current}:  worldOf(held(), granted("a", 1).serving(), waiting("b")),
		{Sentence: "there are no pods", Kstatus: current}:                    worldOf(singleton("db")),
		{Sentence: "a pod without the gate runs", Kstatus: current}:          worldOf(singleton("db"), ungated("a").serving()),
		{Sentence: "the older of two overlapping objects", Kstatus: current}: worldOf(older, granted("a", 1).serving()).with(sees(younger)),
		{Sentence: "the guard policy is missing", Kstatus: current}: worldOf(held(), granted("a", 1).serving()).with(func(w *world) {
			w.unguarded = engine.Notice{Reason: v1.ReasonNoPolicyAPI, Message: "the API server does not support ValidatingAdmissionPolicy"}
		}),
		{Sentence: "the program has started, and is not Ready yet", Kstatus: moving}:              worldOf(held(), granted("a", 1)),
		{Sentence: "the old program shuts down, and the new pod waits", Kstatus: moving}:          worldOf(held(), granted("a", 1).serving().deleted(), waiting("b")),
		{Sentence: "the new pod has not reached its gate", Kstatus: moving}:                       worldOf(held(), old(), next("ContainerCreating")),
		{Sentence: "the only pod is unschedulable", Kstatus: moving}:                              worldOf(singleton("db"), waiting("a").unscheduled()),
		{Sentence: "the node of the program is deleted", Kstatus: moving}:                         worldOf(held(), granted("a", 1).serving().onNode(goneSince(time.Second)), waiting("b")),
		{Sentence: "the program crashes repeatedly", Kstatus: failed}:                             worldOf(held(), granted("a", 1).crashing(), waiting("b")).with(kept),
		{Sentence: "the program has just ended", Kstatus: moving}:                                 worldOf(held(), granted("a", 1).age(0).crashing(), waiting("b")).with(kept),
		{Sentence: "the node of the program is unreachable", Kstatus: failed}:                     worldOf(held(), granted("a", 1).serving().onNode(unresponsive), waiting("b")),
		{Sentence: "the image of the new revision cannot be pulled for an hour", Kstatus: failed}: worldOf(late, old(), next("ErrImagePull")),
		{Sentence: "three pods without the gate run", Kstatus: failed}:                            worldOf(singleton("db"), ungated("a").serving(), ungated("b").serving(), ungated("c").serving()),
		{Sentence: "the younger of two overlapping objects", Kstatus: failed}:                     worldOf(younger, waiting("a")).with(sees(older)),
		{Sentence: "the namespace has too many objects", Kstatus: failed}:                         worldOf(singleton("db"), waiting("a")).with(func(w *world) { w.crowded = true }),
		{Sentence: "a policy refuses a write", Kstatus: failed}:                                   worldOf(held(), granted("a", 1).serving()).with(func(w *world) { w.refused = "patch pod a: denied" }),
		{Sentence: "the spec is invalid", Kstatus: failed}:                                        worldOf(singleton("db"), waiting("a")).with(func(w *world) { w.invalid = "spec.selector: Invalid value" }),
	}
}

func TestStatusesAreRecorded(t *testing.T) {
	for situation, w := range readAsToolsDo() {
		w.object.Generation = 2
		object := w.object.DeepCopy()
		object.Kind, object.APIVersion = "StatefulSingleton", v1.GroupVersion.String()
		object.Status = summarize(derive(w))
		situation.Check(t, "statefulsingleton", object)
	}
}

func TestEachReasonMeansWhatUsersAreTold(t *testing.T) {
	golden.Reasons(t, "StatefulSingleton", effects)
}
