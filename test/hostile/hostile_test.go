package hostile

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// attack is an attack by the hostile tenant. Attacks of the security review's findings have their
// number in the name.
type attack struct {
	name string
	// prepare runs before the neighbors' requests. strike is repeated during them. Either may be nil.
	prepare, strike func(context.Context)
	clean           bool // the hostile tenant's objects must be deleted afterwards
	long            bool // takes one or two minutes
}

// figures are the neighbors' waiting times and the operator's memory.
type figures struct {
	name string
	took []time.Duration // sorted
	peak int64
}

func (f figures) at(percent int) time.Duration {
	if len(f.took) == 0 {
		return 0
	}
	return f.took[(len(f.took)*percent+99)/100-1]
}

// table compares figures with the first ones.
func table(all []figures) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%-50s %8s %8s %6s %6s %9s\n", "max wait of neighbours", "p50", "p99", "ratio", "ratio", "memory")
	for _, f := range all {
		ratio := func(percent int) float64 { return float64(f.at(percent)) / float64(max(1, all[0].at(percent))) }
		fmt.Fprintf(&text, "%-50s %7.3fs %7.3fs %6.1f %6.1f %5d MiB\n", f.name, f.at(50).Seconds(), f.at(99).Seconds(), ratio(50), ratio(99), f.peak>>20)
	}
	return text.String()
}

// served runs a round of the neighbors, and expects that the operator is alive.
func (s *site) served(t *testing.T, name string) figures {
	t.Helper()
	g := NewWithT(t)
	took, unserved := s.round(t.Context())
	peak, err := s.peak()
	g.Expect(err).NotTo(HaveOccurred(), s.lastWords())
	g.Expect(unserved).NotTo(HaveOccurred(), "neighbours were not reconciled within %s", patience)
	return figures{name, took, peak}
}

func (s *site) resist(t *testing.T, a attack) figures {
	g, began := NewWithT(t), time.Now()
	g.Expect(s.forgetPeak()).To(Succeed())
	if a.prepare != nil {
		a.prepare(t.Context())
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for first := true; a.strike != nil && (first || ctx.Err() == nil); first = false {
			a.strike(ctx)
		}
	}()
	result := s.served(t, a.name)
	stop()
	<-done
	if a.clean {
		s.removeHostile(t)
	}
	var err error
	result.peak, err = s.peak()
	g.Expect(err).NotTo(HaveOccurred(), s.lastWords())
	t.Logf("p50 %s, p99 %s, %d MiB, %s in total", result.at(50), result.at(99), result.peak>>20, time.Since(began))
	g.Expect(result.peak).To(BeNumerically("<", limit), "the kernel would have killed the operator") // includes 50 MiB of the program's file
	g.Eventually(s.answers, time.Minute).Should(Succeed())
	return result
}

var long = flag.Bool("long", false, "more neighbours, and also the attacks that take a minute or two")

func TestAPIHostile(t *testing.T) {
	s := newSite(t)
	s.served(t, "the first request, which is slower")
	undisturbed := s.served(t, "undisturbed")
	if *long { // too few figures for percentiles
		undisturbed.took = append(undisturbed.took, s.served(t, "").took...)
		slices.Sort(undisturbed.took)
	}
	all := []figures{undisturbed}
	defer func() { t.Logf("\n%s", table(all)) }()
	for _, a := range s.attacks() {
		t.Run(a.name, func(t *testing.T) {
			if a.long && !*long {
				t.Skip("requires -long: make test-hostile")
			}
			all = append(all, s.resist(t, a))
		})
	}
	all = append(all, s.served(t, "undisturbed, afterwards"))
}
