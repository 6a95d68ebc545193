package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The fake database keeps a log on the volume of each member. A primary acknowledges an entry when
// every follower that it reaches has it, and at least one does. A member that missed an entry
// reports a failure. Primaries that cannot reach each other write nothing.

// fakeContainer is a container that runs, whatever the API shows.
type fakeContainer struct {
	pod, id, node string
	uid           types.UID
	number        int
	started       time.Time
	role          record.State // idle, secondary or primary
	behind        bool         // it reports that it has lost its primary
	slow          bool         // it gets no entries for now, and does not report it
	frozen        bool         // none of its processes runs for now
	agent         *fakeAgent   // nil if the member has no Lease
}

// disk is a member's volume.
type disk struct {
	term int
	log  []int
}

func (d *disk) sequence() int { return d.term*10000 + len(d.log) }

type fakeDB struct {
	s          *stage
	containers map[string]*fakeContainer // by pod; includes those of deleted pods until they end
	ghosts     []*fakeContainer          // of pods whose name another pod has
	disks      map[string]*disk
	acked      []int
	entries    int
	running    map[types.UID]*fakeCommand
	results    map[types.UID]map[string]podexec.Result
	members    map[string]bool // pods that the application knows
	late       []func()        // delayed effects of commands whose result is no longer awaited
	fails      map[string]int
	hangs      map[string]bool // commands by "pod name" that never end
	idles      map[string]bool // commands by "pod name" that end with 0 and do nothing
	ran        []string
}

type fakeCommand struct {
	podexec.Command
	began time.Time
	// target is the container that the command reached. arrived is true after delivery was
	// attempted.
	target  *fakeContainer
	arrived bool
}

func newFakeDB(s *stage) *fakeDB {
	return &fakeDB{s: s, containers: map[string]*fakeContainer{}, disks: map[string]*disk{}, running: map[types.UID]*fakeCommand{},
		results: map[types.UID]map[string]podexec.Result{}, fails: map[string]int{}, hangs: map[string]bool{}, idles: map[string]bool{}, members: map[string]bool{}}
}

// forget clears the Board as a restart of the operator does. Sent commands go on; others are never
// sent.
func (t *fakeDB) forget() {
	for _, uid := range sortedKeys(t.running) {
		c := t.running[uid]
		t.late = append(t.late, func() {
			if !c.arrived {
				t.arrive(c)
			}
			t.act(c.target, c.Command)
		})
	}
	t.running, t.results = map[types.UID]*fakeCommand{}, map[types.UID]map[string]podexec.Result{}
}

func (t *fakeDB) Of(_ types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result) {
	var results []podexec.Result
	for _, r := range t.results[pod] {
		results = append(results, r)
	}
	if c := t.running[pod]; c != nil {
		return &c.Command, results
	}
	return nil, results
}

func (t *fakeDB) Keep(types.NamespacedName, ...types.UID) {}

func (t *fakeDB) send(c podexec.Command) bool {
	if t.running[c.UID] != nil {
		return false
	}
	t.s.invariant.parked(c)
	t.running[c.UID] = &fakeCommand{Command: c, began: t.s.tick()}
	return true
}

// arrive delivers a command to the container that has the pod's name then. Delivery takes a few
// seconds at most.
func (t *fakeDB) arrive(c *fakeCommand) {
	c.arrived = true
	if t.shown(c.Command) && t.s.Now.Sub(c.began) <= podexec.Hurry {
		if target := t.containers[c.Pod.Name]; target != nil && t.s.up(target.node) {
			c.target = target
		}
	}
}

// shown reports whether the API shows the container that a command is for.
func (t *fakeDB) shown(c podexec.Command) bool {
	for _, p := range t.s.pods() {
		if p.UID == c.UID && len(p.Status.ContainerStatuses) > 0 {
			s := p.Status.ContainerStatuses[0]
			return s.ContainerID == c.ContainerID && s.State.Running != nil
		}
	}
	return false
}

// end ends a command in the given way.
func (t *fakeDB) end(c *fakeCommand, how string) {
	if t.running[c.UID] != c {
		return
	}
	r := podexec.Result{Command: c.Command, Outcome: podexec.Unknown, Began: c.began, Sent: true}
	if !c.arrived {
		t.arrive(c)
	}
	if how == "" && t.isWaiting(c) {
		return
	}
	target := c.target
	switch {
	case target == nil:
		r.Sent, r.Why = false, "the container is no longer running"
	case how == "not sent":
		r.Sent, r.Why = false, "the API server is unreachable"
	case !t.s.up(target.node):
		t.later(target, c.Command)
		r.Why = "the node is unreachable"
	case target.frozen:
		t.later(target, c.Command)
		r.Why = "it did not end in time"
	case t.containers[target.pod] != target && !slices.Contains(t.ghosts, target):
		r.Why = "the container ended"
	case how == "answer lost":
		t.act(target, c.Command)
		r.Why = "the stream broke"
	case how == "late":
		t.later(target, c.Command)
		r.Why = "it did not end in time"
	case how == "returns 0": // the command still runs
		t.later(target, c.Command)
		r.Outcome = podexec.Succeeded
		t.note(c.Command, "= 0, while it is still running")
	case t.idles[c.Pod.Name+" "+c.Name]:
		r.Outcome = podexec.Succeeded
		t.note(c.Command, "= 0, without effect")
	case how == "fails", t.fails[c.Pod.Name+" "+c.Name] > 0:
		t.fails[c.Pod.Name+" "+c.Name]--
		r.Outcome, r.Code = podexec.Failed, 1
		if c.Name == v1alpha1.CommandLeave {
			delete(t.members, c.Pod.Name) // a failed leave may have taken effect
		}
		t.note(c.Command, "fails")
	default:
		r.Code, r.Stdout = t.act(target, c.Command)
		r.Outcome = podexec.Succeeded
		if r.Code != 0 {
			r.Outcome = podexec.Failed
		}
		if !t.shown(c.Command) {
			r.Outcome, r.Why = podexec.Unknown, "the container is no longer running"
		}
	}
	if r.Outcome == podexec.Unknown && !spec.Asks(c.Name) {
		t.note(c.Command, "? "+r.Why)
	}
	r.Ended = t.s.tick()
	delete(t.running, c.UID)
	if t.results[c.UID] == nil {
		t.results[c.UID] = map[string]podexec.Result{}
	}
	t.results[c.UID][c.Name] = r
}

// notSent stores the result of a command that was not sent, as a Board does.
func (t *fakeDB) notSent(c podexec.Command, why string) {
	if t.running[c.UID] != nil {
		return
	}
	if t.results[c.UID] == nil {
		t.results[c.UID] = map[string]podexec.Result{}
	}
	now := t.s.tick()
	t.results[c.UID][c.Name] = podexec.Result{Command: c, Outcome: podexec.Unknown, Why: why, Began: now, Ended: now}
}

func (t *fakeDB) note(c podexec.Command, what string) {
	if !spec.Asks(c.Name) {
		t.s.Say("    %s: %s %s", c.Pod.Name, strings.Join(c.Argv, " "), what)
	}
}

// act runs a command in a container, if the container still runs.
func (t *fakeDB) act(c *fakeContainer, command podexec.Command) (code int, out string) {
	if c == nil || t.containers[c.pod] != c && !slices.Contains(t.ghosts, c) {
		return 137, ""
	}
	if c.frozen {
		t.late = append(t.late, func() { t.act(c, command) })
		return 137, ""
	}
	if !mayBegin(c, command.Argv) {
		t.note(command, "does not begin")
		return fencing.ExitFenced, ""
	}
	_, command.Argv = epochOf(command.Argv)
	d := t.disk(c.pod)
	if spec.Asks(command.Name) {
		return c.answer(command.Name, d)
	}
	t.ran = append(t.ran, c.pod+" "+command.Name)
	defer func() { t.note(command, fmt.Sprintf("= %d", code)) }()
	switch command.Name {
	case v1alpha1.CommandLeave:
		if t.peer(c, command.Argv) == nil {
			return 1, ""
		}
		delete(t.members, c.pod)
	case v1alpha1.CommandStop:
		c.role, c.behind, c.slow = record.Idle, false, false
	case v1alpha1.CommandDemote:
		c.role = record.Secondary
	case v1alpha1.CommandSecondary:
		from := t.peer(c, command.Argv)
		if from == nil {
			return 1, ""
		}
		t.copy(from, c)
		c.role, c.behind, c.slow = record.Secondary, false, false
	case v1alpha1.CommandSeed, v1alpha1.CommandPromote, v1alpha1.CommandPrimary:
		if from := t.peer(c, command.Argv); from != nil {
			t.copy(from, c)
		} else if len(command.Argv) > 1 {
			return 1, "" // if primaries are given, it joins one or fails
		} else if c.role != record.Primary {
			t.s.invariant.first(c, d)
			d.term++
		}
		c.role, c.behind, c.slow = record.Primary, false, false
		for _, f := range t.all() { // followers learn of it
			if other := t.disk(f.pod); f.role == record.Secondary && t.reach(c, f) && len(other.log) == len(t.disk(c.pod).log) {
				other.term = t.disk(c.pod).term
			} else if f.role == record.Secondary {
				f.behind = true
			}
		}
		t.s.invariant.acting()
	}
	if spec.Starts(command.Name) {
		t.members[c.pod] = true
	}
	return 0, ""
}

// answer answers a query.
func (c *fakeContainer) answer(name string, d *disk) (code int, out string) {
	switch {
	case name == v1alpha1.CommandSequence:
		return 0, strconv.Itoa(d.sequence()) + "\n"
	case c.behind:
		return 1, ""
	case c.role == record.Primary:
		return 8, ""
	case c.role == record.Secondary:
		return 0, ""
	}
	return 7, ""
}

func (t *fakeDB) disk(pod string) *disk {
	if t.disks[pod] == nil {
		t.disks[pod] = &disk{}
	}
	return t.disks[pod]
}

func (t *fakeDB) copy(from, to *fakeContainer) {
	d := t.disk(from.pod)
	t.disks[to.pod] = &disk{d.term, slices.Clone(d.log)}
}

// peer returns a reachable primary from the arguments of a command.
func (t *fakeDB) peer(c *fakeContainer, argv []string) *fakeContainer {
	for _, arg := range argv[1:] {
		name, _, _ := strings.Cut(arg, ".")
		if p := t.containers[name]; p != nil && p != c && p.role == record.Primary && t.reach(p, c) {
			return p
		}
	}
	return nil
}

func (t *fakeDB) reach(a, b *fakeContainer) bool {
	if a.frozen || b.frozen {
		return false
	}
	connected := func(node string) bool { return t.s.up(node) || t.s.net.cut[node] }
	bothAre := connected(a.node) && connected(b.node)
	return a.node == b.node || bothAre
}

// all returns the running containers, including those that the API no longer shows.
func (t *fakeDB) all() (all []*fakeContainer) {
	for _, name := range sortedKeys(t.containers) {
		all = append(all, t.containers[name])
	}
	return append(all, t.ghosts...)
}

func (t *fakeDB) acting() (primaries []*fakeContainer) {
	for _, c := range t.all() {
		if c.role == record.Primary && !c.frozen {
			primaries = append(primaries, c)
		}
	}
	return primaries
}

// write is a client's write to one primary.
func (t *fakeDB) write(p *fakeContainer) {
	t.entries++
	entry, copies := t.entries, 0
	for _, c := range t.acting() {
		if p.behind || !t.reach(p, c) {
			return
		}
	}
	d := t.disk(p.pod)
	d.log = append(d.log, entry)
	for _, c := range t.all() {
		if c == p || c.role == record.Idle || c.behind || c.slow {
			continue
		}
		if other := t.disk(c.pod); t.reach(p, c) && other.term == d.term && len(other.log) == len(d.log)-1 {
			other.log = append(other.log, entry)
			copies++
		} else {
			c.behind = true
		}
	}
	if set := t.s.set(); copies > 0 || set != nil && *set.Spec.Replicas == 1 {
		t.acked = append(t.acked, entry)
	}
}

// start starts a container as a kubelet does, as kill ends one. The API shows it later.
func (t *fakeDB) start(p *corev1.Pod) {
	old := t.containers[p.Name]
	number := 0
	if old != nil && old.uid == p.UID {
		number = old.number + 1
	} else if old != nil {
		t.ghosts = append(t.ghosts, old)
	}
	if len(p.Status.ContainerStatuses) > 0 {
		number = max(number, int(p.Status.ContainerStatuses[0].RestartCount)+1)
	}
	isLeased := children.LeaseDuration(p, p.Annotations[v1alpha1.AnnotationContainer]) > 0
	if isLeased { // it can restart while its kubelet does not reach the API server
		number = max(number, t.s.net.begun[string(p.UID)])
		t.s.net.begun[string(p.UID)] = number + 1
	}
	c := &fakeContainer{pod: p.Name, uid: p.UID, node: p.Spec.NodeName, number: number, started: t.s.Now,
		id: fmt.Sprintf("c-%s-%d", p.UID, number), role: record.Idle}
	c.agent = t.s.newAgent(p, c)
	t.containers[p.Name] = c
}

func (t *fakeDB) kill(c *fakeContainer) {
	if t.containers[c.pod] == c {
		delete(t.containers, c.pod)
	}
	t.ghosts = slices.DeleteFunc(t.ghosts, func(g *fakeContainer) bool { return g == c })
}

// of returns the container of that pod, and not of another pod of the same name.
func (t *fakeDB) of(p *corev1.Pod) *fakeContainer {
	for _, c := range t.all() {
		if c.uid == p.UID {
			return c
		}
	}
	return nil
}

// moves returns the possible next steps of commands and clients.
func (t *fakeDB) moves() (moves []func()) {
	for _, uid := range sortedKeys(t.running) {
		c := t.running[uid]
		if t.hangs[c.Pod.Name+" "+c.Name] {
			if !c.arrived {
				t.arrive(c)
			}
			if t.s.Now.Sub(c.began) >= c.Timeout {
				moves = append(moves, func() { t.end(c, "late"); t.late = nil })
			}
			continue
		}
		if !c.arrived && t.isFenced(c) {
			t.arrive(c)
		}
		if !t.isWaiting(c) {
			moves = append(moves, func() { t.end(c, "") })
		}
	}
	return moves
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
