// Command mutant takes a safety rule out of the operator, for a build with
// `go build -overlay`: the faults that the operator withstands with its rules must
// break it without each of them, or they prove nothing.
//
//	mutant                 lists the rules
//	mutant TARGET          lists the names of those without which `make TARGET` must fail
//	mutant RULE FOLDER     writes the changed files and overlay.json into the folder
//
// The source stays as it is. `make soak-replicated WITHOUT=rule` uses it, and so does
// `make soak-freeze`.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is the operator without a rule.
type mutant struct {
	name, says string
	edits      []edit
	// target of the Makefile that must fail without it; soakReplicated if none is said.
	target string
}

// edit replaces a text that is in a file once.
type edit struct{ file, old, new string }

const kind = "controllers/replicatedstatefulset/"

// Targets of the Makefile.
const (
	soakReplicated = "soak-replicated"
	soakFreeze     = "soak-freeze"
)

var mutants = []mutant{
	{name: "unreachable-is-stopped", says: "a member on a node that does not answer counts as stopped", edits: []edit{
		{kind + "plan_books.go", "	if m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) {\n		return true\n	}\n	for i", "	if m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) || m.lost() {\n		return true\n	}\n	for i"},
		{kind + "plan_books.go", "m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) {\n			return \"its container", "m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) || m.lost() {\n			return \"its container"},
	}},
	{name: "first-comer-is-seeded", says: "nobody waits for the other members before the first one is seeded", edits: []edit{
		{kind + "plan_start.go", "	case missing > 0:\n", "	case missing > 0 && len(all) == 0:\n"},
		{kind + "plan_start.go", "	if newest, pod := w.books.newest(); newest > sequence {", "	if newest, pod := w.books.newest(); newest > sequence && pod == \"\" {"},
	}},
	{name: "oldest-first", says: "the oldest copy is started first", edits: []edit{
		{kind + "plan_start.go", "cmp.Compare(b.sequence, a.sequence)", "cmp.Compare(a.sequence, b.sequence)"},
		{kind + "plan_start.go", "	if newest, pod := w.books.newest(); newest > sequence {", "	if newest, pod := w.books.newest(); newest > sequence && pod == \"\" {"},
	}},
	{name: "unknown-is-failed", says: "a command whose end nobody saw counts as ended", edits: []edit{
		{kind + "plan_ends.go", " && r.ContainerID == c.ContainerID && !r.EndUnseen()\n", " && r.ContainerID == c.ContainerID\n"},
	}},
	{name: "zero-is-an-end", says: "a start that ended with 0 counts as ended, whatever status says", edits: []edit{
		{kind + "plan_ends.go", "		return starts(c.Name)\n	}\n	return !w.agrees(c)\n", "		return starts(c.Name)\n	}\n	return !starts(c.Name) && !w.agrees(c)\n"},
	}},
	{name: "no-books", says: "grants are not written down", edits: []edit{
		{kind + "plan_command.go", "		b.grants = append(slices.Clone(b.grants), g)\n", "		_ = g\n"},
		{kind + "plan_books.go", "		if w.state(m) == primary && !w.grantedIn(m) {", "		if false {"},
	}},
	{name: "no-heir", says: "a role is taken from a primary before anybody has all of its data", edits: []edit{
		{kind + "plan_scale.go", "		if !said || !known || !r.Began.After(asked.Ended) || n < mine {", "		if (!said || !known || !r.Began.After(asked.Ended) || n < mine) && s != secondary {"},
		{kind + "plan_start.go", "	if newest, pod := w.books.newest(); newest > sequence {", "	if newest, pod := w.books.newest(); newest > sequence && pod == \"\" {"},
		{kind + "plan_scale.go", "	if kept := w.among(w.kept); len(kept) > 0 {", "	if kept := w.among(w.kept); len(kept) > len(w.members) {"},
		{kind + "plan_start.go", "	if w.newerElsewhere(p, running, all[0].sequence) {", "	if false {"},
	}},
	{name: "only-those-that-run", says: "a secondary is promoted although a member that does not run may have newer data", edits: []edit{
		{kind + "plan_start.go", "	if w.newerElsewhere(p, running, all[0].sequence) {", "	if false {"},
	}},
	{name: "no-fence", target: soakFreeze, says: "a leader writes whenever it renewed its lease last", edits: []edit{
		{"controllers/internal/action/runner.go", "	if err := r.Lease.Check(); err != nil {\n		return nil, fmt.Errorf(", "	if err := r.Lease.Check(); false {\n		return nil, fmt.Errorf("},
	}},
	{name: "names-not-recorded", target: soakFreeze, says: "names of new members are not written down before their pods are created", edits: []edit{
		{"controllers/statefulcluster/plan_names.go", "	case !onRecord:\n", "	case false && !onRecord:\n"},
	}},
	{name: "wipes-lease", target: soakFreeze, says: "a leader that ends releases the lease, whoever holds it by then", edits: []edit{
		{"controllers/internal/leadership/lease.go", "	if holder != l.Identity() {\n", "	if false {\n"},
	}},
}

func main() {
	if len(os.Args) < 3 {
		for _, m := range mutants {
			switch target := cmp.Or(m.target, soakReplicated); {
			case len(os.Args) < 2:
				fmt.Printf("%-24s %-16s %s\n", m.name, target, m.says)
			case os.Args[1] == target:
				fmt.Println(m.name)
			}
		}
		return
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "mutant:", err)
		os.Exit(1)
	}
}

// write writes the changed files of a mutant and the overlay that names them.
func write(name, folder string) error {
	i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == name })
	if i < 0 {
		return fmt.Errorf("no rule %q; without arguments they are listed", name)
	}
	changed, err := mutants[i].apply()
	if err != nil {
		return err
	}
	overlay := map[string]string{} // of absolute paths
	for file, text := range changed {
		at, err1 := filepath.Abs(filepath.Join(folder, filepath.Base(file)))
		from, err2 := filepath.Abs(file)
		if err := errors.Join(err1, err2, os.WriteFile(at, []byte(text), 0o644)); err != nil {
			return err
		}
		overlay[from] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	return errors.Join(err, os.WriteFile(filepath.Join(folder, "overlay.json"), text, 0o644))
}

// apply gives the changed files by name, from the module's root.
func (m mutant) apply() (map[string]string, error) {
	changed := map[string]string{}
	for _, e := range m.edits {
		if _, have := changed[e.file]; !have {
			text, err := os.ReadFile(e.file)
			if err != nil {
				return nil, err
			}
			changed[e.file] = string(text)
		}
		if n := strings.Count(changed[e.file], e.old); n != 1 {
			return nil, fmt.Errorf("%s: %s has this %d times, and not once: %s", m.name, e.file, n, e.old)
		}
		changed[e.file] = strings.Replace(changed[e.file], e.old, e.new, 1)
	}
	return changed, nil
}
