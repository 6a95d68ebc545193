package engine

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// noFacts are the facts of rules whose actions do not depend on facts.
type noFacts struct{}

type plan struct{ Plan }

func acts(_ noFacts, p *plan) { p.Do(action.Chain{{}}) }

func rests(noFacts, *plan) {}

func lasts(_ noFacts, p *plan) { p.Do(action.Chain{{}}); p.Last() }

func stops(_ noFacts, p *plan) { p.Stop() }

func TestDecide(t *testing.T) {
	for _, row := range []struct {
		says  string
		rules []Rule[noFacts, plan]
		want  []string
		timed bool
	}{
		{"nothing to do", []Rule[noFacts, plan]{{"a", rests, Exclusive}}, nil, false},
		{"the first rule with an action wins", []Rule[noFacts, plan]{{"a", rests, Exclusive}, {"b", acts, Exclusive}, {"c", acts, Exclusive}}, []string{"b"}, true},
		{"rules of kind Beside act as well", []Rule[noFacts, plan]{{"a", acts, Beside}, {"b", acts, Exclusive}, {"c", acts, Beside}, {"d", acts, Exclusive}}, []string{"a", "b", "c"}, true},
		{"a leading rule lets the next rule act", []Rule[noFacts, plan]{{"a", acts, Leading}, {"b", acts, Leading}, {"c", acts, Exclusive}, {"d", acts, Leading}}, []string{"a", "b", "c"}, true},
		{"a rule that returns last lets only rules of kind Beside act", []Rule[noFacts, plan]{{"a", lasts, Leading}, {"b", acts, Leading}, {"c", acts, Beside}}, []string{"a", "c"}, true},
		{"a rule that stops lets no other rule act", []Rule[noFacts, plan]{{"a", acts, Beside}, {"b", stops, Leading}, {"c", acts, Beside}}, []string{"a"}, true},
		{"rules without deadlines need no live read", []Rule[noFacts, plan]{{"a", acts, Timeless}, {"b", acts, Beside | Timeless}}, []string{"a", "b"}, false},
		{"a rule without a deadline and one with a deadline", []Rule[noFacts, plan]{{"a", acts, Timeless}, {"b", acts, Beside}}, []string{"a", "b"}, true},
	} {
		var acted []string
		rules := slices.Clone(row.rules)
		for i, rule := range rules {
			rules[i].Act = func(f noFacts, p *plan) {
				before := p.Acts()
				if rule.Act(f, p); p.Acts() > before {
					acted = append(acted, rule.Name)
				}
			}
		}
		var p plan
		Decide(rules, noFacts{}, &p, &p.Plan)
		if !slices.Equal(acted, row.want) || p.Timed != row.timed {
			t.Errorf("%s: %v act, timed %v; want %v, %v", row.says, acted, p.Timed, row.want, row.timed)
		}
		if first := append(row.want, "")[0]; p.Rule != first {
			t.Errorf("%s: the rule is %q, want %q", row.says, p.Rule, first)
		}
	}
}

func TestPlan(t *testing.T) {
	var p Plan
	for _, after := range []time.Duration{0, time.Minute, time.Second, -time.Second, time.Hour} {
		p.LookAgain(after)
	}
	if p.Wait != time.Second {
		t.Errorf("requeue after %s, want the earliest time", p.Wait)
	}
	p.WaitFor("First", "first")
	p.WaitFor("Second", "second")
	if p.Waiting != (Notice{"First", "first"}) {
		t.Errorf("waits for %v, want the first reason", p.Waiting)
	}
	chain := action.Chain{{}}
	p.Then()
	p.Do()
	p.Do(chain, chain)
	p.Then(chain)
	p.Do(chain)
	if len(p.Steps) != 2 || len(p.Steps[0]) != 3 || len(p.Steps[1]) != 1 || p.Acts() != 4 {
		t.Errorf("%d steps with %d chains: %v", len(p.Steps), p.Acts(), p.Steps)
	}
}

// W3: a patch that was undone waits, and so do the later steps of its rule. The other rules act.
func TestAPatchThatWasUndone(t *testing.T) {
	have, want := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, &corev1.ConfigMap{Data: map[string]string{"a": "b"}}
	patch := action.Action{Verb: action.Patch, From: have, Object: want}
	var known undone.Memory
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	known.Held(1, now)
	known.Learn([]action.Outcome{{Action: patch, Answer: have}}, now)
	keeps := func(_ noFacts, p *plan) {
		p.Then(action.Chain{patch})
		p.Then(action.Chain{{Verb: action.Delete, Object: have}})
	}
	rules := []Rule[noFacts, plan]{{"keep", keeps, Exclusive}, {"a", acts, Exclusive}}
	for after, want := range map[time.Duration]string{time.Second: "a", time.Minute: "keep"} {
		p := plan{Plan{Undone: known.Held(1, now.Add(after))}}
		Decide(rules, noFacts{}, &p, &p.Plan)
		if p.Rule != want {
			t.Errorf("after %v the rule is %q, want %q", after, p.Rule, want)
		}
		if waits := p.Wait > 0; waits != (want == "a") {
			t.Errorf("after %v it requeues after %v", after, p.Wait)
		}
	}
}

func TestFirst(t *testing.T) {
	a, b := Notice{Reason: "A", Message: "a"}, Notice{Reason: "B", Message: "b"}
	for _, row := range []struct {
		name   string
		checks []Notice
		want   Notice
	}{
		{"no checks", nil, Notice{}},
		{"the second of three finds something", []Notice{{}, a, b}, a},
		{"a notice without a message is not found", []Notice{{Reason: "C"}, b}, b},
	} {
		ran := 0
		got := First(row.checks, func(n Notice) Notice { ran++; return n })
		if got != row.want {
			t.Errorf("%s: got %+v, want %+v", row.name, got, row.want)
		}
		if want := slices.Index(row.checks, row.want) + 1; want > 0 && ran != want {
			t.Errorf("%s: %d checks ran, want %d", row.name, ran, want)
		}
	}
}
