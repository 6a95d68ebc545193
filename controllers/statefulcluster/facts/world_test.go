package facts_test

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

// V5 Every deadline after which a member is lost, as listed in docs/deadlines.md,
// shortly after it passed on the wall clock. The time in which the operator did not observe the
// cluster does not count.
func TestV5DeadlinesCountTheTimeInWhichTheOperatorLooked(t *testing.T) {
	const away = 36 * time.Second
	for _, d := range []struct {
		name   string
		after  time.Duration
		member func(passed time.Duration) *fixture.PodFixture
		things []fixture.Thing
		want   []string
	}{
		{name: "unreadySeconds", after: 300 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture { return fixture.Pod("a").On("n1").UnreadyFor(passed) },
			want:   []string{fixture.Replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "startupSeconds", after: 600 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture {
				return fixture.Pod("a").Aged(passed).On("n1").Starting()
			},
			want: []string{fixture.Replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "pendingSeconds", after: 300 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture { return fixture.Pod("a").UnschedulableFor(passed) },
			want:   []string{fixture.Replaces("a", "f1", v1alpha1.LossPending)}},
		{name: "backoff between replacements", after: 630 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture {
				return fixture.Pod("a").InPlaceOf("x", 2).Aged(passed).On("n1").Starting()
			},
			want: []string{fixture.Replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "nodeLostSeconds", after: 30 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture { return fixture.A().NodeNotReadyFor(passed) },
			want:   []string{fixture.Replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "nodeLostSeconds of a returning member", after: 30 * time.Second,
			member: func(passed time.Duration) *fixture.PodFixture {
				return fixture.Pod("a").On("n1").Ready().Going().NodeNotReadyFor(passed)
			},
			things: []fixture.Thing{fixture.Updating("a", "uid-of-a", "now")},
			want:   []string{"patch status of statefulcluster db: Update", fixture.CreatesInPlaceOf("a", "f1")}},
	} {
		ago := func(d time.Duration) time.Time { return fixture.Noon.Add(-d) }
		for _, r := range []struct {
			name   string
			watch  leadership.Watch
			passed time.Duration
			late   bool
		}{
			{"the operator watched without gaps", leadership.Watch{}, d.after, true},
			{"one second before the deadline", leadership.Watch{}, d.after - time.Second, false},
			{"the watch had a gap: operator frozen or API server unreachable", leadership.Watch{Gaps: []leadership.Gap{{From: ago(away + 2*time.Second), To: ago(2 * time.Second)}}}, d.after, false},
			{"the deadline has passed after the gap is added to it", leadership.Watch{Gaps: []leadership.Gap{{From: ago(away + 2*time.Second), To: ago(2 * time.Second)}}}, d.after + away, true},
			{"the operator was started less than the deadline ago", leadership.Watch{Since: ago(d.after - time.Second)}, 2 * d.after, false},
			{"the operator was started a full deadline ago", leadership.Watch{Since: ago(d.after)}, 2 * d.after, true},
		} {
			w := fixture.Seen(fixture.Set("db"), append(slices.Clone(d.things), d.member(r.passed), fixture.B(), fixture.C())...)
			w.Watch = r.watch
			var want []string
			if r.late {
				want = d.want
			}
			p := fixture.PlanOf(w)
			if got := p.Steps.Strings(); !slices.Equal(got, want) {
				t.Errorf("V5 %s, %s: the steps are %q, want %q", d.name, r.name, got, want)
			}
			if !r.late && p.Wait <= 0 {
				t.Errorf("V5 %s, %s: no pass is requeued", d.name, r.name)
			}
		}
	}
}
