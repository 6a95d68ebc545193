package lease

import (
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// member shows the epoch of its Lease in the name of process 1, as the steps of a Holder require. One goroutine owns
// it.
type member struct {
	*keeper
	asked   chan os.Signal // a command asks for a read of the Lease
	refused int64          // the last epoch that cannot be shown
}

// Keep renews the Lease of a member in the background while the Lease names the pod. Process 1 must call it, and its
// name shows the epoch from then on. The container ends when no renewal has succeeded in time. askSignal makes it
// read the Lease.
func Keep(config Config) error {
	klog.SetLogger(logr.Discard()) // it would write to the log of the container, and wait
	m, err := newMember(config)
	if err != nil {
		return err
	}
	signal.Notify(m.asked, askSignal)
	config.Log.Printf("waiting for Lease %s as %s", m.lease, m.holder.identity)
	go m.run()
	return nil
}

func newMember(config Config) (*member, error) {
	keeper, err := newKeeper(config, NewMember)
	if err != nil {
		return nil, err
	}
	keeper.client.mustExist = true
	return &member{keeper: keeper, asked: make(chan os.Signal, 1)}, nil
}

func (m *member) run() {
	for {
		m.execute(m.holder.Next(sinceBoot()))
	}
}

func (m *member) execute(step Step) {
	switch step.Operation {
	case Wait:
		m.wait(step.At)
	case Arm:
		m.showEpoch()
	case Hide:
		m.show(commWaiting)
		m.holder.Hidden()
	case Disarm:
		m.disarm()
	case Fence:
		fence(m.Log, step.Reason)
	default:
		m.send(step)
	}
}

// wait handles one event.
func (m *member) wait(until time.Duration) {
	timer := time.NewTimer(until - sinceBoot())
	defer timer.Stop()
	select {
	case a := <-m.answers:
		m.answered(a)
		m.guard()
		m.logRefused()
	case c := <-m.watcher.changes:
		m.changed(c)
	case <-m.asked:
		m.holder.Asked(sinceBoot())
	case <-timer.C:
	}
}

// send sends a request. The watchdog is set before, because the operator can see a renewal at once.
func (m *member) send(step Step) {
	m.holder.Sent(step.Operation, sinceBoot())
	m.guard()
	m.request(step)
}

// guard sets the watchdog of a waiting member to the deadline of its renewals, or stops it if there is none.
func (m *member) guard() {
	if !m.holder.IsWaiting() {
		return
	}
	set := m.watchdog.disarm
	if at := m.holder.Uncertain(); at > 0 {
		set = func() error { return m.watchdog.arm(at) }
	}
	if err := set(); err != nil {
		fence(m.Log, err.Error())
	}
}

// show sets the name of process 1. A name that cannot be replaced would let commands run too long.
func (m *member) show(name string) {
	if err := setComm(name); err != nil {
		fence(m.Log, err.Error())
	}
}

// showEpoch shows the epoch of the Lease. The watchdog is armed before: a command runs as soon as its epoch is shown.
func (m *member) showEpoch() {
	epoch := m.holder.Known().Epoch
	m.arm()
	m.show(armedComm(epoch))
	m.holder.Armed()
	m.Log.Printf("armed with epoch %d of Lease %s", epoch, m.lease)
}

// disarm stops the watchdog. The epoch is hidden before: no command begins without the watchdog.
func (m *member) disarm() {
	m.show(commWaiting)
	if err := m.watchdog.disarm(); err != nil {
		fence(m.Log, err.Error())
	}
	m.holder.Disarmed(sinceBoot())
	m.Log.Printf("disarmed: Lease %s (epoch %d) does not name this pod", m.lease, m.holder.Known().Epoch)
}

// logRefused logs an epoch once.
func (m *member) logRefused() {
	epoch := m.holder.Known().Epoch
	if !m.holder.IsUnshowable() || epoch == m.refused {
		return
	}
	m.refused = epoch
	m.Log.Printf("Lease %s names this pod with epoch %d, and is not renewed: %s", m.lease, epoch, reasonUnshowable)
}
