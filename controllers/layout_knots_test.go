package controllers_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"slices"
	"strings"
	"testing"
)

const (
	// maxKnot is the max number of files of one package of which each reaches each other: to
	// understand one of them, a reader has to read all.
	maxKnot = 8
	// maxEdges is the max number of ordered pairs of files of one package of which the first uses
	// the second.
	maxEdges = 90
)

// usage maps a file to the files of its package that it uses.
type usage map[string]map[string]bool

// usageOf returns which files of a package use each other. Imports are not resolved: only names
// that the package defines count.
func usageOf(texts map[string]string) (usage, error) {
	files := token.NewFileSet()
	var parsed []*ast.File
	for name, text := range texts {
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	lenient := types.Config{Error: func(error) {}, Importer: noPackages{}}
	checked, _ := lenient.Check("package", files, parsed, info)
	uses := usage{}
	for ident, object := range info.Uses {
		if object.Pkg() != checked || isLocal(object) {
			continue
		}
		from, to := files.Position(ident.Pos()).Filename, files.Position(object.Pos()).Filename
		if from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = map[string]bool{}
		}
		uses[from][to] = true
	}
	return uses, nil
}

func isLocal(object types.Object) bool {
	v, ok := object.(*types.Var)
	return ok && !v.IsField() && v.Parent() != v.Pkg().Scope()
}

// noPackages returns an empty package for each import.
type noPackages struct{}

func (noPackages) Import(imported string) (*types.Package, error) {
	p := types.NewPackage(imported, path.Base(imported))
	p.MarkComplete()
	return p, nil
}

func (u usage) edges() (count int) {
	for _, used := range u {
		count += len(used)
	}
	return count
}

// reached returns the files that a file uses, also through others.
func (u usage) reached(file string) map[string]bool {
	seen, pending := map[string]bool{}, []string{file}
	for len(pending) > 0 {
		next := pending[0]
		pending = pending[1:]
		for used := range u[next] {
			if !seen[used] {
				seen[used] = true
				pending = append(pending, used)
			}
		}
	}
	return seen
}

// knot returns the largest set of files of which each reaches each other.
func (u usage) knot() []string {
	var largest []string
	for file := range u {
		var set []string
		for other := range u.reached(file) {
			if u.reached(other)[file] {
				set = append(set, other)
			}
		}
		if len(set) > len(largest) {
			largest = set
		}
	}
	slices.Sort(largest)
	return largest
}

// TestKnots checks that the packages of the kinds and of their promises can be read file by file.
func TestKnots(t *testing.T) {
	packages := map[string]map[string]string{}
	for _, s := range readTree(t) {
		_, _, isKind := s.kind()
		_, isPromise := s.promises()
		if (!isKind && !isPromise) || s.isForTests() {
			continue
		}
		folder := path.Dir(s.path)
		if packages[folder] == nil {
			packages[folder] = map[string]string{}
		}
		packages[folder][path.Base(s.path)] = s.text
	}
	for folder, texts := range packages {
		for _, fault := range knotsOf(t, texts, maxKnot, maxEdges) {
			t.Errorf("%s: %s", folder, fault)
		}
	}
}

func knotsOf(t *testing.T, texts map[string]string, maxKnot, maxEdges int) (faults []string) {
	t.Helper()
	uses, err := usageOf(texts)
	if err != nil {
		t.Fatal(err)
	}
	if knot := uses.knot(); len(knot) > maxKnot {
		faults = append(faults, fmt.Sprintf("%d files reach each other, and the max is %d: %s", len(knot), maxKnot, strings.Join(knot, ", ")))
	}
	if edges := uses.edges(); edges > maxEdges {
		faults = append(faults, fmt.Sprintf("%d pairs of files of which one uses the other, and the max is %d", edges, maxEdges))
	}
	return faults
}

func TestKnotsAreFound(t *testing.T) {
	texts := map[string]string{
		"a.go": "package p; func a() { b(); var x t; _ = x.field }",
		"b.go": "package p; func b() { c() }",
		"c.go": "package p; func c() { a() }",
		"t.go": "package p; type t struct{ field int }",
	}
	if faults := knotsOf(t, texts, 3, 4); len(faults) > 0 {
		t.Errorf("found %q within the limits", faults)
	}
	want := []string{"3 files reach each other, and the max is 2: a.go, b.go, c.go", "4 pairs of files of which one uses the other, and the max is 3"}
	if faults := knotsOf(t, texts, 2, 3); !slices.Equal(faults, want) {
		t.Errorf("found %q, want %q", faults, want)
	}
}
