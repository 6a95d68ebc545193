package simulate

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// order returns a command for the container of a pod.
func (s *Simulation) order(pod, name string, argv ...string) podexec.Command {
	c := s.DB.Containers[pod]
	return podexec.Command{Name: name, Pod: types.NamespacedName{Namespace: shop.Namespace, Name: pod}, UID: c.UID, ContainerID: c.ID,
		Argv: append([]string{"/" + name}, argv...), Timeout: time.Minute}
}

// ends sends a command, ends it, and returns its result.
func (s *Simulation) ends(c podexec.Command, how End) podexec.Result {
	s.DB.Send(c)
	s.DB.End(s.DB.Running[c.UID], how)
	_, results := s.DB.Of(shop, c.UID)
	for _, r := range results {
		if r.Name == c.Name {
			return r
		}
	}
	return podexec.Result{}
}

func TestCommands(t *testing.T) {
	for _, row := range []struct {
		pod, name string
		argv      []string
		code      int
		role      record.State
	}{
		{"rss-shop-0", v1alpha1.CommandStatus, nil, 8, record.Primary},
		{"rss-shop-1", v1alpha1.CommandStatus, nil, 0, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandStop, nil, 0, record.Idle},
		{"rss-shop-0", v1alpha1.CommandDemote, nil, 0, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandPromote, nil, 0, record.Primary},
		{"rss-shop-1", v1alpha1.CommandPromote, []string{"postgresql", "--start=1"}, 0, record.Primary},
		{"rss-shop-1", v1alpha1.CommandPrimary, []string{"rss-shop-0.shop-svc"}, 0, record.Primary},
		{"rss-shop-1", v1alpha1.CommandPrimary, []string{"rss-shop-2.shop-svc"}, 1, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandSecondary, []string{"rss-shop-0.shop-svc"}, 0, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandSecondary, []string{"rss-shop-2.shop-svc"}, 1, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandLeave, []string{"rss-shop-0.shop-svc"}, 0, record.Secondary},
		{"rss-shop-1", v1alpha1.CommandLeave, nil, 1, record.Secondary},
	} {
		s := begun(t, fixture.SetOf(3, 1))
		r := s.ends(s.order(row.pod, row.name, row.argv...), Ends)
		want := podexec.Succeeded
		if row.code != 0 {
			want = podexec.Failed
		}
		if r.Code != row.code || r.Outcome != want || !r.Sent || s.DB.Containers[row.pod].Role != row.role {
			t.Errorf("%s %s %q ends with %+v in role %s", row.pod, row.name, row.argv, r, s.DB.Containers[row.pod].Role)
		}
	}
}

func TestHowCommandsEnd(t *testing.T) {
	for how, want := range map[End]struct {
		outcome podexec.Outcome
		sent    bool
		role    record.State
		late    int
	}{
		Ends:       {podexec.Succeeded, true, record.Idle, 0},
		Unsent:     {podexec.Unknown, false, record.Secondary, 0},
		Unanswered: {podexec.Unknown, true, record.Idle, 0},
		Delayed:    {podexec.Unknown, true, record.Secondary, 1},
		Premature:  {podexec.Succeeded, true, record.Secondary, 1},
		Fails:      {podexec.Failed, true, record.Secondary, 0},
	} {
		s := begun(t, fixture.SetOf(3, 1))
		r := s.ends(s.order("rss-shop-1", v1alpha1.CommandStop), how)
		if r.Outcome != want.outcome || r.Sent != want.sent || s.DB.Containers["rss-shop-1"].Role != want.role || len(s.DB.Late) != want.late {
			t.Errorf("%q: %+v, role %s, %d late effects", how, r, s.DB.Containers["rss-shop-1"].Role, len(s.DB.Late))
		}
		for _, effect := range s.DB.Late {
			effect()
		}
		if want.late > 0 && s.DB.Containers["rss-shop-1"].Role != record.Idle {
			t.Errorf("%q has no late effect", how)
		}
	}
}

func TestOneCommandInAPod(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	stop := s.order("rss-shop-1", v1alpha1.CommandStop)
	if !s.DB.Send(stop) || s.DB.Send(s.order("rss-shop-1", v1alpha1.CommandDemote)) {
		t.Error("two commands run in a pod")
	}
	if len(s.DB.Moves()) != 1 || s.DB.answer() {
		t.Error("the command is answered at once")
	}
	s.DB.Hangs["rss-shop-1 stop"] = true
	if len(s.DB.Moves()) > 0 {
		t.Error("a command that hangs ends")
	}
	s.Now = s.Now.Add(stop.Timeout)
	if len(s.DB.Moves()) != 1 {
		t.Error("a command that hangs has no timeout")
	}
	s.DB.notSent(stop, "because")
	if running, results := s.DB.Of(shop, stop.UID); running == nil || slices.ContainsFunc(results, func(r podexec.Result) bool { return r.Why == "because" }) {
		t.Error("a running command counts as not sent")
	}
}
