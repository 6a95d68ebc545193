// Command bench measures the operator against what Kubernetes has itself, and
// prints each figure with its goal. StatefulClusters are compared with the
// StatefulSet controller of the same release and with a bare client-go loop:
// one run, one API server, simulated nodes, no client-side rate limits.
// StatefulSingletons hand over on real nodes, beside a Recreate Deployment and
// a StatefulSet of one, and ExtendedStatefulSets are upgraded beside a rolling
// update of a StatefulSet. It ends with the tables of docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// benchmark is one thing to measure: on a control plane with simulated nodes,
// or on real ones.
type benchmark struct {
	name    string // for -only
	about   string
	measure func(context.Context, *site, sizes) ([]figure, error)
	onNodes func(context.Context, *nodes, sizes) ([]figure, error)
}

var benchmarks = []benchmark{
	{"one", "create one set with many members", measureOneSet, nil},
	{"many", "create many sets with 5 members", measureManySets, nil},
	{"rollout", "replace every member, maxUnavailable 25 %", measureRollout, nil},
	{"memory", "the operator's live heap", measureMemory, nil},
	{"latency", "from a spec change to the first write", measureLatency, nil},
	{"rest", "writes while nothing changes", measureRest, nil},
	{"extended", "many ExtendedStatefulSets, and edits of their configuration", measureExtended, nil},
	{"crowd", "failovers of replicated sets among many others", measureCrowd, nil}, // leaves its sets behind
	{"singleton", "handovers between programs on real nodes", nil, measureSingleton},
	{"replicated", "switchovers and failovers on real nodes", nil, measureReplicated},
	{"upgrade", "good upgrades beside a rolling update on real nodes", nil, measureUpgrades},
}

// sizes is how much is measured.
type sizes struct {
	members, sets, rollout int
	pods                   [2]int // managed pods at which memory is measured
	unmanaged              int
	objects, changes       int // of the latency benchmark
	rounds                 int
	rest                   time.Duration
	handovers, lostNodes   int
	admission, gate        time.Duration // for how long pods are created, and gates watched
	failovers              int
	commands               time.Duration // for how long commands are counted
	crowd                  [2]int        // replicated sets on one operator: few, and many
	crowdRest              time.Duration
}

var (
	fullSizes = sizes{members: 2000, sets: 200, rollout: 200, pods: [2]int{1000, 5000}, unmanaged: 5000,
		objects: 1000, changes: 300, rounds: 3, rest: 10 * time.Minute,
		handovers: 100, lostNodes: 3, admission: time.Minute, gate: time.Minute, failovers: 20, commands: 3 * time.Minute,
		crowd: [2]int{1, 500}, crowdRest: time.Minute}
	quickSizes = sizes{members: 200, sets: 20, rollout: 40, pods: [2]int{100, 300}, unmanaged: 300,
		objects: 100, changes: 50, rounds: 1, rest: 20 * time.Second,
		handovers: 10, lostNodes: 1, admission: 10 * time.Second, gate: 20 * time.Second, failovers: 3, commands: time.Minute,
		crowd: [2]int{1, 50}, crowdRest: 20 * time.Second}
)

// setMembers is the size of each of many sets.
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
	log.SetLogger(logr.Discard()) // what the benchmarks do themselves, they say
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, chosen)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	s := settings{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.BoolVar(&s.quick, "quick", false, "measure a tenth, once: for work on the benchmarks, not for their figures")
	flags.BoolVar(&s.keep, "keep-logs", false, "keep the operator's log and the audit log, and say where")
	flags.StringVar(&s.out, "out", "", "`file` that gets the tables too")
	only := flags.String("only", "", "comma-separated `names` of the benchmarks to run: "+names())
	rest := flags.Duration("rest", 0, "`time` without changes that must bring no write (default 10m, quick 20s)")
	handovers := flags.Int("handovers", 0, "`times` that a program hands over to the next one, of each kind (default 100, quick 10; of the replicated ones 20 and 3)")
	rounds := flags.Int("rounds", 0, "`times` that each comparison is made, in turning order (default 3, quick 1)")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.size = fullSizes; s.quick {
		s.size = quickSizes
	}
	if *rest > 0 {
		s.size.rest = *rest
	}
	if *rounds > 0 {
		s.size.rounds = *rounds
	}
	if *handovers > 0 {
		s.size.handovers, s.size.failovers = *handovers, *handovers
	}
	s.chosen = benchmarks
	if *only == "" {
		s.chosen = possible(benchmarks)
		return s, nil
	}
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(benchmarks, func(b benchmark) bool { return b.name == name }) {
			return s, fmt.Errorf("no benchmark %q: there are %s", name, names())
		}
	}
	s.chosen = slices.DeleteFunc(slices.Clone(benchmarks), func(b benchmark) bool { return !slices.Contains(wanted, b.name) })
	return s, nil
}

func names() string {
	var all []string
	for _, b := range benchmarks {
		all = append(all, b.name)
	}
	return strings.Join(all, ", ")
}

// clusterName keeps the benchmarks away from every other cluster of the machine.
const clusterName = "bench"

func run(ctx context.Context, s settings) (err error) {
	release, err := cluster.Hold(ctx, clusterName, os.Stdout)
	if err != nil {
		return err
	}
	defer release()
	before := machineLoad()
	// Also after an interrupt, and after a crash of an earlier run.
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, cluster.Down(down, clusterName, os.Stdout))
	}()
	// What was measured before something failed was measured.
	found := results{}
	failed := found.onControlPlane(ctx, s)
	if failed == nil {
		failed = found.onNodes(ctx, s)
	}
	text := tables(found.figures, describe(ctx, found.programs, s, before))
	fmt.Print("\n" + text)
	if failed != nil || s.out == "" {
		return failed
	}
	return os.WriteFile(s.out, []byte(text), 0o644)
}

// possible leaves out what this machine cannot have; who names it is told why.
func possible(all []benchmark) []benchmark {
	if os.Geteuid() == 0 {
		return all
	}
	fmt.Println("benchmarks on real nodes need root, and are left out")
	return slices.DeleteFunc(slices.Clone(all), func(b benchmark) bool { return b.onNodes != nil })
}

// results are the figures so far, and the folder of the Kubernetes programs that
// they were measured with.
type results struct {
	figures  []figure
	programs string
}

func (r *results) onControlPlane(ctx context.Context, s settings) error {
	chosen := slices.DeleteFunc(slices.Clone(s.chosen), func(b benchmark) bool { return b.measure == nil })
	if len(chosen) == 0 {
		return nil
	}
	if err := cluster.Down(ctx, clusterName, os.Stdout); err != nil {
		return err
	}
	where, err := openSite(ctx, s.keep)
	if err != nil {
		return err
	}
	defer where.close()
	r.programs = where.cluster.Programs()
	return r.run(chosen, func(b benchmark) ([]figure, error) { return b.measure(ctx, where, s.size) })
}

func (r *results) onNodes(ctx context.Context, s settings) error {
	chosen := slices.DeleteFunc(slices.Clone(s.chosen), func(b benchmark) bool { return b.onNodes == nil })
	if len(chosen) == 0 {
		return nil
	}
	if err := cluster.Down(ctx, clusterName, os.Stdout); err != nil {
		return err
	}
	where, err := openNodes(ctx, s.keep)
	if err != nil {
		return err
	}
	defer where.close()
	r.programs = where.cluster.Programs()
	return r.run(chosen, func(b benchmark) ([]figure, error) { return b.onNodes(ctx, where, s.size) })
}

func (r *results) run(chosen []benchmark, measure func(benchmark) ([]figure, error)) error {
	for _, b := range chosen {
		say("%s: %s", b.name, b.about)
		began := time.Now()
		found, err := measure(b)
		r.figures = append(r.figures, found...)
		for _, f := range found {
			fmt.Println("  " + f.String())
		}
		if err != nil {
			return fmt.Errorf("benchmark %s: %w", b.name, err)
		}
		fmt.Printf("  (took %s)\n", time.Since(began).Round(time.Second))
	}
	return nil
}

func say(format string, args ...any) { fmt.Printf("\n==> "+format+"\n", args...) }

// step tells the one who waits what goes on.
func step(format string, args ...any) { fmt.Printf("  "+format+" …\n", args...) }
