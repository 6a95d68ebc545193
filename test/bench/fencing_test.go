package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestGapsAreComparedAtTheSameQuantile(t *testing.T) {
	g := NewWithT(t)
	seen := func(gaps ...time.Duration) (all []handover) {
		for _, gap := range gaps {
			all = append(all, handover{gap: gap, asked: time.Hour})
		}
		return all
	}
	lengths, others := gaps(seen(30, 10, 20)), gaps(seen(40, 80, 60))
	g.Expect(ratio(lengths, others, 0.5)).To(BeNumerically("~", 1.0/3))
	g.Expect(ratio(lengths, others, 0.99)).To(BeNumerically("~", 3.0/8))
}

func TestEachFencedArrangementIsComparedWithOneWithoutALease(t *testing.T) {
	g := NewWithT(t)
	g.Expect(len(fenced)%2).To(BeZero(), "an arrangement is compared with none")
	for i, how := range fenced {
		if i%2 == 0 {
			g.Expect(how.rules).NotTo(BeEmpty(), how.name)
			g.Expect(fenced[i+1].rules).To(BeEmpty(), fenced[i+1].name)
			g.Expect(how.share).To(Equal(fenced[i+1].share), "%s has another number of handovers", how.name)
		}
	}
}

func TestPercentilesHaveNames(t *testing.T) {
	NewWithT(t).Expect([]string{percentile(0.5), percentile(0.99), percentile(1)}).To(Equal([]string{"p50", "p99", "max"}))
}
