package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

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

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// The contestants are service accounts of kube-system, as the StatefulSet
// controller is: the API server's priority and fairness then treats all three
// alike, while it would let an administrator pass everybody.
const (
	operatorAccount = "stateful-operator"
	poolAccount     = "bare-pool"
	operatorUser    = "system:serviceaccount:kube-system:" + operatorAccount
)

// simulatedNodes is how many nodes kwok plays. Pods name theirs, so no room is
// counted.
const simulatedNodes = 4

// site is where everything is measured.
type site struct {
	cluster *cluster.Cluster
	folder  string // temporary
	keep    bool
	// admin watches and cleans up; objects is the same for our kind.
	admin   *kubernetes.Clientset
	objects client.Client
	// pool is the bare loop's client.
	pool *kubernetes.Clientset
	// operator is what the operator's process needs.
	operator operatorProgram
}

// operatorProgram is the operator's real program and how it reaches the cluster.
type operatorProgram struct {
	path, kubeconfig, token string
}

func openSite(ctx context.Context, keep bool) (*site, error) {
	folder, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	s := &site{folder: folder, keep: keep}
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *site) open(ctx context.Context) error {
	say("Building the operator and booting a control plane with %d simulated nodes", simulatedNodes)
	root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	s.operator.path = filepath.Join(s.folder, "stateful-operator")
	if _, err := output(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", s.operator.path, root); err != nil {
		return err
	}
	s.cluster, err = cluster.UpControlPlane(ctx, cluster.Options{
		Name: clusterName, Log: os.Stdout,
		// Off by default in Kubernetes 1.36; without it a StatefulSet ignores maxUnavailable.
		FeatureGates: map[string]bool{"MaxUnavailableStatefulSet": true},
	})
	if err != nil {
		return err
	}
	if err := s.cluster.StartKwok(ctx, simulatedNodes); err != nil {
		return err
	}
	if err := s.connect(); err != nil {
		return err
	}
	if _, err := envtest.InstallCRDs(s.cluster.Config(), envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfPathMissing: true,
	}); err != nil {
		return fmt.Errorf("installing the CRDs: %w", err)
	}
	if err := s.makeAccounts(ctx); err != nil {
		return err
	}
	return s.warmUp(ctx)
}

// warmUp has every contestant do a little before anything is measured: the
// first one would find an API server that has not compiled its patches, grown
// its heap or opened its connections.
func (s *site) warmUp(ctx context.Context) error {
	step("warming up")
	for i, c := range contestants {
		if _, err := s.lap(ctx, c, fmt.Sprintf("warm-%d", i), shape{4, 50}); err != nil {
			return fmt.Errorf("warming up with %s: %w", c.name, err)
		}
	}
	return nil
}

func (s *site) connect() error {
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	if s.objects, err = client.New(s.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	s.admin, err = kubernetes.NewForConfig(protobuf(s.cluster.Config()))
	return err
}

// protobuf is how the built-in controllers talk to the API server.
func protobuf(config *rest.Config) *rest.Config {
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return config
}

func (s *site) makeAccounts(ctx context.Context) error {
	tokens := map[string]string{}
	for _, name := range []string{operatorAccount, poolAccount} {
		token, err := s.makeAccount(ctx, name)
		if err != nil {
			return fmt.Errorf("making the account %s: %w", name, err)
		}
		tokens[name] = token
	}
	config := protobuf(rest.AnonymousClientConfig(s.cluster.Config()))
	config.BearerToken, config.QPS = tokens[poolAccount], -1
	var err error
	if s.pool, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	s.operator.token = tokens[operatorAccount]
	s.operator.kubeconfig = filepath.Join(s.folder, "kubeconfig")
	return clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: clusterName,
		Contexts:       map[string]*clientcmdapi.Context{clusterName: {Cluster: clusterName, AuthInfo: operatorAccount}},
		Clusters: map[string]*clientcmdapi.Cluster{clusterName: {
			Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{operatorAccount: {Token: s.operator.token}},
	}, s.operator.kubeconfig)
}

func (s *site) makeAccount(ctx context.Context, name string) (token string, err error) {
	accounts := s.admin.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	meta := metav1.ObjectMeta{Name: name}
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if _, err := s.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: metav1.NamespaceSystem, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](24 * 3600)}}
	if request, err = accounts.CreateToken(ctx, name, request, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

func (s *site) close() {
	if !s.keep {
		os.RemoveAll(s.folder)
		return
	}
	if s.cluster != nil {
		if _, err := output(context.Background(), "cp", "-r", filepath.Dir(s.cluster.AuditLog()), s.folder); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("logs are kept in", s.folder)
}

// makeNamespace makes an empty namespace in which pods can be created.
func (s *site) makeNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := s.admin.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	return waitFor(ctx, time.Minute, "the service account of "+name, func() (bool, string, error) {
		_, err := s.admin.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, "", nil
		}
		return err == nil, "", err
	})
}

// clearNamespaces deletes namespaces and waits until nothing of them is left,
// so that the next contestant finds the machine as the last one did.
func (s *site) clearNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.empty(ctx, name); err != nil {
			return err
		}
		if err := s.admin.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := waitFor(ctx, 10*time.Minute, "the end of "+name, func() (bool, string, error) {
			namespace, err := s.admin.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return true, "", nil
			}
			return false, remainder(namespace), err
		})
		if err != nil {
			return err
		}
	}
	return pause(ctx, 2*time.Second)
}

// empty deletes what takes long to delete with its namespace: the sets, which
// would make their pods anew, the pods, and the claims, which a controller of
// one worker guards while they have pods.
func (s *site) empty(ctx context.Context, name string) error {
	if err := s.objects.DeleteAllOf(ctx, emptySet(), client.InNamespace(name)); err != nil {
		return err
	}
	if err := s.admin.AppsV1().StatefulSets(name).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		return err
	}
	// One by one, because a collection is deleted by one worker of the API
	// server, and thousands take longer than a request may.
	if err := s.deletePods(ctx, name); err != nil {
		return err
	}
	return s.deleteClaims(ctx, name)
}

func (s *site) deletePods(ctx context.Context, namespace string) error {
	pods := s.admin.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	return spread(ctx, len(list.Items), func(i int) error {
		return client.IgnoreNotFound(pods.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
	})
}

func (s *site) deleteClaims(ctx context.Context, namespace string) error {
	claims := s.admin.CoreV1().PersistentVolumeClaims(namespace)
	list, err := claims.List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	unguard := []byte(`{"metadata":{"finalizers":null}}`)
	return spread(ctx, len(list.Items), func(i int) error {
		name := list.Items[i].Name
		if _, err := claims.Patch(ctx, name, types.MergePatchType, unguard, metav1.PatchOptions{}); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(claims.Delete(ctx, name, metav1.DeleteOptions{}))
	})
}

// remainder is what the namespace says it still holds.
func remainder(namespace *corev1.Namespace) string {
	for _, c := range namespace.Status.Conditions {
		if c.Type == corev1.NamespaceContentRemaining && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

func output(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, args[0], args[1:]...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}

// progressInterval is the longest that nothing is printed.
const progressInterval = 5 * time.Second

// waitFor asks until done, and says every few seconds how it stands.
func waitFor(ctx context.Context, timeout time.Duration, what string, done func() (bool, string, error)) error {
	began, said := time.Now(), time.Now()
	for {
		ok, state, err := done()
		if ok || err != nil {
			return err
		}
		if time.Since(began) > timeout {
			return fmt.Errorf("%s does not come within %s: %s", what, timeout, state)
		}
		if time.Since(said) >= progressInterval {
			said = time.Now()
			step("waiting for %s since %s %s", what, time.Since(began).Round(time.Second), state)
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return errors.New("interrupted")
	case <-time.After(d):
		return nil
	}
}
