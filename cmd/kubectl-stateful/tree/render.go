package tree

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tone is the color of a text.
type tone string

// The tones as terminal sequences.
const (
	plain tone = ""
	well  tone = "\x1b[32m"
	busy  tone = "\x1b[33m"
	ill   tone = "\x1b[31m"
	bold  tone = "\x1b[1m"
	reset      = "\x1b[0m"
)

type cell struct {
	text string
	tone tone
}

// branch is a line of the tree, in columns, and the lines below it.
type branch struct {
	cells    []cell
	branches []branch
}

// Write writes the tree of a report.
func Write(w io.Writer, r Report, color bool) error {
	out := &writer{w: w, color: color}
	top := branchOf(r)
	out.line("", "", top.cells, nil)
	out.below("", top.branches)
	return out.err
}

type writer struct {
	w     io.Writer
	color bool
	err   error
}

func (o *writer) below(indent string, branches []branch) {
	widths := widthsOf(branches)
	for i, b := range branches {
		fork, deeper := "├── ", "│   "
		if i == len(branches)-1 {
			fork, deeper = "└── ", "    "
		}
		o.line(indent, fork, b.cells, widths)
		o.below(indent+deeper, b.branches)
	}
}

func (o *writer) line(indent, fork string, cells []cell, widths []int) {
	var line strings.Builder
	line.WriteString(indent + fork)
	for i, c := range cells {
		text := Printable(c.text)
		gap := ""
		if i < len(cells)-1 {
			gap = "  "
			if i < len(widths) {
				gap += strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(text), 0))
			}
		}
		if o.color && c.tone != plain && text != "" {
			text = string(c.tone) + text + reset
		}
		line.WriteString(text + gap)
	}
	if o.err == nil {
		_, o.err = fmt.Fprintln(o.w, strings.TrimRight(line.String(), " "))
	}
}

// widthsOf returns the widths of the columns of consecutive lines.
func widthsOf(branches []branch) []int {
	var widths []int
	for _, b := range branches {
		for i, c := range b.cells {
			if i == len(b.cells)-1 { // the last column is not aligned
				break
			}
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(Printable(c.text)))
		}
	}
	return widths
}

// Printable returns a text without control characters for a terminal: anyone who can create events
// or annotations may have written the messages.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// PrintableLines is Printable for a text of several lines.
func PrintableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	return strings.Join(lines, "\n")
}

func branchOf(r Report) branch {
	top := branch{cells: []cell{{r.Kind + " " + r.Namespace + "/" + r.Name, bold}, {r.state(), r.tone()}, {r.Summary, plain}}}
	if r.state() == "" {
		top.cells = []cell{top.cells[0], top.cells[2]}
	}
	top.add("conditions", conditionBranches(r.Conditions))
	top.add("versions", versionBranches(r.Versions))
	top.add("members", memberBranches(r.Members))
	top.add("lost", textBranches(r.Lost, plain))
	top.add("waits for", textBranches(r.WaitsFor, busy))
	top.add("notes", textBranches(r.Notes, plain))
	return top
}

// add adds a list with its heading, if it is not empty.
func (b *branch) add(heading string, below []branch) {
	if len(below) > 0 {
		b.branches = append(b.branches, branch{cells: []cell{{heading, bold}}, branches: below})
	}
}

// state returns the phase, and whether the object is being deleted.
func (r Report) state() string {
	if r.Deleting {
		return strings.TrimSpace(r.Phase + " (being deleted)")
	}
	return r.Phase
}

func (r Report) tone() tone {
	worst := well
	for _, c := range r.Conditions {
		if !c.good && c.Type != "Progressing" {
			worst = ill
		}
	}
	if worst == well && len(r.WaitsFor) > 0 {
		return busy
	}
	return worst
}

// conditionBranches returns the conditions that matter. A message is not repeated: Ready and
// Stalled have the message of the condition from which they are derived.
func conditionBranches(conditions []Condition) []branch {
	var branches []branch
	saidBy := map[string]string{}
	for _, c := range conditions {
		if !c.Matters {
			continue
		}
		text := c.Reason + ": " + c.Message
		if first, said := saidBy[c.Message]; said {
			text = c.Reason + ": see " + first
		} else {
			saidBy[c.Message] = c.Type
		}
		t := well
		if !c.good {
			t = ill
		}
		branches = append(branches, branch{cells: []cell{{c.Type + "=" + c.Status, t}, {text, plain}}})
	}
	return branches
}

func versionBranches(versions []Version) []branch {
	var branches []branch
	for _, v := range versions {
		t := plain
		if v.Role == "stale" {
			t = ill
		}
		branches = append(branches, branch{cells: []cell{{v.Name, plain}, {v.Role, t}, {v.Pods, plain}, {v.Notes, plain}}})
	}
	return branches
}

func memberBranches(members []Member) []branch {
	var branches []branch
	for _, m := range members {
		t := ill
		switch {
		case m.Ready:
			t = well
		case m.State == "Terminating" || m.State == "Pending":
			t = busy
		}
		b := branch{cells: []cell{{m.Name, plain}, {m.Role, bold}, {m.State, t}, {m.Version, plain}, {m.Node, plain}, {strings.Join(m.Notes, "; "), plain}}}
		for _, c := range m.Claims {
			b.branches = append(b.branches, branch{cells: []cell{{"claim " + c.Name, plain}, {c.State, plain}, {c.Size, plain}, {c.Class, plain}}})
		}
		branches = append(branches, b)
	}
	return branches
}

func textBranches(texts []string, t tone) []branch {
	var branches []branch
	for _, text := range texts {
		branches = append(branches, branch{cells: []cell{{text, t}}})
	}
	return branches
}
