// Package podexec runs commands in the containers of pods.
//
// A command has one of three outcomes: succeeded, failed or unknown. The outcome is unknown if the
// stream breaks, if there is no response, or if the pod was replaced meanwhile.
package podexec

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// Outcome is the outcome of a command.
type Outcome string

// The outcomes.
const (
	// Succeeded means that the node reported exit code 0.
	Succeeded Outcome = "succeeded"
	// Failed means that the node reported another exit code.
	Failed Outcome = "failed"
	// Unknown means that the exit code is unknown.
	Unknown Outcome = "unknown"
)

// Hurry is how long after its decision a command may begin by default. MaxHurry is the max for callers
// that allow more time because the API server is slow.
const Hurry, MaxHurry = 5 * time.Second, 20 * time.Second

// MaxOutput is the max number of bytes that are kept of stdout and of stderr, regardless of
// Command.Keep. maxWhy is the max number of bytes of Result.Why.
const MaxOutput, maxWhy = 64 << 10, 1 << 10

// Command is a command for one running container.
type Command struct {
	// Name describes the command; it is not sent.
	Name string
	Pod  types.NamespacedName
	// UID is the UID of the pod. Another pod with the same name does not match.
	UID types.UID
	// Container is the name of the container. ContainerID is its ID, which changes when the container
	// restarts.
	Container, ContainerID string
	// Decided, if set, is when the command was decided, by the clock of this process. It is unique. The
	// command does not begin later than Within after it (0 means Hurry), because a process that was
	// frozen may have decided on stale state.
	Decided time.Time
	Within  time.Duration
	// Asked is when the caller requested the command. It is only for the caller and is not sent.
	Asked time.Time
	// Proven is set by the caller if another member is known to have all of the data. It is returned
	// with the result and is not sent.
	Proven bool
	// Argv is run without a shell.
	Argv []string
	// Timeout is how long Run waits for the end of the command. The command itself continues in the
	// container: Kubernetes does not terminate it.
	Timeout time.Duration
	// Keep is how many bytes of stdout and of stderr are kept, without leading whitespace. The rest is
	// read and discarded. 0 keeps nothing.
	Keep int
}

// Result is the result of a command.
type Result struct {
	Command
	Outcome Outcome
	// Code is the exit code. It is undefined if the outcome is unknown.
	Code int
	// Stdout and Stderr are the output of the command, up to Command.Keep bytes.
	Stdout, Stderr string
	// Cut is true if stdout was longer than the kept text, not counting trailing whitespace.
	Cut bool
	// Why is why the outcome is unknown, in at most maxWhy bytes.
	Why string
	// Sent is false if it is certain that the command never began.
	Sent bool
	// Refused is true if the API server rejected the command, or could not reach the node.
	Refused bool
	// Began and Ended are times of this process's clock.
	Began, Ended time.Time
}

// EndUnseen reports whether the command may still be running in its container.
func (r Result) EndUnseen() bool { return r.Outcome == Unknown && r.Sent }

// Executor runs commands through the API server.
type Executor struct {
	config *rest.Config
	core   rest.Interface
	live   client.Reader
	lease  *leadership.Lease
}

// NewExecutor returns an Executor. It reads pods with live, which must not be a cache. It sends nothing
// if the lease does not allow writes. It returns an error if no client can be created from config.
func NewExecutor(config *rest.Config, live client.Reader, lease *leadership.Lease) (*Executor, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create a client for exec: %w", err)
	}
	return &Executor{config: config, core: core.RESTClient(), live: live, lease: lease}, nil
}

// Run runs one command. It waits for its end, its timeout, or the end of ctx.
func (e *Executor) Run(ctx context.Context, c Command) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	result := Result{Command: c, Outcome: Unknown, Began: time.Now()}
	result.Why = e.gone(ctx, c)
	if c.late() {
		result.Why = fmt.Sprintf("not sent within %s of the decision: the API server is slow, or this operator has too little CPU (%s elapsed)",
			c.within(), time.Since(c.Decided).Round(time.Millisecond))
	}
	if err := e.lease.Check(); err != nil && result.Why == "" {
		result.Why = err.Error()
	}
	if result.Why == "" {
		e.stream(ctx, &result)
	}
	if result.Outcome != Unknown {
		// The response may come from a container that has replaced this one.
		if why := e.gone(ctx, c); why != "" {
			result.Outcome, result.Why = Unknown, why
		}
	}
	result.Why = excerpt.Of(result.Why, maxWhy)
	result.Ended = time.Now()
	return result
}

// late reports whether the command must not begin any more.
func (c Command) late() bool { return !c.Decided.IsZero() && time.Since(c.Decided) > c.within() }

// within returns how long after its decision the command may begin.
func (c Command) within() time.Duration {
	if c.Within > 0 {
		return c.Within
	}
	return Hurry
}

// gone returns why the container of the command does not exist any more; "" if it still runs.
func (e *Executor) gone(ctx context.Context, c Command) string {
	var pod corev1.Pod
	if err := e.live.Get(ctx, c.Pod, &pod); err != nil {
		return "cannot read the pod: " + err.Error()
	}
	if pod.UID != c.UID {
		return "the pod was replaced by another one of the same name"
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == c.Container && s.ContainerID == c.ContainerID && s.State.Running != nil {
			return ""
		}
	}
	return "the container is no longer running"
}
