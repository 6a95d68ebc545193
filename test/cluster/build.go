package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// Set is a group of programs that one module of tools/ pins.
type Set string

// The sets of programs a cluster is made of, and those that are brought into
// one: the Operator Lifecycle Manager, and what makes and serves its catalogs.
const (
	Kubernetes Set = "kubernetes"
	Containerd Set = "containerd"
	CoreDNS    Set = "coredns"
	Kwok       Set = "kwok"
	OLM        Set = "olm"
	OPM        Set = "opm"
	SDK        Set = "operator-sdk"
)

// recipe says what a set is built from.
type recipe struct {
	folder   string            // of tools/, where it is not the set's own name
	module   string            // whose version names the folder
	programs map[string]string // program to the package it is built from
	order    []string          // the longest build first
	takes    string            // told to the one who waits
	tags     string            // of the build
	// stamp is variables that hold the version: clients and operators ask the
	// API server for it, and a Kubernetes built from modules says v0.0.0.
	stamp []string
}

var recipes = map[Set]recipe{
	Kubernetes: {
		module: "k8s.io/kubernetes",
		programs: map[string]string{
			"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
			"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
			"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
			"kubelet":                 "k8s.io/kubernetes/cmd/kubelet",
			"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
			"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
			"etcd":                    "go.etcd.io/etcd/server/v3",
		},
		order: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd"},
		takes: "about 7 minutes on 2 cores, once",
		stamp: []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"},
	},
	Containerd: {
		module: "github.com/containerd/containerd/v2",
		programs: map[string]string{
			"containerd":              "github.com/containerd/containerd/v2/cmd/containerd",
			"containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"ctr":                     "github.com/containerd/containerd/v2/cmd/ctr",
		},
		order: []string{"containerd", "containerd-shim-runc-v2", "ctr"},
		takes: "about 1 minute on 2 cores, once",
	},
	CoreDNS: {
		module:   "github.com/coredns/coredns",
		programs: map[string]string{"coredns": "."},
		order:    []string{"coredns"},
		takes:    "about 1 minute on 2 cores, once",
	},
	Kwok: {
		module:   "sigs.k8s.io/kwok",
		programs: map[string]string{"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
		order:    []string{"kwok"},
		takes:    "about 2 minutes on 2 cores, once",
	},
	OLM: {
		module: "github.com/operator-framework/operator-lifecycle-manager",
		programs: map[string]string{
			"olm":          "github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
			"catalog":      "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
			"copy-content": "github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content",
			"cpb":          "github.com/operator-framework/operator-lifecycle-manager/util/cpb",
		},
		order: []string{"olm", "catalog", "copy-content", "cpb"},
		tags:  "json1,containers_image_openpgp",
		takes: "about 6 minutes on 2 cores, once",
	},
	// Apart from OLM, because a catalog is made without one.
	OPM: {
		folder: "olm",
		module: "github.com/operator-framework/operator-registry",
		programs: map[string]string{
			"opm":               "github.com/operator-framework/operator-registry/cmd/opm",
			"grpc_health_probe": "github.com/grpc-ecosystem/grpc-health-probe",
		},
		order: []string{"opm", "grpc_health_probe"},
		tags:  "json1,containers_image_openpgp",
		takes: "about 5 minutes on 2 cores, once",
	},
	// Makes the bundle and asks what scorecard asks; scorecard-test is the program
	// in the image of its built-in tests.
	SDK: {
		module: "github.com/operator-framework/operator-sdk",
		programs: map[string]string{
			"operator-sdk":   "github.com/operator-framework/operator-sdk/cmd/operator-sdk",
			"scorecard-test": "github.com/operator-framework/operator-sdk/images/scorecard-test",
		},
		order: []string{"operator-sdk", "scorecard-test"},
		tags:  "containers_image_openpgp",
		stamp: []string{"github.com/operator-framework/operator-sdk/internal/version.Version"},
		takes: "about 3 minutes on 2 cores, once",
	},
}

// Build makes sure the programs of the sets exist and returns the folder of
// each set. That of Kubernetes is what envtest wants as KUBEBUILDER_ASSETS.
func Build(ctx context.Context, log io.Writer, sets ...Set) (map[Set]string, error) {
	folders := map[Set]string{}
	for _, set := range sets {
		folder, err := buildSet(ctx, log, set)
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", set, err)
		}
		folders[set] = folder
	}
	return folders, nil
}

func buildSet(ctx context.Context, log io.Writer, set Set) (string, error) {
	recipe, known := recipes[set]
	if !known {
		return "", fmt.Errorf("no such set of programs")
	}
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "tools", cmp.Or(recipe.folder, string(set)))
	version, key, err := recipe.version(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, fmt.Sprintf("%s-%s-%s", set, version, key))
	if isDir(folder) {
		return folder, nil
	}
	// Two builds at once would take twice as long, and one of them for nothing.
	unlock, err := lock(ctx, filepath.Join(cache, string(set)+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(folder) {
		return folder, nil
	}
	part, err := os.MkdirTemp(cache, "."+string(set)+"-part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	for i, program := range recipe.order {
		about := ""
		if i == 0 {
			about = fmt.Sprintf(" (all %d programs: %s)", len(recipe.order), recipe.takes)
		}
		fmt.Fprintf(log, "building %s %s%s …\n", program, version, about)
		if err := goBuild(ctx, log, module, recipe.programs[program], filepath.Join(part, program), recipe.stamps(version), recipe.tags); err != nil {
			return "", err
		}
	}
	// Only now: an interrupted build must not be taken for a finished one.
	if err := os.Chmod(part, 0o755); err != nil {
		return "", err
	}
	return folder, os.Rename(part, folder)
}

// goBuild links one static program of the module in dir; stamps are further
// flags of the linker.
func goBuild(ctx context.Context, log io.Writer, dir, pkg, out, stamps, tags string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags="+tags, "-ldflags=-s -w"+stamps, "-o", out, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s in %s: %w", pkg, dir, err)
	}
	return nil
}

func (r recipe) stamps(version string) string {
	var flags strings.Builder
	for _, variable := range r.stamp {
		fmt.Fprintf(&flags, " -X %s=%s", variable, version)
	}
	return flags.String()
}

// version is that of a set's main module, with a key that changes with
// everything else that decides what is built.
func (r recipe) version(goMod string) (version, key string, err error) {
	content, err := os.ReadFile(goMod)
	if err != nil {
		return "", "", err
	}
	file, err := modfile.ParseLax(goMod, content, nil)
	if err != nil {
		return "", "", err
	}
	for _, require := range file.Require {
		if require.Mod.Path != r.module {
			continue
		}
		sources, err := filepath.Glob(filepath.Join(filepath.Dir(goMod), "*.go"))
		if err != nil {
			return "", "", err
		}
		for _, source := range sources { // of a program that the set itself has
			code, err := os.ReadFile(source)
			if err != nil {
				return "", "", err
			}
			content = append(content, code...)
		}
		version = require.Mod.Version
		sum := sha256.Sum256(append(content, r.stamps(version)+r.tags...))
		return version, fmt.Sprintf("%x", sum[:4]), nil
	}
	return "", "", fmt.Errorf("%s does not require %s", goMod, r.module)
}

// modulePath is this project's.
const modulePath = "github.com/stateful-operator/stateful-operator"

// projectRoot is the checkout that the working directory is in.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(content) == modulePath {
			return dir, nil
		}
		if dir == path.Dir(dir) {
			return "", errors.New("not inside a checkout of " + modulePath + ", whose tools/ say which programs to build")
		}
		dir = path.Dir(dir)
	}
}

// cacheDir is where programs and clusters are kept.
func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	dir := filepath.Join(user, "stateful-operator")
	return dir, os.MkdirAll(dir, 0o755)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// run runs a short command; its output is part of the error only.
func run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
