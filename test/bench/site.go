package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// The contestants use service accounts of kube-system, as the StatefulSet controller does. The API
// server's priority and fairness then treats all three equally. An administrator's requests would be
// exempt.
const (
	operatorAccount = "stateful-operator"
	poolAccount     = "bare-pool"
	operatorUser    = "system:serviceaccount:kube-system:" + operatorAccount
)

// simulatedNodes is the number of nodes that kwok simulates. Pods set their node, so capacity is not
// checked.
const simulatedNodes = 4

// site is the environment of the benchmarks: a control plane with simulated nodes, or a cluster of real
// nodes.
type site struct {
	*results
	size    sizes
	keep    bool
	onNodes bool
	folder  string // temporary
	cluster *cluster.Cluster
	// client and admin have an administrator's rights.
	client client.Client
	admin  *kubernetes.Clientset

	// With simulated nodes: the client of the bare pool, and the operator's real program with its
	// access to the cluster.
	pool     *kubernetes.Clientset
	operator struct{ path, kubeconfig, token string }

	// With real nodes: the image of the program that logs its runs, and the applications.
	witness string
	open    []*application
}

func (s *site) boot(ctx context.Context) {
	s.folder = must(os.MkdirTemp("", "bench-"))
	root := must(output(ctx, "go", "list", "-m", "-f", "{{.Dir}}"))
	check(os.Chdir(root)) // paths of packages and manifests are relative to it
	if s.onNodes {
		s.bootNodes(ctx)
		return
	}
	say("Building the operator and booting a control plane with %d simulated nodes", simulatedNodes)
	s.operator.path = filepath.Join(s.folder, "stateful-operator")
	must(output(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", s.operator.path, "."))
	s.connect(must(cluster.UpControlPlane(ctx, cluster.Options{
		Name: clusterName, Log: os.Stdout,
		// Off by default in Kubernetes 1.36; without it a StatefulSet ignores maxUnavailable.
		FeatureGates: map[string]bool{"MaxUnavailableStatefulSet": true},
	})))
	check(s.cluster.StartKwok(ctx, simulatedNodes))
	within("installing the CRDs", func() {
		must(envtest.InstallCRDs(s.cluster.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join("config", "crd", "bases")}, ErrorIfPathMissing: true}))
	})
	s.makeAccounts(ctx)
	s.warmUp(ctx)
}

// warmUp runs every contestant briefly before the measurements. Otherwise the API server would compile
// its patches, grow its heap and open its connections during the first one.
func (s *site) warmUp(ctx context.Context) {
	step("warming up")
	for i, c := range contestants {
		within("warming up with "+c.name, func() { s.lap(ctx, c, fmt.Sprintf("warm-%d", i), shape{4, 50}) })
	}
}

func (s *site) connect(c *cluster.Cluster) {
	s.cluster = c
	s.client = must(client.New(c.Config(), client.Options{Scheme: must(controllers.Scheme())}))
	s.admin = must(kubernetes.NewForConfig(protobuf(c.Config())))
}

// protobuf sets the content type that the built-in controllers use.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func (s *site) makeAccounts(ctx context.Context) {
	config := protobuf(rest.AnonymousClientConfig(s.cluster.Config()))
	config.BearerToken, config.QPS = s.makeAccount(ctx, poolAccount), -1
	s.pool = must(kubernetes.NewForConfig(config))
	s.operator.token = s.makeAccount(ctx, operatorAccount)
	s.operator.kubeconfig = filepath.Join(s.folder, "kubeconfig")
	file := clientcmdapi.NewConfig()
	file.CurrentContext = clusterName
	file.Contexts[clusterName] = &clientcmdapi.Context{Cluster: clusterName, AuthInfo: operatorAccount}
	file.Clusters[clusterName] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[operatorAccount] = &clientcmdapi.AuthInfo{Token: s.operator.token}
	check(clientcmd.WriteToFile(*file, s.operator.kubeconfig))
}

func (s *site) makeAccount(ctx context.Context, name string) (token string) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}}
	within("creating the service account "+name, func() {
		check(s.client.Create(ctx, account))
		check(s.client.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: metav1.NamespaceSystem, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}))
		check(s.client.SubResource("token").Create(ctx, account, request))
	})
	return request.Status.Token
}

// close keeps the logs on request. It can be called before anything was created.
func (s *site) close() {
	for _, a := range s.open {
		a.folder.Close()
	}
	if !s.keep {
		os.RemoveAll(s.folder)
		return
	}
	if s.cluster != nil {
		_, err := output(context.Background(), "cp", "-r", filepath.Dir(s.cluster.AuditLog()), s.folder)
		if s.onNodes {
			text, asked := s.kubectl(context.Background(), operatorNamespace, "logs", "-l", "control-plane in (controller-manager, webhook, installer)", "--tail=-1", "--prefix")
			err = errors.Join(err, asked, os.WriteFile(filepath.Join(s.folder, "operator.log"), []byte(text), 0o644))
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("logs are kept in", s.folder)
}

// makeNamespace creates a namespace and waits until pods can be created in it.
func (s *site) makeNamespace(ctx context.Context, name string) {
	check(s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	waitFor(ctx, time.Minute, "the service account of "+name, func() (bool, string) {
		err := s.client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		check(client.IgnoreNotFound(err))
		return err == nil, ""
	})
}

// clearNamespaces deletes namespaces and waits until they are gone, so that every contestant starts in
// the same environment.
func (s *site) clearNamespaces(ctx context.Context, names ...string) {
	for _, name := range names {
		s.empty(ctx, name)
		check(s.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, name := range names {
		waitFor(ctx, 10*time.Minute, "the end of "+name, func() (bool, string) {
			var namespace corev1.Namespace
			err := s.client.Get(ctx, client.ObjectKey{Name: name}, &namespace)
			check(client.IgnoreNotFound(err))
			return apierrors.IsNotFound(err), remainder(&namespace)
		})
	}
	pause(ctx, 2*time.Second)
}

// empty deletes objects whose deletion with the namespace is slow: the sets, which would recreate their
// pods, then the pods, and the claims, which are protected while pods use them by a controller with one
// worker.
func (s *site) empty(ctx context.Context, name string) {
	inside := client.InNamespace(name)
	check(s.client.DeleteAllOf(ctx, &v1alpha1.StatefulCluster{}, inside))
	check(s.client.DeleteAllOf(ctx, &appsv1.StatefulSet{}, inside))
	// One by one: deletecollection uses one worker of the API server, and thousands of objects take
	// longer than the request timeout.
	var pods corev1.PodList
	check(s.client.List(ctx, &pods, inside, cached))
	check(spread(ctx, len(pods.Items), func(i int) error {
		return client.IgnoreNotFound(s.client.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))
	}))
	var claims corev1.PersistentVolumeClaimList
	check(s.client.List(ctx, &claims, inside, cached))
	unguard := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	check(spread(ctx, len(claims.Items), func(i int) error {
		err := s.client.Patch(ctx, &claims.Items[i], unguard)
		if err == nil {
			err = s.client.Delete(ctx, &claims.Items[i])
		}
		return client.IgnoreNotFound(err)
	}))
}

// cached allows the API server to serve a list from its cache.
var cached = &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}

// remainder returns the namespace's message about remaining content.
func remainder(namespace *corev1.Namespace) string {
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}
