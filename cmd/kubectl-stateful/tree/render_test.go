package tree

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestAMessageIsShownOnce(t *testing.T) {
	g := NewWithT(t)
	var said []string
	for _, b := range conditionBranches([]Condition{
		{Type: "Degraded", Status: "True", Reason: "CanaryFailed", Message: "version 3 was given up", Matters: true},
		{Type: "Available", Status: "True", Reason: "Fine", Message: "all run"},
		{Type: "Ready", Status: "False", Reason: "CanaryFailed", Message: "version 3 was given up", Matters: true},
		{Type: "Stalled", Status: "True", Reason: "Other", Message: "all run", Matters: true},
	}) {
		said = append(said, b.cells[0].text+" "+b.cells[1].text)
	}
	g.Expect(said).To(Equal([]string{
		"Degraded=True CanaryFailed: version 3 was given up",
		"Ready=False CanaryFailed: as Degraded says",
		"Stalled=True Other: all run",
	}))
}
