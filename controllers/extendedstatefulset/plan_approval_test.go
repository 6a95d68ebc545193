package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

func manual(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalManual }

// approved approves the revision of the upgrade in progress.
func approved(w *facts.World) { w.Set.Spec.ApprovedRevision = record.UpdateRevision(&w.Set.Status) }

// word approves another revision.
func word(text string) func(*facts.World) {
	return func(w *facts.World) { w.Set.Spec.ApprovedRevision = text }
}

// held sets that good canaries have waited for approval since the given time after noon.
func held(after time.Duration) func(*facts.World) {
	return func(w *facts.World) {
		at := metav1.NewTime(noon.Add(after))
		w.Set.Status.Update.GoodAt, w.Set.Status.Update.HeldAt = &at, &at
	}
}

// triedBeside returns an upgrade with handover Coexist and one canary. The canary is Ready unless
// unready includes it.
func triedBeside(unready ...int32) *scene {
	return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 1}, unready...).but(manual)
}

// triedInPlace returns the same upgrade with handover PerOrdinal, on the claims of the old version.
func triedInPlace(unready ...int32) *scene {
	return of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverPerOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, unready...).but(manual)
}

const (
	waits     = "record: Canary, version 1 to 2, attempt 1, waiting for approval"
	goesOn    = "record: Promoting, version 1 to 2, attempt 1"
	mended    = "record: Canary, version 1 to 2, attempt 1"
	givesUp   = "record: Stale, version 1 to 2, attempt 1, CanaryFailed"
	otherWord = "v2-0000000000000000"
)

func TestE36AGoodCanaryWaitsForItsApproval(t *testing.T) {
	renumbered := func(w *facts.World) {
		w.Set.Spec.ApprovedRevision = strings.Replace(record.UpdateRevision(&w.Set.Status), "v2-", "v3-", 1)
	}
	for _, row := range []sentence{
		{"without approval Manual the upgrade continues", triedBeside().but(func(w *facts.World) { w.Set.Spec.Approval = "" }), goesOn},
		{"with approval Automatic the upgrade continues", triedBeside().but(func(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }), goesOn},
		{"with approval Manual the upgrade waits", triedBeside(), waits},
		{"with an unknown value of approval the upgrade waits", triedBeside().but(func(w *facts.World) { w.Set.Spec.Approval = "Later" }), waits},
		{"nothing is changed while the upgrade waits", triedBeside().but(held(0)), ""},
		{"waiting for approval has no timeout", triedBeside().but(held(0)).after(1000 * time.Hour), ""},
		{"with PerOrdinal the upgrade waits", triedInPlace(), waits},
		{"with PerOrdinal no other ordinal is taken while the upgrade waits", triedInPlace().but(held(0)).after(1000 * time.Hour), ""},
		{"an approved upgrade continues", triedBeside().but(held(0)).but(approved), goesOn},
		{"an approved upgrade with PerOrdinal continues", triedInPlace().but(held(0)).but(approved), goesOn},
		{"an upgrade that was approved early continues", triedBeside().but(approved), goesOn},
		{"an approved upgrade waits for a canary that is not Ready", triedBeside(0).but(approved), ""},
		{"an approved upgrade stops if the canary is no longer Ready", triedBeside(0).but(held(0)).but(approved), mended},
		{"an approved upgrade waits for a canary that has just become Ready", triedBeside().but(held(0)).but(approved).turned(1, 0, 10*time.Second-1), ""},
		{"approval of the current revision is ignored", triedBeside().but(held(0)).but(func(w *facts.World) { word(record.RevisionName(1, w.Set.Status.CurrentDigest))(w) }), ""},
		{"approval of the version number with another digest is ignored", triedBeside().but(held(0)).but(word(otherWord)), ""},
		{"approval of the digest with another version number is ignored", triedBeside().but(held(0)).but(renumbered), ""},
		{"approval of a version number without a digest is ignored", triedBeside().but(held(0)).but(word("v2")), ""},
		{"E38 a change to Automatic continues a waiting upgrade", triedBeside().but(held(0)).but(func(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }), goesOn},
		{"E38 a rollback needs no approval", triedBeside().but(held(0)).but(func(w *facts.World) { w.Digest = w.Set.Status.CurrentDigest }), "record: CleaningUp, version 1"},
		{"E38 a new template replaces a waiting version", triedBeside().but(held(0)).but(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"E38 ordinals of a failed version are returned without approval", triedInPlace(2).but(held(0)).but(func(w *facts.World) { w.Set.Status.Phase = v1alpha1.PhaseStale }).but(stale2),
			"patch statefulset db-v2: Scale, no pods\n"},
		{"an upgrade that was approved once does not wait again", triedBeside().but(func(w *facts.World) { w.Set.Status.Update.Approved = true }), goesOn},
		{"a version without pods is not good", of(fakeSet(0)).has(1, children.Span{}).edited().but(manual), mended},
		{"an unapproved version does not become current when it is superseded", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).
			has(2, children.Span{Start: 0, Replicas: 1}).but(manual).but(held(0)).but(func(w *facts.World) { w.Digest = "another" }), "record: Waiting, version 1"},
		{"an approved version becomes current when it is superseded", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverCoexist).
			has(2, children.Span{Start: 0, Replicas: 3}).but(manual).but(func(w *facts.World) { w.Digest, w.Set.Status.Update.Approved = "another", true }), "record: Waiting, version 2"},
	} {
		t.Run(row.name, row.check)
	}
}

// aged moves the start of the attempt to the given time before noon.
func aged(before time.Duration) func(*facts.World) {
	return func(w *facts.World) {
		at := metav1.NewTime(noon.Add(-before))
		w.Set.Status.Update.StartedAt, w.Set.Status.Update.CanaryAt = &at, ptr.To(at)
	}
}

// TestE37TimesStandStillWhileGoodCanariesWait verifies E37: while good canaries wait, neither timeout
// counts. When they are no longer good, both continue.
func TestE37TimesStandStillWhileGoodCanariesWait(t *testing.T) {
	for _, row := range []struct {
		name  string
		scene *scene
		// canary and update are the remaining durations of both timeouts after the next step.
		canary, update time.Duration
	}{
		{"canaries that failed soon have the remaining time", triedBeside(0).but(aged(time.Minute)).but(held(0)).after(4 * time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"canaries that failed later have the full time", triedBeside(0).but(aged(time.Minute)).but(held(0)).after(5 * time.Minute), 5 * time.Minute, 10 * time.Minute},
		{"canaries that failed much later have the full time", triedBeside(0).but(aged(4 * time.Minute)).but(held(0)).after(1000 * time.Hour), 5 * time.Minute, 10 * time.Minute},
		{"canaries whose StatefulSet was deleted have the remaining time", triedBeside().but(aged(time.Minute)).but(held(0)).but(func(w *facts.World) { w.Children = w.Children[:1] }).after(time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"time in which the operator was down does not count as good", triedBeside(0).but(aged(time.Minute)).but(held(0)).but(func(w *facts.World) {
			w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: noon.Add(time.Second), To: noon.Add(30 * time.Minute)}}}
		}).after(33 * time.Minute), 4 * time.Minute, 9 * time.Minute},
		{"time in which the operator was down before the canaries waited does not count", triedBeside(0).but(aged(3 * time.Minute)).but(held(0)).but(func(w *facts.World) {
			w.Watch = leadership.Watch{Gaps: []leadership.Gap{{From: noon.Add(-2 * time.Minute), To: noon.Add(-time.Minute)}}}
		}).after(time.Minute), 3 * time.Minute, 8 * time.Minute},
		{"the time of the job for the canaries counts for the update", triedBeside(0).but(aged(time.Minute)).but(held(0)).but(func(w *facts.World) {
			w.Set.Status.Update.HeldAt = nil
		}).after(2 * time.Minute), 4 * time.Minute, 7 * time.Minute},
		{"after approval the update has the remaining time", triedBeside().but(aged(time.Minute)).but(held(0)).but(approved).after(1000 * time.Hour), 0, 9 * time.Minute},
	} {
		w := row.scene.w
		u, clock := record.Advance(w).Update, w.Clock()
		if u.GoodAt != nil || u.HeldAt != nil {
			t.Errorf("%s: the upgrade still waits", row.name)
		}
		left := func(from *metav1.Time, limit time.Duration) time.Duration {
			return clock.In(clock.Deadline(from.Time, limit))
		}
		if got := left(u.StartedAt, clock.UpdateTime()); got != row.update {
			t.Errorf("%s: remaining updateWatchTime %s, want %s", row.name, got, row.update)
		}
		if got := left(u.CanaryAt, clock.CanaryTime()); row.canary != 0 && got != row.canary {
			t.Errorf("%s: remaining canaryWatchTime %s, want %s", row.name, got, row.canary)
		}
	}
	for _, row := range []sentence{
		{"failed canaries are kept until canaryWatchTime ends", triedBeside(0).after(5*time.Minute - 1), ""},
		{"failed canaries are rolled back after canaryWatchTime", triedBeside(0).after(5 * time.Minute), givesUp},
		{"canaries are not good after a pod was deleted", triedBeside().but(held(0)).but(func(w *facts.World) { delete(w.Children[1].Pods, 0) }), mended},
		{"canaries are not good while a pod is terminating", triedBeside().but(held(0)).but(func(w *facts.World) {
			w.Children[1].Pods[0].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}), mended},
		{"canaries are not good if spec requires more", triedBeside().but(held(0)).but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.Canaries = ptr.To(int32(2)) }), mended},
		{"canaries are not good without replicas", triedBeside().but(held(0)).but(func(w *facts.World) { w.Replicas = 0 }), mended},
	} {
		t.Run(row.name, row.check)
	}
	if at := triedBeside().but(held(0)).w; len(deadlinesIn(at)) > 0 {
		t.Error("a pass is scheduled for a paused timeout")
	}
}

func deadlinesIn(w *facts.World) []time.Time {
	return rules.Deadlines(asRecorded(w))
}

// askedAt sets when the postUpdateJob runs, and its result.
func askedAt(when v1alpha1.When, result v1alpha1.JobResult) func(*facts.World) {
	return func(w *facts.World) {
		from := job("any")
		from.When = when
		w.Set.Spec.UpdateStrategy.PostUpdateJob = from
		at := metav1.NewTime(noon)
		w.Set.Status.Update.GoodAt = &at
		if result == "none" {
			return
		}
		j := children.BuildJob(w.Set, from, children.CanaryJob, 2, 1)
		j.UID, j.Spec.Suspend = "j", ptr.To(false)
		for kind, is := range map[batchv1.JobConditionType]v1alpha1.JobResult{batchv1.JobComplete: v1alpha1.JobSucceeded, batchv1.JobFailed: v1alpha1.JobFailed} {
			if is == result {
				j.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
			}
		}
		w.Jobs = map[string]*batchv1.Job{j.Name: j}
		w.Set.Status.Update.CanaryJob = &v1alpha1.JobStatus{Name: j.Name, UID: j.UID}
	}
}

func automatic(w *facts.World) { w.Set.Spec.Approval = v1alpha1.ApprovalAutomatic }

func TestE39AJobIsAskedAboutTheCanaries(t *testing.T) {
	const canary, both, all, yes, no = v1alpha1.WhenCanary, v1alpha1.WhenBoth, v1alpha1.WhenAllPods, v1alpha1.JobSucceeded, v1alpha1.JobFailed
	notYet := func(w *facts.World) { w.Set.Status.Update.GoodAt = nil }
	ready := func() *scene { return triedBeside().but(automatic) }
	for _, row := range []sentence{
		{"no job is created before the canaries are good", triedBeside(0).but(automatic).but(askedAt(canary, "none")).but(notYet), ""},
		{"good canaries are recorded before the job is created", ready().but(askedAt(canary, "none")).but(notYet), "record: Canary, version 1 to 2, attempt 1, canaries are good"},
		{"the job is created when the canaries are good", ready().but(askedAt(canary, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"the job is created for the canaries with when Both", ready().but(askedAt(both, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"no job is created for the canaries with when AllPods", ready().but(askedAt(all, "none")).but(notYet), goesOn},
		{"no job is created for the canaries without when", ready().but(askedAt("", "none")).but(notYet), goesOn},
		{"nothing is changed while the job runs", ready().but(askedAt(canary, "")).after(9 * time.Minute), ""},
		{"the job is limited by updateWatchTime", ready().but(askedAt(canary, "")).after(10*time.Minute + spec.MaxProbation), "record: Stale, version 1 to 2, attempt 1, UpdateTimeout, db-canary-v2-1 is known"},
		{"the upgrade continues if the job succeeds", ready().but(askedAt(canary, yes)), goesOn + ", db-canary-v2-1 Succeeded"},
		{"the version is stale if the job fails", ready().but(askedAt(canary, no)), "record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"the upgrade continues if the job fails with onFailure Continue", ready().but(askedAt(canary, no)).but(func(w *facts.World) {
			w.Set.Spec.UpdateStrategy.PostUpdateJob.OnFailure = v1alpha1.OnFailureContinue
		}), goesOn + ", db-canary-v2-1 Failed"},
		{"W19 a job that was deleted before it ended has failed", ready().but(askedAt(canary, "")).but(lost("j", no)),
			"record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"W19 the result of a missing job is unknown", ready().but(askedAt(canary, "")).but(lost("j", v1alpha1.JobUnknown)),
			"record: Canary, version 1 to 2, attempt 1, canaries are good, db-canary-v2-1 Unknown"},
		{"the version is stale if the job fails after the canaries failed", triedBeside(0).but(askedAt(canary, no)),
			"record: Stale, version 1 to 2, attempt 1, PostUpdateJobFailed, db-canary-v2-1 Failed"},
		{"the upgrade waits if the job succeeds after the canaries failed", triedBeside(0).but(askedAt(canary, yes)), mended + ", db-canary-v2-1 Succeeded"},
		{"the job continues if the canaries fail", triedBeside(0).but(askedAt(canary, "")).but(notYet), ""},
		{"the job is suspended if postUpdateJob is removed", triedBeside(0).but(askedAt(canary, "")).but(notYet).but(func(w *facts.World) { w.Set.Spec.UpdateStrategy.PostUpdateJob = nil }),
			"patch job db-canary-v2-1: Job, suspended: no longer needed\n"},
		{"the upgrade waits for approval after the job succeeded", triedBeside().but(askedAt(canary, yes)), waits + ", db-canary-v2-1 Succeeded"},
		{"an approved upgrade waits for the job", triedBeside().but(approved).but(askedAt(canary, "none")), "create job db-canary-v2-1: Job, suspended\n"},
		{"a job that is added while the upgrade waits for approval runs, and its time counts", triedBeside().but(askedAt(canary, "none")).but(held(0)).after(time.Hour), "record: Canary, version 1 to 2, attempt 1, canaries are good"},
		{"the upgrade continues if the job ran in another zone", triedBeside().but(automatic).but(askedAt(canary, "")).but(notYet).but(func(w *facts.World) {
			w.Jobs, w.Set.Status.Update.CanaryJob.Result = nil, yes
		}), goesOn + ", db-canary-v2-1 Succeeded"},
		{"the job does not run again for all pods with when Canary", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePromoting, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(askedAt(canary, "none")).but(notYet), "record: CleaningUp, version 2"},
		{"the job runs again for all pods with when Both", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhasePostJob, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 3}).
			but(askedAt(both, "none")).but(notYet), "create job db-post-v2-1: Job, suspended\n"},
	} {
		t.Run(row.name, row.check)
	}
}

// TestRevisionName verifies E36: 40 characters are enough for the revision of every version number.
func TestRevisionName(t *testing.T) {
	digest := strings.Repeat("0123456789abcdef", 4)
	for number, want := range map[int64]string{0: "", 2: "v2-0123456789abcdef", 1<<63 - 1: "v9223372036854775807-0123456789abcdef"} {
		if got := record.RevisionName(number, digest); got != want || len(got) > status.MaxRevision {
			t.Errorf("version %d: got %q, want %q", number, got, want)
		}
	}
	if got := record.RevisionName(1, ""); got != "v1-" {
		t.Errorf("got revision %q without a digest", got)
	}
}

// TestWarnOfApproval verifies E36: an approved revision without effect causes a warning when it is
// written.
func TestWarnOfApproval(t *testing.T) {
	for _, row := range []struct {
		name, was, now string
		approval       v1alpha1.Approval
		want           string
	}{
		{"no revision", "", "", v1alpha1.ApprovalManual, ""},
		{"revision of the upgrade", "", "v2-a", v1alpha1.ApprovalManual, ""},
		{"another revision", "", "v3-a", v1alpha1.ApprovalManual, `spec.approvedRevision: "v3-a" is ignored because it is not the revision of an upgrade in progress; status.updateRevision is "v2-a"`},
		{"another revision, unchanged", "v3-a", "v3-a", v1alpha1.ApprovalManual, ""},
		{"a revision with approval Automatic", "", "v2-a", v1alpha1.ApprovalAutomatic, "spec.approvedRevision is ignored while spec.approval is Automatic"},
	} {
		old, set := plain(), plain()
		old.Status.UpdateRevision = "v2-a"
		old.Spec.ApprovedRevision, set.Spec.ApprovedRevision, set.Spec.Approval = row.was, row.now, row.approval
		if got := strings.Join(webhooks.WarnOfApproval(old, set), "|"); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// TestApprovalIsTold verifies E36: there is one event for each step.
func TestApprovalIsTold(t *testing.T) {
	at := metav1.NewTime(noon)
	in := func(phase v1alpha1.Phase, u v1alpha1.UpdateStatus) *v1alpha1.ExtendedStatefulSetStatus {
		u.Digest = "0123456789abcdef0"
		return &v1alpha1.ExtendedStatefulSetStatus{CurrentVersion: 1, UpdateVersion: 2, Phase: phase, Update: &u}
	}
	canary := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{})
	waiting := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{GoodAt: &at, HeldAt: &at})
	on := in(v1alpha1.PhasePromoting, v1alpha1.UpdateStatus{Approved: true})
	next := in(v1alpha1.PhaseCanary, v1alpha1.UpdateStatus{Approved: true, Zone: "b"})
	for _, row := range []struct {
		was, now *v1alpha1.ExtendedStatefulSetStatus
		want     string
	}{
		{canary, waiting, "WaitingForApproval: the canaries of version 2 are good; waiting for approval of revision v2-0123456789abcdef"},
		{waiting, waiting, ""},
		{waiting, canary, ""},
		{waiting, on, "Approved: revision v2-0123456789abcdef was approved"},
		{on, next, ""},
	} {
		var got string
		for _, s := range status.StepsOf(row.was, row.now) {
			got += s.Reason + ": " + s.Text
		}
		if got != row.want {
			t.Errorf("from %s to %s: %q, want %q", status.RecordLine(canary, row.was), status.RecordLine(canary, row.now), got, row.want)
		}
	}
}
