package escalation

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// theft is a request with the token of an account or user, or without credentials. The API server's error must
// contain blocked. If blocked is "", the request must succeed, which shows that nothing else blocks it.
type theft struct {
	name    string
	who     []string // users
	do      func(context.Context, loot) error
	blocked string
}

// loot holds the clients of an actor.
type loot struct {
	client.Client
	core kubernetes.Interface
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
}

// foreign is the name of a finalizer and of an annotation that the operator does not own.
const foreign = "example.com/foreign"

// held returns a pod with the given finalizers, and with the finalizer and annotation foreign.
func held(namespace, name string, finalizers ...string) *corev1.Pod {
	p := pod(namespace, name)
	p.Finalizers = append(p.Finalizers, append(finalizers, foreign)...)
	p.Annotations = map[string]string{foreign: "a"}
	return p
}

func service(namespace string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 1}}}}
}

func claim(namespace string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there", Finalizers: []string{"kubernetes.io/pvc-protection"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func statefulSet(namespace string) *appsv1.StatefulSet {
	labels := map[string]string{"app": "there"}
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}, Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("", "").Spec},
	}}
}

func creates(make func() client.Object, how ...client.CreateOption) func(context.Context, loot) error {
	return func(ctx context.Context, l loot) error { return l.Create(ctx, make(), how...) }
}

func patches(make func() client.Object, text string) func(context.Context, loot) error {
	return func(ctx context.Context, l loot) error {
		return l.Patch(ctx, make(), client.RawPatch(types.MergePatchType, []byte(text)))
	}
}

// applies returns a request that creates or changes a ConfigMap of the operator's namespace.
func applies(name string) func(context.Context, loot) error {
	return func(ctx context.Context, l loot) error {
		return l.Apply(ctx, corev1apply.ConfigMap(name, operatorNamespace).WithData(map[string]string{"a": "b"}), client.FieldOwner("thief"), client.ForceOwnership)
	}
}

func readsSecret(namespace string) func(context.Context, loot) error {
	return func(ctx context.Context, l loot) error {
		return l.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "there"}, &corev1.Secret{})
	}
}

func exec(namespace, name string) func(context.Context, loot) error {
	return func(ctx context.Context, l loot) error {
		return l.core.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(name).SubResource("exec").
			Param("command", "id").Param("container", "a").Param("stdout", "true").Do(ctx).Error()
	}
}

var (
	controllersToken = accountOf("controller-manager")
	webhooksToken    = accountOf("webhook")
	installerToken   = accountOf("installer")
	everyToken       = []string{controllersToken, webhooksToken, installerToken}
	workers          = []string{controllersToken, webhooksToken}
)

// Users that only have rights in the tenant's namespace.
const (
	namespaceEditor = "namespace-editor"
	podCreator      = "pod-creator"
)

const (
	forbidden   = "is forbidden: User"
	ownAccount  = "change nothing in namespaces kube-system and stateful-operator-system"
	dryRunsOnly = "create objects by dry run only"
)

var thefts = []theft{
	{"a pod in kube-system", []string{controllersToken}, creates(func() client.Object { return pod(metav1.NamespaceSystem, "new") }), ownAccount},
	{"a pod in the operator's namespace", []string{controllersToken}, creates(func() client.Object { return pod(operatorNamespace, "new") }), ownAccount},
	{"a Secret in kube-system", []string{controllersToken}, patches(func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "there"}}
	}, `{"stringData": {"a": "b"}}`), ownAccount},
	{"another image in a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"spec": {"containers": [{"name": "a", "image": "mine"}]}}`), ownAccount},
	{"deleting a pod of kube-system", []string{controllersToken}, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, pod(metav1.NamespaceSystem, "there"))
	}, ownAccount},
	{"a command in a pod of kube-system", []string{controllersToken}, exec(metav1.NamespaceSystem, "there"), ownAccount},
	{"a command in a pod of the operator", []string{controllersToken}, exec(operatorNamespace, "there"), ownAccount},
	{"removing the finalizer of a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "singleton") },
		`{"metadata": {"annotations": {"`+statefulsingletonv1.AnnotationGrant+`": "b"}, "finalizers": ["`+foreign+`"]}}`), ""},
	{"removing the finalizer of a member in kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "member") },
		`{"metadata": {"finalizers": ["`+foreign+`"]}}`), ""},
	{"removing the finalizer of a pod of the operator's namespace", []string{controllersToken}, patches(func() client.Object { return pod(operatorNamespace, "singleton") },
		`{"metadata": {"annotations": {"`+statefulsingletonv1.AnnotationGrant+`": "b"}, "finalizers": ["`+foreign+`"]}}`), ""},
	{"removing another finalizer of a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"finalizers": null}}`), ownAccount},
	{"removing another finalizer of a pod of kube-system along with the operator's", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "held") },
		`{"metadata": {"finalizers": null}}`), ownAccount},
	{"adding a finalizer to a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"finalizers": ["`+foreign+`", "`+statefulsingletonv1.FinalizerPod+`"]}}`), ownAccount},
	{"adding an annotation to a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"annotations": {"a": "b"}}}`), ownAccount},
	{"changing an annotation of a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"annotations": {"`+foreign+`": "b"}}}`), ownAccount},
	{"removing an annotation of a pod of kube-system", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"annotations": {"`+foreign+`": null}}}`), ownAccount},
	{"changing an annotation of a pod of kube-system along with a grant", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "held") },
		`{"metadata": {"annotations": {"`+statefulsingletonv1.AnnotationGrant+`": "b", "`+foreign+`": "b"}}}`), ownAccount},
	{"an annotation of a pod of the operator", []string{controllersToken}, patches(func() client.Object { return pod(operatorNamespace, "there") },
		`{"metadata": {"annotations": {"a": "b"}}}`), ownAccount},
	{"an annotation of a Service of kube-system", []string{controllersToken}, patches(func() client.Object { return service(metav1.NamespaceSystem) },
		`{"metadata": {"annotations": {"a": "b"}}}`), ownAccount},
	{"a grant on a Service of kube-system", []string{controllersToken}, patches(func() client.Object { return service(metav1.NamespaceSystem) },
		`{"metadata": {"annotations": {"`+statefulsingletonv1.AnnotationGrant+`": "b"}}}`), ownAccount},
	{"the protection of a claim of kube-system", []string{controllersToken}, patches(func() client.Object { return claim(metav1.NamespaceSystem) },
		`{"metadata": {"finalizers": null}}`), ownAccount},
	{"an annotation of a claim of kube-system", []string{controllersToken}, patches(func() client.Object { return claim(metav1.NamespaceSystem) },
		`{"metadata": {"annotations": {"a": "b"}}}`), ownAccount},
	{"an annotation of a StatefulSet of kube-system", []string{controllersToken}, patches(func() client.Object { return statefulSet(metav1.NamespaceSystem) },
		`{"metadata": {"annotations": {"a": "b"}}}`), ownAccount},
	{"removing a pod of kube-system from its Service", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"labels": {"a": "b"}}}`), ownAccount},
	{"deleting a pod of kube-system through the garbage collector", []string{controllersToken}, patches(func() client.Object { return pod(metav1.NamespaceSystem, "there") },
		`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}]}}`), ownAccount},
	{"changing the address of a pod of kube-system", []string{controllersToken}, func(ctx context.Context, l loot) error {
		return l.Status().Patch(ctx, pod(metav1.NamespaceSystem, "there"), client.RawPatch(types.MergePatchType, []byte(`{"status": {"podIP": "192.0.2.1"}}`)))
	}, ownAccount},
	{"the key of hashes in the operator's namespace", []string{controllersToken}, creates(func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "stateful-operator-config-key"}}
	}, client.DryRunAll), ""},
	{"a token of an account of the operator, as the key of hashes", []string{controllersToken}, creates(func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "stateful-operator-config-key",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "stateful-operator-installer"}}, Type: corev1.SecretTypeServiceAccountToken}
	}, client.DryRunAll), ownAccount},
	{"a token of an account of the operator, as a Secret", []string{controllersToken}, creates(func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "token",
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "stateful-operator-installer"}}, Type: corev1.SecretTypeServiceAccountToken}
	}), ownAccount},

	{"a pod", []string{webhooksToken}, creates(func() client.Object { return pod(tenant, "new") }), dryRunsOnly},
	{"a pod by dry run", []string{webhooksToken}, creates(func() client.Object { return pod(tenant, "new") }, client.DryRunAll), ""},
	{"a Job", []string{webhooksToken}, creates(func() client.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "new"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: pod("", "").Spec.Containers}}}}
	}), dryRunsOnly},
	{"the ConfigMap of evictions", []string{webhooksToken}, applies("stateful-operator-evictions"), ""},
	{"another ConfigMap of the operator's namespace", []string{webhooksToken, installerToken}, applies("new"), forbidden},
	{"deleting the ConfigMap of evictions", everyToken, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "stateful-operator-evictions"}})
	}, forbidden},
	{"the ConfigMap of evictions by the controllers", []string{controllersToken}, applies("stateful-operator-evictions"), ownAccount},
	{"the ConfigMap of evictions by a user who may edit a namespace", []string{installerToken, namespaceEditor, podCreator}, applies("stateful-operator-evictions"), forbidden},
	{"a command in a pod", []string{webhooksToken, installerToken}, exec(tenant, "there"), forbidden},
	{"deleting a pod", []string{webhooksToken, installerToken}, func(ctx context.Context, l loot) error { return l.Delete(ctx, pod(tenant, "there")) }, forbidden},
	{"a pod by the installer", []string{installerToken}, creates(func() client.Object { return pod(tenant, "new") }), forbidden},
	{"reading a Secret of a tenant", []string{webhooksToken, installerToken}, readsSecret(tenant), forbidden},
	{"the key of the CA", []string{webhooksToken}, readsSecret(operatorNamespace), forbidden},
	// Admission does not check reads, and roles cannot exclude a namespace. The controllers require read
	// access to the Secrets of all namespaces for updateOnEnvChange: docs/security.md.
	{"reading a Secret of the operator's namespace", []string{controllersToken}, readsSecret(operatorNamespace), ""},

	{"deleting a policy", workers, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "there"}})
	}, forbidden},
	{"another policy", workers, creates(func() client.Object {
		return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	}), forbidden},
	{"another webhook", everyToken, creates(func() client.Object {
		return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	}), forbidden},
	{"another webhook for evictions", everyToken, creates(func() client.Object {
		return &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "new"}}
	}), forbidden},
	{"the token of the webhook for evictions", append([]string{namespaceEditor, podCreator}, workers...), func(ctx context.Context, l loot) error {
		return l.Get(ctx, client.ObjectKey{Name: "stateful-operator-evictions"}, &admissionv1.ValidatingWebhookConfiguration{})
	}, forbidden},
	{"a change of the operator's webhooks", workers, patches(func() client.Object {
		return &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "stateful-operator-mutating-webhook-configuration"}}
	}, `{"webhooks": []}`), forbidden},
	{"a binding to cluster-admin", everyToken, creates(func() client.Object {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "new"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
	}), forbidden},
	{"a token of another account", everyToken, func(ctx context.Context, l loot) error {
		_, err := l.core.CoreV1().ServiceAccounts(operatorNamespace).CreateToken(ctx, "stateful-operator-installer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	}, forbidden},
	{"a Node", everyToken, patches(func() client.Object { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "there"}} }, `{"spec": {"unschedulable": true}}`), forbidden},

	{"an object without any credentials", []string{"system:anonymous"}, creates(func() client.Object { return cluster("") }), forbidden},
	{"a grant out of order", []string{namespaceEditor}, patches(func() client.Object { return pod(tenant, "there") },
		`{"metadata": {"annotations": {"`+statefulsingletonv1.AnnotationGrant+`": "mine"}}}`), "denied request"},
	{"the status of an object", []string{podCreator, namespaceEditor}, func(ctx context.Context, l loot) error {
		s := singleton()
		return l.Status().Patch(ctx, s, client.RawPatch(types.MergePatchType, []byte(`{"status": {"observedGeneration": 7}}`)))
	}, forbidden},
	{"an object in the operator's namespace", []string{namespaceEditor}, creates(func() client.Object {
		c := cluster("")
		c.Namespace = operatorNamespace
		return c
	}), forbidden},
	{"an object where the user may edit only its namespace", []string{namespaceEditor}, creates(func() client.Object {
		c := cluster("")
		c.Namespace = metav1.NamespaceSystem
		return c
	}), forbidden},
	{"deleting a policy by a user who may edit a namespace", []string{namespaceEditor, podCreator}, func(ctx context.Context, l loot) error {
		return l.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "there"}})
	}, forbidden},
	{"a token of the operator by a user who may edit a namespace", []string{namespaceEditor, podCreator}, func(ctx context.Context, l loot) error {
		_, err := l.core.CoreV1().ServiceAccounts(operatorNamespace).CreateToken(ctx, "stateful-operator-controller-manager", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	}, forbidden},
	{"a Secret of the operator by a user who may edit a namespace", []string{namespaceEditor, podCreator}, readsSecret(operatorNamespace), forbidden},
	{"their own role by a user who may edit a namespace", []string{namespaceEditor, podCreator}, creates(func() client.Object {
		return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "new"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"}}
	}), forbidden},
	{"an object by a user who may only create pods", []string{podCreator}, creates(func() client.Object { return cluster("") }), forbidden},
	{"a read without any credentials", []string{"system:anonymous"}, func(ctx context.Context, l loot) error { return l.List(ctx, &corev1.PodList{}) }, forbidden},
}

// thieves tests the requests of users with a stolen token of an account of the operator, users without
// credentials, and users with the built-in role edit or the right to create pods in the tenant's namespace.
func (s site) thieves(t *testing.T) {
	g := NewWithT(t)
	g.Expect(s.admin.Create(t.Context(), singleton())).To(Succeed())
	s.bind(t, tenant, "ClusterRole", "system:aggregate-to-edit", namespaceEditor) // the rules of edit
	s.actor(t, podCreator, "", rights{"pods": {"create"}})
	for _, namespace := range []string{tenant, operatorNamespace, metav1.NamespaceSystem} {
		there := pod(namespace, "there")
		if namespace == metav1.NamespaceSystem {
			there = held(namespace, "there")
		}
		g.Expect(s.admin.Create(t.Context(), there)).To(Succeed())
		g.Expect(s.admin.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "there"}})).To(Succeed())
	}
	for _, object := range []client.Object{
		held(metav1.NamespaceSystem, "singleton", statefulsingletonv1.FinalizerPod),
		held(operatorNamespace, "singleton", statefulsingletonv1.FinalizerPod),
		held(metav1.NamespaceSystem, "member", clusterlabsv1alpha1.FinalizerMember),
		held(metav1.NamespaceSystem, "held", statefulsingletonv1.FinalizerPod, clusterlabsv1alpha1.FinalizerMember),
		service(metav1.NamespaceSystem), claim(metav1.NamespaceSystem), statefulSet(metav1.NamespaceSystem),
	} {
		g.Expect(s.admin.Create(t.Context(), object)).To(Succeed())
	}
	// The API server enforces a new policy only after a delay.
	controllers, webhooks := s.loot(t, controllersToken), s.loot(t, webhooksToken)
	g.Eventually(func() error {
		return controllers.Create(t.Context(), pod(metav1.NamespaceSystem, "probe"), client.DryRunAll)
	}, time.Minute).Should(MatchError(ContainSubstring(ownAccount)))
	g.Eventually(func() error {
		err := webhooks.Create(t.Context(), pod(tenant, "probe"))
		_ = s.admin.Delete(t.Context(), pod(tenant, "probe"))
		return err
	}, time.Minute).Should(MatchError(ContainSubstring(dryRunsOnly)))
	s.steal(t, thefts)
}

func (s site) steal(t *testing.T, all []theft) {
	t.Helper()
	for _, a := range all {
		for _, who := range a.who {
			t.Run(a.name+" by "+who, func(t *testing.T) {
				err := a.do(t.Context(), s.loot(t, who))
				if a.blocked == "" {
					NewWithT(t).Expect(err).NotTo(HaveOccurred())
					return
				}
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(a.blocked)))
			})
		}
	}
}

func (s site) loot(t *testing.T, user string) loot {
	t.Helper()
	own := rest.CopyConfig(s.server.Config)
	own.Impersonate = rest.ImpersonationConfig{UserName: user}
	if user == "system:anonymous" {
		own.Impersonate.Groups = []string{"system:unauthenticated"}
	}
	core, err := kubernetes.NewForConfig(own)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	c, err := client.New(own, client.Options{Scheme: s.admin.Scheme(), Mapper: s.admin.RESTMapper()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return loot{c, core}
}
