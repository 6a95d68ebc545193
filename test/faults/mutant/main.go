// Command mutant removes safety rules from the operator, one at a time, to verify that tests
// notice. A test that passes without the rule that it is for proves nothing.
//
// The mutants of a package are in its testdata/mutants.yaml. Each consists of edits of functions,
// which an overlay of the build makes; the code that users run has no trace of them.
//
//	mutant                 lists the mutants
//	mutant kill [TEXT]     runs the unit tests with each mutant whose name contains TEXT, and
//	                       prints which were noticed; exits 1 if one was not
//	mutant soak TARGET     lists the mutants with which `make TARGET` must fail
//	mutant build NAME DIR  writes what `go build -overlay=DIR/overlay.json` needs to build
//	                       the operator with a mutant
//
// It runs in the root of the module.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stateful-operator/stateful-operator/test/faults/mutant/switched"
)

// soaks has the mutants with which the faults on real nodes must break a promise, by target of
// the Makefile.
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
	mutants, err := find("controllers")
	if err != nil {
		return err
	}
	switch args[0] {
	case "":
		for _, m := range mutants {
			fmt.Printf("%-36s %s\n", m.name, m.effect)
		}
		return nil
	case "kill":
		return kill(slices.DeleteFunc(mutants, func(m mutant) bool { return !strings.Contains(m.name, args[1]) }))
	case "soak":
		for _, name := range soaks[args[1]] {
			fmt.Println(name)
		}
		return nil
	case "build":
		i := slices.IndexFunc(mutants, func(m mutant) bool { return m.name == args[1] })
		if i < 0 {
			return fmt.Errorf("no mutant %q; run without arguments to list them", args[1])
		}
		_, err := overlay(args[2], mutants[i:i+1], false)
		return err
	}
	return fmt.Errorf("unknown command %q", args[0])
}

// kill runs the unit tests with each mutant, as many at a time as there are processors.
func kill(mutants []mutant) error {
	if len(mutants) == 0 {
		return errors.New("no such mutant; run without arguments to list them")
	}
	into := filepath.Join("build", "mutants")
	using, err := overlay(into, mutants, true)
	if err != nil {
		return err
	}
	tests := map[string]program{} // by folder
	for _, m := range mutants {
		if _, built := tests[m.folder]; built {
			continue
		}
		fmt.Printf("building the tests of %s, and running them without a mutant\n", m.folder)
		if tests[m.folder], err = build(using, into, m.folder); err != nil {
			return err
		}
	}
	noticed := make([]string, len(mutants))
	var all errgroup.Group
	all.SetLimit(runtime.NumCPU())
	for i, m := range mutants {
		all.Go(func() (err error) {
			noticed[i], err = tests[m.folder].fails(m)
			fmt.Printf("  %-36s %s\n", m.name, cmp.Or(noticed[i], "NOT KILLED: "+m.effect))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	var survivors []string
	for i, m := range mutants {
		if noticed[i] == "" {
			survivors = append(survivors, m.name)
		}
	}
	fmt.Printf("%d of %d killed\n", len(mutants)-len(survivors), len(mutants))
	if len(survivors) > 0 {
		return fmt.Errorf("no unit test fails with these mutants: %s", strings.Join(survivors, ", "))
	}
	return nil
}

// program is the tests of the packages in a folder.
type program []binary

type binary struct {
	path   string
	folder string // of the package
	// timeout bounds a run: with some mutants tests never end, and the speed of a busy machine
	// varies.
	timeout time.Duration
}

// build builds the tests of the packages in a folder, and runs them once without a mutant.
func build(using, into, folder string) (program, error) {
	into, err := filepath.Abs(filepath.Join(into, filepath.Base(folder)))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o755)); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "test", "-vet=off", "-overlay="+using, "-c", "-o", into+string(filepath.Separator), "./"+folder+"/...")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", folder, err, out)
	}
	paths, err := filepath.Glob(filepath.Join(into, "*.test"))
	if err != nil {
		return nil, err
	}
	var all program
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".test")
		b := binary{path, filepath.Join(folder, name), time.Hour}
		if name == filepath.Base(folder) {
			b.folder = folder
		}
		began := time.Now()
		noticed, err := b.fails(mutant{})
		switch {
		case err != nil:
			return nil, err
		case noticed != "":
			return nil, fmt.Errorf("the tests of %s fail without a mutant: %s", b.folder, noticed)
		}
		b.timeout = 4*time.Since(began) + time.Minute
		all = append(all, b)
	}
	// The fastest tests run first.
	slices.SortFunc(all, func(a, b binary) int { return cmp.Compare(a.timeout, b.timeout) })
	return all, nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*)$`)

// fails runs tests with a mutant, and returns the name of the one that failed; "" if all passed.
func (p program) fails(m mutant) (string, error) {
	for _, b := range p {
		if noticed, err := b.fails(m); noticed != "" || err != nil {
			return noticed, err
		}
	}
	return "", nil
}

func (b binary) fails(m mutant) (string, error) {
	cmd := exec.Command(b.path, "-test.failfast", "-test.timeout="+b.timeout.String(), "-test.skip=^TestAPI")
	cmd.Dir = b.folder
	cmd.Env = append(os.Environ(), switched.Variable+"="+m.name)
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
	return "the tests exited with " + exit.String(), nil
}
