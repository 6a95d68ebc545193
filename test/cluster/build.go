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
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Set is a group of programs that one module of tools/ pins.
type Set string

// Sets of programs for a cluster, and for installation in a cluster: the Operator Lifecycle Manager,
// and the programs that generate and serve its catalogs.
const (
	Kubernetes Set = "kubernetes"
	Containerd Set = "containerd"
	CoreDNS    Set = "coredns"
	Kwok       Set = "kwok"
	OLM        Set = "olm"
	OPM        Set = "opm"
	SDK        Set = "operator-sdk"
	Prometheus Set = "prometheus"
)

// Older versions of Kubernetes, for Options.Version. Envtest uses their API server as
// TEST_ASSET_KUBE_APISERVER, with etcd from the set Kubernetes.
const (
	Kubernetes130 Set = "kubernetes-1.30"
	Kubernetes133 Set = "kubernetes-1.33"
)

// recipe defines the build of a set.
type recipe struct {
	folder   string   // folder of tools/; default: the set's name
	module   string   // its version is part of the folder's name
	packages []string // packages of the programs; each program has the name of its package's folder
	names    []string // further names of the first program, which behaves differently under each
	compiled int      // approximate number of packages that are compiled with an empty build cache
	tags     string   // build tags
	// stamp lists linker variables for the version. Clients and operators read it from the API server,
	// and a Kubernetes built from modules reports v0.0.0.
	stamp []string
}

// kubernetesVersion lists the variables with the version of a Kubernetes program.
var kubernetesVersion = []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"}

// wholeKubernetes builds all Kubernetes programs as one binary. folder is the folder of its module.
func wholeKubernetes(folder string) recipe {
	return recipe{
		folder:   folder,
		module:   "k8s.io/kubernetes",
		packages: []string{"./kubernetes"},
		names:    []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd"},
		compiled: 2860,
		stamp:    kubernetesVersion,
	}
}

var recipes = map[Set]recipe{
	Kubernetes: wholeKubernetes("cluster"),
	// An older version is built with its own libraries, so each version has its own module in tools/.
	Kubernetes130: wholeKubernetes(string(Kubernetes130)),
	Kubernetes133: wholeKubernetes(string(Kubernetes133)),
	// Separate from Kubernetes, because it requires a newer CRI.
	Containerd: {
		module: "github.com/containerd/containerd/v2",
		packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
		},
		compiled: 350,
	},
	CoreDNS: {
		folder:   "cluster",
		module:   "github.com/coredns/coredns",
		packages: []string{"./coredns"},
		compiled: 2970,
	},
	Kwok: {
		folder:   "cluster",
		module:   "sigs.k8s.io/kwok",
		packages: []string{"sigs.k8s.io/kwok/cmd/kwok"},
		compiled: 3040,
	},
	OLM: {
		module: "github.com/operator-framework/operator-lifecycle-manager",
		packages: []string{
			"github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
			"github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
			"github.com/operator-framework/operator-lifecycle-manager/cmd/copy-content",
			"github.com/operator-framework/operator-lifecycle-manager/util/cpb",
		},
		tags: "json1,containers_image_openpgp",
	},
	// Separate from OLM, because a catalog is generated without it.
	OPM: {
		folder: "olm",
		module: "github.com/operator-framework/operator-registry",
		packages: []string{
			"github.com/operator-framework/operator-registry/cmd/opm",
			"github.com/grpc-ecosystem/grpc-health-probe",
		},
		tags: "json1,containers_image_openpgp",
	},
	// Generates the bundle and runs scorecard. scorecard-test is the program in the image of the
	// built-in tests.
	SDK: {
		module: "github.com/operator-framework/operator-sdk",
		packages: []string{
			"github.com/operator-framework/operator-sdk/cmd/operator-sdk",
			"github.com/operator-framework/operator-sdk/images/scorecard-test",
		},
		tags:  "containers_image_openpgp",
		stamp: []string{"github.com/operator-framework/operator-sdk/internal/version.Version"},
	},
	// Tests alerts, parses queries, and scrapes an operator in a cluster. Only one service discovery is
	// built in, because the others are half of the code.
	Prometheus: {
		module: "github.com/prometheus/prometheus",
		packages: []string{
			"github.com/prometheus/prometheus/cmd/promtool",
			"github.com/prometheus/prometheus/cmd/prometheus",
			"./queries",
		},
		compiled: 1280,
		tags:     "remove_all_sd,enable_kubernetes_sd",
	},
}

// Build builds the missing programs of the sets and returns the folder of each set. The folder of
// Kubernetes can be used as envtest's KUBEBUILDER_ASSETS. Sets of one module are compiled together,
// because they share most packages.
func Build(ctx context.Context, log io.Writer, sets ...Set) (map[Set]string, error) {
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	places := map[Set]place{}
	modules := map[string][]Set{}
	for _, set := range sets {
		where, err := placeOf(cache, set)
		if err != nil {
			return nil, fmt.Errorf("build %s: %w", set, err)
		}
		places[set] = where
		modules[where.module] = append(modules[where.module], set)
	}
	folders := map[Set]string{}
	for module, sets := range modules {
		if err := buildModule(ctx, log, cache, module, sets, places); err != nil {
			return nil, fmt.Errorf("build %s: %w", sets, err)
		}
		for _, set := range sets {
			folders[set] = places[set].folder
		}
	}
	return folders, nil
}

// Built reports whether all sets are already built.
func Built(sets ...Set) bool {
	cache, err := cacheDir()
	if err != nil {
		return false
	}
	for _, set := range sets {
		if where, err := placeOf(cache, set); err != nil || !isDir(where.folder) {
			return false
		}
	}
	return true
}

// place is the module, version and target folder of a set.
type place struct{ module, version, folder string }

func placeOf(cache string, set Set) (place, error) {
	recipe, known := recipes[set]
	if !known {
		return place{}, errors.New("no such set of programs")
	}
	root, err := projectRoot()
	if err != nil {
		return place{}, err
	}
	module := filepath.Join(root, "tools", cmp.Or(recipe.folder, string(set)))
	version, key, err := recipe.version(filepath.Join(module, "go.mod"))
	if err != nil {
		return place{}, err
	}
	return place{module, version, filepath.Join(cache, fmt.Sprintf("%s-%s-%s", set, version, key))}, nil
}

// buildModule builds the missing sets of a module.
func buildModule(ctx context.Context, log io.Writer, cache, module string, sets []Set, places map[Set]place) error {
	there := func(set Set) bool { return isDir(places[set].folder) }
	if !slices.ContainsFunc(sets, func(set Set) bool { return !there(set) }) {
		return nil
	}
	// Two parallel builds would take twice as long, and the second would be redundant.
	unlock, err := lock(ctx, filepath.Join(cache, filepath.Base(module)+".lock"))
	if err != nil {
		return err
	}
	defer unlock()
	part, err := os.MkdirTemp(cache, "."+filepath.Base(module)+"-part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	missing := slices.DeleteFunc(slices.Clone(sets), there)
	if len(missing) == 0 {
		return nil // another process has built them meanwhile
	}
	wanted := build{dir: module, out: part}
	for _, set := range missing {
		recipe := recipes[set]
		fmt.Fprintf(log, "building %s %s, once …\n", set, places[set].version)
		wanted.packages = append(wanted.packages, recipe.packages...)
		wanted.stamps += recipe.stamps(places[set].version)
		wanted.tags = recipe.tags // equal for all sets of one module
		wanted.compiled = max(wanted.compiled, recipe.compiled)
	}
	if err := wanted.run(ctx, log); err != nil {
		return err
	}
	for _, set := range missing {
		if err := recipes[set].moveInto(places[set].folder, part); err != nil {
			return err
		}
	}
	return nil
}

// moveInto creates the folder of a set from the programs that were built in part.
func (r recipe) moveInto(folder, part string) error {
	whole, err := os.MkdirTemp(part, "whole-")
	if err != nil {
		return err
	}
	for _, source := range r.packages {
		name := path.Base(source)
		if err := os.Rename(filepath.Join(part, name), filepath.Join(whole, name)); err != nil {
			return err
		}
	}
	for _, name := range r.names {
		if err := os.Symlink(path.Base(r.packages[0]), filepath.Join(whole, name)); err != nil {
			return err
		}
	}
	if err := os.Chmod(whole, 0o755); err != nil {
		return err
	}
	// The rename is last, so that an interrupted build is never used.
	return os.Rename(whole, folder)
}

func (r recipe) stamps(version string) string {
	var flags strings.Builder
	for _, variable := range r.stamp {
		fmt.Fprintf(&flags, " -X %s=%s", variable, version)
	}
	return flags.String()
}

// version returns the version of a set's main module, and a key that changes with all other inputs of
// the build.
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
		sources, err := filepath.Glob(filepath.Join(filepath.Dir(goMod), "*", "*.go"))
		if err != nil {
			return "", "", err
		}
		for _, source := range sources { // sources of a program in the set's own module
			code, err := os.ReadFile(source)
			if err != nil {
				return "", "", err
			}
			content = append(content, code...)
		}
		version = require.Mod.Version
		sum := sha256.Sum256(append(content, r.stamps(version)+r.tags+strings.Join(r.packages, " ")...))
		return version, fmt.Sprintf("%x", sum[:4]), nil
	}
	return "", "", fmt.Errorf("%s does not require %s", goMod, r.module)
}

// modulePath is the path of this project's module.
const modulePath = "github.com/stateful-operator/stateful-operator"

// projectRoot returns the checkout that contains the working directory.
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
			return "", errors.New("not inside a checkout of " + modulePath + ", whose tools/ folder lists the programs to build")
		}
		dir = path.Dir(dir)
	}
}

// cacheDir returns the folder of programs and clusters.
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

// run runs a short command. Its output is only in the error.
func run(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
