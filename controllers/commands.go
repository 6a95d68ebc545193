package controllers

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// What `make check-commands` takes from the operator, so that it runs commands as
// the operator does.

// Command is one for a pod, Result what came of it.
type (
	Command = podexec.Command
	Result  = podexec.Result
)

// What is known of a command's end, in Result.Outcome.
const (
	Succeeded = podexec.Succeeded
	Failed    = podexec.Failed
	Unknown   = podexec.Unknown
)

// MostOutput is the most that can be kept of what a command prints; the operator
// itself keeps less, see podexec.Command.
const MostOutput = podexec.MostOutput

// NewExecutor makes what runs commands in pods, for a process without an election.
func NewExecutor(config *rest.Config, live client.Reader) (*podexec.Executor, error) {
	return podexec.NewExecutor(config, live, nil)
}
