package replicatedstatefulset

import (
	"context"
	"math/rand"
	"slices"
	"strconv"
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
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// The fake agents are process 1 of members with a Lease. They keep the rules of agent/lease, whose tests are there:
// an agent renews the Lease while it names the pod, is armed with its epoch after the first renewal, and ends the
// container when no renewal has succeeded for 2/3 of the duration.

// network is what the agents reach, and how late they are.
type network struct {
	// cut are nodes that reach all other nodes, but not the API server. If such a Node is Ready, only
	// the pods do not reach it.
	cut map[string]bool
	// away is true while no agent and no kubelet reaches the API server.
	away bool
	// chance makes requests of agents late, and loses responses. If it is nil, they take no time.
	chance *rand.Rand
	// loses, if set, reports whether the response to a request of an agent is lost.
	loses func(a *fakeAgent, renews bool) bool
	// late are requests of agents that the API server executes later.
	late []func()
	// begun is the number of containers of each pod.
	begun map[string]int
	// fenced is the number of containers that agents have ended.
	fenced int
}

// fakeAgent is process 1 of a member with a Lease.
type fakeAgent struct {
	c        *fakeContainer
	lease    string
	identity string
	duration time.Duration

	// version, holder and epoch are those of the Lease as last read or written.
	version, holder string
	epoch           int64
	// current is true if no change of the Lease is known since.
	current bool
	// armed is true if the watchdog is armed. shown is the epoch with which commands begin, or 0, and highest that
	// with which the agent was armed.
	armed          bool
	shown, highest int64
	renewed        time.Time // when the last renewal that succeeded was sent
	nextAt         time.Time // when the next request is sent
	request        *agentRequest
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
func (s *stage) newAgent(p *corev1.Pod, c *fakeContainer) *fakeAgent {
	duration := children.LeaseDuration(p, p.Annotations[v1alpha1.AnnotationContainer])
	if duration == 0 {
		return nil
	}
	return &fakeAgent{c: c, lease: children.LeaseName(p.Name), identity: fencing.Identity(p), duration: duration, nextAt: s.Now}
}

// deadline returns when an armed agent ends the container.
func (a *fakeAgent) deadline() time.Time { return a.renewed.Add(a.duration * 2 / 3) }

// due returns when the agent does something, if no change of the Lease is reported.
func (a *fakeAgent) due() time.Time {
	at := a.nextAt
	if a.request != nil {
		at = a.request.answerAt
	}
	if a.armed && a.deadline().Before(at) {
		return a.deadline()
	}
	return at
}

// keepUp lets the agents do what they have done until now. Only they act while time passes.
func (s *stage) keepUp() {
	for range 100_000 {
		var first *fakeAgent
		for _, c := range s.db.all() {
			a := c.agent
			if a == nil || c.frozen {
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
	s.Fatal(s.t, "an agent does not wait")
}

// reportChanges reports changed Leases to the agents, as their watches do.
func (s *stage) reportChanges() {
	for _, c := range s.db.all() {
		a := c.agent
		if a == nil || c.frozen || a.request != nil || !s.reachesServer(c) || s.isLate() {
			continue
		}
		if now := s.lease(a.lease); now != nil && now.ResourceVersion != a.version && now.Labels[v1alpha1.LabelLease] != "" {
			a.current, a.nextAt = false, s.Now
		}
	}
}

// isLate reports whether something is late, by chance.
func (s *stage) isLate() bool { return s.net.chance != nil && s.net.chance.Intn(3) == 0 }

// sleep lets time pass.
func (s *stage) sleep(d time.Duration) {
	s.Now = s.Now.Add(d)
	s.keepUp()
}

// act executes the next step of an agent at a time that has passed.
func (a *fakeAgent) act(s *stage, at time.Time) {
	r := a.request
	switch {
	case a.armed && !at.Before(a.deadline()):
		a.fence(s, "has not renewed its Lease in time")
	case r == nil:
		a.send(s, at)
	case !at.Before(r.answerAt):
		a.request = nil
		a.answered(s, r, at)
	}
}

// send sends a request.
func (a *fakeAgent) send(s *stage, at time.Time) {
	r := &agentRequest{renews: a.current && a.holder == a.identity, sent: at, answerAt: at.Add(a.duration / 5), outcome: failed}
	a.request = r
	version := a.version
	execute := func() { r.outcome, r.answer = a.execute(s, r.renews, version, at) }
	if !s.reachesServer(a.c) {
		return
	}
	fate := 9
	if s.net.chance != nil {
		fate = s.net.chance.Intn(10)
	}
	if s.net.loses != nil && s.net.loses(a, r.renews) {
		fate = 0
	}
	switch fate {
	case 0: // the response is lost
		execute()
		r.outcome, r.answer = failed, nil
	case 1: // it is late, and its response is lost
		s.net.late = append(s.net.late, func() { a.execute(s, r.renews, version, s.Now) })
	case 2: // the response is late
		execute()
		r.answerAt = at.Add(time.Duration(s.net.chance.Intn(int(a.duration / 5))))
	default:
		execute()
		r.answerAt = at
	}
}

// execute executes a request in the API server.
func (a *fakeAgent) execute(s *stage, renews bool, version string, at time.Time) (outcome string, answer *coordinationv1.Lease) {
	have := s.lease(a.lease)
	switch {
	case have == nil, have.Labels[v1alpha1.LabelLease] == "", !s.mayUse(a.lease):
		return failed, nil
	case !renews:
		return "", have
	case have.ResourceVersion != version:
		return conflict, nil
	}
	next := objects.Clone(have)
	next.Spec.RenewTime, next.Spec.LeaseDurationSeconds = ptr.To(metav1.NewMicroTime(at)), ptr.To(int32(a.duration/time.Second))
	s.Put(next)
	return "", s.lease(a.lease)
}

// answered handles the outcome of a request.
func (a *fakeAgent) answered(s *stage, r *agentRequest, at time.Time) {
	switch r.outcome {
	case failed:
		a.current = a.current && s.lease(a.lease) != nil
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
	case a.armed && a.epoch < a.highest:
		a.fence(s, "has a Lease with a lower epoch")
	case a.holder != a.identity:
		a.armed, a.shown, a.highest = false, 0, 0
	case !r.renews:
		a.follow(at)
	default:
		a.renewed, a.nextAt = r.sent, r.sent.Add(a.duration/3)
		if at.Before(a.deadline()) {
			a.armed, a.shown, a.highest = true, a.epoch, a.epoch
		}
	}
}

// follow is called when an agent has read that the Lease names its pod. It renews the Lease at once, unless it is armed
// with this epoch and has renewed it recently.
func (a *fakeAgent) follow(at time.Time) {
	due := a.renewed.Add(a.duration / 3)
	if a.armed && a.shown == a.epoch && due.After(at) {
		a.nextAt = due
		return
	}
	a.nextAt, a.shown = at, 0
	if a.armed {
		a.highest = a.epoch
	}
}

// fence ends the container with all its processes. The kubelet restarts it, also if it does not reach the API server.
func (a *fakeAgent) fence(s *stage, why string) {
	s.Say("    %s %s and ends", a.c.id, why)
	s.net.fenced++
	s.db.kill(a.c)
	isCut := s.net.away || !s.up(a.c.node)
	if p := s.podOf(a.c.uid); p != nil && isCut {
		s.db.start(p)
	}
}

// reachesServer reports whether a container reaches the API server.
func (s *stage) reachesServer(c *fakeContainer) bool {
	isCut := s.net.away || s.net.cut[c.node]
	return !isCut && s.up(c.node)
}

// liveReader reads from the API server.
type liveReader struct{ *stage }

// List reads objects.
func (l liveReader) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, areLeases := into.(*coordinationv1.LeaseList); areLeases && l.isLive && l.between != nil {
		act := l.between
		l.between, l.isLive = nil, false
		act()
		l.between, l.isLive = act, true
	}
	return l.Cluster.List(ctx, into, opts...)
}

// mayUse reports whether the pods have the rights on a Lease.
func (s *stage) mayUse(lease string) bool {
	key := client.ObjectKey{Namespace: "ns", Name: "rss-db" + v1alpha1.LeaseSuffix}
	var role rbacv1.Role
	if s.Get(context.Background(), key, &role) != nil || s.Get(context.Background(), key, &rbacv1.RoleBinding{}) != nil {
		return false
	}
	return len(role.Rules) == 1 && slices.Contains(role.Rules[0].ResourceNames, lease)
}

// lease returns a stored Lease. It must not be modified. It returns nil if there is none.
func (s *stage) lease(name string) *coordinationv1.Lease {
	lease, _ := s.All[objects.Key{Kind: "Lease", Namespace: "ns", Name: name}].(*coordinationv1.Lease)
	return lease
}

// leases returns all Leases, sorted by name.
func (s *stage) leases() (all []*coordinationv1.Lease) {
	for _, obj := range s.All {
		if lease, ok := obj.(*coordinationv1.Lease); ok {
			all = append(all, lease)
		}
	}
	slices.SortFunc(all, func(a, b *coordinationv1.Lease) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// granted checks that each member with a Lease that acts as primary has a grant on record.
func (l *invariant) granted() {
	set := l.s.set()
	for _, c := range l.s.db.acting() {
		if c.agent == nil || set == nil {
			continue
		}
		if !slices.ContainsFunc(set.Status.Grants, func(g v1alpha1.Grant) bool { return g.Pod == c.pod }) {
			l.s.Breaks("%s acts as primary without a grant", c.id)
		}
	}
}

// isExpiring reports whether a Lease that names a pod is not renewed, so that it triggers a pass soon.
func (s *stage) isExpiring() bool {
	return slices.ContainsFunc(s.leases(), func(l *coordinationv1.Lease) bool {
		last := ptr.Deref(l.Spec.AcquireTime, metav1.NewMicroTime(s.Now))
		if l.Spec.RenewTime != nil {
			last = *l.Spec.RenewTime
		}
		age, duration := s.Now.Sub(last.Time), time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second
		isHeld := fencing.HolderOf(l) != "" && l.Spec.AcquireTime != nil
		return isHeld && age > duration/2 && age < 2*duration
	})
}

// hasLeases reports whether members have Leases.
func (s *stage) hasLeases() bool {
	return slices.ContainsFunc(s.db.all(), func(c *fakeContainer) bool { return c.agent != nil })
}

// epochOf returns the epoch with which a command may begin, and the command itself. The epoch is 0 if it always begins.
func epochOf(argv []string) (epoch int64, rest []string) {
	if len(argv) < 4 || argv[0] != fixture.AgentPath || argv[1] != "fenced" {
		return 0, argv
	}
	text := strings.TrimPrefix(argv[2], "--epoch=")
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return epoch, argv[4:]
}

// mayBegin reports whether a command may begin in a container now.
func mayBegin(c *fakeContainer, argv []string) bool {
	epoch, _ := epochOf(argv)
	isArmed := c.agent != nil && c.agent.shown == epoch
	return epoch == 0 || isArmed
}

// isWaiting reports whether a command waits until its container is armed.
func (t *fakeDB) isWaiting(c *fakeCommand) bool {
	return c.target != nil && !mayBegin(c.target, c.Argv) && t.s.Now.Sub(c.began) < armedLimit
}

// isFenced reports whether a command begins only in an armed container.
func (t *fakeDB) isFenced(c *fakeCommand) bool {
	epoch, _ := epochOf(c.Argv)
	return epoch > 0
}

// waits reports whether a command waits until its container is armed.
func (t *fakeDB) waits() bool {
	for _, c := range t.running {
		if t.isWaiting(c) {
			return true
		}
	}
	return false
}

// later adds the delayed effect of a command. Either it has begun, and is slow, or it reaches the container later.
func (t *fakeDB) later(c *fakeContainer, command podexec.Command) {
	if c != nil && mayBegin(c, command.Argv) && !t.s.isLate() {
		_, command.Argv = epochOf(command.Argv)
	}
	t.late = append(t.late, func() { t.act(c, command) })
}

// fencedByLease returns a set whose members have Leases, as `describe --filled` prints it.
func fencedByLease(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.Containers[0].Command = []string{fixture.AgentPath, "postgresql", "idle",
		fencing.LeaseFlag + "$(POD_NAME)" + v1alpha1.LeaseSuffix, fencing.DurationArgument(fixture.LeaseSeconds)}
	return set
}
