package controllers_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// This file checks the layout of the tree: every kind has the same things in the same places.

const (
	module            = "github.com/stateful-operator/stateful-operator/"
	controllerRuntime = "sigs.k8s.io/controller-runtime/pkg/"
	maxFileLines      = 600
	maxFuncLines      = 70

	// reporterFile writes events and the status.
	reporterFile = "status/events.go"

	// promisesFolder has a package of promises for each kind, and one for the operator. All of them
	// import promisesKit.
	promisesFolder   = "scorecard/promises/"
	promisesKit      = "kit"
	promisesOperator = "operator"

	// facade has what command-line tools use of the operator.
	facade = "plugin"
)

var (
	// neededFiles are required in the folder of every kind.
	neededFiles = []string{"doc.go", "controller.go", "observe/reader.go", "rules/rules.go", "rules/plan.go", "children/build.go", "status/conditions.go"}
	// rootFiles are all files of a kind's own package, except tests.
	rootFiles = []string{"doc.go", "controller.go"}

	// rooms are the packages of a kind, lowest first: each imports only packages of its kind
	// that precede it.
	rooms = []string{"application", "spec", "children", "facts", "observe", "record", "rules", "status", "webhooks", "pass", "simulate"}
	// recordReaders may import record in a kind that derives its facts from the record. The
	// compiler rejects a kind whose record imports facts as well.
	recordReaders = []string{"facts", "observe"}
	// pureRooms compute without side effects, except reporterFile.
	pureRooms = []string{"application", "spec", "children", "record", "facts", "rules", "status"}
	// testRooms are packages of a kind for its tests, and testPackages those of controllers/internal.
	testRooms    = []string{"fixture"}
	testPackages = []string{"internal/golden", "internal/simtest"}

	// notKinds are the folders of controllers that belong to no kind. facade is what command-line tools use.
	notKinds = []string{"internal", facade}

	// managed are the packages of controllers/internal that add something to a manager.
	managed = []string{"bounded", "enqueue", "follow", "livepods", "podexec/attach", "servingcert"}
	// managing are the packages of controller-runtime that contain its manager.
	managing = []string{"sigs.k8s.io/controller-runtime", controllerRuntime + "manager", controllerRuntime + "builder",
		controllerRuntime + "controller", controllerRuntime + "webhook"}

	impure      = []string{"context", "os", "math/rand", "k8s.io/client-go", "sigs.k8s.io/controller-runtime/pkg/client"}
	clockReads  = []string{"Now", "Since", "Until"}
	vagueNames  = []string{"util", "utils", "common", "helper", "helpers", "misc", "types", "constants"}
	skippedDirs = []string{".git", "build", "testdata", "node_modules"}
)

// source is one Go file. Its path is relative to the root of the module.
type source struct {
	path  string
	text  string
	file  *ast.File
	files *token.FileSet
}

func parse(name, text string) (source, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: name, text: text, file: file, files: files}, err
}

// kind splits a path into the folder of its kind and the rest.
func (s source) kind() (folder, rest string, ok bool) {
	parts := strings.SplitN(s.path, "/", 3)
	if len(parts) < 3 || parts[0] != "controllers" || slices.Contains(notKinds, parts[1]) {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// promises returns the package of promises that a file belongs to.
func (s source) promises() (name string, ok bool) {
	rest, ok := strings.CutPrefix(s.path, promisesFolder)
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, "/")
	return name, ok
}

func (s source) imports() []string {
	paths := make([]string, 0, len(s.file.Imports))
	for _, spec := range s.file.Imports {
		paths = append(paths, strings.Trim(spec.Path.Value, `"`))
	}
	return paths
}

// kinds returns the folders of the kinds that a file imports.
func (s source) kinds() []string {
	var found []string
	for _, imported := range s.imports() {
		rest, ours := strings.CutPrefix(imported, module+"controllers/")
		if kind, _, _ := strings.Cut(rest, "/"); ours && !slices.Contains(notKinds, kind) {
			found = append(found, kind)
		}
	}
	return found
}

func (s source) isGenerated() bool { return ast.IsGenerated(s.file) }

// checks are the rules for one file. Each returns violations.
var checks = []struct {
	name  string
	check func(source) []string
}{
	{"each kind has the same file names", checkFileName},
	{"data flows in one direction through the packages of a kind", checkRooms},
	{"pure files stay pure", checkPure},
	{"only tests import fixtures", checkFixtureImports},
	{"decisions do not depend on a manager", checkManagerless},
	{"kinds do not import each other", checkKindImports},
	{"controllers/internal does not import kinds", checkInternalImports},
	{"promises of a kind do not import those of another kind", checkPromiseImports},
	{"apis import only types of Kubernetes", checkAPIImports},
	{"command-line tools import only the apis", checkCommandImports},
	{"the operator uses only settings of the agent, and the agent nothing of the operator", checkAgentImports},
	{"package and file names describe their contents", checkVagueNames},
	{"files and functions have a max length", checkLengths},
	{"a condition does not mix && and ||", checkMixed},
	{"a function has few decisions", checkDense},
	{"a getter does not change the plan", checkAnswers},
}

func checkFileName(s source) []string {
	kind, file, ok := s.kind()
	if !ok || strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/") {
		return nil
	}
	if room, _, inRoom := s.room(); inRoom {
		if slices.Contains(rooms, room) || slices.Contains(testRooms, room) {
			return nil
		}
		return []string{fmt.Sprintf("the packages of a kind are %s", strings.Join(rooms, ", "))}
	}
	if slices.Contains(rootFiles, file) {
		return nil
	}
	return []string{fmt.Sprintf("the folder of %s may not have %s: it has %s, tests, testdata and packages", kind, file, strings.Join(rootFiles, ", "))}
}

// room splits the path of a file in a package of a kind into the name of the package and the rest.
func (s source) room() (room, file string, ok bool) {
	_, rest, isKind := s.kind()
	room, file, ok = strings.Cut(rest, "/")
	return room, file, ok && isKind
}

// isForTests reports whether only tests use the code of a file.
func (s source) isForTests() bool {
	room, _, _ := s.room()
	shared := strings.TrimPrefix(path.Dir(s.path), "controllers/")
	return strings.HasSuffix(s.path, "_test.go") || slices.Contains(testRooms, room) || slices.Contains(testPackages, shared)
}

// checkFixtureImports keeps the code of tests out of the operator.
func checkFixtureImports(s source) []string {
	if s.isForTests() {
		return nil
	}
	var faults []string
	for _, imported := range s.imports() {
		rest, ours := strings.CutPrefix(imported, module+"controllers/")
		if ours && (slices.Contains(testRooms, path.Base(rest)) || slices.Contains(testPackages, rest)) {
			faults = append(faults, fmt.Sprintf("imports %s, which is for tests only", imported))
		}
	}
	return faults
}

// checkRooms finds imports of a package of the same kind that does not precede the package of
// the file.
func checkRooms(s source) []string {
	kind, _, _ := s.kind()
	room, _, ok := s.room()
	if !ok || s.isForTests() {
		return nil
	}
	var faults []string
	for _, imported := range s.imports() {
		other, same := strings.CutPrefix(imported, module+"controllers/"+kind+"/")
		if same && other == "record" && slices.Contains(recordReaders, room) {
			continue
		}
		if same && slices.Index(rooms, other) >= slices.Index(rooms, room) {
			faults = append(faults, fmt.Sprintf("%s imports %s: the order is %s", room, other, strings.Join(rooms, ", ")))
		}
	}
	return faults
}

func (s source) mustBePure() bool {
	room, file, inRoom := s.room()
	if !inRoom || path.Join(room, file) == reporterFile || strings.HasSuffix(file, "_test.go") {
		return false
	}
	return slices.Contains(pureRooms, room)
}

func checkPure(s source) []string {
	if !s.mustBePure() {
		return nil
	}
	var faults []string
	for _, path := range s.imports() {
		for _, banned := range impure {
			if path == banned || strings.HasPrefix(path, banned+"/") {
				faults = append(faults, fmt.Sprintf("imports %s: pure files get their data from world", path))
			}
		}
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !slices.Contains(clockReads, selector.Sel.Name) {
			return true
		}
		if name, ok := selector.X.(*ast.Ident); ok && name.Name == s.nameOf("time") {
			faults = append(faults, fmt.Sprintf("line %d calls time.%s: pure files get the time from world",
				s.files.Position(node.Pos()).Line, selector.Sel.Name))
		}
		return true
	})
	return faults
}

// nameOf returns the name under which a file imports a package, or "" if it does not.
func (s source) nameOf(imported string) string {
	for _, spec := range s.file.Imports {
		if strings.Trim(spec.Path.Value, `"`) != imported {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(imported)
	}
	return ""
}

func checkKindImports(s source) []string {
	kind, _, ok := s.kind()
	if !ok {
		return nil
	}
	var faults []string
	for _, other := range s.kinds() {
		if other != kind {
			faults = append(faults, fmt.Sprintf("imports the kind %s: shared code belongs in controllers/internal", other))
		}
	}
	return faults
}

// checkPromiseImports finds imports between the promises of different kinds. Promises of the
// operator are about all kinds.
func checkPromiseImports(s source) []string {
	name, ok := s.promises()
	if !ok || name == promisesOperator {
		return nil
	}
	var faults []string
	for _, imported := range s.imports() {
		other, isPromise := strings.CutPrefix(imported, module+promisesFolder)
		if isPromise && other != name && other != promisesKit {
			faults = append(faults, fmt.Sprintf("imports the promises of %s: shared code belongs in %s%s", other, promisesFolder, promisesKit))
		}
	}
	return faults
}

// importsBut returns forbidden imports of files below a folder, with the reason.
func (s source) importsBut(folder string, may func(imported string) bool, why string) []string {
	if !strings.HasPrefix(s.path, folder) {
		return nil
	}
	var faults []string
	for _, imported := range s.imports() {
		if !may(imported) {
			faults = append(faults, fmt.Sprintf("imports %s: %s", imported, why))
		}
	}
	return faults
}

func checkInternalImports(s source) []string {
	return s.importsBut("controllers/internal/", func(imported string) bool {
		return !strings.HasPrefix(imported, module+"apis/")
	}, "controllers/internal does not import kinds")
}

// checkManagerless keeps the manager of controller-runtime out of what decides, so that other programs can decide, too.
func checkManagerless(s source) []string {
	folder := path.Dir(s.path)
	shared, isShared := strings.CutPrefix(folder, "controllers/internal/")
	room, _, inRoom := s.room()
	decides := isShared && !slices.Contains(managed, shared) || inRoom && room != "webhooks" || folder == "controllers/"+facade
	if !decides || strings.HasSuffix(s.path, "_test.go") {
		return nil
	}
	var faults []string
	for _, imported := range s.imports() {
		ours, isOurs := strings.CutPrefix(imported, module+"controllers/internal/")
		isManaged := isOurs && slices.Contains(managed, ours)
		if isManaged || slices.Contains(managing, imported) {
			faults = append(faults, fmt.Sprintf("imports %s: what decides must not depend on a manager", imported))
		}
	}
	return faults
}

// checkAPIImports limits the dependencies of programs that import the types of a kind.
func checkAPIImports(s source) []string {
	if strings.HasSuffix(s.path, "_test.go") {
		return nil
	}
	return s.importsBut("apis/", func(imported string) bool {
		standard := !strings.Contains(imported, ".")
		return standard || strings.HasPrefix(imported, "k8s.io/api/") || strings.HasPrefix(imported, "k8s.io/apimachinery/") ||
			imported == "sigs.k8s.io/json" || // used by apimachinery for decoding
			strings.HasPrefix(imported, module+"apis/internal/")
	}, "an import of the types should add only types of Kubernetes")
}

// checkCommandImports keeps command line programs independent of the operator: they use only the
// API of an object, what fills its fields, and the facade.
func checkCommandImports(s source) []string {
	return s.importsBut("cmd/", func(imported string) bool {
		rest, ours := strings.CutPrefix(imported, module)
		fills := strings.HasPrefix(rest, "controllers/") && path.Base(rest) == "application"
		return !ours || fills || rest == "controllers/"+facade || strings.HasPrefix(rest, "apis/") || strings.HasPrefix(rest, "cmd/")
	}, "a command-line tool may import apis, but not the operator")
}

// checkAgentImports keeps the agent and the operator independent of each other: the operator uses only
// the settings of an application, which are pure.
func checkAgentImports(s source) []string {
	inAgent, inControllers := strings.HasPrefix(s.path, "agent/"), strings.HasPrefix(s.path, "controllers/")
	var faults []string
	for _, imported := range s.imports() {
		rest, ours := strings.CutPrefix(imported, module)
		ofAgent := strings.HasPrefix(rest, "agent/")
		switch {
		case !ours:
		case strings.HasSuffix(s.path, "_test.go") && strings.HasPrefix(rest, "test/run/"): // images of applications
		case inAgent && !ofAgent && rest != "gate/selfcopy":
			faults = append(faults, fmt.Sprintf("imports %s: the agent is independent of the operator", rest))
		case inControllers && ofAgent && path.Base(rest) != "settings":
			faults = append(faults, fmt.Sprintf("imports %s: the operator may import only settings of the agent", rest))
		}
	}
	return faults
}

func checkVagueNames(s source) []string {
	if strings.HasPrefix(s.path, "apis/") {
		return nil
	}
	var faults []string
	if name := s.file.Name.Name; slices.Contains(vagueNames, strings.TrimSuffix(name, "_test")) {
		faults = append(faults, fmt.Sprintf("package name %s is too general: use the noun or verb that it provides", name))
	}
	stem := strings.TrimSuffix(path.Base(s.path), ".go")
	for word := range strings.SplitSeq(stem, "_") {
		if slices.Contains(vagueNames, word) {
			faults = append(faults, fmt.Sprintf("the file name contains %q, which is too general: use a name for its contents", word))
		}
	}
	return faults
}

func checkLengths(s source) []string {
	if s.isGenerated() {
		return nil
	}
	var faults []string
	if lines := strings.Count(s.text, "\n"); lines > maxFileLines {
		faults = append(faults, fmt.Sprintf("has %d lines, and the max is %d", lines, maxFileLines))
	}
	for _, declaration := range s.file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start, end := s.files.Position(function.Pos()), s.files.Position(function.End())
		if lines := end.Line - start.Line + 1; lines > maxFuncLines {
			faults = append(faults, fmt.Sprintf("line %d: %s has %d lines, and the max is %d", start.Line, function.Name.Name, lines, maxFuncLines))
		}
	}
	return faults
}

// missingFiles returns required files that a kind does not have. A kind that setup.go does not
// serve yet is under construction, and may lack some.
func missingFiles(sources []source) []string {
	have := map[string][]string{}
	var served []string
	for _, s := range sources {
		if kind, file, ok := s.kind(); ok {
			have[kind] = append(have[kind], file)
		}
		if s.path == "controllers/setup.go" {
			served = s.kinds()
		}
	}
	if len(served) == 0 {
		return []string{"controllers/setup.go registers no kind"}
	}
	var faults []string
	for _, kind := range served {
		for _, needed := range neededFiles {
			if !slices.Contains(have[kind], needed) {
				faults = append(faults, fmt.Sprintf("controllers/%s has no %s", kind, needed))
			}
		}
	}
	slices.Sort(faults)
	return faults
}

func readTree(t *testing.T) []source {
	t.Helper()
	var sources []source
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains(skippedDirs, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		parsed, err := parse(name, string(text))
		sources = append(sources, parsed)
		return err
	})
	if err != nil {
		t.Fatalf("read the tree: %v", err)
	}
	slices.SortFunc(sources, func(a, b source) int { return cmp.Compare(a.path, b.path) })
	return sources
}

func TestLayout(t *testing.T) {
	sources := readTree(t)
	if len(sources) == 0 {
		t.Fatal("found no Go files")
	}
	for _, fault := range missingFiles(sources) {
		t.Error(fault)
	}
	for _, row := range checks {
		t.Run(row.name, func(t *testing.T) {
			for _, s := range sources {
				for _, fault := range row.check(s) {
					t.Errorf("%s: %s", s.path, fault)
				}
			}
		})
	}
}
