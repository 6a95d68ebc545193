package lease

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Config configures an agent.
type Config struct {
	Name     string // of the Lease
	Label    string // that the Lease has: LabelSingleton or LabelMember
	Duration time.Duration
	Folders  Folders
	Log      *Log
}

// answer is the response to a request.
type answer struct {
	operation Operation
	lease     Lease
	err       error
}

// keeper executes those steps of a Holder that a program and a member have in common. One goroutine owns it.
type keeper struct {
	Config
	holder   *Holder
	client   *client
	watcher  *watcher
	watchdog *watchdog
	lease    string // namespace and name

	answers chan answer
	cancel  context.CancelFunc // of the current request
	// problem is the last error that was logged.
	problem string
}

// newKeeper returns a keeper with the Holder that a function returns for the identity of the pod.
func newKeeper(config Config, newHolder func(identity string, duration time.Duration) *Holder) (*keeper, error) {
	self, err := config.Folders.readPod()
	if err != nil {
		return nil, fmt.Errorf("read the identity of the pod: %w", err)
	}
	server, err := serverAddress()
	if err != nil {
		return nil, err
	}
	client, err := newClient(server, self.namespace, config)
	if err != nil {
		return nil, fmt.Errorf("configure the client: %w", err)
	}
	if err := setComm(commWaiting); err != nil {
		return nil, err
	}
	k := &keeper{
		Config: config, holder: newHolder(self.identity(), config.Duration), client: client,
		watcher: &watcher{client: client}, lease: self.namespace + "/" + config.Name,
		answers: make(chan answer, 1), cancel: func() {},
	}
	k.watchdog, err = newWatchdog(func() { fence(config.Log, reasonExpired) })
	return k, err
}

// fence ends the container at once: the kernel kills all its processes with process 1. It is called by the
// watchdog too.
func fence(log *Log, reason string) {
	log.Printf("%s: ends the container", reason)
	log.Flush()
	os.Exit(ExitFenced)
}

// send sends a request. Its age is measured from the moment before.
func (k *keeper) send(step Step) {
	k.holder.Sent(step.Operation, sinceBoot())
	k.request(step)
}

// request sends a request that the Holder knows.
func (k *keeper) request(step Step) {
	ctx, cancel := context.WithTimeout(context.Background(), step.Timeout)
	k.cancel = cancel
	known := k.holder.Known()
	go func() {
		defer cancel()
		lease, err := k.client.request(ctx, step.Operation, known)
		k.answers <- answer{step.Operation, lease, err}
	}()
}

func (k *keeper) answered(a answer) {
	outcome, before := outcomeOf(a.err), k.holder.Known().Version
	if isRefusal(a.err) {
		k.holder.Refused()
	}
	k.holder.Answered(outcome, a.lease, sinceBoot())
	k.logProblem(a, outcome)
	if outcome != Succeeded {
		return
	}
	if a.operation == Renew && k.holder.IsRunning() {
		k.arm()
	}
	if a.operation == HandOver {
		k.Log.Printf("handed over Lease %s to %s (epoch %d)", k.lease, a.lease.Holder, a.lease.Epoch)
	}
	missed := a.operation == Get && a.lease.Version != before && a.lease.Version != k.watcher.reported
	if missed || !k.watcher.isActive() {
		k.watcher.start(a.lease.Version)
	}
}

// arm sets the watchdog to the deadline. Without a watchdog, the program must not run. After the deadline, the
// watchdog has expired already.
func (k *keeper) arm() {
	if err := k.watchdog.arm(k.holder.Deadline()); err != nil {
		fence(k.Log, err.Error())
	}
}

func (k *keeper) changed(c change) {
	now := sinceBoot()
	pause := k.watcher.take(c)
	switch {
	case c.ended != nil:
		k.holder.Unwatched(now + pause)
	case c.deleted:
		k.holder.Unwatched(now)
	default:
		k.holder.Changed(c.version, c.holder, now)
	}
}

// logProblem logs an error if it differs from the last one.
func (k *keeper) logProblem(a answer, outcome Outcome) {
	names := map[Operation]string{Get: "read", Renew: "renew", HandOver: "hand over"}
	text := ""
	switch outcome {
	case Failed:
		text = fmt.Sprintf("cannot %s Lease %s: %s", names[a.operation], k.lease, describe(a.err))
	case Missing: // each operation has the same text
		text = fmt.Sprintf("cannot use Lease %s: %s", k.lease, describe(a.err))
	}
	if text != "" && text != k.problem {
		k.Log.Printf("%s", text)
	}
	if text == "" && k.problem != "" && outcome == Succeeded {
		k.Log.Printf("the API server responds again")
	}
	k.problem = text
}
