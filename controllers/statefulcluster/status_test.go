package statefulcluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// told returns the status of a world after a pass in which nothing was refused.
func told(w *facts.World) v1alpha1.StatefulClusterStatus {
	p := planOf(w)
	return statusOf(w, &p, nil)
}

// says returns a condition as one line: status, reason, message.
func says(s v1alpha1.StatefulClusterStatus, kind string) string {
	c := meta.FindStatusCondition(s.Conditions, kind)
	if c == nil {
		return "nothing"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func starting(id string) *podFixture { return pod(id).aged(time.Minute).on("n1").starting() }

func TestAvailableCondition(t *testing.T) {
	slow := set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 })
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"all members are available", seen(set("db"), a(), b(), c()), "True AllMembersAvailable: 3 of 3 members are available"},
		{"a set with replicas 0 is available", seen(set("db").replicas(0)), "True AllMembersAvailable: 0 of 0 members are available"},
		{"one member is not Ready", seen(set("db"), a(), b(), starting("c")), "False MembersUnavailable: 2 of 3 members are available"},
		{"one member has not been Ready for minReadySeconds", seen(slow, a(), b(), pod("c").on("n1").readyFor(time.Second)), "False MembersUnavailable: 2 of 3 members are available"},
		{"the Node of one member is deleted", seen(set("db"), a(), b(), c().nodeGone()), "False MembersUnavailable: 2 of 3 members are available"},
		{"one member is being patched", seen(set("db"), a(), b(), c().patching(`{"resize":true}`)), "False MembersUnavailable: 2 of 3 members are available"},
		{"the spec is invalid", seen(set("d.b"), a(), b(), c()), "False InvalidSpec: the spec is invalid; see condition Degraded"},
	} {
		if got := says(told(r.world), v1alpha1.ConditionAvailable); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

func TestProgressingCondition(t *testing.T) {
	partition := func() *setFixture { return set("db").rolling(v1alpha1.RollingUpdate{Partition: 2}) }
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"no operation in progress with 3 members", seen(set("db"), a(), b(), c()), "False Complete: no operation in progress; the set has 3 members"},
		{"no operation in progress with 1 member", seen(set("db").replicas(1), a()), "False Complete: no operation in progress; the set has 1 member"},
		{"no operation in progress with 0 members", seen(set("db").replicas(0)), "False Complete: no operation in progress; the set has 0 members"},
		{"too few members", seen(set("db"), a()), "True Scaling: the set has 1 member and should have 3"},
		{"a surge update with one additional member", seen(set("db").surge(1), oldA(), oldB(), oldC(), starting("d"), oldImage()), "True Updating: 1 of 3 members have revision now; not Ready: db-d"},
		{"too many members", seen(set("db").replicas(1), a(), b()), "True Scaling: the set has 2 members and should have 1"},
		{"one lost member", seen(set("db"), a(), b(), c().nodeGone()), "True Replacing: replacing 1 member"},
		{"two lost members", seen(set("db"), a(), b().nodeGone(), c().nodeGone()), "True Replacing: replacing 2 members"},
		{"one member that a user deleted", seen(set("db"), a(), b(), c().going()), "True Replacing: replacing 1 member"},
		{"a replacement that is not Ready", seen(set("db"), a(), b(), starting("c").inPlaceOf("x", 1)), "True Replacing: replacing 1 member"},
		{"one member of an old revision", seen(set("db"), a(), b(), oldC(), oldImage()), "True Updating: 2 of 3 members have revision now"},
		{"one member being patched", seen(set("db"), a(), b(), c().patching(`{"resize":true}`)), "True Updating: 2 of 3 members have revision now"},
		{"one returning member", seen(set("db"), a(), b(), pod("c").on("n1").going(), updating("c", "uid-of-c", "now")), "True Updating: 2 of 3 members have revision now"},
		{"old members kept by a partition", seen(partition(), a(), oldB(), oldC(), oldImage()),
			"False Complete: 1 of 3 members have revision now; rollingUpdate.partition keeps 2 members at revision old"},
		{"one old member kept by a partition of 2", seen(partition().replicas(1), oldB(), oldImage()),
			"False Complete: 0 of 1 members have revision now; rollingUpdate.partition keeps 1 member at revision old"},
		{"old members of two revisions kept by a partition", seen(partition(), a(), oldB(), c().of("older"), oldImage(), revisionOfImage("older", "minus one")),
			"False Complete: 1 of 3 members have revision now; rollingUpdate.partition keeps 2 members at revision old, older"},
		{"no old members with a partition", seen(partition(), a(), b(), c()), "False Complete: no operation in progress; the set has 3 members"},
		{"old members with OnDelete", seen(set("db").onDelete(), a(), oldB(), oldC(), oldImage()),
			"False Complete: 1 of 3 members have the new template; a member keeps its template until it is deleted (updateStrategy OnDelete)"},
		{"no old members with OnDelete", seen(set("db").onDelete(), a(), b(), c()), "False Complete: no operation in progress; the set has 3 members"},
		{"one starting member", seen(set("db"), a(), b(), starting("c")), "True WaitingForMembers: waiting for 1 member to become available; not Ready: db-c"},
		{"two starting members", seen(set("db"), a(), starting("b"), starting("c")), "True WaitingForMembers: waiting for 2 members to become available; not Ready: db-b, db-c"},
		{"one member that has not been Ready for minReadySeconds", seen(set("db").change(func(s *v1alpha1.StatefulClusterSpec) { s.MinReadySeconds = 60 }), a(), b(), pod("c").on("n1").readyFor(0)),
			"True WaitingForMembers: waiting for 1 member to become available"},
		{"an update blocked by a bad image", seen(set("db"), oldA(), oldB(), starting("c").waiting("ImagePullBackOff"), oldImage()),
			"True Updating: 1 of 3 members have revision now; not Ready: db-c (ImagePullBackOff)"},
		{"a scale-up blocked by an unschedulable member", seen(set("db").orderedReady(), a(), pod("b").unschedulableFor(time.Minute)),
			"True Scaling: the set has 2 members and should have 3; not Ready: db-b (Unschedulable)"},
		{"the spec is invalid", seen(set("d.b"), a()), "False InvalidSpec: no action is taken until the spec is corrected"},
	} {
		if got := says(told(r.world), v1alpha1.ConditionProgressing); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

// A member that is not Ready is named with the reason if it needs an action by the user.
func TestWhyMembersAreNotReady(t *testing.T) {
	waits := func(reasons ...string) []thing { return []thing{starting("c").waiting(reasons...)} }
	init := starting("c").waiting("PodInitializing")
	init.pod.Status.InitContainerStatuses = waiting("CrashLoopBackOff")
	bound := starting("c").unschedulableFor(time.Minute)
	for _, r := range []struct {
		name    string
		unready []thing
		want    string
	}{
		{"no status of the container", waits(), "db-c"},
		{"the container is being created", waits("ContainerCreating"), "db-c"},
		{"the image cannot be pulled", waits("ImagePullBackOff"), "db-c (ImagePullBackOff)"},
		{"the image pull failed just now", waits("ErrImagePull"), "db-c (ImagePullBackOff)"},
		{"the registry is unreachable", waits("RegistryUnavailable"), "db-c (ImagePullBackOff)"},
		{"the signature of the image is invalid", waits("SignatureValidationFailed"), "db-c (ImagePullBackOff)"},
		{"the image name is invalid", waits("InvalidImageName"), "db-c (InvalidImageName)"},
		{"the ConfigMap is missing", waits("CreateContainerConfigError"), "db-c (CreateContainerConfigError)"},
		{"the container cannot be created", waits("CreateContainerError"), "db-c (CreateContainerError)"},
		{"the container crashes", waits("CrashLoopBackOff"), "db-c (CrashLoopBackOff)"},
		{"the command does not exist", waits("RunContainerError"), "db-c (CrashLoopBackOff)"},
		{"the init container crashes", []thing{init}, "db-c (CrashLoopBackOff)"},
		{"an image that cannot be pulled is reported before a crash", waits("CrashLoopBackOff", "ErrImagePull"), "db-c (ImagePullBackOff)"},
		{"the pod is unschedulable", []thing{pod("c").unschedulableFor(time.Minute)}, "db-c (Unschedulable)"},
		{"the pod was unschedulable and is now scheduled", []thing{bound}, "db-c"},
		{"members that need an action by the user come first, others are sorted by name", []thing{starting("c"), starting("b"), starting("d").waiting("InvalidImageName")},
			"db-d (InvalidImageName), db-b, db-c"},
		{"three members are named", []thing{starting("f"), starting("e"), starting("b"), starting("d"), starting("c")}, "db-b, db-c, db-d and 2 more"},
	} {
		w := seen(set("db").replicas(int32(1+len(r.unready))), append(r.unready, a())...)
		if _, got, _ := strings.Cut(says(told(w), v1alpha1.ConditionProgressing), "; not Ready: "); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// A crashing container runs between two crashes. A message that followed it would be written again
// and again.
func TestWhoCrashesIsSaidToUntilReady(t *testing.T) {
	w := seen(set("db"), a(), b(), starting("c").waiting("CrashLoopBackOff"))
	crashes := "True WaitingForMembers: waiting for 1 member to become available; not Ready: db-c (CrashLoopBackOff)"
	known := &observe.Remembered{Retired: map[types.UID]bool{}}
	look := func(why, want string) {
		t.Helper()
		known.Recall(w)
		f := facts.Derive(w)
		p := rules.Decide(f)
		status := status.Summarize(f, &p, status.Results{})
		if got := says(status, v1alpha1.ConditionProgressing); got != want {
			t.Errorf("%s: %s, want %s", why, got, want)
		}
		if err := known.Learn(f, p.GivenUp, nil); err != nil {
			t.Error(err)
		}
	}
	look("the container waits after a crash", crashes)
	w.Members[2].Pod = seen(set("db"), starting("c")).Members[0].Pod
	look("the container runs between two crashes", crashes)
	w.Members[2].Pod.Status.ContainerStatuses = waiting("ErrImagePull")
	look("the image cannot be pulled after a crash", strings.ReplaceAll(crashes, "CrashLoopBackOff", "ImagePullBackOff"))
	w.Members[2].Pod.Status.ContainerStatuses = waiting("CrashLoopBackOff")
	look("the container crashes again", crashes)
	w.Members[2].Pod.Status.ContainerStatuses = nil
	w.Set.Generation++
	look("a user changed the spec", strings.TrimSuffix(crashes, " (CrashLoopBackOff)"))
}

func TestDegradedCondition(t *testing.T) {
	gone := func(id string) *podFixture { return pod(id).on("n9").ready().nodeGone() }
	theirs := with(func(w *facts.World) { w.Budget.OwnerReferences = nil })
	foreign := with(func(w *facts.World) { w.Foreign = []string{"p1", "p2"} })
	many := with(func(w *facts.World) {
		for i := range 12 {
			w.Foreign = append(w.Foreign, fmt.Sprintf("p%d", i))
		}
	})
	failing := pod("c").recreated().on("n3").starting()
	for _, r := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"no problems", seen(set("db"), a(), b(), c()), "False Healthy: no problems detected"},
		{"SC-28 the spec is invalid", seen(set("d.b")), `True InvalidSpec: metadata.name: Invalid value: "d.b": must not contain dots`},
		{"SC-38 lost members are held", seen(set("db"), gone("a"), gone("b"), c()),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 1 member at a time; lost members pending replacement: db-b; raise it to replace all at once"},
		{"SC-38 several lost members are held", seen(set("db").replicas(4).maxConcurrent("2").replacesInOutage(), gone("a"), gone("b"), gone("c"), gone("d")),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 2 members at a time; lost members pending replacement: db-c, db-d; raise it to replace all at once"},
		{"SC-41 a template fails", seen(set("db"), a(), b(), failing),
			"True RevisionFailing: members do not become Ready and are not replaced, because new members with the same template would fail in the same way: db-c; `kubectl -n ns describe pod db-c` shows why; correct the template"},
		{"SC-18 a write was refused", seen(set("db"), a(), b(), refused(facts.ReasonMissing, "exceeded quota", time.Minute)), "True WriteRefused: exceeded quota; raise the quota or free some of it: kubectl -n ns describe quota"},
		{"the expansion of a claim is refused", seen(set("db"), a(), b(), c(), refused(facts.ReasonExpand, "no expansion", time.Minute)), "True ClaimResizeRefused: no expansion"},
		{"many members are unready", seen(set("db"), pod("a").on("n1").unreadyFor(50*time.Minute), pod("b").on("n2").unreadyFor(0), c()),
			"True ReplacementHeld: 2 members are unready at the same time, more than replacement.maxConcurrent (1), so unready members are not replaced; look for a common cause; `kubectl -n ns describe pod db-a` shows one of them"},
		{"SC-16 foreign pods", seen(set("db"), a(), b(), c(), foreign),
			"True ForeignPods: pods that are not members match the selector and are ignored: p1, p2; Services that select them send them traffic; `kubectl -n ns get pod p1 --show-labels` shows which labels to change"},
		{"many foreign pods", seen(set("db"), a(), b(), c(), many),
			"True ForeignPods: pods that are not members match the selector and are ignored: p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more; Services that select them send them traffic; `kubectl -n ns get pod p0 --show-labels` shows which labels to change"},
		{"a budget of another owner", seen(set("db"), a(), b(), c(), theirs),
			"True WriteRefused: PodDisruptionBudget db exists and belongs to another owner, so none is created; rename it if the members need one"},
		{"the most severe problem is reported: held replacements before refused writes before foreign pods", seen(set("db"), gone("a"), gone("b"), c(), foreign, refused(facts.ReasonExpand, "no", time.Minute)),
			"True ReplacementHeld: replacement.maxConcurrent allows replacing 1 member at a time; lost members pending replacement: db-b; raise it to replace all at once"},
		{"lost members that wait for a refused create are not reported as held", seen(set("db"), a().nodeGone(), b(), c(), refused(facts.ReasonReplaced, "create pod db-x: exceeded quota", time.Minute)),
			"True WriteRefused: create pod db-x: exceeded quota; raise the quota or free some of it: kubectl -n ns describe quota; lost members waiting for their replacements: db-a"},
		{"a refused write comes before a refused expansion", seen(set("db"), a(), b(), c(), refused(facts.ReasonExpand, "no", time.Minute), refused(facts.ReasonClaim, "quota", time.Minute)), "True WriteRefused: quota; change what rejects the pod, or change the template: kubectl -n ns get events --field-selector reason=FailedCreate"},
		{"a long message is truncated", seen(set("db"), a(), b(), c(), refused(facts.ReasonClaim, strings.Repeat("x", 2000), time.Minute)), "True WriteRefused: " + strings.Repeat("x", 1024)},
	} {
		if got := says(told(r.world), v1alpha1.ConditionDegraded); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestConditionsAreDated(t *testing.T) {
	w := seen(set("db"), a(), b(), c())
	w.Set.Status = told(w)
	w.Now = noon.Add(time.Hour)
	for _, c := range told(w).Conditions {
		if !c.LastTransitionTime.Time.Equal(noon) || c.ObservedGeneration != 7 {
			t.Errorf("%s did not change, but has lastTransitionTime %v and observedGeneration %d", c.Type, c.LastTransitionTime, c.ObservedGeneration)
		}
	}
	w.Members[0].Pod.Status.Conditions = nil
	if c := meta.FindStatusCondition(told(w).Conditions, v1alpha1.ConditionAvailable); !c.LastTransitionTime.Time.Equal(w.Now) {
		t.Errorf("Available changed now, but has lastTransitionTime %v", c.LastTransitionTime)
	}
}

func TestCounts(t *testing.T) {
	at := func(current string, s *setFixture) *setFixture { s.Status.CurrentRevision = current; return s }
	for _, r := range []struct {
		name  string
		world *facts.World
		// replicas ready available current updated lost, current revision
		want string
	}{
		{"SC-20 all members are available", seen(set("db"), a(), b(), c()), "3 3 3 3 3 0 now"},
		{"the first pass of a new set", seen(at("", set("db")), with(func(w *facts.World) { w.Set.Status.CurrentRevision = "" })), "0 0 0 0 0 0 now"},
		{"one member is starting", seen(set("db"), a(), b(), starting("c")), "3 2 2 3 3 0 now"},
		{"one member is lost", seen(set("db"), a(), b(), c().nodeGone()), "2 2 2 2 2 1 now"},
		{"one replacement is not Ready", seen(set("db"), a(), b(), starting("c").inPlaceOf("x", 1)), "3 2 2 3 3 1 now"},
		{"one member was deleted", seen(set("db"), a(), b(), c().going()), "2 2 2 2 2 1 now"},
		{"one terminating pod has a successor", seen(set("db"), a(), b(), c(), pod("x").on("n9").going()), "3 3 3 3 3 0 now"},
		{"one of two members was updated", seen(at("old", set("db").replicas(2)), a(), oldB(), oldImage()), "2 2 2 1 1 0 old"},
		{"one member is being patched", seen(at("old", set("db").replicas(2)), a().patching(`{}`), oldB(), oldImage()), "2 2 1 1 0 0 old"},
		{"the last member was updated", seen(at("old", set("db").replicas(2)), a(), b(), oldImage()), "2 2 2 2 2 0 now"},
		{"the last member is returning", seen(at("old", set("db").replicas(2)), a(), pod("b").on("n2").going(), updating("b", "uid-of-b", "now"), oldImage()), "1 1 1 0 1 0 old"},
	} {
		s := told(r.world)
		got := fmt.Sprint(s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.UpdatedReplicas, s.LostReplicas, " ", s.CurrentRevision)
		if got = strings.Join(strings.Fields(got), " "); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
		if s.UpdateRevision != "now" || s.ObservedGeneration != 7 || s.Selector != "app=db" {
			t.Errorf("%s: update revision %q, generation %d, selector %q", r.name, s.UpdateRevision, s.ObservedGeneration, s.Selector)
		}
	}
}

// An invalid spec leaves the revisions in the status as they are; its pods are still counted.
func TestAnInvalidSpecKeepsWhatWasKnown(t *testing.T) {
	s := set("d.b")
	s.Status.ReadyReplicas, s.Status.CurrentRevision = 5, "then"
	if got := told(seen(s, a())); got.ReadyReplicas != 1 || got.CurrentRevision != "then" || got.ObservedGeneration != 7 {
		t.Errorf("status is %+v", got)
	}
}

func lines(lost []v1alpha1.LostMember) (out []string) {
	for _, l := range lost {
		out = append(out, fmt.Sprintf("%s %s %s", l.Name, l.Reason, strings.Join(l.Claims, ",")))
	}
	return out
}

func TestLostMembersAreListed(t *testing.T) {
	deleted := func(w *facts.World, err error) v1alpha1.StatefulClusterStatus {
		p := planOf(w)
		var outcomes []action.Outcome
		for _, a := range p.Steps[0][0] {
			outcomes = append(outcomes, action.Outcome{Action: a, Err: err})
		}
		return statusOf(w, &p, outcomes)
	}
	before := set("db")
	before.Status.Lost = []v1alpha1.LostMember{{Name: "db-x", Reason: v1alpha1.LossNodeGone}}
	for _, r := range []struct {
		name string
		got  v1alpha1.StatefulClusterStatus
		want []string
	}{
		{"no lost members", told(seen(set("db"), a(), b(), c())), nil},
		{"a member that this pass deleted, with the reason", deleted(seen(set("db"), a().nodeGone(), b(), c()), nil), []string{"db-a NodeGone db-data-a"}},
		{"a member whose deletion failed is not listed", deleted(seen(set("db"), a().nodeGone(), b(), c()), errors.New("no")), nil},
		{"SC-39 a member that a user deleted", told(seen(set("db"), a().going(), b(), c())), []string{"db-a PodDeleted db-data-a"}},
		{"a member that a drain evicted", told(seen(set("db"), a().evicted(), b(), c())), []string{"db-a PodEvicted db-data-a"}},
		{"a member that the control plane evicted and that has a successor", told(seen(set("db"), a().takenByTaint(), b(), c(), starting("d").inPlaceOf("a", 1))),
			[]string{"db-a NodeNotReady db-data-a"}},
		{"a member that a drain evicted is not listed with Keep", told(seen(set("db").keepsEvicted(), a().evicted(), b(), c())), nil},
		{"a retired member is not listed", told(seen(set("db").replicas(2), a().claimsRetained().going(), b(), c())), nil},
		{"a returning member is not listed", told(seen(set("db"), pod("a").on("n1").going(), updating("a", "uid-of-a", "now"), b(), c())), nil},
		{"a member whose pod disappeared unobserved", told(seen(set("db"), b(), c(), looseClaimOf("a"))), []string{"db-a PodDeleted db-data-a"}},
		{"claims that are not kept are not listed", told(seen(set("db").retention(keep, keep, remove), a().going(), b(), c())), []string{"db-a PodDeleted "}},
		{"a member is listed once, the newest first", told(seen(before, pod("x").on("n1").going(), a().going(), b(), c())), []string{"db-a PodDeleted db-data-a", "db-x NodeGone "}},
	} {
		if got := lines(r.got.Lost); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// Pods may stay terminating on a lost node for days. The list of losses must become stable, even if
// there are more of them than it holds.
func TestTheListOfTheLostComesToRest(t *testing.T) {
	var things []thing
	for i := range 15 {
		things = append(things, pod(fmt.Sprintf("h%02d", i)).on("n1").ready().goingFor(time.Minute))
	}
	w := seen(set("db"), append(things, a(), b(), c())...)
	first := told(w)
	if len(first.Lost) != 10 {
		t.Fatalf("%d lost members are listed, want the last 10", len(first.Lost))
	}
	w.Set.Status, w.Now = first, noon.Add(time.Minute)
	if second := told(w); !slices.Equal(lines(second.Lost), lines(first.Lost)) {
		t.Errorf("status.lost changes without a new loss:\n%q\n%q", lines(first.Lost), lines(second.Lost))
	}
	w.Members = append(w.Members, seen(set("db"), pod("new").on("n2").ready().goingFor(-30*time.Second)).Members...)
	if third := told(w); third.Lost[0].Name != "db-new" {
		t.Errorf("status.lost does not begin with the new loss: %q", lines(third.Lost))
	}
}

// The entry of a member whose deletion was refused is removed, because another client was faster.
func TestUpdatingFollowsTheDeletes(t *testing.T) {
	w := seen(set("db"), oldA(), b(), c(), oldCommand())
	p := planOf(w)
	what := schema.GroupResource{Resource: "pods"}
	for _, r := range []struct {
		name string
		err  error
		want int
	}{
		{"the pod was deleted", nil, 1},
		{"another client changed the pod", apierrors.NewConflict(what, "db-a", nil), 0},
		{"another client deleted the pod", apierrors.NewNotFound(what, "db-a"), 0},
		{"the API server did not respond, so the pod may be deleted", errors.New("timeout"), 1},
	} {
		s := statusOf(w, &p, []action.Outcome{{Action: p.Steps[1][0][0]}, {Action: p.Steps[2][0][0], Err: r.err}})
		if len(s.Updating) != r.want {
			t.Errorf("%s: status.updating is %v", r.name, s.Updating)
		}
	}
}

func TestDeletionIsNotCounted(t *testing.T) {
	s := set("db")
	s.DeletionTimestamp = &metav1.Time{Time: noon}
	s.Status.Replicas = 3
	if got := told(seen(s)); got.Replicas != 3 {
		t.Errorf("status.replicas of a set that is being deleted was updated: %d", got.Replicas)
	}
}

func TestARefusalThatIsOver(t *testing.T) {
	w := seen(set("db"), a(), b(), c(), refused(facts.ReasonUpdate, "policy", 0), refused(facts.ReasonExpand, "no", 0))
	if got := says(told(w), v1alpha1.ConditionDegraded); got != "False Healthy: no problems detected" {
		t.Errorf("condition Degraded after the refused writes are no longer wanted is %s", got)
	}
}

// A recreated pod is a member like any other: if a user deletes it before the next pass, the member
// is lost.
func TestAnEntryGoesWithTheCreate(t *testing.T) {
	w := seen(set("db"), looseClaimOf("a"), b(), c(), updating("a", "uid-of-a", "now"))
	p := planOf(w)
	for err, want := range map[error]int{nil: 0, errors.New("timeout"): 1} {
		if s := statusOf(w, &p, []action.Outcome{{Action: p.Steps[0][0][0], Err: err}}); len(s.Updating) != want {
			t.Errorf("status.updating after a create with error %v is %v", err, s.Updating)
		}
	}
}
