package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Database is a simulated application, and the Board of its commands. It keeps a log on the volume of each member. A
// member that missed an entry reports a failure.
type Database struct {
	// Containers are the running containers by pod, including those of deleted pods until they end.
	Containers map[string]*Container
	// Ghosts are the containers of pods whose name another pod has.
	Ghosts []*Container
	// Running are the commands that are in progress, by pod.
	Running map[types.UID]*Command
	// Members are the pods that the application knows.
	Members map[string]bool
	// Late are delayed effects of commands whose result is no longer awaited.
	Late []func()

	// Fails are commands by "pod name" that fail that many times.
	Fails map[string]int
	// Hangs are commands by "pod name" that never end.
	Hangs map[string]bool
	// Idles are commands by "pod name" that end with 0 and do nothing.
	Idles map[string]bool
	// Sends, if set, is called for each command that is sent.
	Sends func(podexec.Command)
	// First, if set, is called for each start of a member as the first primary.
	First func(*Container, *Disk)
	// Promoted, if set, is called after each start of a primary.
	Promoted func()

	s       *Simulation
	disks   map[string]*Disk
	results map[types.UID][]podexec.Result
}

// Command is a command in progress.
type Command struct {
	podexec.Command

	began time.Time
	// target is the container that the command reached. arrived is true after delivery was attempted.
	target  *Container
	arrived bool
}

// End is how a command ends.
type End string

// Ways in which a command ends.
const (
	// Ends is that the command ends as the container lets it.
	Ends End = ""
	// Unsent is that the command never reaches the container.
	Unsent End = "not sent"
	// Unanswered is that the command takes effect, and its result is lost.
	Unanswered End = "answer lost"
	// Delayed is that the command takes effect later, and its result is lost.
	Delayed End = "late"
	// Premature is that the command succeeds, and takes effect later.
	Premature End = "returns 0"
	// Fails is that the command fails.
	Fails End = "fails"
)

func newDatabase(s *Simulation) *Database {
	return &Database{s: s, Containers: map[string]*Container{}, disks: map[string]*Disk{}, Running: map[types.UID]*Command{},
		results: map[types.UID][]podexec.Result{}, Fails: map[string]int{}, Hangs: map[string]bool{}, Idles: map[string]bool{}, Members: map[string]bool{}}
}

// forget clears the Board as a restart of the operator does. Sent commands go on; others are never
// sent.
func (db *Database) forget() {
	for _, uid := range sorted(db.Running) {
		c := db.Running[uid]
		db.Late = append(db.Late, func() {
			if !c.arrived {
				db.Arrive(c)
			}
			db.act(c.target, c.Command)
		})
	}
	db.Running, db.results = map[types.UID]*Command{}, map[types.UID][]podexec.Result{}
}

// Of returns the command that runs in a pod, and the results of earlier ones, which must not be modified.
func (db *Database) Of(_ types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result) {
	if c := db.Running[pod]; c != nil {
		return &c.Command, db.results[pod]
	}
	return nil, db.results[pod]
}

// Keep does nothing, because the results of deleted pods need little memory.
func (db *Database) Keep(types.NamespacedName, ...types.UID) {}

// Send begins a command. It returns false if another command runs in the pod.
func (db *Database) Send(c podexec.Command) bool {
	if db.Running[c.UID] != nil {
		return false
	}
	if db.Sends != nil {
		db.Sends(c)
	}
	db.Running[c.UID] = &Command{Command: c, began: db.s.Tick()}
	return true
}

// Arrive delivers a command to the container that has the pod's name then. Delivery takes a few
// seconds at most.
func (db *Database) Arrive(c *Command) {
	c.arrived = true
	if db.isShown(c.Command) && db.s.Now.Sub(c.began) <= podexec.Hurry {
		if target := db.Containers[c.Pod.Name]; target != nil && db.s.Up(target.Node) {
			c.target = target
		}
	}
}

// HasArrived reports whether the delivery of a command was attempted.
func (c *Command) HasArrived() bool { return c.arrived }

// isShown reports whether the API shows the container that a command is for.
func (db *Database) isShown(c podexec.Command) bool {
	p := db.s.podOf(c.UID)
	if p == nil {
		return false
	}
	status := mainStatus(p)
	return status != nil && status.ContainerID == c.ContainerID && status.State.Running != nil
}

// End ends a command in the given way.
func (db *Database) End(c *Command, how End) {
	if db.Running[c.UID] != c {
		return
	}
	if !c.arrived {
		db.Arrive(c)
	}
	if how == Ends && db.isWaiting(c) {
		return
	}
	r := podexec.Result{Command: c.Command, Outcome: podexec.Unknown, Began: c.began, Sent: true}
	if r.Why = db.lose(c, how); r.Why == "" {
		db.finish(c, how, &r)
	}
	if c.target == nil || how == Unsent {
		r.Sent = false
	}
	if r.Outcome == podexec.Unknown && !spec.Asks(c.Name) {
		db.note(c.Command, "? "+r.Why)
	}
	r.Ended = db.s.Tick()
	delete(db.Running, c.UID)
	db.store(r)
}

// lose ends a command without a result, and returns the reason. It returns "" for any other end.
func (db *Database) lose(c *Command, how End) (why string) {
	target := c.target
	switch {
	case target == nil:
		return "the container is no longer running"
	case how == Unsent:
		return "the API server is unreachable"
	case !db.s.Up(target.Node):
		db.later(target, c.Command)
		return "the node is unreachable"
	case target.Frozen:
		db.later(target, c.Command)
		return "it did not end in time"
	case !db.isRunning(target):
		return "the container ended"
	case how == Unanswered:
		db.act(target, c.Command)
		return "the stream broke"
	case how == Delayed:
		db.later(target, c.Command)
		return "it did not end in time"
	}
	return ""
}

// finish ends a command with a result.
func (db *Database) finish(c *Command, how End, r *podexec.Result) {
	name := c.Pod.Name + " " + c.Name
	switch {
	case how == Premature: // the command still runs
		db.later(c.target, c.Command)
		r.Outcome = podexec.Succeeded
		db.note(c.Command, "= 0, while it is still running")
	case db.Idles[name]:
		r.Outcome = podexec.Succeeded
		db.note(c.Command, "= 0, without effect")
	case how == Fails, db.Fails[name] > 0:
		db.Fails[name]--
		r.Outcome, r.Code = podexec.Failed, 1
		if c.Name == v1alpha1.CommandLeave {
			delete(db.Members, c.Pod.Name) // a failed leave may have taken effect
		}
		db.note(c.Command, "fails")
	default:
		r.Code, r.Stdout = db.act(c.target, c.Command)
		r.Outcome = podexec.Succeeded
		if r.Code != 0 {
			r.Outcome = podexec.Failed
		}
		if !db.isShown(c.Command) {
			r.Outcome, r.Why = podexec.Unknown, "the container is no longer running"
		}
	}
}

// store stores a result. Of has returned the former slice.
func (db *Database) store(r podexec.Result) {
	others := slices.DeleteFunc(slices.Clone(db.results[r.UID]), func(o podexec.Result) bool { return o.Name == r.Name })
	db.results[r.UID] = append(others, r)
}

// notSent stores the result of a command that was not sent, as a Board does.
func (db *Database) notSent(c podexec.Command, why string) {
	if db.Running[c.UID] != nil {
		return
	}
	now := db.s.Tick()
	db.store(podexec.Result{Command: c, Outcome: podexec.Unknown, Why: why, Began: now, Ended: now})
}

func (db *Database) note(c podexec.Command, what string) {
	if !spec.Asks(c.Name) {
		db.s.Say("    %s: %s %s", c.Pod.Name, strings.Join(c.Argv, " "), what)
	}
}

// answer ends the queries that wait for an answer. It reports whether there are any.
func (db *Database) answer() (answers bool) {
	for _, uid := range sorted(db.Running) {
		if c := db.Running[uid]; spec.Asks(c.Name) {
			db.End(c, Ends)
			answers = true
		}
	}
	return answers
}

// Moves returns the possible next steps of commands.
func (db *Database) Moves() (moves []func()) {
	for _, uid := range sorted(db.Running) {
		c := db.Running[uid]
		if db.Hangs[c.Pod.Name+" "+c.Name] {
			if !c.arrived {
				db.Arrive(c)
			}
			if db.s.Now.Sub(c.began) >= c.Timeout {
				moves = append(moves, func() { db.End(c, Delayed); db.Late = nil })
			}
			continue
		}
		if !c.arrived && isFenced(c) {
			db.Arrive(c)
		}
		if !db.isWaiting(c) {
			moves = append(moves, func() { db.End(c, Ends) })
		}
	}
	return moves
}

// act runs a command in a container, if the container still runs.
func (db *Database) act(c *Container, command podexec.Command) (code int, out string) {
	if c == nil || !db.isRunning(c) {
		return 137, ""
	}
	if c.Frozen {
		db.Late = append(db.Late, func() { db.act(c, command) })
		return 137, ""
	}
	if !mayBegin(c, command.Argv) {
		db.note(command, "does not begin")
		return fencing.ExitFenced, ""
	}
	_, command.Argv = application.Unfenced(command.Argv)
	if spec.Asks(command.Name) {
		return c.answer(command.Name, db.Disk(c.Pod))
	}
	defer func() { db.note(command, fmt.Sprintf("= %d", code)) }()
	code = db.change(c, command)
	if code == 0 && spec.Starts(command.Name) {
		db.Members[c.Pod] = true
	}
	return code, ""
}

// change runs a command that is no query, and returns its exit code.
func (db *Database) change(c *Container, command podexec.Command) (code int) {
	switch command.Name {
	case v1alpha1.CommandLeave:
		if db.peer(c, command.Argv) == nil {
			return 1
		}
		delete(db.Members, c.Pod)
	case v1alpha1.CommandStop:
		c.Role, c.Behind, c.Slow = record.Idle, false, false
	case v1alpha1.CommandDemote:
		c.Role = record.Secondary
	case v1alpha1.CommandSecondary:
		from := db.peer(c, command.Argv)
		if from == nil {
			return 1
		}
		db.copy(from, c)
		c.Role, c.Behind, c.Slow = record.Secondary, false, false
	case v1alpha1.CommandSeed, v1alpha1.CommandPromote, v1alpha1.CommandPrimary:
		return db.promote(c, command.Argv)
	}
	return 0
}

// promote makes a member primary, and returns the exit code. If primaries are given, it joins one or fails.
func (db *Database) promote(c *Container, argv []string) (code int) {
	switch from := db.peer(c, argv); {
	case from != nil:
		db.copy(from, c)
	case len(db.s.peersIn(argv)) > 0:
		return 1
	case c.Role != record.Primary:
		d := db.Disk(c.Pod)
		if db.First != nil {
			db.First(c, d)
		}
		d.Term++
	}
	c.Role, c.Behind, c.Slow = record.Primary, false, false
	mine := db.Disk(c.Pod)
	for _, f := range db.All() { // followers learn of it
		if f.Role != record.Secondary {
			continue
		}
		if other := db.Disk(f.Pod); db.Reach(c, f) && other.isLevelWith(mine) {
			other.Term = mine.Term
		} else {
			f.Behind = true
		}
	}
	if db.Promoted != nil {
		db.Promoted()
	}
	return 0
}

// peer returns a reachable primary from the arguments of a command.
func (db *Database) peer(c *Container, argv []string) *Container {
	for _, name := range db.s.peersIn(argv) {
		if p := db.Containers[name]; p != nil && p != c && p.Role == record.Primary && db.Reach(p, c) {
			return p
		}
	}
	return nil
}

// peersIn returns the pods whose names are arguments of a command.
func (s *Simulation) peersIn(argv []string) (pods []string) {
	for _, arg := range argv[1:] {
		name, _, _ := strings.Cut(arg, ".")
		if _, isMember := spec.OrdinalOf(named(s.Key), name); isMember {
			pods = append(pods, name)
		}
	}
	return pods
}

// sorted returns the keys of a map in order.
func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
