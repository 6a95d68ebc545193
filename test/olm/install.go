package olm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

//go:embed manager.yaml
var managerObjects string

// Install installs or updates OLM in the cluster, and waits until it runs.
func (m *Manager) Install(ctx context.Context) {
	m.load(ctx)
	m.Say("installing OLM …")
	for _, file := range m.customResources(ctx) {
		m.Apply(ctx, m.read(file))
	}
	m.established(ctx)
	m.Apply(ctx, strings.NewReplacer("IMAGE_OF_OLM", m.images.olm, "IMAGE_OF_OPM", m.images.opm).Replace(managerObjects))
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		m.Rolled(ctx, types.NamespacedName{Namespace: Namespace, Name: name})
	}
}

// customResources returns the files of OLM's CRDs in its module.
func (m *Manager) customResources(ctx context.Context) []string {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/operator-lifecycle-manager")
	list.Dir = filepath.Join("tools", "olm")
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := list.Output()
	m.Expect(err).To(gomega.Succeed(), "find OLM's module (run this in the project's folder)")
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "deploy", "chart", "crds", "*.yaml"))
	m.Expect(err).To(gomega.Succeed())
	m.Expect(files).NotTo(gomega.BeEmpty(), "CRDs in OLM's module at %s", out)
	return files
}

// established waits until OLM's kinds are served.
func (m *Manager) established(ctx context.Context) {
	m.Until(ctx, "OLM's kinds", func(ctx context.Context) error {
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := m.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			if crd.Spec.Group == operatorGroup && !apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
				return fmt.Errorf("%s is not established yet", crd.Name)
			}
		}
		return nil
	})
}

// Apply applies all objects of a manifest.
func (m *Manager) Apply(ctx context.Context, text string) {
	objects, err := manifest.Read[*unstructured.Unstructured]([]byte(text))
	m.Expect(err).To(gomega.Succeed())
	m.Expect(manifest.Apply(ctx, m.Client, "test-olm", objects...)).To(gomega.Succeed())
}

// Rolled waits until the rollout of a Deployment is complete.
func (m *Manager) Rolled(ctx context.Context, key types.NamespacedName) {
	m.Until(ctx, key.Name, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := m.Client.Get(ctx, key, &d); err != nil {
			return err
		}
		s, want := d.Status, ptr.Deref(d.Spec.Replicas, 1)
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("%d pods, %d of the current revision, %d available of %d", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, want)
		}
		return nil
	})
}

// MakeNamespace creates a namespace unless it exists.
func (m *Manager) MakeNamespace(ctx context.Context, name string, labels map[string]string) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	m.Expect(client.IgnoreAlreadyExists(m.Client.Create(ctx, ns))).To(gomega.Succeed())
}
