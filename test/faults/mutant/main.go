// Command mutant takes safety rules out of the operator, one at a time, to see that tests
// notice. The rules are those with a switch (controllers/internal/mutant).
//
//	mutant                 lists the rules
//	mutant kill [TEXT]     runs the unit tests without each rule whose name has TEXT, and
//	                       prints which were noticed; exits 1 if one was not
//	mutant soak TARGET     lists the rules without which `make TARGET` must fail
//	mutant build RULE DIR  writes what `go build -overlay=DIR/overlay.json` needs to build
//	                       the operator without a rule
//
// It runs in the root of the module.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// rule is a rule with a switch.
type rule struct {
	name string
	file string
	// says is what the operator does without it.
	says string
}

// folder is where its unit tests are.
func (r rule) folder() string { return filepath.Dir(r.file) }

// soaks are the rules without which the faults on real nodes must break a promise, by
// the target of the Makefile.
var soaks = map[string][]string{
	"soak-replicated": {"rss-unreachable-is-stopped", "rss-first-comer-is-seeded", "rss-oldest-first", "rss-unknown-is-failed",
		"rss-zero-is-an-end", "rss-no-books", "rss-no-heir", "rss-only-those-that-run"},
	"soak-freeze": {"no-fence", "stc-names-not-recorded", "wipes-lease"},
}

func main() {
	if err := run(append(os.Args[1:], "", "")); err != nil {
		fmt.Fprintln(os.Stderr, "mutant:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	rules, err := find("controllers")
	if err != nil {
		return err
	}
	switch args[0] {
	case "":
		for _, r := range rules {
			fmt.Printf("%-36s %s\n", r.name, cmp.Or(r.says, r.file))
		}
		return nil
	case "kill":
		return kill(rules, args[1])
	case "soak":
		for _, name := range soaks[args[1]] {
			fmt.Println(name)
		}
		return nil
	case "build":
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.name == args[1] }) {
			return fmt.Errorf("no rule %q; without arguments they are listed", args[1])
		}
		_, err := overlay(args[2], fmt.Sprintf("package mutant\n\nconst without = %q\n", args[1]))
		return err
	}
	return fmt.Errorf("no such command %q", args[0])
}

var (
	call    = regexp.MustCompile(`mutant\.Is\("([a-z0-9-]+)"\)`)
	comment = regexp.MustCompile(`^\s*//\s*(.*)$`)
)

// find reads the switches in the files of a folder. A name that stands twice is one rule.
func find(root string) ([]rule, error) {
	found := map[string]rule{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			for _, match := range call.FindAllStringSubmatch(line, -1) {
				r := rule{name: match[1], file: file, says: said(lines, i)}
				if known, twice := found[r.name]; twice {
					if known.folder() != r.folder() {
						return fmt.Errorf("%s is in %s and in %s", r.name, known.file, r.file)
					}
					r.says = cmp.Or(known.says, r.says)
				}
				found[r.name] = r
			}
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(found), func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.folder(), b.folder()), cmp.Compare(a.name, b.name))
	}), err
}

// said is the comment at the end of a line, or the last one right before it.
func said(lines []string, i int) string {
	if _, after, ok := strings.Cut(lines[i], " // "); ok {
		return after
	}
	if i > 0 {
		if match := comment.FindStringSubmatch(lines[i-1]); match != nil {
			return match[1]
		}
	}
	return ""
}

// overlay writes what stands in the place of without.go, and the file that has the go command take it. It
// returns the path of the latter.
func overlay(folder, text string) (string, error) {
	without, err1 := filepath.Abs("controllers/internal/mutant/without.go")
	file, err2 := filepath.Abs(filepath.Join(folder, "without.txt"))
	if err := errors.Join(err1, err2, os.MkdirAll(folder, 0o755)); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{without: file}})
	if err != nil {
		return "", err
	}
	at := filepath.Join(filepath.Dir(file), "overlay.json")
	return at, errors.Join(os.WriteFile(file, []byte(text), 0o644), os.WriteFile(at, list, 0o644))
}

// kill runs the unit tests without each rule, as many at a time as there are processors.
func kill(rules []rule, text string) error {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return !strings.Contains(r.name, text) })
	folder := filepath.Join("build", "mutants")
	using, err := overlay(folder, "package mutant\n\nimport \"os\"\n\nvar without = os.Getenv(\"WITHOUT\")\n")
	if err != nil {
		return err
	}
	tests := map[string]program{} // by folder
	for _, r := range rules {
		if _, built := tests[r.folder()]; built {
			continue
		}
		fmt.Printf("building the tests of %s, and running them with all rules\n", r.folder())
		if tests[r.folder()], err = build(using, folder, r.folder()); err != nil {
			return err
		}
	}
	noticed := make([]string, len(rules))
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i, r := range rules {
		all.Go(func() (err error) {
			noticed[i], err = tests[r.folder()].fails(r)
			fmt.Printf("  %-36s %s\n", r.name, cmp.Or(noticed[i], "NOT NOTICED: "+r.says))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	var survivors []string
	for i, r := range rules {
		if noticed[i] == "" {
			survivors = append(survivors, r.name)
		}
	}
	fmt.Printf("%d of %d killed\n", len(rules)-len(survivors), len(rules))
	if len(survivors) > 0 {
		return fmt.Errorf("no unit test notices that these rules are missing: %s", strings.Join(survivors, ", "))
	}
	return nil
}

// program is the tests of a folder.
type program struct {
	path string
	// most is how long they may take: without a rule some never end, and a busy machine is
	// slower at one time than at another.
	most time.Duration
}

// build builds the tests of a folder, and runs them once with all rules.
func build(using, into, folder string) (program, error) {
	path, err := filepath.Abs(filepath.Join(into, filepath.Base(folder)+".test"))
	if err != nil {
		return program{}, err
	}
	cmd := exec.Command("go", "test", "-vet=off", "-overlay="+using, "-c", "-o", path, "./"+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		return program{}, fmt.Errorf("build the tests of %s: %w\n%s", folder, err, out)
	}
	began := time.Now()
	noticed, err := program{path, time.Hour}.fails(rule{name: "none", file: filepath.Join(folder, "none.go")})
	if err == nil && noticed != "" {
		err = fmt.Errorf("the tests of %s fail with all rules: %s", folder, noticed)
	}
	return program{path, 4*time.Since(began) + time.Minute}, err
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*)$`)

// fails runs tests without a rule, and says which one failed; "" if all passed.
func (p program) fails(without rule) (string, error) {
	cmd := exec.Command(p.path, "-test.failfast", "-test.timeout="+p.most.String(), "-test.skip=^TestAPI")
	cmd.Dir = without.folder()
	cmd.Env = append(os.Environ(), "WITHOUT="+without.name)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	}
	for _, match := range failed.FindAllStringSubmatch(string(out), -1) {
		if name := cmp.Or(match[1], match[2]); name != "" {
			return name, nil
		}
	}
	return "the tests ended with " + exit.String(), nil
}
