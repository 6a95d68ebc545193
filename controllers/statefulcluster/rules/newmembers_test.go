package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// A partition keeps members at a revision. A leaving member no longer counts.
func TestSuccessorsUnderAPartition(t *testing.T) {
	partition := func() *fixture.SetFixture {
		s := fixture.Replacing().Rolling(v1alpha1.RollingUpdate{Partition: 3})
		s.Status.CurrentRevision = "old"
		return s
	}
	w := fixture.Seen(partition(), fixture.LeavingA().Of("old"), fixture.B().Of("old"), fixture.C().Of("old"), fixture.RevisionOfImage("old", "zero"))
	if got := facts.RevisionOf(fixture.FirstWritten(w).(*corev1.Pod)); got != "old" {
		t.Errorf("the successor has revision %s, want old because of the partition", got)
	}
	tolerant := fixture.RevisionWith("old", func(d *children.RevisionData) {
		d.Template.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	})
	w = fixture.Seen(partition(), fixture.LeavingA().Of("old"), fixture.B().Of("old"), fixture.C().Of("old"), tolerant)
	if p := fixture.PlanOf(w); len(p.Steps) > 0 {
		t.Errorf("SC-44 new members would start on cordoned nodes, but the steps are\n  %s", p.Steps.Strings())
	}
	want := "True DrainBlocked: members stay on cordoned nodes and their evictions are refused: db-a; new members could start there again, because " +
		"rollingUpdate.partition keeps members at revision old, whose template sets nodeName or tolerates cordoned nodes; lower the partition"
	if got := fixture.Says(fixture.Told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("SC-44 condition Degraded is\n  %s\nwant\n  %s", got, want)
	}
}

// A member on given claims existed before: it gets no empty claim, and is not replaced because it
// starts slowly.
func TestMembersOnGivenClaims(t *testing.T) {
	p := fixture.PlanOf(fixture.Seen(fixture.Set("db").Replicas(1), fixture.LeftBehindBy(fixture.Left(fixture.Xs).Retained("Deleted").Given())))
	chain := p.Steps[len(p.Steps)-1][0]
	born := &facts.Member{Pod: chain[0].Object.(*corev1.Pod)}
	if !born.HasRun() || !born.CameBack() {
		t.Errorf("the annotations of the pod are %v", born.Pod.Annotations)
	}
	taken := chain[1].Object.(*corev1.PersistentVolumeClaim)
	if taken.Labels[v1alpha1.LabelClusterUID] != "uid-of-set" || taken.Labels[v1alpha1.LabelMember] != fixture.Xs || facts.IsRetained(taken) ||
		taken.Annotations[v1alpha1.AnnotationAdopt] != "" {
		t.Errorf("the claim has labels %v and annotations %v", taken.Labels, taken.Annotations)
	}
	if len(taken.OwnerReferences) > 0 {
		t.Errorf("the claim has an owner reference with whenDeleted Retain: %v", taken.OwnerReferences)
	}
}
