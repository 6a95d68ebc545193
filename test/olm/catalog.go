package olm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
)

// Package is the name of the operator's in catalogs.
const Package = "stateful-operator"

// Bundle is one version of the operator as OLM gets it.
type Bundle struct {
	// Name is that of its ClusterServiceVersion.
	Name string
	// Folder has manifests and metadata.
	Folder string
	// Image has the same, where it was pushed.
	Image string
}

// Bundle makes the bundle of a version from that in a folder: the same, with that
// version and that image of the operator. An empty version is the folder's own.
func (m *Manager) Bundle(source, version, image string) (Bundle, error) {
	file, csv, err := readCSV(source)
	if err != nil {
		return Bundle{}, err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return Bundle{}, err
	}
	deployments := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if len(deployments) != 1 || len(deployments[0].Spec.Template.Spec.Containers) != 1 {
		return Bundle{}, fmt.Errorf("%s has %d deployments: want one with one container", file, len(deployments))
	}
	text := string(content)
	text = strings.ReplaceAll(text, deployments[0].Spec.Template.Spec.Containers[0].Image, image)
	name := csv.Name
	if version != "" {
		name = Package + ".v" + version
		if text, err = asVersion(text, name, version); err != nil {
			return Bundle{}, err
		}
	}
	folder, err := m.dir("bundles", name)
	if err != nil {
		return Bundle{}, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return Bundle{}, err
	}
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		return Bundle{}, err
	}
	return Bundle{Name: name, Folder: folder},
		os.WriteFile(filepath.Join(folder, "manifests", filepath.Base(file)), []byte(text), 0o644)
}

// readCSV finds the ClusterServiceVersion of a bundle.
func readCSV(folder string) (file string, csv operatorsv1alpha1.ClusterServiceVersion, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "*.clusterserviceversion.yaml"))
	if err != nil || len(files) != 1 {
		return "", csv, errors.Join(err, fmt.Errorf("%d ClusterServiceVersions in %s: want one", len(files), folder))
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		return "", csv, err
	}
	if err := yaml.Unmarshal(content, &csv); err != nil {
		return "", csv, fmt.Errorf("reading %s: %w", files[0], err)
	}
	return files[0], csv, nil
}

// asVersion is a ClusterServiceVersion under another name and version. What it
// replaces is said by the catalog alone.
func asVersion(text, name, version string) (string, error) {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		return "", err
	}
	metadata, spec := object["metadata"].(map[string]any), object["spec"].(map[string]any)
	metadata["name"], spec["version"] = name, version
	delete(spec, "replaces")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, "olm.skipRange")
	}
	out, err := yaml.Marshal(object)
	return string(out), err
}

// Catalog writes a catalog with these bundles in it, each replacing the one before
// it in channel stable, and gives its folder. The nodes then fetch no bundle.
func (m *Manager) Catalog(ctx context.Context, name string, bundles ...Bundle) (string, error) {
	folder, err := m.dir("catalogs", name)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "---\nschema: olm.package\nname: %s\ndefaultChannel: %s\n", Package, Channel)
	fmt.Fprintf(&out, "---\nschema: olm.channel\nname: %s\npackage: %s\nentries:\n", Channel, Package)
	for i, bundle := range bundles {
		fmt.Fprintf(&out, "- name: %s\n", bundle.Name)
		if i > 0 {
			fmt.Fprintf(&out, "  replaces: %s\n", bundles[i-1].Name)
		}
	}
	for _, bundle := range bundles {
		rendered, err := m.opm(ctx, "render", bundle.Folder, "--output=yaml")
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "---\n%s", rendered)
	}
	return folder, m.keep(ctx, folder, out.Bytes())
}

// Shipped writes the catalog that `make catalog` makes of these bundles' images.
func (m *Manager) Shipped(ctx context.Context, name string, previous, present Bundle) (string, error) {
	folder, err := m.dir("catalogs", name)
	if err != nil {
		return "", err
	}
	text, err := bundle.Render(ctx, m.OPM, filepath.Join("config", "olm", "catalog.yaml"),
		bundle.Version{Name: "previous", Image: previous.Image, Folder: previous.Folder},
		bundle.Version{Name: "present", Image: present.Image, Folder: present.Folder})
	if err != nil {
		return "", err
	}
	return folder, m.keep(ctx, folder, text)
}

// keep writes a catalog into its folder, and has opm look at it.
func (m *Manager) keep(ctx context.Context, folder string, text []byte) error {
	if err := os.WriteFile(filepath.Join(folder, "catalog.yaml"), text, 0o644); err != nil {
		return err
	}
	if err := open(folder); err != nil {
		return err
	}
	_, err := m.opm(ctx, "validate", folder)
	return err
}

// open lets the user of a pod read a folder, past this process's umask.
func open(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
}

// opm runs opm on this machine. It trusts the cluster's registry.
func (m *Manager) opm(ctx context.Context, args ...string) (string, error) {
	return m.program(ctx, m.OPM, args...)
}

// program runs a program that may ask the registry and the cluster.
func (m *Manager) program(ctx context.Context, name string, args ...string) (string, error) {
	config, err := m.dir("config")
	if err != nil {
		return "", err
	}
	// Without a file that says whose signatures are wanted, opm pulls nothing.
	containers, err := m.dir("config", "containers")
	if err != nil {
		return "", err
	}
	const policy = `{"default": [{"type": "insecureAcceptAnything"}]}`
	if err := os.WriteFile(filepath.Join(containers, "policy.json"), []byte(policy), 0o644); err != nil {
		return "", err
	}
	var out, log bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Stdout, command.Stderr = &out, &log
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+m.Cluster.Authority(), "KUBECONFIG="+m.Cluster.Kubeconfig(), "XDG_CONFIG_HOME="+config)
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s%s", filepath.Base(name), strings.Join(args, " "), err, log.String(), out.String())
	}
	return out.String(), nil
}
