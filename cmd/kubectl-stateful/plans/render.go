// Package plans prints plans.
package plans

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// maxValue is the max number of characters of a printed value of a field.
const maxValue = 60

// HasEffect reports whether a plan contains something that the change causes.
func HasEffect(p *plugin.Plan) bool {
	return p.New || p.Deleted || len(p.Steps)+len(p.Changes)+len(p.Blocked) > 0
}

// Write writes a plan as text.
func Write(out io.Writer, p *plugin.Plan) error {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	add("%s %s/%s%s", p.Kind, p.Namespace, p.Name, map[bool]string{true: " (new)"}[p.New])
	for _, field := range p.Changes {
		add("  %s", change(field))
	}
	if len(p.InProgress) > 0 {
		add("  already in progress, without this change:")
		lines = append(lines, steps(p.InProgress)...)
		add("  then:")
	}
	lines = append(lines, steps(p.Steps)...)
	add("  %s", summary(p))
	switch {
	case p.State == plugin.Complete:
	case p.Unchanged:
		add("  still, as before the change: %s: %s", p.Reason, p.Message)
	case p.State == plugin.Stopped:
		add("  then it stops and requires manual intervention: %s: %s", p.Reason, p.Message)
	default:
		add("  then it waits: %s: %s", p.Reason, p.Message)
	}
	for _, pod := range p.Blocked {
		add("  blocked: %s", pod)
	}
	for _, unknown := range p.Unknown {
		add("  unknown: %s", unknown)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, tree.PrintableLines(line)); err != nil {
			return err
		}
	}
	return nil
}

func steps(all []plugin.Step) (lines []string) {
	width := 1
	if n := len(all); n > 0 {
		width = len(strconv.Itoa(all[n-1].Batch))
	}
	for i, step := range all {
		number := strconv.Itoa(step.Batch)
		if i > 0 && step.Batch == all[i-1].Batch {
			number = "" // at the same time
		}
		lines = append(lines, fmt.Sprintf("  %*s  %s", width, number, Sentence(step)))
	}
	return lines
}

// Sentence describes a step.
func Sentence(step plugin.Step) string {
	var text string
	switch step.Action {
	case plugin.CreatePod:
		text = "create pod " + step.Name
	case plugin.DeletePod:
		text = "delete pod " + step.Name
	case plugin.RecreatePod:
		text = "recreate pod " + step.Name
	case plugin.UpdatePod:
		text = "update pod " + step.Name + " in place"
	case plugin.Handover:
		return handover(step)
	case plugin.CreateClaim:
		text = "create claim " + step.Name
	case plugin.DeleteClaim:
		text = "delete claim " + step.Name + " with its data"
	case plugin.CreateVersion:
		text = "create StatefulSet " + step.Name
	case plugin.DeleteVersion:
		text = "delete StatefulSet " + step.Name
	case plugin.RunJob:
		text = "run Job " + step.Name
	case plugin.Approve:
		text = "assume the approval of revision " + step.Name
	default:
		text = string(step.Action) + " " + step.Name
	}
	if step.Role != "" {
		text += " (" + step.Role + ")"
	}
	if len(step.Changes) > 0 && step.Action == plugin.UpdatePod { // others follow from the changes of the object
		var changes []string
		for _, field := range step.Changes {
			changes = append(changes, change(field))
		}
		text += ": " + strings.Join(changes, ", ")
	}
	return text
}

func handover(step plugin.Step) string {
	switch {
	case step.Name == "":
		return fmt.Sprintf("%s becomes %s", step.To, step.Role)
	case step.To == "":
		return fmt.Sprintf("%s stops being %s, and no pod replaces it", step.Name, step.Role)
	}
	return fmt.Sprintf("hand over from %s to %s (%s)", step.Name, step.To, step.Role)
}

func change(field plugin.Field) string {
	from, to := short(field.From), short(field.To)
	switch {
	case from == "":
		return fmt.Sprintf("%s: set to %s", field.Path, to)
	case to == "":
		return fmt.Sprintf("%s: removed, was %s", field.Path, from)
	}
	return fmt.Sprintf("%s: %s -> %s", field.Path, from, to)
}

// short returns a value without the quotes of a JSON string, and not more than maxValue characters of it.
func short(value string) string {
	if text, err := strconv.Unquote(value); err == nil && text != "" {
		value = text
	}
	value = strings.ReplaceAll(value, "\n", `\n`)
	if runes := []rune(value); len(runes) > maxValue {
		return string(runes[:maxValue-3]) + "..."
	}
	return value
}

// summary returns the numbers of a plan as a sentence.
func summary(p *plugin.Plan) string {
	var parts []string
	for _, one := range []struct {
		n            int
		thing, verbs string
	}{
		{p.Summary.PodsRecreated, "pod", "recreated"},
		{p.Summary.PodsUpdated, "pod", "updated in place"},
		{p.Summary.PodsCreated, "pod", "created"},
		{p.Summary.PodsDeleted, "pod", "deleted"},
		{p.Summary.Handovers, "handover", ""},
		{p.Summary.ClaimsCreated, "claim", "created"},
		{p.Summary.ClaimsDeleted, "claim", "deleted"},
	} {
		if one.n > 0 {
			parts = append(parts, strings.TrimSpace(counted(one.n, one.thing)+" "+one.verbs))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no pod restarts")
	}
	if p.Summary.ClaimsKept > 0 {
		parts = append(parts, counted(p.Summary.ClaimsKept, "claim")+" kept")
	}
	text := strings.Join(parts, ", ")
	if p.Summary.Members > 0 {
		text += fmt.Sprintf("; at least %d of %s Ready at any time", p.Summary.MinReady, counted(p.Summary.Members, "pod"))
	}
	if blocked := blockedDuring(p.Steps); blocked != "" {
		text += "; evictions blocked during " + blocked
	}
	return text
}

// blockedDuring returns the numbers of the steps during which evictions are blocked, for example "steps 1, 3-5".
func blockedDuring(all []plugin.Step) string {
	var ranges []string
	first, last := 0, 0
	end := func() {
		switch first {
		case 0:
		case last:
			ranges = append(ranges, strconv.Itoa(first))
		default:
			ranges = append(ranges, fmt.Sprintf("%d-%d", first, last))
		}
	}
	for _, step := range all {
		switch {
		case !step.EvictionsBlocked:
		case first > 0 && step.Batch <= last+1:
			last = step.Batch
		default:
			end()
			first, last = step.Batch, step.Batch
		}
	}
	end()
	if len(ranges) == 0 {
		return ""
	}
	if len(ranges) == 1 && first == last {
		return "step " + ranges[0]
	}
	return "steps " + strings.Join(ranges, ", ")
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
