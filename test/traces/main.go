package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
)

// The exit codes.
const (
	exitPassed   = 0
	exitRejected = 1
	exitUnusable = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run checks the traces that the arguments name, and returns the exit code.
func run(args []string, out, problems io.Writer) int {
	o, fault, seed := defaults(), "", uint64(0)
	flags := flag.NewFlagSet("traces", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.StringVar(&o.controller, "controller", o.controller, "the service account of the operator")
	flags.DurationVar(&o.delay, "delay", o.delay, "how much later than it was written a line of a program can be logged")
	flags.DurationVar(&o.skew, "skew", o.skew, "how much the clocks of machines differ")
	flags.Func("frozen", "a pattern of the `namespace/name` of Leases whose containers were frozen: their programs may end late, with a lower epoch than the next one", func(pattern string) (err error) {
		o.frozen, err = regexp.Compile(pattern)
		return err
	})
	flags.BoolVar(&o.partial, "partial", o.partial, "logs of containers may be missing")
	flags.StringVar(&fault, "mutate", "", "check the trace with this seeded fault, which has the name of a rule, or with all")
	flags.Uint64Var(&seed, "seed", seed, "the seed of the random choices of a fault")
	if err := flags.Parse(args); err != nil {
		return exitUnusable
	}
	worst, examined := exitPassed, 0
	traces, err := split(flags.Args())
	if err == nil && len(traces) == 0 {
		err = errors.New("no folder or file is named")
	}
	for _, paths := range traces {
		var t *trace
		if t, err = load(paths); err != nil {
			break
		}
		fmt.Fprintf(out, "%s\n", paths[0])
		if t.isEmpty() && len(traces) > 1 {
			fmt.Fprintln(out, "SKIPPED: no Lease was written, and no agent has run")
			continue
		}
		examined++
		worst = max(worst, examine(t, o, fault, seed, out))
	}
	if err == nil && examined == 0 {
		err = errors.New("no trace was checked")
	}
	if err != nil {
		fmt.Fprintln(problems, err)
		return exitUnusable
	}
	return worst
}

// split returns the paths of traces: each folder is one, and all files are one.
func split(paths []string) ([][]string, error) {
	var traces [][]string
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			traces = append(traces, []string{path})
		default:
			files = append(files, path)
		}
	}
	if len(files) > 0 {
		traces = append(traces, files)
	}
	return traces, nil
}

// examine checks a trace, with a fault if one is named, and returns the exit code.
func examine(t *trace, o options, fault string, seed uint64, out io.Writer) int {
	if fault == "all" {
		return examineAll(t, o, seed, out)
	}
	if fault != "" {
		i := slices.IndexFunc(faults, func(f seeded) bool { return string(f.breaks) == fault })
		if i < 0 {
			fmt.Fprintf(out, "no fault breaks a rule %q\n", fault)
			return exitUnusable
		}
		var what string
		if t, what = faults[i].in(t, o, seed); t == nil {
			fmt.Fprintf(out, "the trace has no place for a fault that breaks %s\n", fault)
			return exitUnusable
		}
		fmt.Fprintf(out, "seeded fault: %s\n", what)
	}
	return check(t, o).report(out)
}

// examineAll requires that the rule of each seeded fault rejects it, and no other rule. It prints the faults for which
// the trace has no place.
func examineAll(t *trace, o options, seed uint64, out io.Writer) int {
	if code := check(t, o).report(out); code != exitPassed {
		return code
	}
	code := exitPassed
	for _, f := range faults {
		faulty, what := f.in(t, o, seed)
		if faulty == nil {
			fmt.Fprintf(out, "%s: the trace has no place for this fault\n", f.breaks)
			continue
		}
		if broken := check(faulty, o).broken(); len(broken) != 1 || !broken[f.breaks] {
			fmt.Fprintf(out, "%s: the seeded fault (%s) has broken %d rules: %v\n", f.breaks, what, len(broken), broken)
			code = exitRejected
			continue
		}
		fmt.Fprintf(out, "%s: rejects the seeded fault: %s\n", f.breaks, what)
	}
	return code
}
