package plugin

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Exports for kubectl stateful check-commands, which runs commands in the same way as the operator.

// Command is a command for a pod, and CommandResult its result.
type (
	Command       = podexec.Command
	CommandResult = podexec.Result
)

// Values of CommandResult.Outcome.
const (
	Succeeded = podexec.Succeeded
	Failed    = podexec.Failed
	Unknown   = podexec.Unknown
)

// MaxOutput is the max size of a command's output that can be kept. The operator itself keeps
// less, see podexec.Command.
const MaxOutput = podexec.MaxOutput

// NewExecutor returns an executor of commands in pods, for a process without leader election.
func NewExecutor(config *rest.Config, live client.Reader) (*podexec.Executor, error) {
	return podexec.NewExecutor(config, live, nil)
}

// Trial contains the children of a ReplicatedStatefulSet for a test of its commands.
type Trial = children.Trial

// NewTrial builds the children of a set with that many members. It returns an error if the spec is
// invalid.
func NewTrial(set *rssv1alpha1.ReplicatedStatefulSet, members int32) (Trial, error) {
	return children.NewTrial(set, members)
}

// WithEpoch returns the arguments of a command in which the epoch and the time of creation of the set are
// replaced.
func WithEpoch(argv []string, created metav1.Time, epoch int64) []string {
	return spec.WithEpoch(argv, created, epoch)
}
