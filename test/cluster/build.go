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
	Prometheus Set = "prometheus"
)

// Older versions of Kubernetes, for Options.Version. Envtest takes the API server of one for
// TEST_ASSET_KUBE_APISERVER, and etcd from the set Kubernetes.
const (
	Kubernetes130 Set = "kubernetes-1.30"
	Kubernetes133 Set = "kubernetes-1.33"
)

// recipe says what a set is built from.
type recipe struct {
	folder   string   // of tools/, where it is not the set's own name
	module   string   // whose version names the folder
	packages []string // of the programs, each named as its package's folder is
	names    []string // that the first program is also called by, and is another one then
	compiled int      // packages that an empty build cache has to compile, about
	tags     string   // of the build
	// stamp is variables that hold the version: clients and operators ask the
	// API server for it, and a Kubernetes built from modules says v0.0.0.
	stamp []string
}

// kubernetesVersion is the variables that hold the version of a Kubernetes program.
var kubernetesVersion = []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"}

// wholeKubernetes is one program that is all of them, by the folder that its module is in.
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
	// An older one is built with the libraries that it was released with, so each version has
	// a module of its own in tools/.
	Kubernetes130: wholeKubernetes(string(Kubernetes130)),
	Kubernetes133: wholeKubernetes(string(Kubernetes133)),
	// Apart from Kubernetes, because it wants a newer CRI.
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
	// Apart from OLM, because a catalog is made without one.
	OPM: {
		folder: "olm",
		module: "github.com/operator-framework/operator-registry",
		packages: []string{
			"github.com/operator-framework/operator-registry/cmd/opm",
			"github.com/grpc-ecosystem/grpc-health-probe",
		},
		tags: "json1,containers_image_openpgp",
	},
	// Makes the bundle and asks what scorecard asks; scorecard-test is the program
	// in the image of its built-in tests.
	SDK: {
		module: "github.com/operator-framework/operator-sdk",
		packages: []string{
			"github.com/operator-framework/operator-sdk/cmd/operator-sdk",
			"github.com/operator-framework/operator-sdk/images/scorecard-test",
		},
		tags:  "containers_image_openpgp",
		stamp: []string{"github.com/operator-framework/operator-sdk/internal/version.Version"},
	},
	// What tries alerts, reads queries, and scrapes an operator in a cluster: of the ways to
	// find targets it has that one, and the other ones are half of the code.
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

// Build makes sure the programs of the sets exist and returns the folder of
// each set. That of Kubernetes is what envtest wants as KUBEBUILDER_ASSETS.
// Sets of one module are compiled in one go, as they have most packages in common.
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
			return nil, fmt.Errorf("building %s: %w", set, err)
		}
		places[set] = where
		modules[where.module] = append(modules[where.module], set)
	}
	folders := map[Set]string{}
	for module, sets := range modules {
		if err := buildModule(ctx, log, cache, module, sets, places); err != nil {
			return nil, fmt.Errorf("building %s: %w", sets, err)
		}
		for _, set := range sets {
			folders[set] = places[set].folder
		}
	}
	return folders, nil
}

// Built reports whether Build has nothing to do.
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

// place is where a set comes from and goes to.
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

// buildModule builds those sets of a module that are not there yet.
func buildModule(ctx context.Context, log io.Writer, cache, module string, sets []Set, places map[Set]place) error {
	there := func(set Set) bool { return isDir(places[set].folder) }
	if !slices.ContainsFunc(sets, func(set Set) bool { return !there(set) }) {
		return nil
	}
	// Two builds at once would take twice as long, and one of them for nothing.
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
		wanted.tags = recipe.tags // sets of one module have the same
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

// moveInto makes the folder of a set from the programs that were built in part.
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
	// Only now: an interrupted build must not be taken for a finished one.
	return os.Rename(whole, folder)
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
		sources, err := filepath.Glob(filepath.Join(filepath.Dir(goMod), "*", "*.go"))
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
		sum := sha256.Sum256(append(content, r.stamps(version)+r.tags+strings.Join(r.packages, " ")...))
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
