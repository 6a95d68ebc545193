package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// edit is one change of a function that a mutant consists of. Exactly one of Never, Always, Skip
// and Insert is set.
type edit struct {
	// Name is that of the mutant. Edits of one name in one file are one mutant.
	Name string `json:"name"`
	// Effect is what the operator does wrong with the mutant. It is in the first edit of a name.
	Effect string `json:"effect,omitempty"`
	// Func is the function that is changed: name, or type.name of a method. It is in the folder
	// of testdata, or in a folder beside testdata.
	Func string `json:"func"`

	// Never and Always are Boolean expressions that become false, or true.
	Never  string `json:"never,omitempty"`
	Always string `json:"always,omitempty"`
	// Skip is the first line of a statement that is not executed.
	Skip string `json:"skip,omitempty"`
	// Insert is a list of statements. Before or After is the first line of the statement that they
	// are inserted at. With Case they become a clause of a switch, with that condition.
	Insert string `json:"insert,omitempty"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	Case   string `json:"case,omitempty"`
}

// mutant is a change of the operator that removes one of its safety rules.
type mutant struct {
	name, effect string
	// folder is that of the package that the edits change.
	folder string
	edits  []edit
}

// find reads the mutants of all packages below a folder, from their testdata/mutants.yaml.
func find(root string) (all []mutant, err error) {
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "mutants.yaml" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var edits []edit
		if err := yaml.UnmarshalStrict(text, &edits); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		folder := filepath.Dir(filepath.Dir(file))
		for _, e := range edits {
			i := slices.IndexFunc(all, func(m mutant) bool { return m.name == e.Name })
			if i < 0 {
				i, all = len(all), append(all, mutant{name: e.Name, effect: e.Effect, folder: folder})
			}
			if all[i].folder != folder {
				return fmt.Errorf("%s is in %s and in %s", e.Name, all[i].folder, folder)
			}
			all[i].edits = append(all[i].edits, e)
		}
		return nil
	})
	slices.SortFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.name, b.name))
	})
	return all, err
}

// source is a parsed file, and the insertions that edits make in it.
type source struct {
	path    string
	text    string
	files   *token.FileSet
	parsed  *ast.File
	inserts []insertion
}

type insertion struct {
	at   int
	text string
}

// fixture is the folder of a kind with code that only its tests use.
const fixture = "fixture"

// parse reads the Go files of a folder and of the folders in it, except tests.
func parse(folder string) (all []*source, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	below, err := filepath.Glob(filepath.Join(folder, "*", "*.go"))
	for _, path := range slices.Concat(paths, below) {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(filepath.Dir(path)) == fixture {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		s := &source{path: path, text: string(text), files: token.NewFileSet()}
		if s.parsed, err = parser.ParseFile(s.files, path, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, err
}

// apply makes an edit in the file that has its function. guard is the Go expression that is true
// while the mutant runs.
func apply(all []*source, e *edit, guard string) error {
	var of *source
	var changed *ast.FuncDecl
	for _, s := range all {
		for _, d := range s.parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok || nameOf(f) != e.Func:
			case changed != nil:
				return fmt.Errorf("mutant %s: func %s is in %s and in %s", e.Name, e.Func, of.path, s.path)
			default:
				of, changed = s, f
			}
		}
	}
	if changed == nil {
		return fmt.Errorf("mutant %s: no func %s", e.Name, e.Func)
	}
	if err := of.edit(changed, e, guard); err != nil {
		return fmt.Errorf("mutant %s: %s: func %s: %w", e.Name, of.path, e.Func, err)
	}
	return nil
}

// nameOf returns the name of a function as in edit.Func.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func (s *source) edit(f *ast.FuncDecl, e *edit, guard string) error {
	switch {
	case e.Never != "":
		return s.wrap(f, e.Never, "(", " && !"+guard+")")
	case e.Always != "":
		return s.wrap(f, e.Always, "(", " || "+guard+")")
	case e.Skip != "":
		n, err := s.statement(f, e.Skip)
		if err == nil {
			s.insert(n.Pos(), "if !"+guard+" { ")
			s.insert(n.End(), " }")
		}
		return err
	case e.Insert != "":
		return s.insertStatements(f, e, guard)
	}
	return errors.New("the edit must have one of never, always, skip and insert")
}

// wrap puts text around an expression of a function.
func (s *source) wrap(f *ast.FuncDecl, expression, before, after string) error {
	n, err := s.only(f, expression, func(n ast.Node) (string, bool) {
		_, ok := n.(ast.Expr)
		return s.of(n), ok
	})
	if err == nil {
		s.insert(n.Pos(), before)
		s.insert(n.End(), after)
	}
	return err
}

// insertStatements inserts the statements of an edit. They stay on one line with what precedes
// them, so that lines keep their numbers as far as possible.
func (s *source) insertStatements(f *ast.FuncDecl, e *edit, guard string) error {
	at, err := s.statement(f, cmp.Or(e.Before, e.After))
	if err != nil {
		return err
	}
	text := "if " + guard + " {\n" + e.Insert + "\n}"
	if e.Case != "" {
		text = "case " + guard + " && (" + e.Case + "):\n" + e.Insert
	}
	if e.Before != "" {
		s.insert(at.Pos(), text+"\n")
	} else {
		s.insert(at.End(), "\n"+text)
	}
	return nil
}

// statement finds the only statement of a function with that first line.
func (s *source) statement(f *ast.FuncDecl, line string) (ast.Node, error) {
	return s.only(f, line, func(n ast.Node) (string, bool) {
		first, _, _ := strings.Cut(s.text[s.offset(n.Pos()):], "\n")
		first, _, _ = strings.Cut(first, " // ")
		_, ok := n.(ast.Stmt)
		return first, ok
	})
}

// only finds the only node of a function with that text. of returns the text of a node, and
// whether it is one of those that are looked for. Of nodes that begin at the same place the
// outermost is taken.
func (s *source) only(f *ast.FuncDecl, text string, of func(ast.Node) (string, bool)) (found ast.Node, err error) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if n == nil {
			return false
		}
		if have, ok := of(n); !ok || normalized(have) != normalized(text) {
			return true
		}
		switch {
		case found == nil:
			found = n
		case found.Pos() != n.Pos():
			err = fmt.Errorf("%q occurs more than once", text)
		}
		return true
	})
	if found == nil {
		return nil, fmt.Errorf("%q does not occur", text)
	}
	return found, err
}

func normalized(text string) string { return strings.Join(strings.Fields(text), " ") }

func (s *source) of(n ast.Node) string { return s.text[s.offset(n.Pos()):s.offset(n.End())] }

func (s *source) offset(p token.Pos) int { return s.files.Position(p).Offset }

func (s *source) insert(at token.Pos, text string) {
	s.inserts = append(s.inserts, insertion{s.offset(at), text})
}

// edited returns the text with all insertions, and an import if any is needed.
func (s *source) edited(importing string) string {
	slices.SortStableFunc(s.inserts, func(a, b insertion) int { return cmp.Compare(b.at, a.at) })
	text := s.text
	for _, i := range s.inserts {
		text = text[:i.at] + i.text + text[i.at:]
	}
	if importing == "" {
		return text
	}
	at := s.offset(s.parsed.Name.End())
	return text[:at] + "; import " + importing + text[at:]
}
