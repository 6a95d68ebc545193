package escalation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/apiserver"
	"github.com/stateful-operator/stateful-operator/test/manifest"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// The controller reference of an object specifies its parent. Each row forges one child of one kind in one
// way, in a separate namespace. All children are forged while the controllers are stopped. So the caches of
// the restarted controllers contain the forged objects from the first pass.

// forgery is a way in which a tenant forges a child.
type forgery struct {
	name string
	// labelled is true if the object has the labels and annotations of a genuine child.
	labelled bool
	// owner changes the controller reference of a genuine child. If it is nil, the reference is omitted.
	owner func(*metav1.OwnerReference)
}

const otherUID types.UID = "00000000-0000-0000-0000-000000000000"

var (
	byLabels = forgery{"labels and annotations without an owner", true, nil}
	byUID    = forgery{"an owner of another UID", true, func(o *metav1.OwnerReference) { o.UID = otherUID }}
	byKind   = forgery{"an owner of another kind", true, func(o *metav1.OwnerReference) { o.Kind = "Other" }}
	byGroup  = forgery{"an owner of another group", true, func(o *metav1.OwnerReference) { o.APIVersion = "example.org/v1" }}
	byOwner  = forgery{"an owner that is not a controller", true, func(o *metav1.OwnerReference) { o.Controller = nil }}
	byAll    = forgery{"the complete controller reference", true, func(*metav1.OwnerReference) {}}
	byName   = forgery{"its name, before the object was created", false, nil}

	forgeries = []forgery{byLabels, byUID, byKind, byGroup, byOwner, byAll, byName}
)

// forged is a test row: a child, the way in which it is forged, and the state of the namespace before.
type forged struct {
	child
	forgery
	namespace string
	parent    *unstructured.Unstructured
	// object is the forged object as created; nil if a policy rejected it and the row does not need it.
	object *unstructured.Unstructured
	// refusal is the API server's error for the tenant; nil if the object was created.
	refusal error
	// wanted is the generation of the parent that a pass after the forgery must observe.
	wanted int64
	// counts are the numbers in the status of the parent before the forgery.
	counts map[string]int64
	// genuine holds the kind and name of each pod and claim that existed before the forgery, by UID.
	genuine map[types.UID]string
}

// sentence returns the name of a row.
func (f *forged) sentence() string {
	return f.kind + " " + f.resource + " " + cmp.Or(f.child.name, f.as) + ": " + f.forgery.name
}

// owners tests each forgery of each child of each kind.
func (s site) owners(t *testing.T) {
	s.complete(t)
	stopKubernetes := s.startKubernetes(t)
	s.tenantOfAll(t)
	// The webhook would reject a parent if the name of a child is taken. It is not called while the operator is
	// down.
	s.removeWebhooks(t, "validating-webhook-configuration")
	var rows []*forged
	for i, c := range children {
		for j, how := range forgeries {
			if how.name == byName.name && c.name == "" {
				continue // the name is random
			}
			rows = append(rows, &forged{child: c, forgery: how, namespace: fmt.Sprintf("forged-%d-%d", i, j)})
		}
	}
	tenant := s.as(t, "forger")
	for _, row := range rows {
		s.prepare(t, row, tenant)
	}
	for _, row := range rows {
		s.awaitGenuine(t, row)
	}
	s.stops[controllersAccount]()
	// The controllers of Kubernetes would also act on forged objects: a StatefulSet adopts pods by labels, and
	// compares only UIDs of owners.
	stopKubernetes()
	for _, row := range rows {
		s.forge(t, row, tenant)
	}
	s.startControllersAndPass(t, rows)
	for _, row := range rows {
		t.Run(row.sentence(), func(t *testing.T) { s.judge(t, row) })
	}
}

// complete asserts that children has a row for each resource that the role of a kind may create or delete.
func (s site) complete(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	roles, err := manifest.ReadFile[rbacv1.ClusterRole](filepath.Join(config, "rbac", "role.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	has := map[string]bool{}
	for _, c := range children {
		has[c.kind+"-role "+c.resource] = true
	}
	for _, may := range rbac.Granted(roles) {
		resource := schema.GroupResource{Group: may.Group, Resource: may.Resource}.String()
		if may.Verb != "create" && may.Verb != "delete" {
			continue
		}
		if !slices.ContainsFunc(parents, func(p parent) bool { return may.Role == p.kind+"-role" }) || resource == "events.events.k8s.io" {
			continue
		}
		g.Expect(has).To(HaveKey(may.Role+" "+resource), "the role allows the operator to %s %s: add a row to children", may.Verb, resource)
	}
}

// removeWebhooks deletes a ValidatingWebhookConfiguration.
func (s site) removeWebhooks(t *testing.T, name string) {
	t.Helper()
	NewWithT(t).Expect(s.admin.Delete(t.Context(), s.object(t, "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name))).To(Succeed())
}

// startKubernetes starts the controllers of StatefulSets, Deployments and ReplicaSets, and simulates kubelets.
// It does not start the garbage collector, which would delete objects whose owner does not exist. The returned
// function stops the controllers.
func (s site) startKubernetes(t *testing.T) (stop func()) {
	t.Helper()
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(file, s.server.KubeConfig, 0o600)).To(Succeed())
	stop, err := apiserver.StartControllers(file, io.Discard, "deployment-controller", "replicaset-controller", "statefulset-controller")
	g.Expect(err).NotTo(HaveOccurred())
	stop = sync.OnceFunc(stop)
	t.Cleanup(stop)
	s.startKubelets(t)
	return stop
}

// tenantOfAll grants user forger the built-in role edit, the right to create ControllerRevisions, and the editor
// roles of all kinds.
func (s site) tenantOfAll(t *testing.T) {
	t.Helper()
	s.bind(t, "", "ClusterRole", "system:aggregate-to-edit", "forger")
	for _, p := range parents {
		s.bind(t, "", "ClusterRole", p.kind+"-editor-role", "forger")
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "revisions"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"controllerrevisions"}, Verbs: []string{"create"}}}}
	NewWithT(t).Expect(s.admin.Create(t.Context(), role)).To(Succeed())
	s.bind(t, "", "ClusterRole", role.Name, "forger")
}

// prepare creates the namespace of a row, the object that takes the name (only byName), and the parent.
func (s site) prepare(t *testing.T, row *forged, tenant client.Client) {
	t.Helper()
	g := NewWithT(t)
	namespace := &unstructured.Unstructured{}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(row.namespace)
	g.Expect(s.admin.Create(t.Context(), namespace)).To(Succeed())
	if row.forgery.name == byName.name {
		row.object = row.plain()
		row.object.SetNamespace(row.namespace)
		row.object.SetName(row.child.name)
		g.Expect(tenant.Create(t.Context(), row.object)).To(Succeed(), row.sentence())
	}
	for _, object := range row.parentOf().objects() {
		object.SetNamespace(row.namespace)
		// The API server's cache of namespaces may not contain the new one yet.
		g.Eventually(func() error { return s.admin.Create(t.Context(), object.DeepCopyObject().(client.Object)) }, time.Minute).Should(Succeed(), row.sentence())
	}
}

// awaitGenuine waits until all children of the parent exist. For byName, it only waits until the operator has
// observed the parent.
func (s site) awaitGenuine(t *testing.T, row *forged) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		row.parent = s.parentIn(g, t.Context(), row)
		g.Expect(row.parent.GetGeneration()).To(Equal(observed(row.parent)))
		if row.before != nil {
			g.Expect(row.before(t.Context(), s.admin, row.parent)).To(Succeed())
		}
		if row.forgery.name == byName.name {
			return
		}
		for _, sibling := range children {
			if sibling.kind == row.kind && (sibling.before == nil || sibling.resource == row.resource) {
				_, err := s.genuine(t.Context(), sibling, row.namespace)
				g.Expect(err).NotTo(HaveOccurred())
			}
		}
	}, 3*time.Minute, 50*time.Millisecond).Should(Succeed(), row.sentence())
}

// parentIn reads the parent of a row.
func (s site) parentIn(g Gomega, ctx context.Context, row *forged) *unstructured.Unstructured {
	object := row.parentOf().empty()
	g.Expect(s.admin.Get(ctx, client.ObjectKey{Namespace: row.namespace, Name: row.parentOf().name}, object)).To(Succeed())
	return object
}

// observed returns the observedGeneration of an object.
func observed(object *unstructured.Unstructured) int64 {
	generation, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return generation
}

// genuine returns a child that the operator or Kubernetes created in a namespace.
func (s site) genuine(ctx context.Context, c child, namespace string) (*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.gvk)
	if err := s.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if c.name == "" || list.Items[i].GetName() == c.name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("%s has no %s %s", namespace, c.resource, c.name)
}

// forge creates the object of a row as the tenant. If a policy rejects it, forge creates it as the administrator,
// to test that the operator itself checks the owner: if policies are missing, requesters are not checked. For
// byAll, it does not, because the object would be a child.
func (s site) forge(t *testing.T, row *forged, tenant client.Client) {
	t.Helper()
	g := NewWithT(t)
	ctx := t.Context()
	row.note(g, ctx, s)
	if row.forgery.name == byName.name {
		return
	}
	genuine, err := s.genuine(ctx, row.child, row.namespace)
	g.Expect(err).NotTo(HaveOccurred())
	object := stripped(genuine)
	if row.own {
		object = row.plain()
		object.SetNamespace(row.namespace)
		copied := genuine.GetLabels()
		delete(copied, "app") // the StatefulSingleton selects by this label
		object.SetLabels(copied)
		object.SetAnnotations(genuine.GetAnnotations())
	}
	object.SetName(cmp.Or(row.as, genuine.GetName()))
	if row.as == "" {
		g.Expect(s.admin.Delete(ctx, genuine, client.GracePeriodSeconds(0))).To(Succeed())
		g.Eventually(func() bool {
			return apierrors.IsNotFound(s.admin.Get(ctx, client.ObjectKeyFromObject(genuine), genuine.DeepCopy()))
		}, time.Minute).Should(BeTrue(), row.sentence())
	}
	if row.owner != nil {
		owner := controllerOf(genuine, row.parent)
		row.owner(&owner)
		object.SetOwnerReferences([]metav1.OwnerReference{owner})
	}
	row.object = object
	row.refusal = tenant.Create(ctx, object)
	if row.isAboutLabels() && row.asked != "" && row.isRefused() {
		// The API server reports one of the policies that refuse an object. The labels hide the other.
		unlabelled := object.DeepCopy()
		unlabelled.SetLabels(nil)
		row.refusal = tenant.Create(ctx, unlabelled, client.DryRunAll)
		g.Expect(row.refusal).To(HaveOccurred(), row.sentence())
	}
	if row.refusal == nil {
		return
	}
	if !row.isAboutLabels() {
		g.Expect(row.asked).NotTo(BeEmpty(), "%s: %v", row.sentence(), row.refusal)
	}
	if row.forgery.name == byAll.name && row.asked != "" {
		row.object = nil // a user who may write the reference creates a child
		return
	}
	// The administrator creates what the policies refuse, as if it were from before the policies.
	g.Expect(s.admin.Create(ctx, object)).To(Succeed(), row.sentence())
}

// isAboutLabels reports whether a policy on labels of members refused the object.
func (f *forged) isAboutLabels() bool {
	text := fmt.Sprint(f.refusal)
	return strings.Contains(text, "may have the labels") || strings.Contains(text, "may have this label")
}

// note records the parent, the counts in its status, and the pods and claims of the namespace.
func (f *forged) note(g Gomega, ctx context.Context, s site) {
	f.parent = s.parentIn(g, ctx, f)
	f.counts, f.genuine = numbers(f.parent), map[types.UID]string{}
	for _, kind := range []string{"Pod", "PersistentVolumeClaim"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
		g.Expect(s.admin.List(ctx, list, client.InNamespace(f.namespace))).To(Succeed())
		for i := range list.Items {
			f.genuine[list.Items[i].GetUID()] = kind + " " + list.Items[i].GetName()
		}
	}
}

// numbers returns the counts in the status of an object.
func numbers(object *unstructured.Unstructured) map[string]int64 {
	all := map[string]int64{}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for key, value := range status {
		if n, isNumber := value.(int64); isNumber && key != "observedGeneration" {
			all[key] = n
		}
	}
	return all
}

// controllerOf returns the controller reference of a genuine child, or a reference to the parent if the child
// has none.
func controllerOf(genuine, parent *unstructured.Unstructured) metav1.OwnerReference {
	owner := metav1.GetControllerOf(genuine)
	if owner == nil {
		owner = metav1.NewControllerRef(parent, parent.GroupVersionKind())
	}
	// With the plugin OwnerReferencesPermissionEnforcement, a user must have the right to update finalizers to
	// set this field.
	owner.BlockOwnerDeletion = nil
	return *owner
}

// stripped returns a copy of an object without the fields that the API server or controllers set, as a tenant
// would create it.
func stripped(genuine *unstructured.Unstructured) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: genuine.DeepCopy().Object}
	delete(object.Object, "status")
	object.Object["metadata"] = map[string]any{}
	object.SetNamespace(genuine.GetNamespace())
	object.SetLabels(genuine.GetLabels())
	object.SetAnnotations(genuine.GetAnnotations())
	object.SetFinalizers(slices.DeleteFunc(genuine.GetFinalizers(), func(f string) bool { return strings.HasPrefix(f, "kubernetes.io/") }))
	for _, field := range []string{"clusterIPs", "nodeName", "volumeName"} {
		unstructured.RemoveNestedField(object.Object, "spec", field)
	}
	if ip, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
	}
	if genuine.GetKind() == "Job" {
		unstructured.RemoveNestedField(object.Object, "spec", "selector")
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "labels")
		object.SetLabels(without(object.GetLabels(), "batch.kubernetes.io/", "controller-uid", "job-name"))
	}
	return object
}

// without returns the labels that do not begin with any of the prefixes.
func without(labels map[string]string, prefixes ...string) map[string]string {
	kept := map[string]string{}
	for key, value := range labels {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			kept[key] = value
		}
	}
	return kept
}

// startControllersAndPass starts the controllers and waits until they have reconciled each parent three times.
// It changes the spec three times, and a pass reports each change in observedGeneration. A timeout is ignored
// here: judge fails the rows of parents that were not reconciled.
func (s site) startControllersAndPass(t *testing.T, rows []*forged) {
	t.Helper()
	g := NewWithT(t)
	for n := range 3 {
		for _, row := range rows {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, row.parentOf().change, n+1))
			g.Expect(s.admin.Patch(t.Context(), row.parent, patch)).To(Succeed(), row.sentence())
			row.wanted = row.parent.GetGeneration()
		}
		if n == 0 {
			s.startControllers(t)
		}
		_ = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
			unseen := slices.ContainsFunc(rows, func(row *forged) bool { return !row.isSeen(s.parentIn(g, t.Context(), row)) })
			return !unseen, nil
		})
	}
}

// isSeen reports whether a pass has observed the last change of the parent.
func (f *forged) isSeen(parent *unstructured.Unstructured) bool { return observed(parent) >= f.wanted }
