// Package plugin has what kubectl stateful uses of the operator. The plugin cannot import controllers/internal.
package plugin

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	extendedstatefulset "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/plan"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	replicatedstatefulset "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	statefulcluster "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/simulate"
	statefulsingleton "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
)

// The parts of a plan.
type (
	Plan    = plan.Plan
	Step    = plan.Step
	Field   = plan.Field
	Summary = plan.Summary
	// Observer records what happens in a real cluster, to compare it with a plan.
	Observer = plan.Observer
)

// Values of Plan.State.
const (
	Complete = plan.Complete
	Stopped  = plan.Stopped
	Waiting  = plan.Waiting
)

// Values of Step.Action.
const (
	CreatePod     = plan.CreatePod
	DeletePod     = plan.DeletePod
	RecreatePod   = plan.RecreatePod
	UpdatePod     = plan.UpdatePod
	Handover      = plan.Handover
	CreateClaim   = plan.CreateClaim
	DeleteClaim   = plan.DeleteClaim
	CreateVersion = plan.CreateVersion
	DeleteVersion = plan.DeleteVersion
	RunJob        = plan.RunJob
	Approve       = plan.Approve
)

// kinds are the simulations, by kind.
var kinds = map[string]simulation.Kind{
	"StatefulCluster":       statefulcluster.Kind{},
	"ReplicatedStatefulSet": replicatedstatefulset.Kind{},
	"ExtendedStatefulSet":   extendedstatefulset.Kind{},
	"StatefulSingleton":     statefulsingleton.Kind{},
}

// lists returns empty lists of the objects of a kind.
var lists = map[string]func() client.ObjectList{
	"StatefulCluster":       func() client.ObjectList { return &stcv1alpha1.StatefulClusterList{} },
	"ReplicatedStatefulSet": func() client.ObjectList { return &rssv1alpha1.ReplicatedStatefulSetList{} },
	"ExtendedStatefulSet":   func() client.ObjectList { return &estsv1alpha1.ExtendedStatefulSetList{} },
	"StatefulSingleton":     func() client.ObjectList { return &ssnv1.StatefulSingletonList{} },
}

// Request is a change to plan. Exactly one of Put, Delete and Drain is set.
type Request struct {
	// Kind is the kind of the object whose operator is simulated, for example StatefulCluster.
	Kind string
	Key  types.NamespacedName
	// Put are changed objects as a dry run of the API server returned them: the object itself, or workloads
	// whose pods a StatefulSingleton selects.
	Put []client.Object
	// Delete deletes the object.
	Delete bool
	// Drain is the name of a Node to drain.
	Drain string
	// Approved assumes each approval that the change waits for.
	Approved bool
}

// Make reads the live objects and returns the plan of a change. It writes nothing to the cluster.
func Make(ctx context.Context, c client.Reader, r Request, now time.Time) (*Plan, error) {
	kind, exists := kinds[r.Kind]
	if !exists {
		return nil, fmt.Errorf("kind %s is not supported", r.Kind)
	}
	live, err := plan.Load(ctx, c, kind, r.Key)
	if err != nil {
		return nil, err
	}
	return plan.Make(plan.Input{Kind: kind, Key: r.Key, Live: live, Change: change(kind, r), Approved: r.Approved, Now: now})
}

// change returns the change that a request describes.
func change(kind simulation.Kind, r Request) plan.Change {
	switch {
	case r.Drain != "":
		return plan.Drain(r.Drain)
	case r.Delete:
		object := kind.New()
		object.SetNamespace(r.Key.Namespace)
		object.SetName(r.Key.Name)
		return plan.Delete(object)
	}
	return plan.Put(r.Put...)
}

// Owners returns the keys of the objects in a list that own at least one of the pods, in the order of the list.
func Owners(kind string, list client.ObjectList, pods []corev1.Pod) ([]types.NamespacedName, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", kind, err)
	}
	var keys []types.NamespacedName
	for _, item := range items {
		object, isObject := item.(client.Object)
		if !isObject {
			continue
		}
		owns := func(pod corev1.Pod) bool {
			return pod.Namespace == object.GetNamespace() && kinds[kind].Owns(object, &pod)
		}
		if slices.ContainsFunc(pods, owns) {
			keys = append(keys, client.ObjectKeyFromObject(object))
		}
	}
	return keys, nil
}

// Observe reads the live objects, and returns an Observer of an object, with the lists that it must be shown changes
// of, beginning at their resource versions.
func Observe(ctx context.Context, c client.Reader, kind string, key types.NamespacedName, now time.Time) (*Observer, []client.ObjectList, error) {
	live, err := plan.Load(ctx, c, kinds[kind], key)
	if err != nil {
		return nil, nil, err
	}
	var seen []client.ObjectList
	for _, listing := range live.Listed {
		seen = append(seen, listing.List)
	}
	own := lists[kind]()
	if err := c.List(ctx, own, client.InNamespace(key.Namespace)); err != nil {
		return nil, nil, err
	}
	seen = append(seen, own)
	return plan.Observe(kinds[kind], key, live.Objects, now), seen, nil
}

// Differences compares the steps of a plan with those that happened. It returns nothing if all happened as planned.
func Differences(p *Plan, happened []Step) []string {
	randomNames := p.Kind == "StatefulCluster" || p.Kind == "StatefulSingleton"
	return plan.Differences(p.Steps, happened, randomNames, p.Drain)
}
