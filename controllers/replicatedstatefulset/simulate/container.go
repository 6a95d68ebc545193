package simulate

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// Container is a running container in which commands run. The API may not show it.
type Container struct {
	Pod, ID, Node string
	UID           types.UID
	// Role is idle, secondary or primary.
	Role record.State
	// Behind is a secondary that reports that it has lost its primary.
	Behind bool
	// Slow is a secondary that gets no entries for now, and does not report it.
	Slow bool
	// Frozen is a container whose processes are all stopped for now.
	Frozen bool
	// Agent is process 1. It is nil if the member has no Lease.
	Agent *Agent

	number  int
	started time.Time
}

// Disk is the volume of a member.
type Disk struct {
	// Term is the number of first primaries that the data has had since the simulation began.
	Term int
	// Log are the entries that were written since then.
	Log []int

	// base is the position of the data at that time.
	base uint64
}

func (d *Disk) sequence() uint64 { return d.base + uint64(d.Term)*10000 + uint64(len(d.Log)) }

// isLevelWith reports whether two volumes have equally many entries.
func (d *Disk) isLevelWith(other *Disk) bool {
	return d.base == other.base && len(d.Log) == len(other.Log)
}

// answer answers a query.
func (c *Container) answer(name string, d *Disk) (code int, out string) {
	switch {
	case name == v1alpha1.CommandSequence:
		return 0, strconv.FormatUint(d.sequence(), 10) + "\n"
	case c.Behind:
		return 1, ""
	case c.Role == record.Primary:
		return 8, ""
	case c.Role == record.Secondary:
		return 0, ""
	}
	return 7, ""
}

// Disk returns the volume of a pod.
func (db *Database) Disk(pod string) *Disk {
	if db.disks[pod] == nil {
		db.disks[pod] = &Disk{}
	}
	return db.disks[pod]
}

func (db *Database) copy(from, to *Container) {
	d := db.Disk(from.Pod)
	db.disks[to.Pod] = &Disk{d.Term, slices.Clone(d.Log), d.base}
}

// Reach reports whether two containers reach each other.
func (db *Database) Reach(a, b *Container) bool {
	if a.Frozen || b.Frozen {
		return false
	}
	connected := func(node string) bool { return db.s.Up(node) || db.s.Net.Cut[node] }
	bothAre := connected(a.Node) && connected(b.Node)
	return a.Node == b.Node || bothAre
}

// All returns the running containers, including those that the API no longer shows.
func (db *Database) All() (all []*Container) {
	for _, name := range sorted(db.Containers) {
		all = append(all, db.Containers[name])
	}
	return append(all, db.Ghosts...)
}

// Acting returns the containers that act as primary.
func (db *Database) Acting() (primaries []*Container) {
	for _, c := range db.All() {
		if c.Role == record.Primary && !c.Frozen {
			primaries = append(primaries, c)
		}
	}
	return primaries
}

// isRunning reports whether a container has not ended.
func (db *Database) isRunning(c *Container) bool {
	return db.Containers[c.Pod] == c || slices.Contains(db.Ghosts, c)
}

// Begin starts a container as a kubelet does, as Kill ends one. The API shows it later.
func (db *Database) Begin(p *corev1.Pod) {
	old := db.Containers[p.Name]
	number := 0
	if old != nil && old.UID == p.UID {
		number = old.number + 1
	} else if old != nil {
		db.Ghosts = append(db.Ghosts, old)
	}
	if status := mainStatus(p); status != nil {
		number = max(number, int(status.RestartCount)+1)
	}
	isLeased := children.LeaseDuration(p, p.Annotations[v1alpha1.AnnotationContainer]) > 0
	if isLeased { // it can restart while its kubelet does not reach the API server
		number = max(number, db.s.Net.begun[string(p.UID)])
		db.s.Net.begun[string(p.UID)] = number + 1
	}
	c := &Container{Pod: p.Name, UID: p.UID, Node: p.Spec.NodeName, number: number, started: db.s.Now,
		ID: fmt.Sprintf("c-%s-%d", p.UID, number), Role: record.Idle}
	c.Agent = db.s.newAgent(p, c)
	db.Containers[p.Name] = c
}

// Kill ends a container.
func (db *Database) Kill(c *Container) {
	if db.Containers[c.Pod] == c {
		delete(db.Containers, c.Pod)
	}
	db.Ghosts = slices.DeleteFunc(db.Ghosts, func(g *Container) bool { return g == c })
}

// Container returns the container of that pod, and not of another pod of the same name.
func (db *Database) Container(p *corev1.Pod) *Container {
	if c := db.Containers[p.Name]; c != nil && c.UID == p.UID {
		return c
	}
	for _, c := range db.Containers {
		if c.UID == p.UID {
			return c
		}
	}
	for _, c := range db.Ghosts {
		if c.UID == p.UID {
			return c
		}
	}
	return nil
}

// resume adds the containers that the statuses of the pods show as running. Members have the roles and the data that the
// status of the set reports.
func (s *Simulation) resume() {
	set := s.Set()
	if set == nil {
		return
	}
	for _, p := range s.Pods() {
		for _, claim := range claimsOf(p) {
			s.homes[claim] = p.Spec.NodeName
		}
		if !isResizing(p) {
			s.sized[p.UID] = p.Generation
		}
		status := mainStatus(p)
		if status == nil || status.State.Running == nil {
			continue
		}
		c := &Container{Pod: p.Name, UID: p.UID, Node: p.Spec.NodeName, ID: status.ContainerID, number: int(status.RestartCount),
			started: status.State.Running.StartedAt.Time, Role: roleOf(set, p.Name)}
		if c.Agent = s.newAgent(p, c); c.Agent != nil {
			s.Net.begun[string(p.UID)] = c.number + 1
			c.Agent.resume(s)
		}
		s.DB.Containers[p.Name] = c
		s.DB.Members[p.Name] = c.Role != record.Idle
	}
	s.DB.resume(set)
}

// resume sets the positions of the members' data. No write is in flight: members that run have the newest data.
func (db *Database) resume(set *v1alpha1.ReplicatedStatefulSet) {
	known, newest := map[string]uint64{}, uint64(1)
	for _, q := range set.Status.Sequences {
		if n, err := strconv.ParseUint(q.Sequence, 10, 64); err == nil {
			known[q.Pod], newest = n, max(newest, n)
		}
	}
	for pod, n := range known {
		db.Disk(pod).base = n
	}
	for pod, c := range db.Containers {
		_, isKnown := known[pod]
		if c.Role != record.Idle || !isKnown {
			db.Disk(pod).base = newest
		}
	}
}

// roleOf returns the role of a member as the status of the set reports it.
func roleOf(set *v1alpha1.ReplicatedStatefulSet, pod string) record.State {
	switch members := &set.Status.Members; {
	case slices.Contains(members.Primary, pod):
		return record.Primary
	case slices.Contains(members.Secondary, pod):
		return record.Secondary
	}
	return record.Idle
}

// Thaw continues a frozen container. The agent is scheduled before the program has an effect.
func (c *Container) Thaw(s *Simulation) {
	c.Frozen = false
	a := c.Agent
	if a == nil {
		return
	}
	if a.nextAt.Before(s.Now) {
		a.nextAt = s.Now
	}
	if a.request != nil && a.request.answerAt.Before(s.Now) {
		a.request.answerAt = s.Now
	}
	s.KeepUp()
}
