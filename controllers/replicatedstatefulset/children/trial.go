package children

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Trial contains the children of a set for a cluster in which the set itself does not exist.
// Without the set the pods stay idle, because the operator runs no command in them. `make
// check-commands` creates these objects, and tests the commands of the set in the pods.
type Trial struct {
	// Services are the headless one, and those of the primaries and of the active members. The last
	// two select pods by labels.
	Services    []*corev1.Service
	StatefulSet *appsv1.StatefulSet
	// Container is the name of the container in which commands run.
	Container string
	// Timeouts are the timeouts of the commands, by name.
	Timeouts map[string]time.Duration
}

// NewTrial builds the children of a set with that many members. It returns an error if the spec is
// invalid.
func NewTrial(set *v1alpha1.ReplicatedStatefulSet, members int32) (Trial, error) {
	set = spec.WithDefaults(set)
	if errs := spec.Validate(set); len(errs) > 0 {
		return Trial{}, errs.ToAggregate()
	}
	t := Trial{Services: BuildServices(set), StatefulSet: BuildStatefulSet(set, members, Hashes{}),
		Container: set.Spec.Pod.Containers[set.Spec.Pod.CommandContainer()].Name, Timeouts: map[string]time.Duration{}}
	t.StatefulSet.OwnerReferences = nil
	for _, service := range t.Services {
		service.OwnerReferences = nil
	}
	t.StatefulSet.Spec.Template.Finalizers = nil // no controller would remove them
	for name, command := range set.Spec.Pod.Commands {
		t.Timeouts[name] = spec.TimeoutOf(command)
	}
	return t, nil
}
