package replicatedstatefulset_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// These tests run against a real API server.

var (
	scheme = runtime.NewScheme()
	server apiserver.Server
	user   client.WithWatch // a user with kubectl
	book   = types.NamespacedName{Namespace: "operators", Name: "stateful-operator-evictions"}
)

func TestAPI(t *testing.T) { apiserver.Run(t, "ReplicatedStatefulSet") }

var _ = BeforeSuite(func(ctx SpecContext) {
	server = apiserver.Start(scheme, v1alpha1.AddToScheme)
	user = server.User
	server.GiveRights(ctx, "replicatedstatefulset-role", "exec-role", "cluster-scoped-role")
	addNode(ctx, "node-1")
	Expect(user.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: book.Namespace}})).To(Succeed())
	for _, verb := range []string{"list", "watch"} {
		Expect(rbac.Allow(ctx, user, book.Namespace, theOperator, verb, "", "configmaps")).To(Succeed())
	}
	server.ServeWebhooks(func(mgr ctrl.Manager) error {
		return webhooks.SetupWebhook(mgr, book, func() string { return "token" }, agentImage)
	})
	askAboutEvictions(ctx)
})

// askAboutEvictions makes the API server call the eviction webhook by URL instead of by Service.
// The test server does not check the token in the path.
func askAboutEvictions(ctx context.Context) {
	at := server.WebhookInstallOptions
	made := replicatedstatefulset.BuildEvictionWebhook(&webhooks.EvictionWebhook{Name: book.Name, Namespaces: policy.Namespaces(book.Namespace, nil)},
		servingcert.Caller{Authority: at.LocalServingCAData, Token: "token"})
	to := &made.Webhooks[0].ClientConfig
	to.URL = ptr.To("https://" + net.JoinHostPort(at.LocalServingHost, strconv.Itoa(at.LocalServingPort)) + webhooks.EvictionPath)
	to.Service = nil
	Expect(user.Create(ctx, made)).To(Succeed())
}

// agentOfOperator is the image of the agent of operators that are started.
var agentOfOperator = fixture.AgentImage

func agentImage(context.Context) (string, error) { return agentOfOperator, nil }

// theOperator has the rights of the roles that are shipped for this kind, and no others.
const theOperator = apiserver.TheOperator

func addNode(ctx context.Context, name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(user.Create(ctx, n)).To(Succeed())
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100"), corev1.ResourceMemory: resource.MustParse("100Gi")} // otherwise no pod on it is resized
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	Expect(user.Status().Update(ctx, n)).To(Succeed())
}

func newNamespace(ctx context.Context) string { return server.NewNamespace(ctx) }

// newSet reads the seed's manifest and applies the changes.
func newSet(namespace string, change ...func(*v1alpha1.ReplicatedStatefulSet)) *v1alpha1.ReplicatedStatefulSet {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("testdata", "seed.yaml"))
	Expect(err).NotTo(HaveOccurred())
	set := &v1alpha1.ReplicatedStatefulSet{}
	Expect(yaml.UnmarshalStrict(text, set)).To(Succeed())
	set.Namespace = namespace
	for _, c := range change {
		c(set)
	}
	return set
}

// clean returns an error's text without the prefix that names the webhook.
func clean(err error) string { return apiserver.Said(err) }

// events returns the reasons of the events in a namespace.
func events(ctx context.Context, namespace string) (reasons []string) {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		reasons = append(reasons, list.Items[i].Reason)
	}
	return reasons
}
