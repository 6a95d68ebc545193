package statefulcluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

// Claims that an earlier set of this name left, or that a backup restored, are built like this:
//
//	left("x").by("uid-of-old").from("monday").given()

const xs, ys = "xxxxxxxxxx", "yyyyyyyyyy"

type leftFixture struct {
	ID, backup, why string
	uid             types.UID
	adopt           string
	missing         int  // number of missing claims
	named           bool // a pod has the name
}

func left(id string) *leftFixture { return &leftFixture{ID: id, uid: "uid-of-old"} }

func (l *leftFixture) by(uid types.UID) *leftFixture     { l.uid = uid; return l }
func (l *leftFixture) from(backup string) *leftFixture   { l.backup = backup; return l }
func (l *leftFixture) retained(why string) *leftFixture  { l.why = why; return l }
func (l *leftFixture) given() *leftFixture               { l.adopt = "db"; return l }
func (l *leftFixture) givenTo(other string) *leftFixture { l.adopt = other; return l }
func (l *leftFixture) without(claims int) *leftFixture   { l.missing = claims; return l }
func (l *leftFixture) beside() *leftFixture              { l.named = true; return l }

func (l *leftFixture) claims(w *facts.World) (all []*corev1.PersistentVolumeClaim) {
	for _, c := range claimsOf(w, l.ID) {
		c.Labels[v1alpha1.LabelClusterUID] = string(l.uid)
		c.Annotations = map[string]string{v1alpha1.AnnotationAdopt: l.adopt}
		if l.backup != "" {
			c.Labels[backup.Label] = l.backup
		}
		if l.why != "" {
			c.Labels[v1alpha1.LabelRetained] = l.why
		}
		all = append(all, c)
	}
	return all[l.missing:]
}

// leftBehindBy adds the claims to a world with no names on record.
func leftBehindBy(all ...*leftFixture) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Creating = nil
		var claims []*corev1.PersistentVolumeClaim
		for _, l := range all {
			claims = append(claims, l.claims(w)...)
		}
		w.Offers = w.OffersOf(claims)
		for _, l := range all {
			if l.named {
				w.Offers.Block(l.ID, "db-"+l.ID)
			}
		}
		w.Fresh = append(facts.FirstIDs(w), w.Fresh...)
	})
}

// neverRan makes no member of any revision ever Ready.
var neverRan = with(func(w *facts.World) {
	for _, r := range w.Revisions {
		r.Annotations = nil
	}
})

// asks makes the last pass one that waited for the user's decision about restored claims.
var asks = with(func(w *facts.World) {
	w.Set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestoredClaims}}
})

// cameWith returns a member that was created on claims given to the set.
func cameWith(id string) *podFixture {
	return pod(id).on("n1").ready().annotated(v1alpha1.AnnotationUpdated, facts.Restored)
}

func (s *setFixture) from(name string) *setFixture {
	s.Labels = map[string]string{backup.Label: name}
	return s
}

func (s *setFixture) twoClaims() *setFixture {
	return s.change(func(spec *v1alpha1.StatefulClusterSpec) {
		spec.VolumeClaimTemplates = append(spec.VolumeClaimTemplates, volumeClaimTemplate("logs", "1Gi"))
	})
}

// takes returns the line of a member that is created on claims given to the set.
func takes(id string) string {
	return fmt.Sprintf("create pod db-%s: Missing > patch persistentvolumeclaim db-data-%s: Claim, adopted as its annotation requests", id, id)
}

func TestClaimsOfNamesakes(t *testing.T) {
	names := "patch status of statefulcluster db: Names"
	one := func() *setFixture { return set("db").replicas(1) }
	fresh := append([]string{names}, creates("f1")...)
	check(t, []row{
		{name: "SC-50 a set that was restored with claims creates no member until a user decides about the claims",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday")))},
		{name: "SC-50 a set that was restored with claims labeled as Deleted creates no member",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").retained("Deleted")))},
		{name: "SC-50 a restored set does not wait for claims that were set aside before the backup",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").retained("Lost"), left(ys).from("monday").retained("Scaled"))), want: fresh},
		{name: "SC-50 a restored set does not wait for claims of another backup",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("tuesday"))), want: fresh},
		{name: "SC-50 a set that was not restored ignores claims of an earlier set with its name",
			world: seen(one(), neverRan, leftBehindBy(left(xs).from("monday"), left(ys))), want: fresh},
		{name: "SC-50 a restored set that had a member does not wait",
			world: seen(one().from("monday"), leftBehindBy(left(xs).from("monday"))), want: fresh},
		{name: "SC-50 a restored set with recorded names does not wait",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday")), creating("f1")), want: creates("f1")},
		{name: "SC-50 only members on given claims are created until all claims are given",
			world: seen(set("db").replicas(3).from("monday"), neverRan, leftBehindBy(left(xs).from("monday").given(), left(ys).from("monday"))),
			want:  []string{names, takes(xs)}},
		{name: "SC-50 a restored set with a starting member on given claims waits for the other claims",
			world: seen(set("db").replicas(2).from("monday"), neverRan, leftBehindBy(left(ys).from("monday")), cameWith("a").starting()), failing: []string{"db-a"}},
		{name: "SC-50 a restored set with a Ready member on given claims waits for the other claims",
			world: seen(set("db").replicas(2).from("monday"), asks, leftBehindBy(left(ys).from("monday")), cameWith("a"))},
		{name: "SC-50 a second member is created when its claims are given",
			world: seen(set("db").replicas(2).from("monday"), asks, leftBehindBy(left(ys).from("monday").given()), cameWith("a")),
			want:  []string{names, takes(ys)}},
		{name: "SC-50 a lost member is replaced while the set waits for claims",
			world: seen(set("db").replicas(3).maxConcurrent("2").from("monday"), asks, leftBehindBy(left(ys).from("monday")), a().failed(), cameWith("c")),
			want:  []string{names, replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "SC-50 a member is created on given claims with their id after its name is recorded",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").given())), want: []string{names, takes(xs)}},
		{name: "SC-50 a set that was not restored uses given claims labeled as Lost",
			world: seen(one(), leftBehindBy(left(xs).retained("Lost").given())), want: []string{names, takes(xs)}},
		{name: "SC-50 members on given claims are created before new members",
			world: seen(set("db").from("monday"), neverRan, leftBehindBy(left(ys).given(), left(xs).given())),
			want:  append([]string{names, takes(xs), takes(ys)}, creates("f1")...)},
		{name: "SC-50 claims that were given to another set are not used",
			world: seen(one(), leftBehindBy(left(xs).givenTo("other"))), want: fresh},
		{name: "SC-50 given claims are not used if a claim of the member is missing",
			world: seen(one().twoClaims(), leftBehindBy(left(xs).given().without(1))),
			want:  []string{names, creates("f1")[0] + " > create persistentvolumeclaim db-logs-f1: Claim"}},
		{name: "SC-50 given claims with an invalid id are not used", world: seen(one(), leftBehindBy(left("x").given())), want: fresh},
		{name: "SC-50 a given claim of the set itself that was not set aside is not used",
			world: seen(one(), leftBehindBy(left(xs).by("uid-of-set").given())), want: fresh},
		{name: "SC-50 a member on given claims is not created while another pod has its name",
			world: seen(one(), leftBehindBy(left(xs).given().beside())), wait: spec.ForeignInterval},
		{name: "SC-50 the slot of a member that waits for its name is not filled by another member",
			world: seen(set("db").replicas(2), leftBehindBy(left(xs).given().beside(), left(ys).given())), want: []string{names, takes(ys)}, wait: spec.ForeignInterval},
		{name: "SC-50 a complete set uses no given claims", world: seen(one(), leftBehindBy(left(xs).given()), a())},
	})
}

// A member on given claims existed before: it gets no empty claim, and is not replaced because it
// starts slowly.
func TestMembersOnGivenClaims(t *testing.T) {
	p := planOf(seen(set("db").replicas(1), leftBehindBy(left(xs).retained("Deleted").given())))
	chain := p.Steps[len(p.Steps)-1][0]
	born := &facts.Member{Pod: chain[0].Object.(*corev1.Pod)}
	if !born.HasRun() || !born.CameBack() {
		t.Errorf("the annotations of the pod are %v", born.Pod.Annotations)
	}
	taken := chain[1].Object.(*corev1.PersistentVolumeClaim)
	if taken.Labels[v1alpha1.LabelClusterUID] != "uid-of-set" || taken.Labels[v1alpha1.LabelMember] != xs || facts.IsRetained(taken) ||
		taken.Annotations[v1alpha1.AnnotationAdopt] != "" {
		t.Errorf("the claim has labels %v and annotations %v", taken.Labels, taken.Annotations)
	}
	if len(taken.OwnerReferences) > 0 {
		t.Errorf("the claim has an owner reference with whenDeleted Retain: %v", taken.OwnerReferences)
	}
}

func TestRestoredClaimsAreTold(t *testing.T) {
	waits := func(all ...*leftFixture) *facts.World {
		return seen(set("db").from("monday"), neverRan, leftBehindBy(all...))
	}
	for _, r := range []struct {
		name  string
		world *facts.World
		says  []string
	}{
		{"SC-50 the message has the claims, the decision and the commands", waits(left(xs).from("monday"), left(ys).from("monday")), []string{
			"the set was restored from backup monday, and so were claims of a set with the same name: db-data-xxxxxxxxxx, db-data-yyyyyyyyyy. No member is created on empty claims until you decide whether the set adopts them.",
			"kubectl -n ns annotate pvc -l 'enge.me/cluster-uid=uid-of-old,enge.me/retained notin (Lost,Scaled)' enge.me/adopt=db.",
			"kubectl -n ns label stc db velero.io/backup-name-"}},
		{"SC-50 the message reports that the claims belong to several sets", waits(left(xs).from("monday"), left(ys).from("monday").by("uid-of-older")), []string{
			"of 2 sets: kubectl -n ns get pvc -L enge.me/cluster-uid"}},
		{"SC-50 the message has the pods that block members", waits(left(xs).from("monday").given().beside()), []string{
			"these members are not created: db-xxxxxxxxxx.", "kubectl -n ns delete pod db-xxxxxxxxxx"}},
	} {
		p := planOf(r.world)
		s := statusOf(r.world, &p, nil)
		i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDegraded })
		if s.Conditions[i].Reason != v1alpha1.ReasonRestoredClaims {
			t.Errorf("%s: reason of Degraded is %s", r.name, s.Conditions[i].Reason)
		}
		for _, words := range r.says {
			if !strings.Contains(s.Conditions[i].Message, words) {
				t.Errorf("%s: %q does not contain %q", r.name, s.Conditions[i].Message, words)
			}
		}
	}
}
