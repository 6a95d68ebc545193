package replicatedstatefulset

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/status"
)

// notOurs makes the StatefulSet one of another object that had the name first.
var notOurs = with(func(w *facts.World) {
	w.Stateful.OwnerReferences, w.Stateful.Labels, w.Stateful.Spec.Replicas = nil, nil, ptr.To(int32(5))
})

func TestWhatIsNotOursIsNotScaled(t *testing.T) {
	check(t, []row{
		{"no scaling of a foreign StatefulSet", worldOf(setOf(3, 1), notOurs), nil},
		{"no scaling of a foreign StatefulSet when the object is deleted", worldOf(setOf(3, 1), notOurs, with(func(w *facts.World) {
			w.Set.DeletionTimestamp = ptr.To(metaTime(time.Second))
		})), []string{"patch replicatedstatefulset db: Release"}},
	})
}

// TestTheDark tests scale-downs while no member is primary.
func TestTheDark(t *testing.T) {
	five, noClaims := setOf(5, 1), setOf(3, 1)
	five.Spec.Seeding = v1alpha1.SeedingQuorum
	noClaims.Spec.Pod.VolumeClaimTemplates = nil
	stale := func() []thing {
		return []thing{pod(0).idle().sequence("3").outdated(), pod(1).idle().sequence("9").outdated(), pod(2).idle().sequence("9").outdated()}
	}
	check(t, []row{
		{"no seed while a wanted member is pending and a member to remove is idle", worldOf(setOf(3, 1), pod(0).pending(), pod(1).idle().sequence("3"), pod(2).idle().sequence("4"), replicas(2)), nil},
		{"no seed while the wanted members are pending and the members to remove are idle", worldOf(five, pod(0).pending(), pod(1).pending(), pod(2).pending(), pod(3).idle().sequence("4"), pod(4).idle().sequence("4"), replicas(3)), nil},
		{"no scale-down while members to remove crashed a moment ago", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).crashed(), pod(2).crashed(), replicas(1)), nil},
		{"no scale-down while the pod of a member to remove is terminating", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).idle().deleted(), replicas(2)), nil},
		{"no scale-down while the recorded newest copy is missing", worldOf(setOf(3, 1), pod(0).idle().sequence("3"), pod(1).idle().sequence("3"), pod(2).pending(), recordedSequence("rss-db-2", "9"), replicas(2)), nil},
		{"scale down when a remaining member has the recorded newest copy", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).idle().sequence("3"), pod(2).pending(), recordedSequence("rss-db-2", "9"), replicas(2)),
			[]string{"patch statefulset rss-db: Scale, from 3 to 2"}},
		{"RS-34 no scale-down while the primary is being stopped", worldOf(setOf(3, 1), pod(0).idle().sequence("9"), pod(1).granted().status(9).deleted().runs("stop", time.Second), pod(2).secondary(), replicas(2)), nil},
		{"RS-38 no scale-up with too few replicas while pods terminate", worldOf(setOf(3, 1), replicas(2), with(func(w *facts.World) {
			w.Set.Status.RestoreReplicas, w.Stateful.Spec.Replicas = 3, ptr.To(int32(0))
		}), pod(0).idle().deleted(), pod(1).idle().deleted(), pod(2).idle().deleted()), nil},
		{"seed an outdated member before its pod is recreated", worldOf(setOf(3, 1), stale()...), []string{"1: Seed, alone"}},
		{"seed an outdated member without a claim before its pod is recreated", worldOf(noClaims, stale()...), []string{"1: Seed, alone"}},
		{"no seed while a pod of a former object is terminating on an unreachable node", worldOf(quorum(), pod(0).deleted().onNode(off).strange(), pod(1).idle().sequence("3"), pod(2).idle().sequence("3")), nil},
		{"seed-from is refused for a missing member", worldOf(setOf(3, 1), pod(0).idle().sequence("x"), pod(1).idle().sequence("9"), pod(2).idle().sequence("9"),
			annotated(v1alpha1.AnnotationSeedFrom, "rss-db-7")), []string{"patch replicatedstatefulset db: Refused, 7 was not seeded: no such member"}},
	})
}

// TestStrays tests commands that may still reach a container.
func TestStrays(t *testing.T) {
	check(t, []row{
		{"no promotion while this process still sends a command", worldOf(setOf(2, 1), pod(0).granted().runs("promote", 16*time.Second).crashed(), pod(1).secondary().sequence("9")), nil},
		{"RS-22 query status when the clock of the node is ahead", worldOf(setOf(2, 1), pod(0).granted().began("promote", 4*time.Second).restarted(-12*time.Second), pod(1).secondary().sequence("9")),
			[]string{"0 asked status"}},
	})
}

func TestAPrimaryThatDoesNotAnswerAnyMoreIsToldOf(t *testing.T) {
	w := worldOf(setOf(2, 1), pod(0).primary().silent(spec.UnresponsiveAfter), pod(1).secondary())
	m := w.Members[0]
	r := m.Said[v1alpha1.CommandStatus]
	r.Code, r.Outcome, r.Began, r.Ended = 8, podexec.Failed, ago(time.Hour), ago(time.Hour)
	r.Command = podexec.Command{Name: v1alpha1.CommandStatus, UID: m.Pod.UID, ContainerID: m.Running()}
	m.Said[v1alpha1.CommandStatus] = r
	p := rules.Decide(w)
	s := status.Summarize(&p)
	c := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionDegraded)
	if c == nil || c.Reason != v1alpha1.ReasonMembersDegraded {
		t.Errorf("the condition is %+v", c)
	}
}
