package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// build is one call of go build for static programs of a module.
type build struct {
	dir      string // of the module
	packages []string
	out      string // a folder for several programs, or the path of one
	tags     string
	stamps   string // further flags of the linker
	// compiled is how many packages are compiled if none is in the build cache, for
	// the estimate of the time left; 0 for a build that is done at once.
	compiled int
	system   string // that the programs are for, this machine's when empty
	machine  string // its architecture, likewise
	test     bool   // whether it is the program of a package's tests
}

// Programs builds programs of this project for the containers of nodes, each under the
// name of its package, into a folder.
func Programs(ctx context.Context, log io.Writer, folder string, packages ...string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	return build{dir: root, packages: packages, out: folder + "/", system: "linux"}.run(ctx, log)
}

// Target is what a program of a release is built for.
type Target struct {
	// System and Architecture, as Go names them.
	System, Architecture string
	// Version and Commit are what the programs say of themselves.
	Version, Commit string
}

// Released builds programs of this project for a release into a folder. The bytes depend
// on the sources, the target and the version of Go alone: not on this machine, the folder,
// or the state of the checkout.
func Released(ctx context.Context, log io.Writer, folder string, target Target, packages ...string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	stamps := fmt.Sprintf(" -buildid= -X main.version=%s -X main.commit=%s", target.Version, target.Commit)
	return build{dir: root, packages: packages, out: folder + "/", system: target.System, machine: target.Architecture, stamps: stamps}.run(ctx, log)
}

// oldest are the machines of each architecture that a released program runs on: the
// oldest that Go knows, whatever this machine's environment says.
var oldest = []string{"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8"}

// Tests builds the program of a package's tests for the containers of nodes.
func Tests(ctx context.Context, log io.Writer, source, out string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	return build{dir: root, packages: []string{source}, out: out, system: "linux", test: true}.run(ctx, log)
}

// Host builds a program of this project for this machine.
func Host(ctx context.Context, log io.Writer, source, out string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	return build{dir: root, packages: []string{source}, out: out}.run(ctx, log)
}

// Flags are those that all builds have in common, so that the results of one serve
// the others too: without paths of this machine, and without what only a debugger reads.
var Flags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}

// Environment is of all builds. A compiler lives for seconds: collecting its garbage less
// often saves a tenth of its time.
func Environment() []string {
	return append([]string{"GOGC=400"}, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")...)
}

func (b build) run(ctx context.Context, log io.Writer) error {
	what := []string{"build", "-v"}
	if b.test {
		what = []string{"test", "-c", "-vet=off"}
	}
	args := slices.Concat(what, Flags)
	args = append(args, "-tags="+b.tags, "-ldflags=-s -w"+b.stamps, "-o", b.out)
	cmd := exec.CommandContext(ctx, "go", append(args, b.packages...)...)
	cmd.Dir = b.dir
	cmd.Env = Environment()
	if b.system != "" {
		cmd.Env = append(cmd.Env, "GOOS="+b.system)
	}
	if b.machine != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+b.machine)
		cmd.Env = append(cmd.Env, oldest...)
	}
	output, input := io.Pipe()
	cmd.Stdout, cmd.Stderr = input, input
	told := make(chan struct{})
	go func() {
		defer close(told)
		b.follow(output, log)
	}()
	err := cmd.Run()
	input.Close()
	<-told
	if err != nil {
		return fmt.Errorf("go %s %s in %s: %w", what[0], strings.Join(b.packages, " "), b.dir, err)
	}
	return nil
}

// sayEvery is how often a long build says how far it is.
const sayEvery = 20 * time.Second

// follow reads what go build -v prints: the name of each package that is compiled, and
// what is wrong. The first is counted, the second passed on.
func (b build) follow(output io.Reader, log io.Writer) {
	began := time.Now()
	said, done := began, 0
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !isPackage(line) {
			fmt.Fprintln(log, line)
			continue
		}
		done++
		if time.Since(said) >= sayEvery {
			said = time.Now()
			fmt.Fprintf(log, "  %d packages compiled%s\n", done, b.left(done, time.Since(began)))
		}
	}
	_, _ = io.Copy(io.Discard, output) // of a line that was too long: go build must not block
}

// isPackage reports whether a line is the name of a package: what is wrong has spaces or
// colons in it.
func isPackage(line string) bool { return !strings.ContainsAny(line, " \t:#") }

// left estimates the time that a build still takes. It takes less if some packages are in the
// build cache.
func (b build) left(done int, spent time.Duration) string {
	if done < b.compiled/20 || done >= b.compiled { // the first packages are small
		return ""
	}
	left := spent * time.Duration(b.compiled-done) / time.Duration(done)
	return fmt.Sprintf(" of about %d, about %s left", b.compiled, left.Round(10*time.Second))
}
