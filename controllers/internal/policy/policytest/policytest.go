// Package policytest evaluates ValidatingAdmissionPolicies as the API server does.
package policytest

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

// Cluster is what a policy can refer to.
type Cluster struct {
	// Existing are the policies, their bindings and the namespaces.
	Existing []runtime.Object
	// Dynamic and Mapper find the parameters of the policies.
	Dynamic dynamic.Interface
	Mapper  meta.RESTMapper
	// Authorizer answers the expressions that ask for rights.
	Authorizer authorizer.Authorizer
}

// readyLimit limits the wait until the plugin has read the policies.
const readyLimit = 30 * time.Second

// NewPlugin returns the API server's own plugin for ValidatingAdmissionPolicies, after it has read those of a
// cluster.
func NewPlugin(t testing.TB, in Cluster) *validating.Plugin {
	t.Helper()
	klog.SetLogger(logr.Discard())
	client := fake.NewClientset(in.Existing...)
	plugin, err := validating.NewPlugin(nil)
	if err != nil {
		t.Fatal(err)
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	initializer.New(client, in.Dynamic, shared, in.Authorizer, featuregate.NewFeatureGate(),
		compatibility.NewEffectiveVersionFromString("1.37", "", ""), t.Context().Done(), in.Mapper).Initialize(plugin)
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	shared.Start(t.Context().Done())
	ready := func(context.Context) (bool, error) { return plugin.WaitForReady(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, readyLimit, true, ready); err != nil {
		t.Fatalf("the plugin is not ready: %v", err)
	}
	return plugin
}

// Namespace returns a namespace as the API server stores it.
func Namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
}
