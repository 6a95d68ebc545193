package controllers

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// pathsIn returns the paths of webhooks in rendered manifests, by the names of the webhooks.
func pathsIn(g Gomega, objects []unstructured.Unstructured) map[string]string {
	found := map[string]string{}
	for _, object := range objects {
		if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
			continue
		}
		// Both kinds of configurations have these fields.
		var configuration admissionv1.ValidatingWebhookConfiguration
		g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &configuration)).To(Succeed())
		for _, w := range configuration.Webhooks {
			found[w.Name] = ptr.Deref(w.ClientConfig.Service.Path, "")
		}
	}
	return found
}

// N9: tools that apply the manifests would revert a path in them. The Operator Lifecycle Manager
// has no source for the paths other than its bundle.
func TestN9PathsOfTheManifests(t *testing.T) {
	g := NewWithT(t)
	without := map[string]string{}
	for name := range webhookPaths {
		without[name] = ""
	}
	for folder, want := range map[string]map[string]string{"default": without, "namespaced": without, "olm": webhookPaths} {
		objects, err := manifest.Render(filepath.Join("..", "config", folder))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pathsIn(g, objects)).To(Equal(want), folder)
	}
	objects, err := manifest.ReadFile[unstructured.Unstructured](filepath.Join("..", "config", "webhook", "manifests.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pathsIn(g, objects)).To(Equal(webhookPaths), "the paths of the markers")
}

func TestN9PathsAreKept(t *testing.T) {
	at := func(path *string) admissionv1.WebhookClientConfig {
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Path: path}}
	}
	stored := func() []client.Object {
		return []client.Object{
			&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Webhooks: []admissionv1.MutatingWebhook{
				{Name: "mpod.kb.io", ClientConfig: at(nil)}, {Name: "of-others", ClientConfig: at(ptr.To("/theirs"))}}},
			&admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Webhooks: []admissionv1.ValidatingWebhook{
				{Name: "statefulclusters.enge.me", ClientConfig: at(ptr.To("/old"))}, {Name: "extendedstatefulsets.fissile.cloudfoundry.org"}}},
		}
	}
	for _, row := range []struct {
		name       string
		prefix     string
		known      bool
		isOfOthers bool
		get        error
		fails      bool
		pod, stc   string
	}{
		{"paths with a token", "/secret", true, false, nil, false, "/secret/mutate--v1-pod", "/secret/validate-enge-me-v1alpha1-statefulcluster"},
		{"no token with a mounted certificate", "", true, true, nil, false, "/mutate--v1-pod", "/validate-enge-me-v1alpha1-statefulcluster"},
		{"the token does not exist yet", "", false, false, nil, true, "", "/old"},
		{"paths with a token and without permission", "/secret", true, false, apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New("no")), true, "", "/old"},
		{"no permission where other tools create the configurations", "", true, true, apierrors.NewForbidden(schema.GroupResource{}, "m", errors.New("no")), false, "", "/old"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, writes := NewWithT(t), 0
			cluster := fake.NewClientBuilder().WithObjects(stored()...).Build()
			k := &pathKeeper{mutating: "m", validating: "v", isOfOthers: row.isOfOthers,
				prefix: func() (string, bool) { return row.prefix, row.known },
				live: interceptor.NewClient(cluster, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if row.get != nil {
						return row.get
					}
					return c.Get(ctx, key, object, options...)
				}}),
				writer: interceptor.NewClient(cluster, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
					writes++
					return c.Update(ctx, object, options...)
				}})}
			g.Expect(k.Check(nil)).NotTo(Succeed())
			g.Expect(k.keep(t.Context()) != nil).To(Equal(row.fails))
			g.Expect(k.Check(nil) != nil).To(Equal(row.fails))
			var m admissionv1.MutatingWebhookConfiguration
			var v admissionv1.ValidatingWebhookConfiguration
			g.Expect(cluster.Get(t.Context(), client.ObjectKey{Name: "m"}, &m)).To(Succeed())
			g.Expect(cluster.Get(t.Context(), client.ObjectKey{Name: "v"}, &v)).To(Succeed())
			g.Expect(ptr.Deref(m.Webhooks[0].ClientConfig.Service.Path, "")).To(Equal(row.pod))
			g.Expect(ptr.Deref(m.Webhooks[1].ClientConfig.Service.Path, "")).To(Equal("/theirs"))
			g.Expect(ptr.Deref(v.Webhooks[0].ClientConfig.Service.Path, "")).To(Equal(row.stc))
			before := writes
			g.Expect(k.keep(t.Context()) != nil).To(Equal(row.fails))
			g.Expect(writes).To(Equal(before), "no difference")
		})
	}
	g := NewWithT(t)
	k := &pathKeeper{mutating: "missing", validating: "missing", prefix: func() (string, bool) { return "", true }, live: fake.NewClientBuilder().Build()}
	g.Expect(k.keep(t.Context())).To(Succeed(), "a missing configuration has no paths")
}
