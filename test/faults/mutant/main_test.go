package main

import (
	"go/parser"
	"go/token"
	"testing"

	. "github.com/onsi/gomega"
)

// Every rule can be taken out of the operator as it is now.
func TestMutantsApply(t *testing.T) {
	t.Chdir("../../..")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			g := NewWithT(t)
			changed, err := m.apply()
			g.Expect(err).NotTo(HaveOccurred())
			for file, text := range changed {
				g.Expect(parser.ParseFile(token.NewFileSet(), file, text, 0)).Error().NotTo(HaveOccurred())
			}
		})
	}
}
