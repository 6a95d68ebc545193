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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/status"
)

// eventLog records events: the pod that an event is related to, type, reason, action and text.
// Events that differ only in the text are aggregated.
type eventLog []string

func (h *eventLog) Eventf(_, related runtime.Object, kind, reason, act, note string, args ...any) {
	pod := "no pod"
	if related != nil {
		obj := related.(client.Object)
		pod = fmt.Sprintf("%s %s", obj.GetName(), obj.GetUID())
	}
	*h = append(*h, fmt.Sprintf("(%s) %s %s %s: %s", pod, kind, reason, act, fmt.Sprintf(note, args...)))
}

// emitted returns the events of a pass over that world in which every action ended with that error.
func emitted(w *facts.World, err error) []string {
	var told eventLog
	f := facts.Derive(w)
	p := rules.Decide(f)
	var outcomes []action.Outcome
	for _, step := range p.Steps {
		for _, chain := range step {
			for _, a := range chain {
				o := action.Outcome{Action: a, Err: err}
				if err == nil {
					o.Answer = a.Object.DeepCopyObject().(client.Object)
					if a.Verb == action.Create {
						o.Answer.SetUID("fresh-uid")
					}
				}
				outcomes = append(outcomes, o)
			}
		}
	}
	status.EmitActs(&told, w.Set, status.Results{Outcomes: outcomes, Refused: w.Refused})
	status.EmitNews(&told, f, &p)
	slices.Sort(told)
	return told
}

// manyMembers returns n members, db-a01 and so on; goingMembers returns the same with terminating
// pods.
func manyMembers(n int) (things []fixture.Thing) {
	for i := range n {
		things = append(things, fixture.Pod(fmt.Sprintf("a%02d", i+1)).On("n1").Ready())
	}
	return things
}

func goingMembers(n int) []fixture.Thing {
	things := manyMembers(n)
	for _, m := range things {
		m.(*fixture.PodFixture).Going()
	}
	return things
}

func TestEvents(t *testing.T) {
	gone := func(id string) *fixture.PodFixture { return fixture.Pod(id).On("n9").Ready().NodeGone() }
	for _, r := range []struct {
		name  string
		world *facts.World
		err   error
		want  []string
	}{
		{"no event at rest", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C()), nil, nil},
		{"an event for created members is related to the first", fixture.Seen(fixture.Set("db"), fixture.A()), nil,
			[]string{"(db-f1 fresh-uid) Normal MemberCreated Missing: Missing: db-f1, db-f2"}},
		{"a member is lost and replaced", fixture.Seen(fixture.Set("db"), gone("a"), fixture.B(), fixture.C()), nil, []string{
			"(db-a uid-of-a) Warning MemberLost NodeGone: NodeGone: db-a; the member is lost and will not come back, claims db-data-a",
			"(db-f1 fresh-uid) Normal MemberCreated Replacement: Replacement: db-f1; in place of db-a"}},
		{"SC-38 a lost member is held", fixture.Seen(fixture.Set("db"), gone("a"), gone("b"), fixture.C()), errors.New("timeout"),
			[]string{"(db-b uid-of-b) Warning ReplacementHeld Hold: pending replacement, limited by replacement.maxConcurrent: db-b"}},
		{"SC-39 members that a user deleted", fixture.Seen(fixture.Set("db"), fixture.A().Going(), fixture.B().Going(), fixture.C()), errors.New("timeout"),
			[]string{"(db-a uid-of-a) Warning MemberLost PodDeleted: PodDeleted: db-a, db-b; will not come back, and will be replaced under another name"}},
		{"SC-39 a member whose pod disappeared", fixture.Seen(fixture.Set("db"), fixture.B(), fixture.C(), fixture.LooseClaimOf("a")), errors.New("timeout"),
			[]string{"(no pod) Warning MemberLost PodDeleted: PodDeleted: db-a; will not come back, and will be replaced under another name"}},
		{"a member is retired", fixture.Seen(fixture.Set("db").Replicas(2), fixture.A(), fixture.B(), fixture.C()), nil,
			[]string{"(db-a uid-of-a) Normal MemberRetired Retired: Retired: db-a; claims db-data-a"}},
		{"W6 every retired member is named, 10 in an event", fixture.Seen(fixture.Set("db").Replicas(1), manyMembers(12)...), nil, []string{
			"(db-a01 uid-of-a01) Normal MemberRetired Retired: Retired: db-a01, db-a02, db-a03, db-a04, db-a05, db-a06, db-a07, db-a08, db-a09, db-a10",
			"(db-a11 uid-of-a11) Normal MemberRetired Retired: Retired: db-a11; claims db-data-a11"}},
		{"W6 every member that others deleted is named", fixture.Seen(fixture.Set("db").Replicas(12), goingMembers(12)...), errors.New("timeout"), []string{
			"(db-a01 uid-of-a01) Warning MemberLost PodDeleted: PodDeleted: db-a01, db-a02, db-a03, db-a04, db-a05, db-a06, db-a07, db-a08, db-a09, db-a10; will not come back, and will be replaced under another name",
			"(db-a11 uid-of-a11) Warning MemberLost PodDeleted: PodDeleted: db-a11, db-a12; will not come back, and will be replaced under another name"}},
		{"a member is updated in place", fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.B(), fixture.C(), fixture.OldImage()), nil,
			[]string{"(db-a uid-of-a) Normal MemberUpdated Updated: Updated: db-a; in place"}},
		{"a member returns", fixture.Seen(fixture.Set("db"), fixture.LooseClaimOf("a"), fixture.B(), fixture.C(), fixture.Updating("a", "uid-of-a", "now")), nil,
			[]string{"(db-a fresh-uid) Normal MemberUpdated Returned: Returned: db-a; recreated with the same name and claims"}},
		{"SC-18 a write is refused", fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B()), apierrors.NewForbidden(corev1.Resource("pods"), "db-f1", errors.New("quota")),
			[]string{`(db-f1 ) Warning WriteRefused Write: pods "db-f1" is forbidden: quota`}},
	} {
		if got := emitted(r.world, r.err); !slices.Equal(got, r.want) {
			t.Errorf("%s:\n  %q\nwant\n  %q", r.name, got, r.want)
		}
	}
}

// V7 A pass whose status was not written is retried. The pass whose status is written emits the
// events.
func TestV7NewsIsToldWhenTheStatusIsWritten(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").MaxConcurrent("1"), fixture.A().Going(), fixture.B().NodeGone(), fixture.C())
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	news := func(told eventLog) eventLog {
		return slices.DeleteFunc(told, func(e string) bool {
			return !strings.Contains(e, "MemberLost") && !strings.Contains(e, "ReplacementHeld")
		})
	}
	for _, r := range []struct {
		name   string
		answer error
		want   int
	}{
		{"a conflict with another client", apierrors.NewConflict(corev1.Resource("statefulclusters"), "db", errors.New("changed")), 0},
		{"the write times out", errors.New("timeout"), 0},
		{"the set was deleted", apierrors.NewNotFound(corev1.Resource("statefulclusters"), "db"), 0},
		{"the status is written", nil, 2},
	} {
		var told eventLog
		elsewhere := w.Set.DeepCopy()
		elsewhere.Status.Selector = "changed by another client"
		api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(elsewhere).WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
				return r.answer
			},
		}).Build()
		rec := &status.Reporter{Reader: &observe.Reader{Now: func() time.Time { return fixture.Noon }}, Runner: &action.Runner{Client: api, Live: api}, Events: &told}
		f := facts.Derive(w)
		p := rules.Decide(f)
		rec.Report(context.Background(), f, &p, nil)
		if got := news(told); len(got) != r.want {
			t.Errorf("V7 %s: events are %q, want %d", r.name, got, r.want)
		}
	}
}
