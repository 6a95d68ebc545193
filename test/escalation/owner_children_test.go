package escalation

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// parent is an object of a kind whose children are forged.
type parent struct {
	kind string // as in the names of roles, for example statefulcluster
	name string
	gvk  schema.GroupVersionKind
	// change is the format of a patch with a number. It changes the spec without any effect on pods.
	change string
	// objects returns the parent and the objects that it requires.
	objects func() []client.Object
}

// empty returns an object of the kind.
func (p parent) empty() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(p.gvk)
	return object
}

var parents = []parent{
	{"statefulcluster", "a", engev1alpha1.GroupVersion.WithKind("StatefulCluster"), `{"spec": {"minReadySeconds": %d}}`,
		func() []client.Object { return []client.Object{cluster("  replicas: 2\n  " + claimTemplates)} }},
	{"replicatedstatefulset", "b", clusterlabsv1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"), `{"spec": {"failureWindow": "%dh"}}`, func() []client.Object {
		set := replicated("    "+claimTemplates, "  replicas: 2\n")
		set.Spec.Primaries = ptr.To[int32](1)
		set.Spec.Pod.Commands[clusterlabsv1alpha1.CommandSecondary] = set.Spec.Pod.Commands[clusterlabsv1alpha1.CommandStatus]
		return []client.Object{set}
	}},
	{"extendedstatefulset", "c", fissilev1alpha1.GroupVersion.WithKind(fissilev1alpha1.Kind), `{"spec": {"updateStrategy": {"updateWatchTime": "%dh"}}}`, func() []client.Object {
		return []client.Object{extended("      serviceName: c\n      replicas: 2\n      "+claimTemplates,
			"  podDisruptionBudget: {maxUnavailable: 1}\n  updateStrategy: {preUpdateJob: "+job+"}\n")}
	}},
	{"statefulsingleton", "d", statefulsingletonv1.GroupVersion.WithKind("StatefulSingleton"), `{"spec": {"maxTransitionTime": 30%d}}`, func() []client.Object {
		object := singleton()
		object.Spec.OnEviction = statefulsingletonv1.EvictionReplacesFirst
		return []client.Object{object, read(&appsv1.Deployment{}, `
metadata: {name: d}
spec:
  selector: {matchLabels: {app: d}}
  template: {metadata: {labels: {app: d}}, spec: {containers: [{name: d, image: d, command: [d]}]}}
`)}
	}},
}

// child is an object that the operator, or a controller of Kubernetes, creates for a parent.
type child struct {
	kind, resource string
	gvk            schema.GroupVersionKind
	// name is the name of the genuine child; "" if the name contains a random id.
	name string
	// as is the name of the forged child. If it is "", the genuine child is deleted and the forged child
	// takes its name.
	as string
	// asked is part of the error for a tenant who sets the parent as the controller; "" if no policy
	// checks this.
	asked string
	// removed are the prefixes of the labels that the operator removes from a forged child.
	removed string
	// marked are the prefixes of labels and annotations that the operator may write to a forged child.
	marked string
	// released is true if the operator may remove owner references with the UID of the parent.
	released bool
	// headless is the name of the Service that may select the forged pod, which has the name of a
	// genuine pod.
	headless string
	// own is true if the forged child has the content of plain and lacks the label that the parent
	// selects by.
	own bool
	// said is part of the condition that reports a taken name; "" if none is expected.
	said string
	// children holds, by name of the forgery, why the documentation accepts the forged object as a child.
	children map[string]string
	// before changes the parent so that the child is created. It returns an error until it is done.
	before func(ctx context.Context, c client.Client, parent *unstructured.Unstructured) error
}

// allowed returns the reason why a forged object is accepted as a child; "" if it is not.
func (c child) allowed(how string) string { return c.children[how] }

// parentOf returns the parent of the child.
func (c child) parentOf() parent {
	for _, p := range parents {
		if p.kind == c.kind {
			return p
		}
	}
	panic("no parent of kind " + c.kind)
}

var (
	podKind         = corev1.SchemeGroupVersion.WithKind("Pod")
	claimKind       = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")
	serviceKind     = corev1.SchemeGroupVersion.WithKind("Service")
	configMapKind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	revisionKind    = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")
	budgetKind      = schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}
	jobKind         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
)

// The reasons why forged objects are accepted as children. docs/security.md, Who asks must be allowed, permits
// each. For wholeChild and wholePod, the operator accepts an object with the whole controller reference, and no
// policy checks who writes the reference.
const (
	wholeChild = "a user who can create it can set all its fields, and the operator restores its content (docs/security.md, Who asks must be allowed)"
	wholePod   = "its StatefulSet is the owner, and a user who can create pods can create the same pods (docs/security.md, exec-role)"
	adopted    = "it has the name of a pod of the StatefulSet and no controller, so the controller of StatefulSets adopts it (docs/security.md, exec-role)"
	selected   = "it creates no pods, and selects them by labels; a pod that may run blocks others, and no pod is deleted because of it (docs/decisions/0025-what-a-selector-gives-no-right-to.md)"
	shared     = "the ConfigMap has an owner for each StatefulSingleton and no controller, so a label identifies it; no pod runs its contents (docs/decisions/0024-the-script-comes-out-of-the-image.md)"
)

// inEachWay returns the given reason for each forgery except byName.
func inEachWay(why string) map[string]string {
	all := map[string]string{}
	for _, how := range forgeries {
		if how.labelled {
			all[how.name] = why
		}
	}
	return all
}

// whole holds the accepted forgery of a child whose controller reference is not checked by a policy.
var whole = map[string]string{byAll.name: wholeChild}

// ofStatefulSets holds the accepted forgeries of a pod that has the name of a pod of a StatefulSet.
var ofStatefulSets = map[string]string{byAll.name: wholePod, byLabels.name: adopted, byOwner.name: adopted}

var children = []child{
	{kind: "statefulcluster", resource: "pods", gvk: podKind, as: "a-aaaaaaaaaa", removed: "enge.me/", asked: "may not update statefulclusters/finalizers"},
	// The pod of a claim may have been lost before it was recorded. So a claim without a pod is marked as set
	// aside and released from the set, but not deleted: docs/kinds/statefulcluster.md, Retained claims.
	{kind: "statefulcluster", resource: "persistentvolumeclaims", gvk: claimKind, as: "a-data-aaaaaaaaaa", marked: "enge.me/ret", released: true},
	{kind: "statefulcluster", resource: "controllerrevisions.apps", gvk: revisionKind, as: "a-aaaaaaaaaa", asked: "may not update statefulclusters/finalizers"},
	{kind: "statefulcluster", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "a", said: "WriteRefused", children: whole},

	{kind: "replicatedstatefulset", resource: "pods", gvk: podKind, as: "evil", removed: memberLabels},
	{kind: "replicatedstatefulset", resource: "pods", gvk: podKind, name: "rss-b-1", as: "rss-b-2", removed: memberLabels, children: ofStatefulSets},
	{kind: "replicatedstatefulset", resource: "persistentvolumeclaims", gvk: claimKind, name: "data-rss-b-1", as: "data-rss-b-2"},
	{kind: "replicatedstatefulset", resource: "statefulsets.apps", gvk: statefulSetKind, name: "rss-b", asked: "may not update replicatedstatefulsets/finalizers", said: "ForeignObject"},
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-svc", said: "ForeignObject", children: whole},
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-primary", said: "ForeignObject", children: whole},
	// No condition reports it: the Service is for clients that only read, and may have another owner
	// (docs/contract/replicatedstatefulset.md, RS-131).
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-secondary", children: whole},
	{kind: "replicatedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "rss-b", said: "ForeignObject", children: whole},
	{kind: "replicatedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "rss-b.primary", said: "ForeignObject", children: whole},

	{kind: "extendedstatefulset", resource: "pods", gvk: podKind, as: "evil", removed: setLabels + " " + setLabel},
	// The pod may use the claims of its ordinal. So it keeps setLabel, by which the operator finds it. The
	// headless Service selects by this label.
	{kind: "extendedstatefulset", resource: "pods", gvk: podKind, name: "c-v1-1", as: "c-v1-2", removed: setLabels, headless: "c", children: ofStatefulSets},
	{kind: "extendedstatefulset", resource: "persistentvolumeclaims", gvk: claimKind, name: "data-c-1", as: "data-c-2", said: "ClaimTaken"},
	{kind: "extendedstatefulset", resource: "statefulsets.apps", gvk: statefulSetKind, name: "c-v1", asked: "may not update extendedstatefulsets/finalizers", said: "WriteRefused"},
	// No condition reports it: the headless Service may have another owner, as with a StatefulSet.
	{kind: "extendedstatefulset", resource: "services", gvk: serviceKind, name: "c", children: whole},
	{kind: "extendedstatefulset", resource: "services", gvk: serviceKind, name: "c-active", said: "ServiceTaken", children: whole},
	{kind: "extendedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "c", said: "BudgetTaken", children: whole},
	{kind: "extendedstatefulset", resource: "jobs.batch", gvk: jobKind, name: "c-pre-v2-1", as: "c-pre-v2-2", asked: "may not update extendedstatefulsets/finalizers", said: "WriteRefused", before: upgrade},

	{kind: "statefulsingleton", resource: "pods", gvk: podKind, as: "evil", own: true, children: inEachWay(selected)},
	{kind: "statefulsingleton", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "d.singleton", said: "NotReplacedFirst", children: whole},
	{kind: "statefulsingleton", resource: "configmaps", gvk: configMapKind, name: "statefulsingleton-wrapper",
		children: inEachWay(shared)},
}

// memberLabels are the labels that a ReplicatedStatefulSet removes from pods that are not members.
const memberLabels = clusterlabsv1alpha1.LabelManaged + " " + clusterlabsv1alpha1.LabelRole + " " + clusterlabsv1alpha1.LabelActive

// The labels that an ExtendedStatefulSet removes from other pods. The operator finds pods by setLabel.
const (
	setLabel  = fissilev1alpha1.LabelSet
	setLabels = fissilev1alpha1.LabelVersion + " " + fissilev1alpha1.LabelStatefulSet + " " + fissilev1alpha1.LabelPodActive
)

// plain returns a minimal object of the child's kind, for a forgery that only takes the name.
func (c child) plain() *unstructured.Unstructured {
	spec := map[schema.GroupVersionKind]string{
		podKind:         "spec: {containers: [{name: a, image: a}]}",
		claimKind:       "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		serviceKind:     "spec: {ports: [{port: 1}]}",
		statefulSetKind: "spec: {selector: {matchLabels: {mine: a}}, template: {metadata: {labels: {mine: a}}, spec: {containers: [{name: a, image: a}]}}}",
		jobKind:         "spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}",
		budgetKind:      "spec: {selector: {matchLabels: {mine: a}}}",
		configMapKind:   "data: {mine: a}",
	}[c.gvk]
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(spec), &object.Object); err != nil {
		panic(err) // the text is a constant of this function
	}
	object.SetGroupVersionKind(c.gvk)
	return object
}

// upgrade changes the template of a stable ExtendedStatefulSet, so that its Jobs run. It returns nil only
// after the change, or in phase PreJob.
func upgrade(ctx context.Context, c client.Client, parent *unstructured.Unstructured) error {
	phase, _, _ := unstructured.NestedString(parent.Object, "status", "phase")
	if phase == "PreJob" {
		return nil
	}
	if phase != "Stable" {
		return fmt.Errorf("it is %q", phase)
	}
	return c.Patch(ctx, parent.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"spec": {"template": {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}}}`)))
}
