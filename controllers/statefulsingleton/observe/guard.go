package observe

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// crdName is the CustomResourceDefinition that the guard takes its parameters from. It owns
// the guard, because a policy without the kind of its parameters denies every pod.
const crdName = "statefulsingletons.apps.openshift.statefulsingleton.com"

// guardSubject names the policy in the log.
const guardSubject = "The guard of StatefulSingletons"

// guardBuilders build the policy by which the API server rejects pods without the gate, and the one on the Leases.
var guardBuilders = []policy.Builder{children.BuildGuard, children.BuildLeaseGuard}

// NewGuardKeeper returns what maintains the policies. namespace is the operator's own, and watched are those that it
// manages; empty means all.
func NewGuardKeeper(keeper policy.Keeper, namespace string, watched []string) *policy.Maintainer {
	return &policy.Maintainer{Keeper: keeper, Subject: guardSubject, CRD: crdName, Namespace: namespace, Watched: watched,
		Builders: guardBuilders, Interval: spec.GuardInterval, Retry: spec.GuardRetry}
}

// Guard checks whether the API server has the policies.
type Guard = policy.Checker

// NewGuard returns what checks the policies, with the parameters of NewGuardKeeper.
func NewGuard(live client.Reader, namespace string, watched []string) *Guard {
	return &Guard{Live: live, Subject: guardSubject, Namespace: namespace, Watched: watched,
		Builders: guardBuilders, Interval: spec.GuardInterval, Retry: spec.GuardRetry,
		NotInstalled: v1.ReasonPolicyNotInstalled, NotSupported: v1.ReasonNoPolicyAPI, Excluded: spec.NotGuarded,
		Turned: make(chan event.GenericEvent, 1)}
}
