package promises_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

var (
	handovers = flag.Int("handovers", 15, "number of `handovers` of S9")
	faults    = flag.Int("faults", 1, "number of `runs` with faults of RS-56")
	fault     = flag.String("fault", "", "a `text` in the names of the faults of RS-56, and of the scenarios of V2; empty selects all")
	freezes   = flag.Int("freezes", 1, "number of `writes` at which V2 freezes a leader of each kind; 0 means each write of all scenarios, in each mode")
	seed      = flag.Uint64("seed", 0, "`seed` of the random numbers of S9, RS-56, E35 and V2; 0 selects a random seed")
	version   = flag.String("kubernetes", "", "Kubernetes `version` of local clusters; empty means the newest one")
	inTurn    = flag.Bool("in-turn", false, "run all exclusive promises one after another, on one cluster")
	keep      = flag.String("keep", "", "`name` of local clusters that are reused and kept")
)

// coreLabel is the label of the promises that are tested with each change: `make test-core`.
const coreLabel = "core"

// chosen are the sites of the promises in this run, and titles their names. whole is true if the run has all
// promises, and onlyCore if it has none outside of the core.
var (
	chosen   = map[kit.Site]bool{}
	titles   []string
	whole    = true
	onlyCore = true
)

// TestPromises tests every promise on real nodes. With KUBECONFIG it uses that cluster, which must
// have the operator and whose nodes are not disturbed. Otherwise it uses local clusters: one for
// each site, or with -in-turn one for all sites of Alone. `make test-nodes` and `make test-core`
// run it in several processes. In a single process, promises run one after another.
func TestPromises(t *testing.T) {
	suite, _ := GinkgoConfiguration()
	if !suite.DryRun && scorecard == nil && os.Getenv("KUBECONFIG") == "" && os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes requires root; set KUBECONFIG to use another cluster")
	}
	log.SetLogger(logr.Discard()) // the tests report their own progress
	RegisterFailHandler(Fail)
	if *seed == 0 {
		*seed = rand.Uint64N(1_000_000)
	}
	if scorecard == nil {
		t.Chdir(root)
	}
	for _, spec := range PreviewSpecs("Promises").SpecReports {
		switch {
		case !spec.LeafNodeType.Is(types.NodeTypeIt): // setup and teardown
		case spec.State == types.SpecStateSkipped:
			whole = false
		default:
			site := spec.ContainerHierarchyTexts[len(spec.ContainerHierarchyTexts)-1]
			chosen[kit.Site(site)] = true
			titles = append(titles, spec.LeafNodeText)
			onlyCore = onlyCore && slices.Contains(spec.Labels(), coreLabel)
		}
	}
	RunSpecs(t, "Promises")
}

// Shared promises that may take minutes start before the others. Otherwise one of them is the last one, and
// all other processes wait for it.
var (
	_ = describe(kit.SharedSite, takesMinutes, SpecPriority(1))
	_ = describe(kit.SharedSite, func(p kit.Promise) bool { return !takesMinutes(p) })
)

// takesMinutes reports whether a promise may take minutes. Of the core, those that are no scorecard tests do.
func takesMinutes(p kit.Promise) bool { return p.Long || p.Core }

func anyPromise(kit.Promise) bool { return true }

// Promises of the other sites run one after another in one process. Each site runs concurrently on
// a cluster of its own, or with -in-turn all of them on one. They start first, because they take as
// long as the shared site.
var _ = Describe("", SpecPriority(2), func() {
	if os.Getenv("KUBECONFIG") != "" { // there is only one cluster and one operator
		for _, site := range kit.Alone {
			describe(site, anyPromise, Serial)
		}
		return
	}
	together := 1
	if *inTurn {
		together = len(kit.Alone)
	}
	for sites := range slices.Chunk(kit.Alone, together) {
		Describe("", Ordered, ContinueOnFailure, func() {
			for _, site := range sites {
				describe(site, anyPromise)
			}
			AfterAll(func() { powerOff(sites[0]) })
		})
	}
})

// describe creates a spec for each chosen promise of a site.
func describe(site kit.Site, choose func(kit.Promise) bool, decorators ...any) bool {
	return Describe(string(site), slices.Concat(decorators, []any{func() {
		for _, list := range promises.Lists {
			for _, p := range list.Promises {
				if p.Site == site && choose(p) {
					It(p.Name, labelsOf(p, list.Label), func(ctx SpecContext) { try(ctx, p) })
				}
			}
		}
	}})...)
}

// labelsOf returns the labels of a promise: its kind, its scorecard test, and the core label if it
// is tested with each change. Scorecard tests have the core label unless they are long.
func labelsOf(p kit.Promise, kind string) Labels {
	labels, name := Label(kind), testOf(p)
	if name != "" {
		labels = append(labels, name)
	}
	if p.Core || (name != "" && !p.Long) {
		labels = append(labels, coreLabel)
	}
	return labels
}

// try runs a promise in a namespace of its own.
func try(ctx context.Context, p kit.Promise) {
	c := clusterOf(ctx, p.Site)
	if p.Faults && c.Nodes == nil && (!p.Scribed || c.Scribe == "") {
		Skip(notOurs)
	}
	if c.Nodes != nil {
		awaitCalm(ctx)
	}
	own, remove, err := c.New(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(remove)
	own.Log = func(format string, args ...any) { GinkgoWriter.Printf(format+"\n", args...) }
	// Ginkgo would only report the first failure, and not the failures of its cleanup.
	if err := own.Kept(func(own *kit.Cluster) { p.Run(ctx, own) }); err != nil {
		show(context.WithoutCancel(ctx), own)
		Fail(err.Error())
	}
}

// awaitCalm waits for up to three minutes while this machine is overloaded, so that fewer promises
// run at the same time on a slow machine. Under overload leases expire and canaries fail.
func awaitCalm(ctx context.Context) {
	for range 36 {
		var load float64
		text, err := os.ReadFile("/proc/loadavg")
		if _, scanned := fmt.Sscan(string(text), &load); err != nil || scanned != nil || load < float64(12*runtime.NumCPU()) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Second):
		}
	}
}

const notOurs = "the nodes of this cluster may not be disturbed or inspected"

// Failures are printed once more at the end. They are hard to find among the passed promises, and
// Ginkgo's summary has only names.
var _ = ReportAfterSuite("failed promises", func(r Report) {
	for _, spec := range r.SpecReports {
		if spec.Failed() {
			fmt.Printf("\nFAILED after %s: %s\n%s\n", spec.RunTime.Round(time.Second), spec.LeafNodeText, spec.FailureMessage())
		}
	}
})

// Skipped promises are printed at the end, with instructions. They are hard to find among the
// passed promises.
var _ = ReportAfterSuite("skipped promises", func(r Report) {
	var names []string
	for _, spec := range r.SpecReports {
		if spec.Failure.Message == notOurs {
			titles = append(titles, spec.LeafNodeText)
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Printf("\nSKIPPED: %d promises, because KUBECONFIG names a cluster whose nodes may not be disturbed or inspected.\n"+
		"Unset KUBECONFIG and run as root to test them on a local cluster:\n", len(names))
	for _, name := range names {
		fmt.Println("  -", name)
	}
})

// The first process builds what all processes run, and takes down all clusters at the end.
var _ = SynchronizedBeforeSuite(func(ctx SpecContext) []byte {
	if scorecard != nil || os.Getenv("KUBECONFIG") != "" {
		return []byte("{}")
	}
	DeferCleanup(takeDown)
	w, err := build(ctx)
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(w)
	Expect(err).NotTo(HaveOccurred())
	return text
}, func(ctx SpecContext, text []byte) {
	if scorecard != nil {
		c, err := ready(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, site := range append(kit.Alone, kit.SharedSite) {
			connected[nameOf(site)] = c
		}
	}
	Expect(json.Unmarshal(text, &work)).To(Succeed())
})
