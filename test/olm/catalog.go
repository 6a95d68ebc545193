package olm

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/onsi/gomega"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/test/bundle"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// Package is the name of the operator's package in catalogs.
const Package = "stateful-operator"

// Bundle is one version of the operator as an OLM bundle.
type Bundle struct {
	// Name is the name of its ClusterServiceVersion.
	Name string
	// Folder contains the manifests and the metadata.
	Folder string
	// Image is the reference of the bundle's image, if it was pushed.
	Image string
	// Operator is the operator's image.
	Operator string
}

// Bundle creates a bundle from the bundle in a folder, with another version and another image of the
// operator. If version is empty, the version stays.
func (m *Manager) Bundle(source, version, image string) Bundle {
	file, csv := m.readCSV(source)
	text := strings.ReplaceAll(m.read(file), m.operatorImage(file, csv), image)
	b := Bundle{Name: csv.Name, Operator: image}
	if version != "" {
		b.Name = Package + ".v" + version
		text = m.asVersion(text, b.Name, version)
	}
	b.Folder = m.dir("bundles", b.Name)
	m.Expect(os.RemoveAll(b.Folder)).To(gomega.Succeed())
	m.Expect(os.CopyFS(b.Folder, os.DirFS(source))).To(gomega.Succeed())
	m.write(filepath.Join(b.Folder, "manifests", filepath.Base(file)), text)
	return b
}

// operatorImage returns the only image of the operator's Deployments.
func (m *Manager) operatorImage(file string, csv operatorsv1alpha1.ClusterServiceVersion) string {
	images := sets.New[string]()
	for _, deployment := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			images.Insert(container.Image)
		}
	}
	m.Expect(images).To(gomega.HaveLen(1), "images in the Deployments of %s", file)
	return images.UnsortedList()[0]
}

// readCSV finds and decodes the ClusterServiceVersion of a bundle.
func (m *Manager) readCSV(folder string) (file string, csv operatorsv1alpha1.ClusterServiceVersion) {
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "*.clusterserviceversion.yaml"))
	m.Expect(err).To(gomega.Succeed())
	m.Expect(files).To(gomega.HaveLen(1), "ClusterServiceVersions in %s", folder)
	m.Expect(yaml.Unmarshal([]byte(m.read(files[0])), &csv)).To(gomega.Succeed(), "read %s", files[0])
	return files[0], csv
}

// asVersion returns a ClusterServiceVersion with another name and version. The replaced version is only
// specified by the catalog.
func (m *Manager) asVersion(text, name, version string) string {
	var object map[string]any
	m.Expect(yaml.Unmarshal([]byte(text), &object)).To(gomega.Succeed())
	metadata, spec := object["metadata"].(map[string]any), object["spec"].(map[string]any)
	metadata["name"], spec["version"] = name, version
	delete(spec, "replaces")
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, "olm.skipRange")
	}
	out, err := yaml.Marshal(object)
	m.Expect(err).To(gomega.Succeed())
	return string(out)
}

// ServeVersions serves a catalog with two versions of the operator: the project's bundle with a local
// image, and an earlier version of the same bundle. Their images contain the same program under two
// names.
func (m *Manager) ServeVersions(ctx context.Context, catalog string) (earlier, present Bundle) {
	m.Say("building the operator …")
	operator := program.Operator("")
	present = m.Bundle("bundle", "", m.Load(ctx, operator))
	operator.Ref = present.Operator + "-earlier"
	earlier = m.Bundle("bundle", "0.0.9", m.Load(ctx, operator))
	m.Serve(ctx, catalog, m.Catalog(ctx, catalog, earlier, present))
	return earlier, present
}

// Catalog writes a catalog with these bundles, each replacing the previous one in channel stable, and
// returns its folder. The bundles are embedded, so that the nodes pull no bundle images.
func (m *Manager) Catalog(ctx context.Context, name string, bundles ...Bundle) string {
	var out strings.Builder
	fmt.Fprintf(&out, "---\nschema: olm.package\nname: %s\ndefaultChannel: %s\n", Package, Channel)
	fmt.Fprintf(&out, "---\nschema: olm.channel\nname: %s\npackage: %s\nentries:\n", Channel, Package)
	for i, bundle := range bundles {
		fmt.Fprintf(&out, "- name: %s\n", bundle.Name)
		if i > 0 {
			fmt.Fprintf(&out, "  replaces: %s\n", bundles[i-1].Name)
		}
	}
	for _, bundle := range bundles {
		fmt.Fprintf(&out, "---\n%s", m.program(ctx, m.OPM, "render", bundle.Folder, "--output=yaml"))
	}
	return m.keep(ctx, name, out.String())
}

// FromTemplate writes the catalog that `make catalog` would generate from these bundles' images if both
// were released.
func (m *Manager) FromTemplate(ctx context.Context, name string, previous, present Bundle) string {
	text, err := bundle.Render(ctx, m.OPM, filepath.Join("test", "olm", "testdata", "catalog.yaml"),
		bundle.Version{Name: "previous", Image: previous.Image, Folder: previous.Folder},
		bundle.Version{Name: "present", Image: present.Image, Folder: present.Folder})
	m.Expect(err).To(gomega.Succeed())
	return m.keep(ctx, name, string(text))
}

// keep writes a catalog into a folder that the user of a pod can read, regardless of this process's
// umask, and validates it with opm.
func (m *Manager) keep(ctx context.Context, name, text string) (folder string) {
	folder = m.dir("catalogs", name)
	file := filepath.Join(folder, "catalog.yaml")
	m.write(file, text)
	m.Expect(os.Chmod(folder, 0o755)).To(gomega.Succeed())
	m.Expect(os.Chmod(file, 0o644)).To(gomega.Succeed())
	m.program(ctx, m.OPM, "validate", folder)
	return folder
}

// program runs a program with access to the registry, which it trusts, and to the cluster. It returns
// the output.
func (m *Manager) program(ctx context.Context, name string, args ...string) string {
	// Without a signature policy opm pulls no images.
	m.write(filepath.Join(m.dir("config", "containers"), "policy.json"), `{"default": [{"type": "insecureAcceptAnything"}]}`)
	var out, log bytes.Buffer
	command := exec.CommandContext(ctx, name, args...)
	command.Stdout, command.Stderr = &out, &log
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+m.Cluster.Authority(), "KUBECONFIG="+m.Cluster.Kubeconfig(), "XDG_CONFIG_HOME="+m.dir("config"))
	m.Expect(command.Run()).To(gomega.Succeed(), "%s %s: %s%s", filepath.Base(name), strings.Join(args, " "), &log, &out)
	return out.String()
}
