// Package podexec runs commands in the containers of pods.
//
// What came of a command is one of three: it succeeded, it failed, or nobody
// knows. A stream that breaks, an answer that does not come, a pod that was
// replaced meanwhile: unknown, which is neither of the others.
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

// Outcome is what is known of a command's end.
type Outcome string

// The outcomes.
const (
	// Succeeded is exit code 0, told by the node.
	Succeeded Outcome = "succeeded"
	// Failed is any other exit code, told by the node.
	Failed Outcome = "failed"
	// Unknown is everything else.
	Unknown Outcome = "unknown"
)

// Hurry is how long after its decision a command may begin, and MostHurry how long
// where the decider gives it longer because the API server is slow.
const Hurry, MostHurry = 5 * time.Second, 20 * time.Second

// MostOutput is how many bytes of each of stdout and stderr are kept, whatever
// Command.Keep says, and mostWhy how many of a reason.
const MostOutput, mostWhy = 64 << 10, 1 << 10

// Command is one argv for one running container.
type Command struct {
	// Name says what the command is for; it is not sent.
	Name string
	Pod  types.NamespacedName
	// UID is that of the pod. A pod of the same name is another.
	UID types.UID
	// Container is the name of the container, and ContainerID the one of its
	// containers that is meant: after a restart it is another.
	Container, ContainerID string
	// Decided, if set, is when it was decided on, by this process's clock; no
	// other command has the same. It is not begun later than Within after that (0 is
	// Hurry): a process that was held up may know an old world only.
	Decided time.Time
	Within  time.Duration
	// Asked is the decider's own note of when it asked. It is not sent.
	Asked time.Time
	// Proven is the decider's own note that comes back with the result: what the
	// command ends is safe elsewhere. It is not sent.
	Proven bool
	// Argv is run as it is, without a shell.
	Argv []string
	// Timeout is how long its end is waited for. The command itself goes on in
	// the container: nothing in Kubernetes ends it.
	Timeout time.Duration
	// Keep is how many bytes are kept of what it prints on each of stdout and stderr,
	// after blanks; the rest is read and thrown away. Of 0 nothing is kept.
	Keep int
}

// Result is what came of a command.
type Result struct {
	Command
	Outcome Outcome
	// Code is the exit code; it means nothing when the outcome is unknown.
	Code int
	// Stdout and Stderr are what the command printed, as far as Command.Keep says.
	Stdout, Stderr string
	// Cut is true when it printed more on stdout than was kept, blanks at the end aside.
	Cut bool
	// Why says why the outcome is unknown, in at most mostWhy bytes.
	Why string
	// Sent is false when the command surely never began.
	Sent bool
	// Refused is true when the API server answered that it does not begin it: it
	// forbids it, or does not reach the node.
	Refused bool
	// Began and Ended are by this process's clock.
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

// NewExecutor makes an Executor that reads pods with live, past any cache, and sends
// nothing where the lease allows no write. It fails when the configuration makes no
// client.
func NewExecutor(config *rest.Config, live client.Reader, lease *leadership.Lease) (*Executor, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for exec: %w", err)
	}
	return &Executor{config: config, core: core.RESTClient(), live: live, lease: lease}, nil
}

// Run runs one command and waits for its end, its timeout, or the end of ctx.
func (e *Executor) Run(ctx context.Context, c Command) Result {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	result := Result{Command: c, Outcome: Unknown, Began: time.Now()}
	result.Why = e.gone(ctx, c)
	if c.late() {
		result.Why = fmt.Sprintf("it could not be sent within %s of its decision: the API server is slow, or this operator has too little CPU (%s have passed)",
			c.within(), time.Since(c.Decided).Round(time.Millisecond))
	}
	if err := e.lease.Check(); err != nil && result.Why == "" {
		result.Why = err.Error()
	}
	if result.Why == "" {
		e.stream(ctx, &result)
	}
	if result.Outcome != Unknown {
		// The answer may be that of a container that took this one's place.
		if why := e.gone(ctx, c); why != "" {
			result.Outcome, result.Why = Unknown, why
		}
	}
	result.Why = excerpt.Of(result.Why, mostWhy)
	result.Ended = time.Now()
	return result
}

func (c Command) late() bool { return !c.Decided.IsZero() && time.Since(c.Decided) > c.within() }

func (c Command) within() time.Duration {
	if c.Within > 0 {
		return c.Within
	}
	return Hurry
}

// gone says why the container that is meant is not there; "" when it is.
func (e *Executor) gone(ctx context.Context, c Command) string {
	var pod corev1.Pod
	if err := e.live.Get(ctx, c.Pod, &pod); err != nil {
		return "the pod could not be read: " + err.Error()
	}
	if pod.UID != c.UID {
		return "another pod has its name now"
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name == c.Container && s.ContainerID == c.ContainerID && s.State.Running != nil {
			return ""
		}
	}
	return "the container is not running any more"
}
