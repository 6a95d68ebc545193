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
	stamps   string // additional linker flags
	// compiled is the number of packages that are compiled with an empty build cache. It is used to
	// estimate the remaining time. 0 is for short builds without an estimate.
	compiled int
	system   string // operating system; default: this machine's
	machine  string // architecture; default: this machine's
	test     bool   // build the test binary of a package
}

// Programs builds programs of this project for the containers of nodes into a folder. Each has the name
// of its package.
func Programs(ctx context.Context, log io.Writer, folder string, packages ...string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	return build{dir: root, packages: packages, out: folder + "/", system: "linux"}.run(ctx, log)
}

// Target is the target of a release build.
type Target struct {
	// System and Architecture are GOOS and GOARCH.
	System, Architecture string
	// Version and Commit are built into the programs.
	Version, Commit string
}

// Released builds programs of this project for a release into a folder. The bytes depend only on the
// sources, the target and the version of Go, and not on this machine, the folder or the state of the
// checkout.
func Released(ctx context.Context, log io.Writer, folder string, target Target, packages ...string) error {
	root, err := projectRoot()
	if err != nil {
		return err
	}
	stamps := fmt.Sprintf(" -buildid= -X main.version=%s -X main.commit=%s", target.Version, target.Commit)
	return build{dir: root, packages: packages, out: folder + "/", system: target.System, machine: target.Architecture, stamps: stamps}.run(ctx, log)
}

// oldest selects the oldest processors of each architecture that Go supports, so that released programs
// run on all of them. It overrides this machine's environment.
var oldest = []string{"GOFLAGS=", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8"}

// Tests builds the test binary of a package for the containers of nodes.
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

// Flags are shared by all builds, so that they share the build cache. They exclude local paths and
// debug information.
var Flags = []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}

// Environment returns the environment of all builds. The compiler runs for seconds, and less frequent
// garbage collection saves a tenth of its time.
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

// sayEvery is the interval of progress messages during a long build.
const sayEvery = 20 * time.Second

// follow reads the output of go build -v. Package names are counted, and error messages are copied to
// log.
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
	_, _ = io.Copy(io.Discard, output) // after a line that is too long: go build must not block
}

// isPackage reports whether a line is the name of a package. Error messages contain spaces or colons.
func isPackage(line string) bool { return !strings.ContainsAny(line, " \t:#") }

// left estimates the remaining time of a build. It is an upper bound if some packages are in the build
// cache.
func (b build) left(done int, spent time.Duration) string {
	if done < b.compiled/20 || done >= b.compiled { // the first packages are small
		return ""
	}
	left := spent * time.Duration(b.compiled-done) / time.Duration(done)
	return fmt.Sprintf(" of about %d, about %s left", b.compiled, left.Round(10*time.Second))
}
