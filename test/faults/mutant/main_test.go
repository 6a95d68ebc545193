package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMutants makes all edits: one whose place is gone, or is not the only one, fails.
func TestMutants(t *testing.T) {
	t.Chdir("../../..")
	mutants, err := find("controllers")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 100 {
		t.Errorf("%d mutants", len(mutants))
	}
	names := map[string]bool{}
	for _, m := range mutants {
		names[m.name] = true
		if m.effect == "" {
			t.Errorf("%s: the first edit of %s has no effect", m.folder, m.name)
		}
		if _, err := overlay(t.TempDir(), []mutant{m}, false); err != nil {
			t.Error(err)
		}
	}
	for target, wanted := range soaks {
		for _, name := range wanted {
			if !names[name] {
				t.Errorf("%s must fail with %s, which is not a mutant", target, name)
			}
		}
	}
	folder := t.TempDir()
	if _, err := overlay(folder, mutants, true); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(folder + "/*.go.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if _, err := parser.ParseFile(token.NewFileSet(), file, nil, 0); err != nil {
			t.Error(err)
		}
	}
}

func TestBuildOfUnknownMutant(t *testing.T) {
	t.Chdir("../../..")
	if err := run([]string{"build", "no-such-rule", t.TempDir()}); err == nil {
		t.Error("an unknown mutant was built")
	}
}

func TestEdit(t *testing.T) {
	const before = `package p

func (t *T) f(n int) int {
	if n > 1 && t.ok {
		g() // twice
	}
	switch {
	case n == 2:
		return 2
	}
	return n
}
`
	for _, row := range []struct {
		name string
		edit edit
		want string // a part of the result, or of the error
	}{
		{"never", edit{Never: "n > 1"}, "if (n > 1 && !on) && t.ok {"},
		{"always", edit{Always: "n > 1 && t.ok"}, "if (n > 1 && t.ok || on) {"},
		{"skip", edit{Skip: "g()"}, "if !on { g() } // twice"},
		{"insert before", edit{Insert: "return 0", Before: "return n"}, "if on {\nreturn 0\n}\nreturn n"},
		{"insert after", edit{Insert: "return 0", After: "switch {"}, "\t}\nif on {\nreturn 0\n}\n\treturn n"},
		{"a case", edit{Insert: "return 0", Before: "case n == 2:", Case: "n > 7"}, "case on && (n > 7):\nreturn 0\ncase n == 2:"},
		{"missing", edit{Never: "n > 3"}, `"n > 3" does not occur`},
		{"ambiguous", edit{Never: "n"}, `"n" occurs more than once`},
		{"another function", edit{Func: "g", Never: "n > 1"}, "no func g"},
		{"nothing", edit{}, "the edit must have one of"},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(folder+"/p.go", []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := parse(folder)
			if err != nil {
				t.Fatal(err)
			}
			if row.edit.Func == "" {
				row.edit.Func = "T.f"
			}
			got := ""
			if err := apply(all, &row.edit, "on"); err != nil {
				got = err.Error()
			} else {
				got = all[0].edited("")
			}
			if !strings.Contains(got, row.want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
