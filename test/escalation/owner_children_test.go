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
	kind string // as in the names of roles
	name string
	gvk  schema.GroupVersionKind
	// change is a patch with a number that changes the spec, and nothing of what runs.
	change string
	// objects returns the parent, after what it needs.
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

// child is an object that the operator makes for a parent, or has Kubernetes make.
type child struct {
	kind, resource string
	gvk            schema.GroupVersionKind
	// name is that of the genuine child; "" where it has an id that nobody knows before it is made.
	name string
	// as is the name of the forged one; "" where it takes the name of the genuine one, which was deleted.
	as string
	// asked is in the answer to a tenant who writes the parent as its controller; "" where no policy asks.
	asked string
	// removed are prefixes of the labels that the operator removes from what is not its own.
	removed string
	// marked are prefixes of what the operator may write on one that is not its own.
	marked string
	// released is true if the operator may remove owners that have the UID of the parent.
	released bool
	// headless is the Service that may send to a pod which has the name of one of ours.
	headless string
	// own is true of a forged one with a content of its own, and without the labels that make it a child.
	own bool
	// said is in the condition that tells that the name is taken.
	said string
	// children are the ways in which a forged one is a child by what the documentation says, and why.
	children map[string]string
	// before brings the parent to where it has the child.
	before func(ctx context.Context, c client.Client, parent *unstructured.Unstructured) error
}

// allowed returns why what was forged so is a child; "" if it is none.
func (c child) allowed(how string) string { return c.children[how] }

// parentOf returns the object whose child it is.
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

// Why what was forged is a child. Each is allowed by docs/security.md, Who asks must be allowed: the operator takes
// for its own what has the whole reference, and of these no policy asks who writes it.
const (
	wholeChild = "who may create it may write the whole reference, and the operator puts its content right (docs/security.md, Who asks must be allowed)"
	wholePod   = "its StatefulSet is the owner, and who may create pods can make what that makes (docs/security.md, exec-role)"
	adopted    = "it has the name of a pod of the StatefulSet and no controller, so that the controller of StatefulSets adopts it (docs/security.md, exec-role)"
	selected   = "it makes no pods, and labels say which ones it means; one that may run is waited for, and nobody is deleted for it (docs/decisions/0025-what-a-selector-gives-no-right-to.md)"
	shared     = "the ConfigMap has an owner for each StatefulSingleton and no controller, so that a label says whose it is; no pod runs what is in it (docs/decisions/0024-the-script-comes-out-of-the-image.md)"
)

// inEachWay returns that reason for all forgeries but that of a name.
func inEachWay(why string) map[string]string {
	all := map[string]string{}
	for _, how := range forgeries {
		if how.labelled {
			all[how.name] = why
		}
	}
	return all
}

// whole are the forgeries of a child of which no policy asks who writes its owner.
var whole = map[string]string{byAll.name: wholeChild}

// ofStatefulSets are those of a pod that has the name of one of a StatefulSet.
var ofStatefulSets = map[string]string{byAll.name: wholePod, byLabels.name: adopted, byOwner.name: adopted}

var children = []child{
	{kind: "statefulcluster", resource: "pods", gvk: podKind, as: "a-aaaaaaaaaa", removed: "enge.me/", asked: "may not update statefulclusters/finalizers"},
	// A claim without a pod may be one that lost it before it was on record. So it is marked as set aside, and it is released from
	// the set, but not deleted: docs/kinds/statefulcluster.md, Retained claims.
	{kind: "statefulcluster", resource: "persistentvolumeclaims", gvk: claimKind, as: "a-data-aaaaaaaaaa", marked: "enge.me/ret", released: true},
	{kind: "statefulcluster", resource: "controllerrevisions.apps", gvk: revisionKind, as: "a-aaaaaaaaaa", asked: "may not update statefulclusters/finalizers"},
	{kind: "statefulcluster", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "a", said: "WriteRefused", children: whole},

	{kind: "replicatedstatefulset", resource: "pods", gvk: podKind, as: "evil", removed: memberLabels},
	{kind: "replicatedstatefulset", resource: "pods", gvk: podKind, name: "rss-b-1", as: "rss-b-2", removed: memberLabels, children: ofStatefulSets},
	{kind: "replicatedstatefulset", resource: "persistentvolumeclaims", gvk: claimKind, name: "data-rss-b-1", as: "data-rss-b-2"},
	{kind: "replicatedstatefulset", resource: "statefulsets.apps", gvk: statefulSetKind, name: "rss-b", asked: "may not update replicatedstatefulsets/finalizers", said: "ForeignObject"},
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-svc", said: "ForeignObject", children: whole},
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-primary", said: "ForeignObject", children: whole},
	// Nothing is said: it is for clients that only read, and may be anyone's (docs/contract/replicatedstatefulset.md, RS-131).
	{kind: "replicatedstatefulset", resource: "services", gvk: serviceKind, name: "b-secondary", children: whole},
	{kind: "replicatedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "rss-b", said: "ForeignObject", children: whole},
	{kind: "replicatedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "rss-b.primary", said: "ForeignObject", children: whole},

	{kind: "extendedstatefulset", resource: "pods", gvk: podKind, as: "evil", removed: setLabels + " " + setLabel},
	// It may have the claims of its ordinal, so that the label stays by which it is found. The headless Service selects by it.
	{kind: "extendedstatefulset", resource: "pods", gvk: podKind, name: "c-v1-1", as: "c-v1-2", removed: setLabels, headless: "c", children: ofStatefulSets},
	{kind: "extendedstatefulset", resource: "persistentvolumeclaims", gvk: claimKind, name: "data-c-1", as: "data-c-2", said: "ClaimTaken"},
	{kind: "extendedstatefulset", resource: "statefulsets.apps", gvk: statefulSetKind, name: "c-v1", asked: "may not update extendedstatefulsets/finalizers", said: "WriteRefused"},
	// Nothing is said: the headless one may be anyone's, as that of a StatefulSet.
	{kind: "extendedstatefulset", resource: "services", gvk: serviceKind, name: "c", children: whole},
	{kind: "extendedstatefulset", resource: "services", gvk: serviceKind, name: "c-active", said: "ServiceTaken", children: whole},
	{kind: "extendedstatefulset", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "c", said: "BudgetTaken", children: whole},
	{kind: "extendedstatefulset", resource: "jobs.batch", gvk: jobKind, name: "c-pre-v2-1", as: "c-pre-v2-2", asked: "may not update extendedstatefulsets/finalizers", said: "WriteRefused", before: upgrade},

	{kind: "statefulsingleton", resource: "pods", gvk: podKind, as: "evil", own: true, children: inEachWay(selected)},
	{kind: "statefulsingleton", resource: "poddisruptionbudgets.policy", gvk: budgetKind, name: "d.singleton", said: "NotReplacedFirst", children: whole},
	{kind: "statefulsingleton", resource: "configmaps", gvk: configMapKind, name: "statefulsingleton-wrapper",
		children: inEachWay(shared)},
}

// The labels of a ReplicatedStatefulSet that are removed from pods which are no members.
const memberLabels = clusterlabsv1alpha1.LabelManaged + " " + clusterlabsv1alpha1.LabelRole + " " + clusterlabsv1alpha1.LabelActive

// The labels of an ExtendedStatefulSet on pods that are removed from others: that by which they are found, and the rest.
const (
	setLabel  = fissilev1alpha1.LabelSet
	setLabels = fissilev1alpha1.LabelVersion + " " + fissilev1alpha1.LabelStatefulSet + " " + fissilev1alpha1.LabelPodActive
)

// plain returns what somebody makes who wants nothing but the name.
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
		panic(err) // a text of this file
	}
	object.SetGroupVersionKind(c.gvk)
	return object
}

// upgrade changes the template of an ExtendedStatefulSet that is stable, so that its jobs run.
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
