package rules_test

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

func TestHistory(t *testing.T) {
	none := func(s *v1alpha1.StatefulClusterSpec) { s.RevisionHistoryLimit = ptr.To(int32(0)) }
	one := func(s *v1alpha1.StatefulClusterSpec) { s.RevisionHistoryLimit = ptr.To(int32(1)) }
	v1, v2 := fixture.RevisionOfImage("v1", "1").Numbered(1), fixture.RevisionOfImage("v2", "2").Numbered(2)
	gone := func(name string) string { return "delete controllerrevision " + name + ": History" }
	inUse := fixture.Set("db").Change(none)
	inUse.Status.CurrentRevision = "v1"
	fixture.Check(t, []fixture.Row{
		{Name: "SC-24 old revisions are kept up to revisionHistoryLimit", World: fixture.Seen(fixture.Set("db").Change(one), fixture.A(), fixture.B(), fixture.C(), v1)},
		{Name: "SC-24 the oldest revision above revisionHistoryLimit is deleted", World: fixture.Seen(fixture.Set("db").Change(one), fixture.A(), fixture.B(), fixture.C(), v1, v2), Want: []string{gone("v1")}},
		{Name: "all old revisions are deleted with revisionHistoryLimit 0, except that of the spec", World: fixture.Seen(fixture.Set("db").Change(none), fixture.A(), fixture.B(), fixture.C(), v1, v2),
			Want: []string{gone("v1"), gone("v2")}},
		{Name: "a revision that a member has is kept",
			World: fixture.Seen(fixture.Set("db").OnDelete().Change(none), fixture.A().Of("v1"), fixture.B(), fixture.C(), v1, v2), Want: []string{gone("v2")}},
		{Name: "a revision of a returning member is kept",
			World: fixture.Seen(fixture.Set("db").Change(none), fixture.Pod("a").On("n1").Going(), fixture.Updating("a", "uid-of-a", "v1"), fixture.B(), fixture.C(), v1, v2), Want: []string{gone("v2")}},
		{Name: "large revisions are deleted before revisionHistoryLimit is reached",
			World: fixture.Seen(fixture.Set("db"), fixture.A(), fixture.B(), fixture.C(), fixture.RevisionOfImage("v1", strings.Repeat("x", rules.MaxHistory/2)).Numbered(1), v2, fixture.RevisionOfImage("v3", "3").Numbered(3)), Want: []string{gone("v1"), gone("v2")}},
		{Name: "the current revision is kept", World: fixture.Seen(inUse, fixture.A(), fixture.B(), fixture.C(), v1, v2), Want: []string{gone("v2")}},
	})
}
