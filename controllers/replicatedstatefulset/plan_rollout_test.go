package replicatedstatefulset

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// scenario is a set, and the steps that follow once it runs. Between two steps everything
// comes to rest, or in random orders some time passes.
type scenario struct {
	name  string
	set   *v1alpha1.ReplicatedStatefulSet
	steps []func(*stage)
	// wait is how long to wait for the operator's own timeouts.
	wait time.Duration
	// gone is true if nothing is left in the end.
	gone bool
}

var scenarios = []scenario{
	{name: "create", set: fixture.SetOf(3, 1)},
	{name: "create as in the original", set: original(), steps: []func(*stage){deleted(0)}},
	{name: "the primary is killed", set: fixture.SetOf(3, 1), steps: []func(*stage){write, crash(0)}, wait: 30 * time.Second},
	{name: "W12 the newest primary is killed and restarted", set: fixture.Restarting(fixture.SetOf(3, 1)), steps: []func(*stage){write, together(unfollowed(0), crash(0)), write}, wait: 2 * time.Minute},
	{name: "RS-155 the newest primary is killed, and nothing may be lost", set: fixture.LosingAtMost(0, fixture.SetOf(3, 1)), steps: []func(*stage){write, together(unfollowed(0), crash(0)), write}, wait: 2 * time.Minute},
	{name: "W9 a secondary is unresponsive when the primary is killed", set: fixture.Recreating(fixture.SetOf(3, 1), "1m"), steps: []func(*stage){write, together(hang("rss-db-1 status"), crash(0), primaryAgain, unhang), write}, wait: 40 * time.Second},
	{name: "the pod of the primary is deleted", set: fixture.SetOf(3, 1), steps: []func(*stage){write, deleted(0)}, wait: 30 * time.Second},
	{name: "the pod of the primary is deleted with a preStop hook", set: holding(fixture.SetOf(3, 1)), steps: []func(*stage){write, deleted(0), overslept}, wait: 30 * time.Second},
	{name: "the pod of the primary is deleted with a preStop hook without demote", set: holding(fixture.SetOf(3, 1, "promote", "demote")), steps: []func(*stage){write, deleted(0), overslept}, wait: 30 * time.Second},
	{name: "the pod of the primary is force-deleted", set: fixture.SetOf(3, 1), steps: []func(*stage){write, forced(0)}, wait: 30 * time.Second},
	{name: "the node of the primary is lost, then fenced", set: fixture.SetOf(3, 1), steps: []func(*stage){write, partition("n1"), write, powerOff("n1"), outOfService("n1")}, wait: 30 * time.Second},
	{name: "all members restart at once", set: fixture.SetOf(3, 1), steps: []func(*stage){write, crash(2), write, together(deleted(0), deleted(1), deleted(2))}, wait: 30 * time.Second},
	{name: "the operator restarts during a start", set: fixture.SetOf(3, 1), steps: []func(*stage){write, together(crash(0), restartIn("promote"))}, wait: 30 * time.Second},
	{name: "a stop hangs", set: fixture.SetOf(3, 2), steps: []func(*stage){write, hang("rss-db-1 stop"), primariesTo(1), unhang}, wait: 30 * time.Second},
	{name: "a start hangs", set: fixture.SetOf(3, 1), steps: []func(*stage){write, hang("rss-db-1 promote"), crash(0), unhang}, wait: 30 * time.Second},
	{name: "RS-149 RS-150 members leave before they are removed", set: fixture.LeavingSet(4, 1), steps: []func(*stage){write, scaleTo(3), write, switchTo(2), together(scaleTo(2), failsTwice("rss-db-2 leave")), write,
		scaleTo(4), scaleTo(0), scaleTo(4), together(scaleTo(2), untilOne(v1alpha1.MembershipLeft), scaleTo(4)), write, together(failsTwice("rss-db-3 leave"), scaleTo(3), untilOne(v1alpha1.MembershipLeaving), scaleTo(4)), write}, wait: 90 * time.Second},
	{name: "RS-149 members leave a set of primaries", set: fixture.AllPrimary(fixture.LeavingSet(3, 3, "secondary", "promote", "demote")), steps: []func(*stage){write, together(scaleTo(2), failsTwice("rss-db-2 leave")), write, scaleTo(3), write, scaleTo(1), write, scaleTo(3)}, wait: 30 * time.Second},
	{name: "scale 3 to 5 to 3 to 0 to 3", set: fixture.SetOf(3, 1), steps: []func(*stage){write, scaleTo(5), write, scaleTo(3), write, scaleTo(0), scaleTo(3)}, wait: 10 * time.Second},
	{name: "the primary is removed by a scale-down", set: fixture.SetOf(3, 1), steps: []func(*stage){write, scaleTo(5), switchTo(4), write, scaleTo(3)}, wait: 40 * time.Second},
	{name: "rolling update", set: fixture.SetOf(3, 1), steps: []func(*stage){write, image("two")}, wait: 40 * time.Second},
	{name: "a Secret changes", set: fixture.Follows(fixture.SetOf(3, 1)), steps: []func(*stage){secret("creds", "one"), write, secret("creds", "two")}, wait: 40 * time.Second},
	// While the Secret is missing, the rollout stops.
	{name: "a Secret changes twice, is deleted and recreated", set: fixture.Follows(fixture.SetOf(3, 1)), steps: []func(*stage){secret("creds", "one"), write, together(secret("creds", "two"), restartIn("stop"), secret("creds", "three")), gone("creds"), secret("creds", "three")}, wait: 40 * time.Second},
	{name: "rolling update of primaries", set: fixture.SetOf(3, 3, "secondary"), steps: []func(*stage){write, image("two")}, wait: 40 * time.Second},
	{name: "rolling update away from a broken image", set: fixture.SetOf(3, 1, "promote", "demote"), steps: []func(*stage){image("two"), together(image("bad"), deleted(1)), image("three")}, wait: 40 * time.Second},
	{name: "switchover", set: fixture.SetOf(3, 1), steps: []func(*stage){write, switchTo(2), write}, wait: 40 * time.Second},
	{name: "switchover by the spec, applied repeatedly", set: fixture.SetOf(3, 1), steps: []func(*stage){write, apply(2, "a"), apply(2, "a"), write, crash(2), apply(2, "a"), write, apply(2, "b"), write}, wait: 40 * time.Second},
	{name: "switchover without demote", set: fixture.SetOf(3, 1, "demote", "promote", "seed"), steps: []func(*stage){write, switchTo(2), write}, wait: 40 * time.Second},
	{name: "primaries 1 to 3 to 1 of 4", set: fixture.SetOf(4, 1), steps: []func(*stage){write, primariesTo(3), write, primariesTo(1)}, wait: 40 * time.Second},
	{name: "rolling update without secondaries", set: fixture.SetOf(3, 1, "secondary", "promote", "demote"), steps: []func(*stage){write, image("two")}, wait: 40 * time.Second},
	{name: "rolling update of two primaries without secondaries", set: fixture.SetOf(4, 2, "secondary", "promote", "demote"), steps: []func(*stage){write, image("two")}, wait: 40 * time.Second},
	{name: "commands move to another container", set: fixture.SetOf(3, 1), steps: []func(*stage){write, commandsMove, write}, wait: 40 * time.Second},
	{name: "labels are removed", set: fixture.SetOf(3, 1), steps: []func(*stage){write, strip(0), strip(1)}, wait: 30 * time.Second},
	{name: "labels are removed as in the original", set: original(), steps: []func(*stage){strip(0), crash(0)}},
	{name: "the StatefulSet is deleted while paused", set: fixture.SetOf(3, 1), steps: []func(*stage){write, pause(true), deleteStatefulSet, pause(false)}, wait: 30 * time.Second},
	{name: "the StatefulSet is deleted without its pods in a scale-down", set: fixture.SetOf(5, 1), steps: []func(*stage){write, switchTo(4), write, together(orphan, deleteStatefulSet, scaleTo(3))}, wait: 40 * time.Second},
	{name: "the StatefulSet is deleted", set: fixture.SetOf(3, 1), steps: []func(*stage){write, deleteStatefulSet}, wait: 30 * time.Second},
	{name: "the majority is lost", set: fixture.SetOf(3, 1), steps: []func(*stage){write, together(partition("n2"), partition("n3")), write, together(answers("n2"), answers("n3"))}, wait: 30 * time.Second},
	{name: "paused", set: fixture.SetOf(3, 1), steps: []func(*stage){write, pause(true), together(crash(0), deleted(1), scaleTo(4)), pause(false)}, wait: 30 * time.Second},
	{name: "scale 0 to 5 with the newest copy on the last ordinal", set: fixture.SetOf(5, 1), steps: []func(*stage){write, switchTo(4), write, scaleTo(0), scaleTo(5)}, wait: 30 * time.Second},
	{name: "the node of the primary is drained", set: fixture.SetOf(3, 1), steps: []func(*stage){write, cordon("n1"), write, evict(0), evict(0), evict(1), uncordon("n1")}, wait: 40 * time.Second},
	{name: "the primary is evicted without a cordon", set: fixture.SetOf(3, 1), steps: []func(*stage){write, together(evict(0), askToGo(0)), write, evict(0), write}, wait: 40 * time.Second},
	{name: "all nodes but one are drained", set: fixture.SetOf(3, 1), steps: []func(*stage){write, together(cordon("n1"), cordon("n2")), write, evict(0), evict(1), uncordon("n1")}, wait: 40 * time.Second},
	{name: "all nodes are cordoned", set: fixture.SetOf(3, 1), steps: []func(*stage){write, together(cordon("n1"), cordon("n2"), cordon("n3")), evict(0), uncordon("n3"), evict(0)}, wait: 40 * time.Second},
	{name: "the node of one of two primaries is drained", set: fixture.SetOf(4, 2), steps: []func(*stage){write, cordon("n1"), write, evict(0)}, wait: 40 * time.Second},
	{name: "the node of the primary is drained where evictions are allowed", set: fixture.Allowing(fixture.SetOf(3, 1)), steps: []func(*stage){write, cordon("n1"), evict(0), uncordon("n1")}, wait: 40 * time.Second},
	{name: "the budgets change with the policy", set: fixture.SetOf(3, 1), steps: []func(*stage){evictions("Allow"), evictions("Handover"), noBudget}, wait: 40 * time.Second},
	{name: "the primary is parked", set: fixture.SetOf(3, 1), steps: []func(*stage){write, park(0), write, crash(0), park(), write}, wait: 40 * time.Second},
	{name: "the primary is parked without demote", set: fixture.SetOf(3, 1, "demote", "promote", "seed"), steps: []func(*stage){write, park(0), write, park()}, wait: 40 * time.Second},
	{name: "the primary fails while a secondary is parked", set: fixture.SetOf(3, 1), steps: []func(*stage){write, park(2), write, crash(0), write, park()}, wait: 40 * time.Second},
	{name: "the primary of two fails while the other is parked", set: fixture.SetOf(2, 1), steps: []func(*stage){write, park(1), write, crash(0), write, park()}, wait: 40 * time.Second},
	{name: "members are parked one by one while the image changes", set: fixture.SetOf(3, 1), steps: []func(*stage){write, park(0), together(image("two"), park(0, 1)), write, park(1, 2), write, park()}, wait: 40 * time.Second},
	{name: "one of three primaries is parked", set: fixture.SetOf(3, 3, "secondary"), steps: []func(*stage){write, park(1), write, park()}, wait: 40 * time.Second},
	{name: "one of two primaries is parked without secondaries", set: fixture.SetOf(4, 2, "secondary", "promote", "demote"), steps: []func(*stage){write, park(0), write, park()}, wait: 40 * time.Second},
	{name: "a parked member is scaled down, then the object is deleted", set: fixture.SetOf(3, 1), steps: []func(*stage){write, park(2), scaleTo(2), deleteSet}, gone: true, wait: 40 * time.Second},
	{name: "resources change in place", set: sizedTrio(), steps: []func(*stage){write, cpuOf("2"), write, together(cpuOf("3"), oneResized, cpuOf("4")), write}, wait: 40 * time.Second},
	{name: "resources change in place together with the image", set: sizedTrio(), steps: []func(*stage){write, together(cpuOf("2"), oneResized, image("two")), write}, wait: 40 * time.Second},
	{name: "resources exceed all nodes", set: sizedTrio(), steps: []func(*stage){write, rooms(1), cpuOf("9"), write}, wait: 40 * time.Second},
	{name: "resources exceed all nodes for a while", set: sizedTrio(), steps: []func(*stage){write, rooms(1), together(cpuOf("2"), oneResized, rooms(0)), write, rooms(2), cpuOf("3"), write}, wait: 6 * time.Minute},
	{name: "resources change in place and back", set: sizedTrio(), steps: []func(*stage){write, together(cpuOf("2"), oneResized, cpuOf("1")), write}, wait: 40 * time.Second},
	{name: "the operator restarts while resources change in place", set: sizedTrio(), steps: []func(*stage){write, together(cpuOf("2"), oneResized, (*stage).restart), write}, wait: 40 * time.Second},
	{name: "delete while a node is lost", set: fixture.SetOf(3, 1), steps: []func(*stage){write, partition("n1"), deleteSet, quarter, quarter, answers("n1")}, gone: true, wait: 40 * time.Second},
	{name: "the namespace is deleted", set: fixture.SetOf(3, 1), steps: []func(*stage){write, deleteNamespace}, gone: true, wait: 40 * time.Second},
	{name: "delete", set: fixture.SetOf(3, 1), steps: []func(*stage){write, deleteSet}, gone: true, wait: 40 * time.Second},
}

// sizedTrio returns a set of three whose members request 1 cpu and may be changed in place.
func sizedTrio() *v1alpha1.ReplicatedStatefulSet {
	set := fixture.SizedSet("1")
	set.Spec.Replicas = new(int32(3))
	return set
}

func cpuOf(amount string) func(*stage) {
	return func(s *stage) {
		s.Say("# the request is set to %s cpu", amount)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) {
			set.Spec.Pod.Containers[0].Resources = fixture.Asking(amount)
		})
	}
}

// rooms sets the cpu that a running pod can get; 0 means any.
func rooms(cpu int64) func(*stage) {
	return func(s *stage) {
		s.Say("# nodes have %d cpu for a pod", cpu)
		s.Room = cpu
	}
}

// unfollowed adds an entry that only that member has.
func unfollowed(ordinal int) func(*stage) {
	return func(s *stage) {
		s.entries++
		d := s.db.Disk(spec.MemberName(s.Set(), ordinal))
		d.Log = append(d.Log, s.entries)
	}
}

// primaryAgain runs the operator until a member other than the first is primary. In random orders
// it may give up before.
func primaryAgain(s *stage) {
	for range 1000 {
		s.Look()
		s.pass()
		if slices.ContainsFunc(s.db.Acting(), func(c *simulate.Container) bool { return c.Pod != "rss-db-0" }) {
			return
		}
		for _, move := range append(s.Machines(), s.db.Moves()...) {
			move()
		}
		s.Now = s.Now.Add(100 * time.Millisecond)
	}
}

// oneResized runs the operator until a resize of a pod was requested.
func oneResized(s *stage) {
	isResizing := func(p *corev1.Pod) bool {
		return facts.IsChangedInPlace(p) && len(p.Status.ContainerStatuses) > 0 && !simulate.IsSized(p)
	}
	for range 300 {
		s.Look()
		s.pass()
		if slices.ContainsFunc(s.Pods(), isResizing) {
			return
		}
		for _, move := range append(s.Machines(), s.db.Moves()...) {
			move()
		}
		s.Now = s.Now.Add(100 * time.Millisecond)
	}
}

func original() *v1alpha1.ReplicatedStatefulSet {
	set := fixture.SetOf(3, 3, "seed", "secondary", "promote", "demote")
	set.Spec.Primaries, set.Spec.Pod.VolumeClaimTemplates = nil, nil
	set.Spec.Pod.Commands["seed"] = v1alpha1.Command{Command: []string{"/seed"}}
	return set
}

// The steps.

func write(s *stage) {
	for _, p := range s.db.Acting() {
		if s.Up(p.Node) {
			s.writeTo(p)
			return
		}
	}
}

func crash(ordinal int) func(*stage) {
	return func(s *stage) {
		if p := s.pod(ordinal); p != nil && s.db.Container(p) != nil {
			s.Say("# %s crashes", s.db.Container(p).ID)
			s.db.Kill(s.db.Container(p))
		}
	}
}

func deleted(ordinal int) func(*stage) {
	return func(s *stage) {
		if p := s.pod(ordinal); p != nil {
			s.Say("# %s is deleted", p.Name)
			s.Delete(p)
		}
	}
}

// holding returns a set whose pods have a preStop hook that sleeps.
func holding(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.Pod.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
	return set
}

// overslept advances the time beyond all such hooks.
func overslept(s *stage) { s.Now = s.Now.Add(10 * time.Second) }

func forced(ordinal int) func(*stage) {
	return func(s *stage) {
		if p := s.pod(ordinal); p != nil {
			s.Say("# %s is force-deleted", p.Name)
			s.DeleteNow(p)
		}
	}
}

func partition(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s is unreachable", node)
		kubelet.Turn(s.Cluster, node, false)
	}
}

func powerOff(node string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s is powered off", node)
		kubelet.Turn(s.Cluster, node, false)
		for _, c := range s.db.All() {
			if c.Node == node {
				s.db.Kill(c)
			}
		}
	}
}

// outOfService taints a node as an administrator does, and deletes its pods as the control plane
// does.
func outOfService(name string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s is out of service", name)
		s.taint(name, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
		s.moved[name] = "n5" // its pods come up on another node
		for _, p := range s.Pods() {
			if p.Spec.NodeName == name {
				s.DeleteNow(p)
			}
		}
	}
}

func (s *stage) taint(name string, taints ...corev1.Taint) {
	n := objects.Clone(s.All[objects.Key{Kind: "Node", Name: name}].(*corev1.Node))
	n.Spec.Taints = taints
	s.Put(n)
}

func together(steps ...func(*stage)) func(*stage) {
	return func(s *stage) {
		for _, step := range steps {
			step(s)
		}
	}
}

// failsTwice makes a command fail twice.
func failsTwice(command string) func(*stage) {
	return func(s *stage) {
		s.Say("# %s fails twice", command)
		s.db.Fails[command] = 2
	}
}

// untilOne lets all actors act until a member has that state in the application, or for 50 rounds.
func untilOne(is v1alpha1.MembershipState) func(*stage) {
	return func(s *stage) {
		for range 50 {
			s.Look()
			s.pass()
			if set := s.Set(); set == nil || slices.ContainsFunc(set.Status.Memberships, func(m v1alpha1.Membership) bool { return m.State == is }) {
				return
			}
			for _, m := range append(s.Machines(), s.db.Moves()...) {
				m()
			}
			s.Tick()
		}
	}
}

// restartIn restarts the operator after it has sent that command.
func restartIn(command string) func(*stage) {
	return func(s *stage) {
		for range 200 {
			s.Look()
			s.pass()
			for _, c := range s.db.Running {
				if c.Name == command {
					s.Say("# the operator restarts")
					s.restart()
					return
				}
			}
			for _, move := range append(s.Machines(), s.db.Moves()...) {
				move()
			}
			s.Now = s.Now.Add(500 * time.Millisecond)
		}
	}
}

// hang makes a command of a pod never end.
func hang(command string) func(*stage) {
	return func(s *stage) { s.db.Hangs[command] = true }
}

func unhang(s *stage) { s.db.Hangs = map[string]bool{} }

func scaleTo(n int32) func(*stage) {
	return func(s *stage) {
		s.Say("# replicas is set to %d", n)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = &n })
	}
}

func primariesTo(n int32) func(*stage) {
	return func(s *stage) {
		s.Say("# primaries is set to %d", n)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Primaries = &n })
	}
}

func image(name string) func(*stage) {
	return func(s *stage) {
		s.Say("# the image is set to %s", name)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Image = name })
	}
}

func switchTo(ordinal int) func(*stage) {
	return func(s *stage) {
		name := spec.MemberName(s.Set(), ordinal)
		s.Say("# a switchover to %s is requested", name)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) {
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, v1alpha1.AnnotationSwitchoverTo, name)
		})
	}
}

// apply applies a manifest with a switchover order, as a tool does repeatedly.
func apply(ordinal int, id string) func(*stage) {
	return func(s *stage) {
		name := spec.MemberName(s.Set(), ordinal)
		s.Say("# switchoverTo %s with id %s is applied", name, id)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) {
			set.Spec.SwitchoverTo = &v1alpha1.MemberOrder{Member: name, ID: id}
		})
	}
}

// commandsMove renames the commands' container.
func commandsMove(s *stage) {
	s.Say("# the container is renamed to other")
	s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Name = "other" })
}

// strip removes the labels that select a pod.
func strip(ordinal int) func(*stage) {
	return func(s *stage) {
		if p := s.pod(ordinal); p != nil {
			s.Say("# the labels of %s are removed", p.Name)
			s.Edit(p, func(p *corev1.Pod) { p.Labels = nil })
		}
	}
}

func answers(node string) func(*stage) {
	return func(s *stage) {
		if s.moved[node] == "" {
			s.Say("# %s is reachable again", node)
			kubelet.Turn(s.Cluster, node, true)
		}
	}
}

// park sets spec.maintenance.
func park(ordinals ...int) func(*stage) {
	return func(s *stage) {
		var names []string
		for _, n := range ordinals {
			names = append(names, spec.MemberName(s.Set(), n))
		}
		s.Say("# maintenance is set to %v", names)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Maintenance = names })
	}
}

func pause(is bool) func(*stage) {
	return func(s *stage) {
		s.Say("# paused: %t", is)
		s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Paused = is })
	}
}

func quarter(s *stage) {
	s.Say("# 15 minutes pass")
	s.Now = s.Now.Add(15 * time.Minute)
}

func deleteStatefulSet(s *stage) {
	if set := s.StatefulSet(); set != nil {
		s.Say("# the StatefulSet is deleted")
		s.Delete(set)
	}
}

// orphan removes the owners as the first step of a deletion with --cascade=orphan.
func orphan(s *stage) {
	for _, p := range s.Pods() {
		s.Edit(p, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}
}

func deleteNamespace(s *stage) {
	s.Say("# the namespace is deleted")
	ns := objects.Clone(s.All[objects.Key{Kind: "Namespace", Name: "ns"}])
	at := metav1.NewTime(s.Now)
	ns.SetDeletionTimestamp(&at)
	s.Put(ns)
	deleteStatefulSet(s)
	for _, p := range s.Pods() {
		s.Delete(p)
	}
	s.Delete(s.Set())
}

func deleteSet(s *stage) {
	s.Say("# the object is deleted")
	s.Delete(s.Set())
}

// ends checks the end of a story: everything that is wanted exists and is healthy, and the operator
// rests.
func (s *stage) ends(story *scenario) {
	s.t.Helper()
	set := s.Set()
	if story.gone {
		if set != nil || len(s.Pods()) > 0 {
			s.Fatal(s.t, "the object is not deleted")
		}
		return
	}
	w := s.observe(set, engine.View{Reader: s.Cluster, Live: true})
	p := rules.Decide(w)
	f := p.On
	if !f.WellStaffed() || f.Record.Primaries() != w.WantedPrimaries() || len(set.Status.Members.Primary) != w.WantedPrimaries() {
		for _, m := range f.Members {
			s.Say("%s is %s, terminating %t, finalizers %v, node %+v, failure %+v", m.Name(), m.State, m.Terminating(), m.Pod.Finalizers, m.Node, m.Failure)
		}
		s.Say("grants %v, commands %v, waits %+v, rule %s, risk %q", f.Record.Granted, f.Record.Commands, p.Waiting, p.Rule, p.Risk)
		s.Fatal(s.t, "the members are not in the wanted state")
	}
	for _, m := range f.Members {
		if !m.UpToDate {
			s.Fatal(s.t, m.Name()+" is out of date")
		}
		if spec.HasCommand(set, v1alpha1.CommandLeave) && !s.db.Members[m.Name()] {
			s.Fatal(s.t, "RS-150 the application does not know "+m.Name())
		}
	}
	for name := range s.db.Members {
		if spec.HasCommand(set, v1alpha1.CommandLeave) && f.Named(name) == nil {
			s.Fatal(s.t, "RS-149 the application still knows "+name+", which was removed")
		}
	}
	for _, name := range set.Status.Members.Primary {
		for _, entry := range s.acked {
			if !slices.Contains(s.db.Disk(name).Log, entry) {
				s.Fatal(s.t, "an acknowledged entry is lost")
			}
		}
	}
	version := set.ResourceVersion
	s.restart() // even a new process sends only queries
	for range 10 {
		s.Look()
		s.pass()
		for _, move := range s.db.Moves() {
			move()
		}
		s.Tick()
	}
	if s.Set().ResourceVersion != version {
		s.Fatal(s.t, "the operator writes at rest")
	}
}

func TestStories(t *testing.T) {
	var names []string
	for _, story := range scenarios {
		names = append(names, story.name)
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, story.set.DeepCopy())
			s.settle(story.wait)
			for _, step := range story.steps {
				s.Say("")
				step(s)
				s.settle(story.wait)
				if s.Set() != nil {
					s.tell()
				}
			}
			s.ends(&story)
			simtest.CheckStory(t, story.name, s.Story)
		})
	}
	simtest.CheckNoOtherStories(t, names)
}

// TestRS155ScenariosWithALimit runs the scenarios with a limit of the loss. No planned change may wait for a
// copy that it has removed.
func TestRS155ScenariosWithALimit(t *testing.T) {
	for _, story := range scenarios {
		set := story.set.DeepCopy()
		if set.Spec.Failover != nil || len(set.Spec.Pod.VolumeClaimTemplates) == 0 {
			continue
		}
		t.Run(story.name, func(t *testing.T) {
			s := newStage(t, fixture.LosingAtMost(0, set))
			s.settle(story.wait)
			for _, step := range story.steps {
				step(s)
				s.settle(story.wait)
			}
			s.ends(&story)
		})
	}
}

// TestRandomOrders runs the scenarios in random orders, while writes fail, responses are lost, and
// the operator reads stale data and dies.
func TestRandomOrders(t *testing.T) {
	for _, story := range slices.Concat(scenarios, dark) {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			first, count := simtest.Orders(orders)
			for seed := first; seed < first+count; seed++ {
				inAnyOrder(t, &story, int64(seed), false)
			}
		})
	}
}

// orders is the default number of random orders of each story.
const orders = 5
