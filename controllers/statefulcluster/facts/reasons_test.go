package facts_test

import (
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestRefusals(t *testing.T) {
	for _, r := range []struct {
		name            string
		w               *facts.World
		update, creates bool
	}{
		{"nothing was refused", fixture.Seen(fixture.Set("db")), false, false},
		{"an update was refused", fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonUpdate, "no", time.Minute)), true, false},
		{"the retry of an update is due", fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonUpdate, "no", 0)), false, false},
		{"the names of new members were refused", fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonNames, "no", time.Minute)), false, true},
		{"a replacement was refused", fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonReplaced, "no", time.Minute)), false, true},
		{"a returning member was refused", fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonReturned, "no", time.Minute)), false, false},
	} {
		if got := r.w.RefusedNow(facts.ReasonUpdate); got != r.update {
			t.Errorf("%s: updates wait: %t", r.name, got)
		}
		if got := r.w.CreatesRefused(); got != r.creates {
			t.Errorf("%s: new members wait: %t", r.name, got)
		}
	}
	if at, _ := fixture.Seen(fixture.Set("db"), fixture.Refused(facts.ReasonUpdate, "no", time.Minute)).RefusedUntil(facts.ReasonUpdate); !at.Equal(fixture.Noon.Add(time.Minute)) {
		t.Errorf("the retry is at %s", at)
	}
}

func TestWhichWritesCreateNewMembers(t *testing.T) {
	for _, r := range []struct {
		verb   action.Verb
		reason string
		want   bool
	}{
		{action.Create, facts.ReasonMissing, true},
		{action.Create, facts.ReasonReplaced, true},
		{action.Create, facts.ReasonReturned, false},
		{action.Delete, facts.ReasonMissing, false},
	} {
		if got := facts.CreatesNew(action.Outcome{Action: action.Action{Verb: r.verb, Reason: r.reason}}); got != r.want {
			t.Errorf("%s for %s: %t", r.verb, r.reason, got)
		}
	}
}
