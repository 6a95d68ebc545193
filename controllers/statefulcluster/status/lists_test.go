package status_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

func TestAForceDeletedMemberKeepsItsClaimsOnRecord(t *testing.T) {
	got := fixture.Told(fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")))
	if len(got.Lost) != 1 || got.Lost[0].Name != "db-a" || len(got.Lost[0].Claims) != 1 || got.Lost[0].Claims[0] != "db-data-a" {
		t.Errorf("status.lost is %v", got.Lost)
	}
}

func TestMembersThatComeBackAreNotOnRecordAsLost(t *testing.T) {
	keep := func() *fixture.SetFixture { return fixture.Set("db").KeepsEvicted() }
	for _, row := range []struct {
		name  string
		world *facts.World
		want  string
	}{
		{"W1 a member that is recreated is not recorded as lost", fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), ""},
		{"W1 a member is not recorded as lost while the cache does not show how its pod ended", fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), fixture.EndsUnseen("a")), ""},
		{"W1 a member whose deletion by a user was observed is recorded as lost", fixture.Seen(keep(), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"), fixture.DeletedByUser("a")), "db-a"},
		{"W1 a member without a slot is recorded as lost", fixture.Seen(keep().Replicas(2), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), "db-a"},
		{"W1 a member of a set with onEviction Replace is recorded as lost", fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), "db-a"},
	} {
		p := fixture.PlanOf(row.world)
		var lost []string
		for _, l := range fixture.StatusOf(row.world, &p, nil).Lost {
			lost = append(lost, l.Name)
		}
		if got := strings.Join(lost, ","); got != row.want {
			t.Errorf("%s: status.lost has %q, want %q", row.name, got, row.want)
		}
		if told := strings.Join(status.VanishedNow(facts.Derive(row.world)), ","); told != row.want {
			t.Errorf("%s: events report %q, want %q", row.name, told, row.want)
		}
	}
}

// recordOf returns the claims in the status, without their UIDs.
func recordOf(s v1alpha1.StatefulClusterStatus) (names []string) {
	for _, c := range s.Claims {
		if c.UID == "" {
			names = append(names, "no UID of")
		}
		names = append(names, strings.TrimPrefix(c.Name, "db-data-"))
	}
	return names
}

func TestClaimsOnRecord(t *testing.T) {
	deletes := func() *fixture.SetFixture {
		return fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove)
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		want  []string
	}{
		{"claims of members are recorded even if no policy deletes claims", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenLost Delete", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenScaled Delete", fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Remove, fixture.Keep), fixture.A(), fixture.B(), fixture.C()), []string{"a", "b", "c"}},
		{"claims of members are recorded with whenDeleted Delete", fixture.Seen(fixture.Set("db").Retention(fixture.Remove, fixture.Keep, fixture.Keep), fixture.A(), fixture.B(), fixture.C()), []string{"a", "b", "c"}},
		{"claims of terminating members are recorded", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C().Going()), []string{"a", "b", "c"}},
		{"a recorded claim without a pod stays recorded while it exists", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x").Retained(fixture.Lost).OnRecord()), []string{"a", "b", "c", "x"}},
		{"an unrecorded claim without a pod is not recorded", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x")), []string{"a", "b", "c"}},
		{"a claim is not recorded because an earlier claim with its name was", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x").OnRecordAs("restored")), []string{"a", "b", "c"}},
		{"a deleted claim is removed from the record", fixture.Seen(deletes(), fixture.A(), fixture.B(), fixture.C(), fixture.With(func(w *facts.World) {
			w.Set.Status.Claims = []v1alpha1.RecordedClaim{{Name: "db-data-x", UID: "uid-of-db-data-x"}}
		})), []string{"a", "b", "c"}},
	} {
		if got := recordOf(fixture.Told(r.world)); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestClaimsComeOnRecordWithTheirCreation(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove).Replicas(1))
	p := fixture.PlanOf(w)
	var outcomes []action.Outcome
	for _, a := range p.Steps[0][0] {
		answer := a.Object.DeepCopyObject().(client.Object)
		answer.SetUID("new")
		outcomes = append(outcomes, action.Outcome{Action: a, Answer: answer})
	}
	if got := fixture.StatusOf(w, &p, outcomes).Claims; !slices.Equal(got, []v1alpha1.RecordedClaim{{Name: "db-data-f1", UID: "new"}}) {
		t.Errorf("status.claims is %v", got)
	}
	for i := range outcomes {
		outcomes[i].Err = context.Canceled
	}
	if got := fixture.StatusOf(w, &p, outcomes).Claims; len(got) > 0 {
		t.Errorf("status.claims after failed creates is %v", got)
	}
}

func TestADeletedClaimLeavesTheRecord(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove), fixture.A(), fixture.B(), fixture.C(), fixture.LooseClaimOf("x").Retained(fixture.Lost).SetAsideUnder(fixture.Remove).OnRecord())
	p := fixture.PlanOf(w)
	if got := recordOf(fixture.StatusOf(w, &p, []action.Outcome{{Action: p.Steps[0][0][0]}})); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("status.claims has %q", got)
	}
}

func TestTheRecordOfClaimsIsBounded(t *testing.T) {
	things := []fixture.Thing{fixture.Pod("zz").On("n1").Ready().Going(), fixture.LooseClaimOf("zy").Retained(fixture.Lost).OnRecord()}
	for i := range facts.MaxClaims + 1 {
		things = append(things, fixture.Pod(fmt.Sprintf("m%04d", i)).On("n1").Ready())
	}
	got := recordOf(fixture.Told(fixture.Seen(fixture.Set("db").Replicas(facts.MaxClaims+2).Retention(fixture.Keep, fixture.Keep, fixture.Remove), things...)))
	if len(got) != facts.MaxClaims || got[0] != "m0000" || got[facts.MaxClaims-3] != "m1997" || got[facts.MaxClaims-2] != "zy" || got[facts.MaxClaims-1] != "zz" {
		t.Errorf("status.claims has %d claims: %s … %s", len(got), got[0], got[len(got)-3:])
	}
}

// Entries that were not written name pods that were not deleted. Entries that are still recorded
// stay until their removal is written.
func TestUpdatingFollowsTheRecord(t *testing.T) {
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("quota"))
	entry := fixture.Updating("a", "uid-of-a", "now")
	for _, r := range []struct {
		name  string
		world *facts.World
		want  int
	}{
		{"the first step of an update failed", fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldCommand(), fixture.With(func(w *facts.World) { w.Revisions = w.Revisions[1:] })), 0},
		{"the label of a claim of a retired returning member was not written", fixture.Seen(fixture.Set("db").Replicas(2), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), entry), 1},
		{"a create of a returning member failed before the next members were deleted", fixture.Seen(fixture.Set("db").MaxUnavailable(2), fixture.LooseClaimOf("a"), fixture.B(), fixture.OldC(), fixture.OldCommand(), entry), 1},
	} {
		p := fixture.PlanOf(r.world)
		s := fixture.StatusOf(r.world, &p, []action.Outcome{{Action: p.Steps[0][0][0], Err: refusal}})
		if len(s.Updating) != r.want {
			t.Errorf("%s: status.updating is %v after\n  %s", r.name, s.Updating, strings.Join(p.Steps.Strings(), "\n  "))
		}
	}
}

func TestUpdatingEntries(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{Name: "SC-42 a member whose old pod is deleted is recreated on its claims",
			World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")), Want: fixture.Brings("a")},
		{Name: "SC-42 a member that a user deleted before the operator did is lost",
			World: fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B(), fixture.C()), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "an entry whose old pod was not deleted is removed and the update starts again",
			World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now")), Want: fixture.Recreates("a")},
		{Name: "an entry whose new pod exists is complete", World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-old-a", "now"))},
		{Name: "a member whose new pod is deleted is lost despite its entry",
			World: fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-old-a", "now")), Want: []string{fixture.CreatesInPlaceOf("a", "f1")}},
		{Name: "the entry of a member whose claims were deleted is removed",
			World: fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")), Want: []string{"patch status of statefulcluster db: Update"}},
		{Name: "the entry of a member whose claims were set aside is removed",
			World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a").Retained(fixture.Lost), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")), Want: []string{"patch status of statefulcluster db: Update"}},
		{Name: "the entry of a member whose claims are being deleted is removed",
			World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a").But(func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = ptr.To(fixture.Ago(0)) }), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")),
			Want:  []string{"patch status of statefulcluster db: Update"}},
		{Name: "SC-22 another member is deleted in the pass that recreates one if maxUnavailable allows it",
			World: fixture.Seen(fixture.Set("db").MaxUnavailable(2), fixture.LooseClaimOf("a"), fixture.B(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now")),
			Want:  slices.Concat(fixture.Brings("a"), fixture.Recreates("c"))},
		{Name: "SC-22 no other member is deleted in the pass that recreates one if maxUnavailable is reached",
			World: fixture.Seen(fixture.Set("db").MaxUnavailable(1), fixture.LooseClaimOf("a"), fixture.B(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now")), Want: fixture.Brings("a")},
		{Name: "no member is deleted in the pass that recreates one if the status must be written first",
			World: fixture.Seen(fixture.Set("db").Replicas(4).MaxUnavailable(4), fixture.B(), fixture.OldC(), fixture.OldCommand(), fixture.Updating("a", "uid-of-a", "now"), fixture.Updating("d", "uid-of-d", "now"), fixture.LooseClaimOf("d")),
			Want:  []string{"patch status of statefulcluster db: Update"}},
		{Name: "a refused create of a returning member waits for its retry and keeps its slot",
			World: fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now"), fixture.Refused(facts.ReasonReturned, "quota", time.Minute)), Wait: time.Minute},
	})
	for name, w := range map[string]*facts.World{
		"void": fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")),
		"done": fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-old-a", "now")),
	} {
		if p := fixture.PlanOf(w); len(p.Updating) != 0 {
			t.Errorf("a %s entry is kept: %v", name, p.Updating)
		}
	}
}

func TestLostMembersAreListed(t *testing.T) {
	deleted := func(w *facts.World, err error) v1alpha1.StatefulClusterStatus {
		p := fixture.PlanOf(w)
		var outcomes []action.Outcome
		for _, a := range p.Steps[0][0] {
			outcomes = append(outcomes, action.Outcome{Action: a, Err: err})
		}
		return fixture.StatusOf(w, &p, outcomes)
	}
	before := fixture.Set("db")
	before.Status.Lost = []v1alpha1.LostMember{{Name: "db-x", Reason: v1alpha1.LossNodeGone}}
	for _, r := range []struct {
		name string
		got  v1alpha1.StatefulClusterStatus
		want []string
	}{
		{"no lost members", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C())), nil},
		{"a member that this pass deleted, with the reason", deleted(fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B(), fixture.C()), nil), []string{"db-a NodeGone db-data-a"}},
		{"a member whose deletion failed is not listed", deleted(fixture.Seen(fixture.Set("db"), fixture.A().NodeGone(), fixture.B(), fixture.C()), errors.New("no")), nil},
		{"SC-39 a member that a user deleted", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B(), fixture.C())), []string{"db-a PodDeleted db-data-a"}},
		{"a member that a drain evicted", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.A().Evicted(), fixture.B(), fixture.C())), []string{"db-a PodEvicted db-data-a"}},
		{"a member that the control plane evicted and that has a successor", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.A().TakenByTaint(), fixture.B(), fixture.C(), fixture.Starting("d").InPlaceOf("a", 1))),
			[]string{"db-a NodeNotReady db-data-a"}},
		{"a member that a drain evicted is not listed with Keep", fixture.Told(fixture.Seen(fixture.Set("db").KeepsEvicted(), fixture.A().Evicted(), fixture.B(), fixture.C())), nil},
		{"a retired member is not listed", fixture.Told(fixture.Seen(fixture.Set("db").Replicas(2), fixture.A().ClaimsRetained().Going(), fixture.B(), fixture.C())), nil},
		{"a returning member is not listed", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.Pod("a").On("n1").Going(), fixture.Updating("a", "uid-of-a", "now"), fixture.B(), fixture.C())), nil},
		{"a member whose pod disappeared unobserved", fixture.Told(fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a"))), []string{"db-a PodDeleted db-data-a"}},
		{"claims that are not kept are not listed", fixture.Told(fixture.Seen(fixture.Set("db").Retention(fixture.Keep, fixture.Keep, fixture.Remove), fixture.A().Going(), fixture.B(), fixture.C())), []string{"db-a PodDeleted "}},
		{"a member is listed once, the newest first", fixture.Told(fixture.Seen(before, fixture.Pod("x").On("n1").Going(), fixture.A().Going(), fixture.B(), fixture.C())), []string{"db-a PodDeleted db-data-a", "db-x NodeGone "}},
	} {
		if got := lines(r.got.Lost); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}

// Pods may stay terminating on a lost node for days. The list of losses must become stable, even if
// there are more of them than it holds.
func TestTheListOfTheLostComesToRest(t *testing.T) {
	var things []fixture.Thing
	for i := range 15 {
		things = append(things, fixture.Pod(fmt.Sprintf("h%02d", i)).On("n1").Ready().GoingFor(time.Minute))
	}
	w := fixture.Seen(fixture.Set("db"), append(things, fixture.A(), fixture.B(), fixture.C())...)
	first := fixture.Told(w)
	if len(first.Lost) != 10 {
		t.Fatalf("%d lost members are listed, want the last 10", len(first.Lost))
	}
	w.Set.Status, w.Now = first, fixture.Noon.Add(time.Minute)
	if second := fixture.Told(w); !slices.Equal(lines(second.Lost), lines(first.Lost)) {
		t.Errorf("status.lost changes without a new loss:\n%q\n%q", lines(first.Lost), lines(second.Lost))
	}
	w.Members = append(w.Members, fixture.Seen(fixture.Set("db"), fixture.Pod("new").On("n2").Ready().GoingFor(-30*time.Second)).Members...)
	if third := fixture.Told(w); third.Lost[0].Name != "db-new" {
		t.Errorf("status.lost does not begin with the new loss: %q", lines(third.Lost))
	}
}

// The entry of a member whose deletion was refused is removed, because another client was faster.
func TestUpdatingFollowsTheDeletes(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldCommand())
	p := fixture.PlanOf(w)
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
		s := fixture.StatusOf(w, &p, []action.Outcome{{Action: p.Steps[1][0][0]}, {Action: p.Steps[2][0][0], Err: r.err}})
		if len(s.Updating) != r.want {
			t.Errorf("%s: status.updating is %v", r.name, s.Updating)
		}
	}
}

// A recreated pod is a member like any other: if a user deletes it before the next pass, the member
// is lost.
func TestAnEntryGoesWithTheCreate(t *testing.T) {
	w := fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now"))
	p := fixture.PlanOf(w)
	for err, want := range map[error]int{nil: 0, errors.New("timeout"): 1} {
		if s := fixture.StatusOf(w, &p, []action.Outcome{{Action: p.Steps[0][0][0], Err: err}}); len(s.Updating) != want {
			t.Errorf("status.updating after a create with error %v is %v", err, s.Updating)
		}
	}
}
