package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

const namespace = "stateful-operator-system"

// installation is a rendered installation: the operator and its monitoring.
type installation struct {
	t       *testing.T
	objects []unstructured.Unstructured
}

// beside returns an installation with the monitoring component added, as in docs/install.md.
func beside(t *testing.T, folder string) installation {
	t.Helper()
	over, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	relative := func(to string) string {
		path, err := filepath.Abs(filepath.Join(config, to))
		if err == nil {
			path, err = filepath.Rel(over, path)
		}
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	writeYAML(t, filepath.Join(over, "kustomization.yaml"), types.Kustomization{Resources: []string{relative(folder)}, Components: []string{relative("monitoring")}})
	return rendered(t, over)
}

func rendered(t *testing.T, folders ...string) installation {
	t.Helper()
	all := installation{t: t}
	for _, folder := range folders {
		objects, err := manifest.Render(folder)
		if err != nil {
			t.Fatal(err)
		}
		all.objects = append(all.objects, objects...)
	}
	return all
}

// named finds an object and decodes it.
func (i installation) named(kind, name string, into any) {
	i.t.Helper()
	for _, object := range i.objects {
		if object.GetKind() != kind || object.GetName() != name {
			continue
		}
		if in := object.GetNamespace(); in != "" && in != namespace {
			i.t.Fatalf("%s %s is in namespace %s", kind, name, in)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			i.t.Fatal(err)
		}
		return
	}
	i.t.Fatalf("no %s %s", kind, name)
}

// endpoint has the fields of a ServiceMonitor's endpoint that are checked.
type endpoint struct {
	Port          string
	Authorization struct{ Credentials corev1.SecretKeySelector }
	TLSConfig     struct {
		ServerName string
		CA         struct{ Secret corev1.SecretKeySelector }
	}
}

type serviceMonitor struct {
	Metadata struct{ Namespace string }
	Spec     struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []endpoint
	}
}

// scraped returns the operator's scrape endpoint, and the Service that it selects.
func (i installation) scraped() (endpoint, corev1.Service) {
	i.t.Helper()
	g := NewWithT(i.t)
	var monitor serviceMonitor
	var found []corev1.Service
	for _, object := range i.objects {
		if object.GetKind() == "ServiceMonitor" {
			text, err := json.Marshal(object.Object)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(json.Unmarshal(text, &monitor)).To(Succeed())
		}
	}
	g.Expect(monitor.Metadata.Namespace).To(Equal(namespace))
	g.Expect(monitor.Spec.Endpoints).To(HaveLen(1))
	for _, object := range i.objects {
		selected := labels.SelectorFromSet(monitor.Spec.Selector.MatchLabels).Matches(labels.Set(object.GetLabels()))
		if object.GetKind() == "Service" && selected {
			var service corev1.Service
			i.named("Service", object.GetName(), &service)
			found = append(found, service)
		}
	}
	g.Expect(found).To(HaveLen(1), "Services that the monitor selects")
	return monitor.Spec.Endpoints[0], found[0]
}

// mayScrape expects that the credentials belong to an account with the right to read metrics.
func (i installation) mayScrape(credentials corev1.SecretKeySelector) {
	i.t.Helper()
	g := NewWithT(i.t)
	var token corev1.Secret
	i.named("Secret", credentials.Name, &token)
	g.Expect(credentials.Key).To(Equal(corev1.ServiceAccountTokenKey))
	g.Expect(token.Type).To(Equal(corev1.SecretTypeServiceAccountToken))
	account := token.Annotations[corev1.ServiceAccountNameKey]
	i.named("ServiceAccount", account, &corev1.ServiceAccount{})
	var binding rbacv1.ClusterRoleBinding
	i.named("ClusterRoleBinding", account, &binding)
	g.Expect(binding.Subjects).To(Equal([]rbacv1.Subject{{Kind: "ServiceAccount", Name: account, Namespace: namespace}}))
	var role rbacv1.ClusterRole
	i.named("ClusterRole", binding.RoleRef.Name, &role)
	g.Expect(role.Rules).To(Equal([]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}), "only the Services of the operator")
}

// shown expects that each dashboard is in a ConfigMap that Grafana's sidecar selects, and that kubectl
// can apply it.
func (i installation) shown() {
	i.t.Helper()
	g := NewWithT(i.t)
	files, err := filepath.Glob(filepath.Join(config, "monitoring", "dashboards", "*.json"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		name := filepath.Base(file)
		var shown corev1.ConfigMap
		i.named("ConfigMap", "stateful-operator-dashboard-"+name[:len(name)-len(".json")], &shown)
		g.Expect(shown.Namespace).To(Equal(namespace))
		g.Expect(shown.Labels).To(HaveKeyWithValue("grafana_dashboard", "1"))
		g.Expect(shown.Data).To(Equal(map[string]string{name: string(text)}))
		g.Expect(len(text)).To(BeNumerically("<=", 64<<10), "of the 256 KiB in which kubectl keeps a copy")
	}
}

func TestMonitoringFindsTheOperator(t *testing.T) {
	apart := []string{filepath.Join(config, "default"), filepath.Join(config, "default", "monitoring")}
	for way, i := range map[string]installation{
		"in addition to default": beside(t, "default"), "in addition to namespaced": beside(t, "namespaced"), "applied later": rendered(t, apart...),
	} {
		t.Run(way, func(t *testing.T) {
			g := NewWithT(t)
			i.t = t
			endpoint, service := i.scraped()
			g.Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", endpoint.Port)))
			g.Expect(endpoint.TLSConfig.ServerName).To(Equal(service.Name + "." + namespace + ".svc"))
			i.named("Secret", endpoint.TLSConfig.CA.Secret.Name, &corev1.Secret{})
			g.Expect(endpoint.TLSConfig.CA.Secret.Key).To(Equal("ca.crt"))
			i.mayScrape(endpoint.Authorization.Credentials)
			i.shown()
			jobs := regexp.MustCompile(`job="([^"]+)"`)
			for _, r := range alertsByName(t) {
				for _, job := range jobs.FindAllStringSubmatch(r.Expr, -1) {
					g.Expect(job[1]).To(Equal(service.Name), r.Alert)
				}
			}
		})
	}
}

// TestMonitoringFindsTheOperatorOfOLM verifies the monitoring with OLM. The certificate, its Secret
// and its Service are created by OLM and have OLM's names: <deployment>-service, and <service>-cert
// with olmCAKey.
func TestMonitoringFindsTheOperatorOfOLM(t *testing.T) {
	g := NewWithT(t)
	i := rendered(t, filepath.Join(config, "olm"), filepath.Join(config, "olm", "monitoring"))
	endpoint, service := i.scraped()
	g.Expect(service.Spec.Ports).To(ContainElement(HaveField("Name", endpoint.Port)))
	i.mayScrape(endpoint.Authorization.Credentials)
	i.shown()
	var webhook, controllers unstructured.Unstructured
	i.named("Deployment", "stateful-operator-webhook", &webhook.Object)
	g.Expect(endpoint.TLSConfig.ServerName).To(Equal(webhook.GetName() + "-service." + namespace + ".svc"))
	g.Expect(endpoint.TLSConfig.CA.Secret).To(Equal(corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: webhook.GetName() + "-service-cert"}, Key: "olmCAKey"}))
	i.named("Deployment", "stateful-operator-controller-manager", &controllers.Object)
	volumes, _, err := unstructured.NestedSlice(controllers.Object, "spec", "template", "spec", "volumes")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(volumes).To(ContainElement(HaveKeyWithValue("secret", HaveKeyWithValue("secretName", endpoint.TLSConfig.CA.Secret.Name))))
}
