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
)

// Claims that an earlier set of this name left, or that a backup restored, are built like this:
//
//	left("x").by("uid-of-old").from("monday").given()

const xs, ys = "xxxxxxxxxx", "yyyyyyyyyy"

type leftFixture struct {
	id, backup, why string
	uid             types.UID
	adopt           string
	missing         int  // number of missing claims
	named           bool // a pod has the name
}

func left(id string) *leftFixture { return &leftFixture{id: id, uid: "uid-of-old"} }

func (l *leftFixture) by(uid types.UID) *leftFixture     { l.uid = uid; return l }
func (l *leftFixture) from(backup string) *leftFixture   { l.backup = backup; return l }
func (l *leftFixture) retained(why string) *leftFixture  { l.why = why; return l }
func (l *leftFixture) given() *leftFixture               { l.adopt = "db"; return l }
func (l *leftFixture) givenTo(other string) *leftFixture { l.adopt = other; return l }
func (l *leftFixture) without(claims int) *leftFixture   { l.missing = claims; return l }
func (l *leftFixture) beside() *leftFixture              { l.named = true; return l }
func (l *leftFixture) claims(w *world) (all []*corev1.PersistentVolumeClaim) {
	for _, c := range claimsOf(w, l.id) {
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
	return with(func(w *world) {
		w.set.Status.Creating = nil
		var claims []*corev1.PersistentVolumeClaim
		for _, l := range all {
			claims = append(claims, l.claims(w)...)
		}
		w.offers = w.offersOf(claims)
		for _, l := range all {
			if l.named {
				w.offers.block(l.id, "db-"+l.id)
			}
		}
		w.fresh = append(firstIDs(w), w.fresh...)
	})
}

// neverRan makes no member of any revision ever Ready.
var neverRan = with(func(w *world) {
	for _, r := range w.revisions {
		r.Annotations = nil
	}
})

// asks makes the last pass one that waited for the user's decision about restored claims.
var asks = with(func(w *world) {
	w.set.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRestoredClaims}}
})

// cameWith returns a member that was created on claims given to the set.
func cameWith(id string) *podFixture {
	return pod(id).on("n1").ready().annotated(v1alpha1.AnnotationUpdated, restored)
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
		{name: "SC-50 a set that was restored with claims makes no member before a person says whose they are",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday")))},
		{name: "SC-50 nor if they were labelled meanwhile because their set was gone",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").retained("Deleted")))},
		{name: "SC-50 claims that were lost or retired before the backup are not waited for",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").retained("Lost"), left(ys).from("monday").retained("Scaled"))), want: fresh},
		{name: "SC-50 nor those of another backup",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("tuesday"))), want: fresh},
		{name: "SC-50 a set that was not restored takes nothing of its namesake, and waits for nothing",
			world: seen(one(), neverRan, leftBehindBy(left(xs).from("monday"), left(ys))), want: fresh},
		{name: "SC-50 a set that had a member waits no more",
			world: seen(one().from("monday"), leftBehindBy(left(xs).from("monday"))), want: fresh},
		{name: "SC-50 nor one whose names are on record",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday")), creating("f1")), want: creates("f1")},
		{name: "SC-50 claims are given one by one: only members on those that were given are made until all are",
			world: seen(set("db").replicas(3).from("monday"), neverRan, leftBehindBy(left(xs).from("monday").given(), left(ys).from("monday"))),
			want:  []string{names, takes(xs)}},
		{name: "SC-50 a member on given claims does not end the wait for the others",
			world: seen(set("db").replicas(2).from("monday"), neverRan, leftBehindBy(left(ys).from("monday")), cameWith("a").starting()), failing: []string{"db-a"}},
		{name: "SC-50 nor does it once it is Ready",
			world: seen(set("db").replicas(2).from("monday"), asks, leftBehindBy(left(ys).from("monday")), cameWith("a"))},
		{name: "SC-50 then the second one comes on its own claims",
			world: seen(set("db").replicas(2).from("monday"), asks, leftBehindBy(left(ys).from("monday").given()), cameWith("a")),
			want:  []string{names, takes(ys)}},
		{name: "SC-50 a member that is lost meanwhile is replaced",
			world: seen(set("db").replicas(3).maxConcurrent("2").from("monday"), asks, leftBehindBy(left(ys).from("monday")), a().failed(), cameWith("c")),
			want:  []string{names, replaces("a", "f1", v1alpha1.LossFailed)}},
		{name: "SC-50 claims that were given make a member of their id, whose name is on record first",
			world: seen(one().from("monday"), neverRan, leftBehindBy(left(xs).from("monday").given())), want: []string{names, takes(xs)}},
		{name: "SC-50 also to a set that was not restored, and whatever set them aside",
			world: seen(one(), leftBehindBy(left(xs).retained("Lost").given())), want: []string{names, takes(xs)}},
		{name: "SC-50 those that are given come first, and the others are new",
			world: seen(set("db").from("monday"), neverRan, leftBehindBy(left(ys).given(), left(xs).given())),
			want:  append([]string{names, takes(xs), takes(ys)}, creates("f1")...)},
		{name: "SC-50 claims that were given to another set are not taken",
			world: seen(one(), leftBehindBy(left(xs).givenTo("other"))), want: fresh},
		{name: "SC-50 nor is a member whose claims are not all given",
			world: seen(one().twoClaims(), leftBehindBy(left(xs).given().without(1))),
			want:  []string{names, creates("f1")[0] + " > create persistentvolumeclaim db-logs-f1: Claim"}},
		{name: "SC-50 nor an id that the operator gives to none", world: seen(one(), leftBehindBy(left("x").given())), want: fresh},
		{name: "SC-50 a claim of this very set is not given back: a lost member does not return",
			world: seen(one(), leftBehindBy(left(xs).by("uid-of-set").given())), want: fresh},
		{name: "SC-50 a member waits for the end of a pod that has its name",
			world: seen(one(), leftBehindBy(left(xs).given().beside())), wait: foreignInterval},
		{name: "SC-50 and no other one takes its slot",
			world: seen(set("db").replicas(2), leftBehindBy(left(xs).given().beside(), left(ys).given())), want: []string{names, takes(ys)}, wait: foreignInterval},
		{name: "SC-50 a set that is full takes none", world: seen(one(), leftBehindBy(left(xs).given()), a())},
	})
}

// A member on given claims existed before: it gets no empty claim, and is not replaced because it
// starts slowly.
func TestMembersOnGivenClaims(t *testing.T) {
	p := planOf(seen(set("db").replicas(1), leftBehindBy(left(xs).retained("Deleted").given())))
	chain := p.Steps[len(p.Steps)-1][0]
	born := &member{pod: chain[0].Object.(*corev1.Pod)}
	if !born.hasRun() || !born.cameBack() {
		t.Errorf("the annotations of the pod are %v", born.pod.Annotations)
	}
	taken := chain[1].Object.(*corev1.PersistentVolumeClaim)
	if taken.Labels[v1alpha1.LabelClusterUID] != "uid-of-set" || taken.Labels[v1alpha1.LabelMember] != xs || isRetained(taken) ||
		taken.Annotations[v1alpha1.AnnotationAdopt] != "" {
		t.Errorf("the claim has labels %v and annotations %v", taken.Labels, taken.Annotations)
	}
	if len(taken.OwnerReferences) > 0 {
		t.Errorf("with Retain it goes with the set: %v", taken.OwnerReferences)
	}
}

func TestRestoredClaimsAreTold(t *testing.T) {
	waits := func(all ...*leftFixture) *world {
		return seen(set("db").from("monday"), neverRan, leftBehindBy(all...))
	}
	for _, r := range []struct {
		name  string
		world *world
		says  []string
	}{
		{"SC-50 what waits, why, and the commands", waits(left(xs).from("monday"), left(ys).from("monday")), []string{
			"the set was restored from backup monday, and so were claims of a set with the same name: db-data-xxxxxxxxxx, db-data-yyyyyyyyyy. No member is created on empty claims until you decide whether the set adopts them.",
			"kubectl -n ns annotate pvc -l 'enge.me/cluster-uid=uid-of-old,enge.me/retained notin (Lost,Scaled)' enge.me/adopt=db.",
			"kubectl -n ns label stc db velero.io/backup-name-"}},
		{"SC-50 that they are of several sets", waits(left(xs).from("monday"), left(ys).from("monday").by("uid-of-older")), []string{
			"of 2 sets: kubectl -n ns get pvc -L enge.me/cluster-uid"}},
		{"SC-50 which pods are in the way", waits(left(xs).from("monday").given().beside()), []string{
			"these members are not created: db-xxxxxxxxxx.", "kubectl -n ns delete pod db-xxxxxxxxxx"}},
	} {
		p := planOf(r.world)
		s := statusOf(r.world, &p, nil)
		i := slices.IndexFunc(s.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDegraded })
		if s.Conditions[i].Reason != v1alpha1.ReasonRestoredClaims {
			t.Errorf("%s: the reason is %s", r.name, s.Conditions[i].Reason)
		}
		for _, words := range r.says {
			if !strings.Contains(s.Conditions[i].Message, words) {
				t.Errorf("%s: %q does not say %q", r.name, s.Conditions[i].Message, words)
			}
		}
	}
}
