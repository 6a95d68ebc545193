package statefulcluster

import (
	"slices"
	"testing"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// V5 Every deadline after which a member is lost, as listed in docs/deadlines.md,
// shortly after it passed on the wall clock. The time in which the operator did not observe the
// cluster does not count.
func TestV5DeadlinesCountTheTimeInWhichTheOperatorLooked(t *testing.T) {
	const away = 36 * time.Second
	for _, d := range []struct {
		name   string
		after  time.Duration
		member func(passed time.Duration) *podFixture
		things []thing
		want   []string
	}{
		{name: "unreadySeconds", after: 300 * time.Second,
			member: func(passed time.Duration) *podFixture { return pod("a").on("n1").unreadyFor(passed) },
			want:   []string{replaces("a", "f1", v1alpha1.LossUnready)}},
		{name: "startupSeconds", after: 600 * time.Second,
			member: func(passed time.Duration) *podFixture { return pod("a").aged(passed).on("n1").starting() },
			want:   []string{replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "pendingSeconds", after: 300 * time.Second,
			member: func(passed time.Duration) *podFixture { return pod("a").unschedulableFor(passed) },
			want:   []string{replaces("a", "f1", v1alpha1.LossPending)}},
		{name: "backoff between replacements", after: 630 * time.Second,
			member: func(passed time.Duration) *podFixture {
				return pod("a").inPlaceOf("x", 2).aged(passed).on("n1").starting()
			},
			want: []string{replaces("a", "f1", v1alpha1.LossStartup)}},
		{name: "nodeLostSeconds", after: 30 * time.Second,
			member: func(passed time.Duration) *podFixture { return a().nodeNotReadyFor(passed) },
			want:   []string{replaces("a", "f1", v1alpha1.LossNodeNotReady)}},
		{name: "nodeLostSeconds of a returning member", after: 30 * time.Second,
			member: func(passed time.Duration) *podFixture {
				return pod("a").on("n1").ready().going().nodeNotReadyFor(passed)
			},
			things: []thing{updating("a", "uid-of-a", "now")},
			want:   []string{"patch status of statefulcluster db: Update", createsInPlaceOf("a", "f1")}},
	} {
		ago := func(d time.Duration) time.Time { return noon.Add(-d) }
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
			w := seen(set("db"), append(slices.Clone(d.things), d.member(r.passed), b(), c())...)
			w.Watch = r.watch
			var want []string
			if r.late {
				want = d.want
			}
			p := planOf(w)
			if got := p.Steps.Strings(); !slices.Equal(got, want) {
				t.Errorf("V5 %s, %s: the steps are %q, want %q", d.name, r.name, got, want)
			}
			if !r.late && p.Wait <= 0 {
				t.Errorf("V5 %s, %s: no pass is requeued", d.name, r.name)
			}
		}
	}
}
