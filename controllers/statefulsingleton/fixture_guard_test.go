package statefulsingleton

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// guard is the API server's own plugin for ValidatingAdmissionPolicies, with our policy and
// binding, and with the StatefulSingletons that it finds.
type guard struct {
	t      testing.TB
	plugin *validating.Plugin
	scheme *runtime.Scheme
}

// theOperator is the only user that may update the status of StatefulSingletons.
const theOperator = "system:serviceaccount:operator-system:manager"

// newGuard returns a guard for these namespaces, or for all.
func newGuard(t testing.TB, watched []string, objects ...*v1.StatefulSingleton) *guard {
	t.Helper()
	klog.SetLogger(logr.Discard())
	g := &guard{t: t, scheme: runtime.NewScheme()}
	if err := clientgoscheme.AddToScheme(g.scheme); err != nil {
		t.Fatal(err)
	}
	policy, binding := children.BuildGuard("operator-system", watched)
	existing := []runtime.Object{policy, binding}
	kind := v1.GroupVersion.WithKind("StatefulSingleton")
	var params []runtime.Object
	namespaces := map[string]bool{"ns": true, "elsewhere": true}
	for _, o := range objects {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		param := &unstructured.Unstructured{Object: content}
		param.SetGroupVersionKind(kind)
		params = append(params, param)
		namespaces[o.Namespace] = true
	}
	for name := range namespaces {
		existing = append(existing, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}})
	}
	resource := v1.GroupVersion.WithResource("statefulsingletons")
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1.GroupVersion})
	mapper.AddSpecific(kind, resource, resource, meta.RESTScopeNamespace)
	client := fake.NewClientset(existing...)
	dynamicClient := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "StatefulSingletonList"}, params...)

	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var err error
	if g.plugin, err = validating.NewPlugin(nil); err != nil {
		t.Fatal(err)
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	initializer.New(client, dynamicClient, shared, authorizer.AuthorizerFunc(statusOnlyByTheOperator), featuregate.NewFeatureGate(),
		compatibility.NewEffectiveVersionFromString("1.37", "", ""), ctx.Done(), mapper).Initialize(g.plugin)
	if err := g.plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	shared.Start(ctx.Done())
	g.waitUntilItSees()
	return g
}

func statusOnlyByTheOperator(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "update" && a.GetResource() == "statefulsingletons" && a.GetSubresource() == "status" && a.GetAPIGroup() == v1.GroupVersion.Group &&
		a.GetNamespace() == "ns" && a.GetUser().GetName() == theOperator {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// waitUntilItSees waits for the plugin's caches.
func (g *guard) waitUntilItSees() {
	for deadline := time.Now().Add(30 * time.Second); !g.plugin.WaitForReady(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatal("the plugin is not ready")
		}
	}
}

// create returns the API server's response to a pod after mutating admission; "" if it is
// admitted.
func (g *guard) create(p *corev1.Pod) string { return g.ask(p, nil, admission.Create, "a-user") }

// update returns the API server's response to a change of a pod.
func (g *guard) update(old, p *corev1.Pod, who string) string {
	return g.ask(p, old, admission.Update, who)
}

func (g *guard) ask(p, old *corev1.Pod, operation admission.Operation, who string) string {
	var before runtime.Object
	if old != nil {
		before = old
	}
	attributes := admission.NewAttributesRecord(p, before, corev1.SchemeGroupVersion.WithKind("Pod"), p.Namespace, p.Name,
		corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, &user.DefaultInfo{Name: who})
	if err := g.plugin.Validate(context.Background(), attributes, admission.NewObjectInterfacesFromScheme(g.scheme)); err != nil {
		return err.Error()
	}
	return ""
}
