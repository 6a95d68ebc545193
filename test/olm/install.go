package olm

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

//go:embed manager.yaml
var managerObjects string

const owner = client.FieldOwner("test-olm")

// Install brings OLM into the cluster, or makes what is there what it should be,
// and waits until it runs.
func (m *Manager) Install(ctx context.Context) error {
	if err := m.load(ctx); err != nil {
		return err
	}
	m.Say("installing OLM …")
	crds, err := customResources(ctx)
	if err != nil {
		return err
	}
	for _, file := range crds {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := m.Apply(ctx, string(content)); err != nil {
			return err
		}
	}
	if err := m.established(ctx); err != nil {
		return err
	}
	objects := strings.NewReplacer("IMAGE_OF_OLM", m.images.olm, "IMAGE_OF_OPM", m.images.opm).Replace(managerObjects)
	if err := m.Apply(ctx, objects); err != nil {
		return err
	}
	for _, name := range []string{"olm-operator", "catalog-operator"} {
		if err := m.Rolled(ctx, types.NamespacedName{Namespace: Namespace, Name: name}); err != nil {
			return err
		}
	}
	return nil
}

// customResources are the files of OLM's own CRDs, in its module.
func customResources(ctx context.Context) ([]string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/operator-lifecycle-manager")
	list.Dir = filepath.Join("tools", "olm")
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("finding OLM's module (run this in the project's folder): %w", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "deploy", "chart", "crds", "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no CRDs in OLM's module at %s", out)
	}
	return files, err
}

func (m *Manager) established(ctx context.Context) error {
	return m.Until(ctx, "OLM's kinds", func(ctx context.Context) error {
		var list apiextensionsv1.CustomResourceDefinitionList
		if err := m.Client.List(ctx, &list); err != nil {
			return err
		}
		for i := range list.Items {
			crd := &list.Items[i]
			served := false
			for _, c := range crd.Status.Conditions {
				served = served || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
			}
			if crd.Spec.Group == "operators.coreos.com" && !served {
				return fmt.Errorf("%s is not served yet", crd.Name)
			}
		}
		return nil
	})
}

// Apply applies every object of a text.
func (m *Manager) Apply(ctx context.Context, text string) error {
	objects, err := manifest.Read[unstructured.Unstructured]([]byte(text))
	if err != nil {
		return err
	}
	for _, object := range objects {
		object.SetCreationTimestamp(metav1.Time{})
		unstructured.RemoveNestedField(object.Object, "status")
		err = m.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&object), owner, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// Rolled waits until a rollout of a Deployment is complete.
func (m *Manager) Rolled(ctx context.Context, key types.NamespacedName) error {
	return m.Until(ctx, key.Name, func(ctx context.Context) error {
		var d appsv1.Deployment
		if err := m.Client.Get(ctx, key, &d); err != nil {
			return err
		}
		s, want := d.Status, int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != want || s.Replicas != want || s.AvailableReplicas != want {
			return fmt.Errorf("%d pods, %d of the present revision, %d available of %d", s.Replicas, s.UpdatedReplicas, s.AvailableReplicas, want)
		}
		return nil
	})
}

// MakeNamespace makes a namespace; an existing one gets the labels.
func (m *Manager) MakeNamespace(ctx context.Context, name string, labels map[string]string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	err := m.Client.Create(ctx, ns)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
