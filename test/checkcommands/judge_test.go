package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers"
)

// toy is an application in two pods that keeps every rule, unless a fault says
// otherwise.
type toy struct {
	pods  [2]toyPod
	fault faultOf
	mute  bool // nobody can list processes
}

type toyPod struct {
	role     string // "", secondary, primary
	sequence int
	left     bool // a process stays behind
	lingers  bool // one does for a second
	ended    bool // the container
}

func (t *toy) count() int             { return len(t.pods) }
func (t *toy) name(member int) string { return fmt.Sprint("rss-toy-", member) }

func (t *toy) restarted(context.Context) (names []string) {
	for i := range t.pods {
		if t.pods[i].ended {
			names = append(names, t.name(i))
		}
	}
	return names
}

func (t *toy) processes(_ context.Context, member int) ([]string, bool) {
	lines := []string{"/idle"}
	if p := t.pods[member]; p.role != "" || p.left || p.lingers {
		lines = append(lines, "/toy serve")
	}
	return lines, !t.mute
}

func (t *toy) wait(context.Context) {
	for i := range t.pods {
		t.pods[i].lingers = false
	}
}

func exit(code int) *controllers.Result {
	r := &controllers.Result{Outcome: controllers.Failed, Code: code}
	if code == 0 {
		r.Outcome = controllers.Succeeded
	}
	return r
}

func prints(text string) *controllers.Result {
	r := exit(0)
	r.Stdout = text
	return r
}

func unknown(why string) *controllers.Result {
	return &controllers.Result{Outcome: controllers.Unknown, Sent: true, Why: why, Command: controllers.Command{Timeout: 10 * time.Second}}
}

func (t *toy) run(_ context.Context, member int, command string, primaries []int) controllers.Result {
	if t.fault != nil {
		if r := t.fault(t, member, command, primaries); r != nil {
			return *r
		}
	}
	return *t.obey(member, command)
}

func (t *toy) obey(member int, command string) *controllers.Result {
	p := &t.pods[member]
	switch command {
	case "status":
		return exit(map[string]int{"": 7, "secondary": 0, "primary": 8}[p.role])
	case "sequence":
		return prints(strconv.Itoa(p.sequence) + "\n")
	case "seed", "primary", "promote":
		if p.role != "primary" {
			p.sequence++
		}
		p.role = "primary"
	case "secondary", "demote":
		p.role, p.sequence = "secondary", max(p.sequence, t.pods[1-member].sequence)
	case "stop":
		p.role = ""
	}
	return exit(0)
}

func toySet(primaries int32, without ...string) *v1alpha1.ReplicatedStatefulSet {
	set := &v1alpha1.ReplicatedStatefulSet{}
	set.Spec.Replicas, set.Spec.Primaries = ptr.To[int32](2), ptr.To(primaries)
	set.Spec.Pod.Commands = map[string]v1alpha1.Command{}
	for _, name := range []string{"sequence", "status", "stop", "primary", "seed", "secondary", "promote", "demote"} {
		if !slices.Contains(without, name) {
			set.Spec.Pod.Commands[name] = v1alpha1.Command{}
		}
	}
	return set
}

// judged tries the toy, and names the rules that it broke.
func judged(t *testing.T, app *toy, set *v1alpha1.ReplicatedStatefulSet) (broken []int, said string) {
	t.Helper()
	var out bytes.Buffer
	j := newJudge(app, set, &out)
	j.try(t.Context())
	count := j.report()
	for id, v := range j.verdicts {
		if v.broken != "" {
			broken = append(broken, id)
		}
	}
	if count != len(broken) {
		t.Errorf("reported %d rules as broken, and %d are", count, len(broken))
	}
	return broken, out.String()
}

func TestAGoodApplicationIsFoundGood(t *testing.T) {
	for _, row := range []struct {
		sentence string
		set      *v1alpha1.ReplicatedStatefulSet
		untold   []int
	}{
		{"with all commands", toySet(1), nil},
		{"with the four that are needed, all primaries", toySet(2, "seed", "secondary", "promote", "demote"), []int{rulePromote, ruleDemote}},
		{"without promote and demote", toySet(1, "promote", "demote"), []int{ruleDemote}},
		{"with one primary and nobody beside it", toySet(1, "seed", "secondary", "promote", "demote"), []int{ruleJoin, rulePromote, ruleRejoin, ruleDemote}},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			var out bytes.Buffer
			j := newJudge(&toy{}, row.set, &out)
			j.try(t.Context())
			if broken := j.report(); broken > 0 {
				t.Errorf("%d rules are said to be broken:\n%s", broken, out.String())
			}
			for id, v := range j.verdicts {
				if want := slices.Contains(row.untold, id); (v.untold != "") != want {
					t.Errorf("%q: not told is %t, want %t:\n%s", rules[id].says, v.untold != "", want, out.String())
				} else if !want && v.kept == 0 {
					t.Errorf("%q was not tried:\n%s", rules[id].says, out.String())
				}
			}
		})
	}
}

// faultOf sees each command before the toy, and may answer for it.
type faultOf func(t *toy, member int, command string, primaries []int) *controllers.Result

// always answers a command so.
func always(command string, r *controllers.Result) faultOf {
	return func(_ *toy, _ int, c string, _ []int) *controllers.Result {
		if c == command {
			return r
		}
		return nil
	}
}

// does something when a command comes.
func does(command string, then func(*toy, int) *controllers.Result) faultOf {
	return func(a *toy, member int, c string, _ []int) *controllers.Result {
		if c == command {
			return then(a, member)
		}
		return nil
	}
}

// stopsLate returns from stop before the program ends.
func stopsLate() faultOf {
	stopping := false
	return func(a *toy, m int, c string, _ []int) *controllers.Result {
		switch {
		case c == "stop" && a.pods[m].role != "":
			stopping = true
			return exit(0)
		case c == "status" && stopping:
			stopping, a.pods[m].role = false, ""
			return exit(8)
		}
		return nil
	}
}

// broken are applications that break a rule.
var broken = []struct {
	sentence string
	fault    faultOf
	want     []int
}{
	{"status says 0 of a stopped member", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "status" && a.pods[m].role == "" {
			return exit(0)
		}
		return nil
	}, []int{ruleIdle}},
	{"status ends with 1 when nothing runs", always("status", exit(1)), []int{ruleIdle, ruleCodes}},
	{"stop fails when there is nothing to stop", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "stop" && a.pods[m].role == "" {
			return exit(7)
		}
		return nil
	}, []int{ruleStoppedStop, ruleCodes}},
	{"sequence prints no number", always("sequence", prints("x\n")), []int{ruleStoppedSequence}},
	{"sequence prints two lines", always("sequence", prints("1\n2\n")), []int{ruleStoppedSequence}},
	{"sequence prints a negative number", always("sequence", prints("-1")), []int{ruleStoppedSequence}},
	{"sequence prints more than 64 bits", always("sequence", prints("18446744073709551616")), []int{ruleStoppedSequence}},
	{"sequence prints at random", does("sequence", func(a *toy, m int) *controllers.Result { a.pods[m].sequence += 7; return nil }), []int{ruleStoppedSequence}},
	{"sequence fails while the program runs", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "sequence" && a.pods[m].role != "" {
			return exit(1)
		}
		return nil
	}, []int{ruleRunningSequence, ruleCodes}},
	{"sequence starts the program", does("sequence", func(a *toy, m int) *controllers.Result {
		a.pods[m].role = map[string]string{"primary": "secondary"}[a.pods[m].role]
		return nil
	}), []int{ruleRunningSequence}},
	{"seed returns before it is primary", does("seed", func(a *toy, m int) *controllers.Result { a.pods[m].role = "secondary"; return exit(0) }), []int{ruleSeed}},
	{"seed is not installed", always("seed", exit(5)), []int{ruleSeed, ruleCodes}},
	{"a second seed fails", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "seed" && a.pods[m].role == "primary" {
			return exit(1)
		}
		return nil
	}, []int{ruleAgain, ruleCodes}},
	{"a second seed wipes the copy", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "seed" && a.pods[m].role == "primary" {
			a.pods[m].sequence = 0
		}
		return nil
	}, []int{ruleAgain}},
	{"secondary cannot join", always("secondary", exit(1)), []int{ruleJoin, ruleCodes}},
	{"secondary becomes primary", does("secondary", func(a *toy, m int) *controllers.Result { a.pods[m].role = "primary"; return exit(0) }), []int{ruleJoin}},
	{"secondary does not look whom it is told of", func(_ *toy, _ int, c string, primaries []int) *controllers.Result {
		if c == "secondary" && (len(primaries) != 1) {
			return exit(2)
		}
		return nil
	}, nil},
	{"promote waits for a primary", func(_ *toy, _ int, c string, primaries []int) *controllers.Result {
		if c == "promote" && len(primaries) == 0 {
			return exit(1)
		}
		return nil
	}, []int{rulePromote, ruleCodes}},
	{"promote loses data", does("promote", func(a *toy, m int) *controllers.Result { a.pods[m] = toyPod{role: "primary"}; return exit(0) }), []int{rulePromote, ruleLasting}},
	{"one that was primary does not join again", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c == "secondary" && m == 0 {
			return exit(1)
		}
		return nil
	}, []int{ruleRejoin, ruleCodes}},
	{"demote does nothing", always("demote", exit(0)), []int{ruleDemote}},
	{"sequence counts from the start of the program", does("stop", func(a *toy, m int) *controllers.Result { a.pods[m] = toyPod{}; return exit(0) }), []int{ruleLasting}},
	{"stop returns before the program ends", stopsLate(), []int{ruleStop}},
	{"stop leaves a process behind", does("stop", func(a *toy, m int) *controllers.Result { a.pods[m].left = a.pods[m].role != ""; return nil }), []int{ruleProcesses}},
	{"what watched over stop ends a moment after it", does("stop", func(a *toy, m int) *controllers.Result { a.pods[m].lingers = a.pods[m].role != ""; return nil }), nil},
	{"seed hangs", always("seed", unknown("it did not end within 10s")), []int{ruleEnds}},
	{"seed does its work and lets its child hold the stream", does("seed", func(a *toy, m int) *controllers.Result {
		a.obey(m, "seed")
		return unknown("it did not end within 10s")
	}), []int{ruleStream}},
	{"stop does its work and lets its child hold the stream", func(a *toy, m int, c string, _ []int) *controllers.Result {
		if c != "stop" || a.pods[m].role == "" {
			return nil
		}
		a.obey(m, "stop")
		return unknown("it did not end within 10s")
	}, []int{ruleStream}},
	{"status hangs", always("status", unknown("it did not end within 10s")), []int{ruleEnds}},
	{"the program of a command is not there", always("stop", unknown("the stream ended before the node told the exit code: exec: \"/stop\": no such file or directory")), []int{ruleProgram}},
	{"a script calls what is not there", always("stop", exit(127)), []int{ruleStoppedStop, ruleProgram, ruleCodes}},
	{"promote hangs", always("promote", unknown("it did not end within 10s")), []int{ruleEnds}},
	{"the answer of status is lost", always("status", unknown("the stream ended before the node told the exit code: EOF")), []int{ruleEnds}},
	{"seed prints too much", always("seed", prints(strings.Repeat("9", controllers.MostOutput))), []int{ruleSeed, ruleOutput}},
	{"sequence prints without end", always("sequence", unknown("the stream ended before the node told the exit code: it printed more than 16 MiB")), []int{ruleOutput}},
	{"an exit code that means nothing", always("promote", exit(42)), []int{rulePromote, ruleCodes}},
	{"process 1 ends with the program", does("stop", func(a *toy, m int) *controllers.Result { a.pods[m].ended = a.pods[m].role != ""; return nil }), []int{ruleProcessOne}},
}

func TestWhatIsBrokenIsFound(t *testing.T) {
	for _, row := range broken {
		t.Run(row.sentence, func(t *testing.T) {
			broken, said := judged(t, &toy{fault: row.fault}, toySet(1))
			if !slices.Equal(broken, row.want) {
				t.Errorf("broken are %v, want %v:\n%s", broken, row.want, said)
			}
			for _, id := range row.want {
				if !strings.Contains(said, "FAILED   "+rules[id].says) || !strings.Contains(said, "remedy: "+rules[id].remedy) {
					t.Errorf("the report does not name %q and its remedy:\n%s", rules[id].says, said)
				}
			}
		})
	}
}

func TestAnImageWithoutAShellIsNoFault(t *testing.T) {
	broken, said := judged(t, &toy{mute: true}, toySet(1))
	if len(broken) > 0 || !strings.Contains(said, "not told "+rules[ruleProcesses].says) {
		t.Errorf("broken are %v:\n%s", broken, said)
	}
}

func TestAManifestIsRead(t *testing.T) {
	for _, row := range []struct {
		sentence, text string
		sets, others   int
		fails          bool
	}{
		{"with what its pods need", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# only a comment\n---\napiVersion: clusterlabs.org/v1alpha1\nkind: ReplicatedStatefulSet\nmetadata: {name: a}\nspec: {pod: {containers: []}}\n", 1, 1, false},
		{"with a field that is not there", "kind: ReplicatedStatefulSet\nspec: {size: 3}\n", 0, 0, true},
		{"that is no YAML", "kind: [\n", 0, 0, true},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			m, err := parseManifest([]byte(row.text))
			if (err != nil) != row.fails {
				t.Fatalf("error is %v", err)
			}
			if err == nil && (len(m.sets) != row.sets || len(m.others) != row.others) {
				t.Errorf("%d sets and %d others, want %d and %d", len(m.sets), len(m.others), row.sets, row.others)
			}
		})
	}
}
