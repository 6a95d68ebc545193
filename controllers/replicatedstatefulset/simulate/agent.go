package simulate

import (
	"context"
	"math/rand"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
)

// The agents are process 1 of members with a Lease. They keep the rules of agent/lease, whose tests are there:
// an agent renews the Lease while it names the pod, is armed with its epoch after the first renewal, and ends the
// container when no renewal has succeeded for 2/3 of the duration.

// Network determines which agents reach the API server, and how late they are.
type Network struct {
	// Cut are nodes that reach all other nodes, but not the API server. If such a Node is Ready, only
	// the pods do not reach it.
	Cut map[string]bool
	// Away is true while no agent and no kubelet reaches the API server.
	Away bool
	// Chance makes requests of agents late, and loses responses. If it is nil, they take no time.
	Chance *rand.Rand
	// Loses, if set, reports whether the response to a request of an agent is lost.
	Loses func(a *Agent, renews bool) bool
	// Late are requests of agents that the API server executes later.
	Late []func()
	// begun is the number of containers of each pod.
	begun map[string]int
	// Fenced is the number of containers that agents have ended.
	Fenced int
}

// Agent is process 1 of a member with a Lease.
type Agent struct {
	Container *Container
	// Lease is the name of the Lease, and Identity is its holder if it names the pod.
	Lease, Identity string
	// Armed is true if the watchdog is armed. Shown is the epoch with which commands begin, or 0.
	Armed bool
	Shown int64

	duration time.Duration
	// version, holder and epoch are those of the Lease as last read or written.
	version, holder string
	epoch           int64
	// current is true if no change of the Lease is known since.
	current bool
	// highest is the epoch with which the agent was armed.
	highest int64
	renewed time.Time // when the last renewal that succeeded was sent
	nextAt  time.Time // when the next request is sent
	request *agentRequest
}

// agentRequest is a request in the network.
type agentRequest struct {
	renews         bool
	sent, answerAt time.Time
	outcome        string // "", conflict or failed
	answer         *coordinationv1.Lease
}

const (
	// armedLimit is how long a command waits until its container is armed.
	armedLimit = 8 * time.Second
	failed     = "failed"
	conflict   = "conflict"
)

// newAgent returns the agent of a container. It returns nil if its member has no Lease.
func (s *Simulation) newAgent(p *corev1.Pod, c *Container) *Agent {
	duration := children.LeaseDuration(p, p.Annotations[v1alpha1.AnnotationContainer])
	if duration == 0 {
		return nil
	}
	return &Agent{Container: c, Lease: children.LeaseName(p.Name), Identity: fencing.Identity(p), duration: duration, nextAt: s.Now}
}

// resume arms an agent whose Lease names its pod.
func (a *Agent) resume(s *Simulation) {
	lease := s.Lease(a.Lease)
	if fencing.HolderOf(lease) != a.Identity {
		return
	}
	a.version, a.holder, a.epoch, a.current = lease.ResourceVersion, a.Identity, fencing.EpochOf(lease), true
	a.Armed, a.Shown, a.highest = true, a.epoch, a.epoch
	a.renewed, a.nextAt = s.Now, s.Now.Add(a.duration/3)
}

// deadline returns when an armed agent ends the container.
func (a *Agent) deadline() time.Time { return a.renewed.Add(a.duration * 2 / 3) }

// due returns when the agent does something, if no change of the Lease is reported.
func (a *Agent) due() time.Time {
	at := a.nextAt
	if a.request != nil {
		at = a.request.answerAt
	}
	if a.Armed && a.deadline().Before(at) {
		return a.deadline()
	}
	return at
}

// KeepUp lets the agents act until now. Only agents act while time passes.
func (s *Simulation) KeepUp() {
	for range 100_000 {
		var first *Agent
		for _, c := range s.DB.All() {
			a := c.Agent
			if a == nil || c.Frozen {
				continue
			}
			if first == nil || a.due().Before(first.due()) {
				first = a
			}
		}
		if first == nil || first.due().After(s.Now) {
			s.reportChanges()
			return
		}
		first.act(s, first.due())
	}
	panic("an agent does not wait")
}

// reportChanges reports changed Leases to the agents, as their watches do.
func (s *Simulation) reportChanges() {
	for _, c := range s.DB.All() {
		a := c.Agent
		if a == nil || c.Frozen || a.request != nil || !s.reachesServer(c) || s.isLate() {
			continue
		}
		if a.isOutdated(s.Lease(a.Lease)) {
			a.current, a.nextAt = false, s.Now
		}
	}
}

// isOutdated reports whether the agent has not read the present version of its Lease.
func (a *Agent) isOutdated(now *coordinationv1.Lease) bool {
	return now != nil && now.ResourceVersion != a.version && now.Labels[v1alpha1.LabelLease] != ""
}

// isLate reports whether something is late, at random.
func (s *Simulation) isLate() bool { return s.Net.Chance != nil && s.Net.Chance.Intn(3) == 0 }

// act executes the next step of an agent at a time that has passed.
func (a *Agent) act(s *Simulation, at time.Time) {
	r := a.request
	switch {
	case a.Armed && !at.Before(a.deadline()):
		a.fence(s, "has not renewed its Lease in time")
	case r == nil:
		a.send(s, at)
	case !at.Before(r.answerAt):
		a.request = nil
		a.answered(s, r, at)
	}
}

// send sends a request.
func (a *Agent) send(s *Simulation, at time.Time) {
	r := &agentRequest{renews: a.current && a.holder == a.Identity, sent: at, answerAt: at.Add(a.duration / 5), outcome: failed}
	a.request = r
	version := a.version
	execute := func() { r.outcome, r.answer = a.execute(s, r.renews, version, at) }
	if !s.reachesServer(a.Container) {
		return
	}
	fate := 9
	if s.Net.Chance != nil {
		fate = s.Net.Chance.Intn(10)
	}
	if s.Net.Loses != nil && s.Net.Loses(a, r.renews) {
		fate = 0
	}
	switch fate {
	case 0: // the response is lost
		execute()
		r.outcome, r.answer = failed, nil
	case 1: // it is late, and its response is lost
		s.Net.Late = append(s.Net.Late, func() { a.execute(s, r.renews, version, s.Now) })
	case 2: // the response is late
		execute()
		r.answerAt = at.Add(time.Duration(s.Net.Chance.Intn(int(a.duration / 5))))
	default:
		execute()
		r.answerAt = at
	}
}

// execute executes a request in the API server.
func (a *Agent) execute(s *Simulation, renews bool, version string, at time.Time) (outcome string, answer *coordinationv1.Lease) {
	have := s.Lease(a.Lease)
	switch {
	case have == nil, have.Labels[v1alpha1.LabelLease] == "", !s.mayUse(a.Lease):
		return failed, nil
	case !renews:
		return "", have
	case have.ResourceVersion != version:
		return conflict, nil
	}
	next := objects.Clone(have)
	next.Spec.RenewTime, next.Spec.LeaseDurationSeconds = ptr.To(metav1.NewMicroTime(at)), ptr.To(int32(a.duration/time.Second))
	s.Put(next)
	return "", s.Lease(a.Lease)
}

// answered handles the outcome of a request.
func (a *Agent) answered(s *Simulation, r *agentRequest, at time.Time) {
	switch r.outcome {
	case failed:
		a.current = a.current && s.Lease(a.Lease) != nil
		a.nextAt = at.Add(a.duration / 30)
		return
	case conflict:
		a.current, a.nextAt = false, at
		return
	}
	l := r.answer
	a.version, a.holder, a.epoch, a.current = l.ResourceVersion, fencing.HolderOf(l), fencing.EpochOf(l), true
	a.nextAt = at.Add(a.duration / 3)
	switch {
	case a.Armed && a.epoch < a.highest:
		a.fence(s, "has a Lease with a lower epoch")
	case a.holder != a.Identity:
		a.Armed, a.Shown, a.highest = false, 0, 0
	case !r.renews:
		a.follow(at)
	default:
		a.renewed, a.nextAt = r.sent, r.sent.Add(a.duration/3)
		if at.Before(a.deadline()) {
			a.Armed, a.Shown, a.highest = true, a.epoch, a.epoch
		}
	}
}

// follow is called when an agent has read that the Lease names its pod. It renews the Lease at once, unless it is armed
// with this epoch and has renewed it recently.
func (a *Agent) follow(at time.Time) {
	due := a.renewed.Add(a.duration / 3)
	if a.Armed && a.Shown == a.epoch && due.After(at) {
		a.nextAt = due
		return
	}
	a.nextAt, a.Shown = at, 0
	if a.Armed {
		a.highest = a.epoch
	}
}

// fence ends the container with all its processes. The kubelet restarts it, also if it does not reach the API server.
func (a *Agent) fence(s *Simulation, why string) {
	s.Say("    %s %s and ends", a.Container.ID, why)
	s.Net.Fenced++
	s.DB.Kill(a.Container)
	isCut := s.Net.Away || !s.Up(a.Container.Node)
	if p := s.podOf(a.Container.UID); p != nil && isCut {
		s.DB.Begin(p)
	}
}

// reachesServer reports whether a container reaches the API server.
func (s *Simulation) reachesServer(c *Container) bool {
	isCut := s.Net.Away || s.Net.Cut[c.Node]
	return !isCut && s.Up(c.Node)
}

// mayUse reports whether the pods have the rights on a Lease.
func (s *Simulation) mayUse(lease string) bool {
	key := client.ObjectKey{Namespace: s.Key.Namespace, Name: children.RightsName(named(s.Key))}
	var role rbacv1.Role
	if s.Get(context.Background(), key, &role) != nil || s.Get(context.Background(), key, &rbacv1.RoleBinding{}) != nil {
		return false
	}
	return len(role.Rules) == 1 && slices.Contains(role.Rules[0].ResourceNames, lease)
}

// Lease returns a stored Lease. It must not be modified. It returns nil if there is none.
func (s *Simulation) Lease(name string) *coordinationv1.Lease {
	lease, _ := s.All[objects.Key{Kind: "Lease", Namespace: s.Key.Namespace, Name: name}].(*coordinationv1.Lease)
	return lease
}

// Leases returns all Leases, sorted by name.
func (s *Simulation) Leases() (all []*coordinationv1.Lease) {
	for _, obj := range s.All {
		if lease, ok := obj.(*coordinationv1.Lease); ok {
			all = append(all, lease)
		}
	}
	slices.SortFunc(all, func(a, b *coordinationv1.Lease) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// IsExpiring reports whether a Lease that names a pod is not renewed, so that it triggers a pass soon.
func (s *Simulation) IsExpiring() bool {
	return slices.ContainsFunc(s.Leases(), func(l *coordinationv1.Lease) bool {
		last := ptr.Deref(l.Spec.AcquireTime, metav1.NewMicroTime(s.Now))
		if l.Spec.RenewTime != nil {
			last = *l.Spec.RenewTime
		}
		age, duration := s.Now.Sub(last.Time), time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
		isHeld := fencing.HolderOf(l) != "" && l.Spec.AcquireTime != nil
		return isHeld && age > duration/2 && age < 2*duration
	})
}

// HasLeases reports whether members have Leases.
func (s *Simulation) HasLeases() bool {
	return slices.ContainsFunc(s.DB.All(), func(c *Container) bool { return c.Agent != nil })
}

// mayBegin reports whether a command may begin in a container now.
func mayBegin(c *Container, argv []string) bool {
	epoch, _ := application.Unfenced(argv)
	isArmed := c.Agent != nil && c.Agent.Shown == epoch
	return epoch == 0 || isArmed
}

// isWaiting reports whether a command waits until its container is armed.
func (db *Database) isWaiting(c *Command) bool {
	return c.target != nil && !mayBegin(c.target, c.Argv) && db.s.Now.Sub(c.began) < armedLimit
}

// isFenced reports whether a command begins only in an armed container.
func isFenced(c *Command) bool {
	epoch, _ := application.Unfenced(c.Argv)
	return epoch > 0
}

// Waits reports whether a command waits until its container is armed.
func (db *Database) Waits() bool {
	for _, c := range db.Running {
		if db.isWaiting(c) {
			return true
		}
	}
	return false
}

// later adds the delayed effect of a command. Either it has begun, and is slow, or it reaches the container later.
func (db *Database) later(c *Container, command podexec.Command) {
	if c != nil && mayBegin(c, command.Argv) && !db.s.isLate() {
		_, command.Argv = application.Unfenced(command.Argv)
	}
	db.Late = append(db.Late, func() { db.act(c, command) })
}
