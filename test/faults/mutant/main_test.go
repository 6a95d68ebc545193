package main

import (
	"go/parser"
	"go/token"
	"testing"
)

// Every rule can be taken out of the operator as it is now.
func TestMutantsApply(t *testing.T) {
	t.Chdir("../../..")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			changed, err := m.apply()
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range changed {
				if _, err := parser.ParseFile(token.NewFileSet(), file, text, 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
