// Command bench compares the operator with Kubernetes' own controllers and prints each figure with its
// goal. StatefulClusters are compared with the StatefulSet controller of the same release and with a
// bare client-go loop, in one run on one API server, with simulated nodes and without client-side rate
// limits. Handovers of StatefulSingletons are compared with a Recreate Deployment and a StatefulSet of
// one pod on real nodes, and those by a Lease also with mode Proof. The cost of holders of Leases is compared
// with the same control plane without them. Upgrades of ExtendedStatefulSets are compared with a
// StatefulSet's rolling update. The last output is the tables of docs/benchmarks.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// benchmark is a measurement on a control plane with simulated nodes, or on real nodes. It reports its
// figures to the site.
type benchmark struct {
	name    string // for -only
	about   string
	onNodes bool
	measure func(context.Context, *site)
}

var benchmarks = []benchmark{
	{"one", "create one set with many members", false, measureOneSet},
	{"many", "create many sets with 5 members", false, measureManySets},
	{"rollout", "replace every member, maxUnavailable 25 %", false, measureRollout},
	{"memory", "the operator's live heap", false, measureMemory},
	{"latency", "from a spec change to the first write", false, measureLatency},
	{"rest", "writes while nothing changes", false, measureRest},
	{"extended", "many ExtendedStatefulSets, and edits of their configuration", false, measureExtended},
	{"crowd", "failovers of replicated sets among many others", false, measureCrowd},                            // leaves its sets behind
	{"leases", "the cost of many holders of Leases, with real agents and simulated pods", false, measureLeases}, // leaves policies behind
	{"singleton", "handovers between programs on real nodes", true, measureSingleton},
	{"fencing", "handovers with fencing by a Lease on real nodes, compared with mode Proof and with no StatefulSingleton", true, measureFencing},
	{"replicated", "switchovers and failovers on real nodes", true, measureReplicated},
	{"postgresql", "writes to PostgreSQL while its primary is replaced, on real nodes", true, measurePostgreSQL},
	{"upgrade", "good upgrades compared with a rolling update on real nodes", true, measureUpgrades},
}

// sizes are the sizes of the benchmarks.
type sizes struct {
	members, sets, rollout int
	pods                   [2]int // numbers of managed pods at which memory is measured
	unmanaged              int
	objects, changes       int // of the latency benchmark
	rounds                 int
	rest                   time.Duration
	handovers, lostNodes   int
	fenced                 int           // handovers with fencing by a Lease
	admission, gate        time.Duration // for how long pods are created and gates are measured
	failovers              int
	commands               time.Duration // for how long commands are counted
	crowd                  [2]int        // replicated sets of one operator: few, then many
	crowdRest              time.Duration
	holders                int           // of Leases
	withoutHolders         time.Duration // for how long the control plane is measured before they start
	holding                time.Duration // and with them
}

var (
	fullSizes = sizes{members: 2000, sets: 200, rollout: 200, pods: [2]int{1000, 5000}, unmanaged: 5000,
		objects: 1000, changes: 300, rounds: 3, rest: 10 * time.Minute,
		handovers: 100, fenced: 500, lostNodes: 3, admission: time.Minute, gate: time.Minute, failovers: 20, commands: 3 * time.Minute,
		crowd: [2]int{1, 500}, crowdRest: time.Minute,
		holders: 1000, withoutHolders: time.Minute, holding: 5 * time.Minute} // every watch is renewed once in 5 minutes
	quickSizes = sizes{members: 200, sets: 20, rollout: 40, pods: [2]int{100, 300}, unmanaged: 300,
		objects: 100, changes: 50, rounds: 1, rest: 20 * time.Second,
		handovers: 10, fenced: 20, lostNodes: 1, admission: 10 * time.Second, gate: 20 * time.Second, failovers: 3, commands: time.Minute,
		crowd: [2]int{1, 50}, crowdRest: 20 * time.Second,
		holders: 100, withoutHolders: 20 * time.Second, holding: time.Minute}
)

// setMembers is the size of each set of the benchmark with many sets.
const setMembers = 5

type settings struct {
	size   sizes
	chosen []benchmark
	quick  bool
	out    string
	keep   bool
}

func main() {
	chosen, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	log.SetLogger(logr.Discard()) // the benchmarks print their own output
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, chosen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	names := make([]string, 0, len(benchmarks))
	for _, b := range benchmarks {
		names = append(names, b.name)
	}
	all := strings.Join(names, ", ")
	s := settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&s.quick, "quick", false, "run a tenth of the size once: to work on the benchmarks, not to compare results")
	flags.BoolVar(&s.keep, "keep-logs", false, "keep the operator's log and the audit log, and print their paths")
	flags.Func("out", "`file` to which the tables are also written", func(path string) (err error) {
		s.out, err = filepath.Abs(path) // the benchmarks change the working directory
		return err
	})
	only := flags.String("only", "", "comma-separated `names` of the benchmarks to run: "+all)
	rest := flags.Duration("rest", 0, "`time` without changes, in which no write is expected (default 10m, quick 20s)")
	handovers := flags.Int("handovers", 0, "`times` that a program hands over to the next one, of each kind (default 100, quick 10; with fencing 500 and 20; of the replicated ones 20 and 3)")
	rounds := flags.Int("rounds", 0, "`times` that each comparison is run, in alternating order (default 3, quick 1)")
	holders := flags.Int("holders", 0, "`number` of holders of Leases (default 1000, quick 100)")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.size = fullSizes; s.quick {
		s.size = quickSizes
	}
	s.size.rest = cmp.Or(max(*rest, 0), s.size.rest)
	s.size.rounds = cmp.Or(max(*rounds, 0), s.size.rounds)
	s.size.handovers = cmp.Or(max(*handovers, 0), s.size.handovers)
	s.size.fenced = cmp.Or(max(*handovers, 0), s.size.fenced)
	s.size.failovers = cmp.Or(max(*handovers, 0), s.size.failovers)
	s.size.holders = cmp.Or(max(*holders, 0), s.size.holders)
	if *only == "" {
		s.chosen = possible()
		return s, nil
	}
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return s, fmt.Errorf("no benchmark %q: choose from %s", name, all)
		}
	}
	s.chosen = slices.DeleteFunc(slices.Clone(benchmarks), func(b benchmark) bool { return !slices.Contains(wanted, b.name) })
	return s, nil
}

// possible returns the benchmarks that can run on this machine.
func possible() []benchmark {
	if os.Geteuid() == 0 {
		return benchmarks
	}
	fmt.Println("benchmarks on real nodes require root, and are skipped")
	return slices.DeleteFunc(slices.Clone(benchmarks), func(b benchmark) bool { return b.onNodes })
}

// clusterName separates the benchmarks from all other clusters of the machine.
const clusterName = "bench"

func run(ctx context.Context, s settings) (err error) {
	release, err := cluster.Hold(ctx, clusterName, os.Stdout)
	if err != nil {
		return err
	}
	defer release()
	before := machineLoad()
	// Also after an interrupt, and for the remains of a crashed run.
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(down, clusterName, os.Stdout))
	}()
	// Figures are printed even if a later benchmark fails.
	found := &results{}
	failed := attempt(func() {
		found.measure(ctx, s, false)
		found.measure(ctx, s, true)
	})
	text := tables(found.figures, describe(ctx, found.programs, s, before))
	fmt.Print("\n" + text)
	if failed != nil || s.out == "" {
		return failed
	}
	return os.WriteFile(s.out, []byte(text), 0o644)
}

// results are the figures so far, and the folder of the Kubernetes binaries that were used.
type results struct {
	figures  []figure
	programs string
}

func (r *results) report(f figure) {
	r.figures = append(r.figures, f)
	fmt.Println("  " + f.String())
}

// measure runs the chosen benchmarks for one of the two kinds of nodes.
func (r *results) measure(ctx context.Context, s settings, onNodes bool) {
	chosen := slices.DeleteFunc(slices.Clone(s.chosen), func(b benchmark) bool { return b.onNodes != onNodes })
	if len(chosen) == 0 {
		return
	}
	check(cluster.Down(ctx, clusterName, os.Stdout))
	where := &site{results: r, size: s.size, keep: s.keep, onNodes: onNodes}
	defer where.close()
	where.boot(ctx)
	r.programs = where.cluster.Programs()
	for _, b := range chosen {
		say("%s: %s", b.name, b.about)
		began := time.Now()
		within("benchmark "+b.name, func() { b.measure(ctx, where) })
		fmt.Printf("  (took %s)\n", time.Since(began).Round(time.Second))
	}
}

func say(format string, args ...any) { fmt.Printf("\n==> "+format+"\n", args...) }

// step prints the current step.
func step(format string, args ...any) { fmt.Printf("  "+format+" …\n", args...) }
