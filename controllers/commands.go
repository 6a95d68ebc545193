package controllers

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// Exports for `make check-commands`, which runs commands in the same way as the operator.

// Command is a command for a pod, and Result its result.
type (
	Command = podexec.Command
	Result  = podexec.Result
)

// Values of Result.Outcome.
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
