package simulate

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
)

// Machine is the machine of a Node.
type Machine struct {
	Name string
	On   bool
	// WasOff reports whether it was ever off.
	WasOff bool
	// Reachable reports whether its kubelet can reach the API server.
	Reachable bool
	// MissingSince is when its Node was deleted; zero while the Node exists.
	MissingSince time.Time
	// Drained is true while a drain evicts its pods.
	Drained bool
}

// findMachines adds a machine for each Node that has none. The machine of a Node that is not Ready is unreachable.
func (s *Simulation) findMachines() {
	for _, n := range Every[corev1.Node](s.Cluster) {
		if s.Machine(n.Name).Name == "" {
			s.Machines = append(s.Machines, &Machine{Name: n.Name, On: true, Reachable: isReady(n)})
		}
	}
}

// Machine returns the machine of that name, or one that is off.
func (s *Simulation) Machine(name string) *Machine {
	if i := slices.IndexFunc(s.Machines, func(m *Machine) bool { return m.Name == name }); i >= 0 {
		return s.Machines[i]
	}
	return &Machine{}
}

// KubeletMoves returns the moves of the kubelets and their containers.
func (s *Simulation) KubeletMoves() (moves []Move) {
	for _, p := range s.Pods() {
		if s.Bodies[p.UID] == nil && s.Knows(p.Spec.NodeName) && podstate.Scheduled(p) {
			moves = append(moves, Move{"look" + string(p.UID), func() { s.Bodies[p.UID] = &Body{Pod: p} }})
		}
	}
	for _, uid := range s.UIDs() {
		b := s.Bodies[uid]
		if !s.Machine(b.Pod.Spec.NodeName).On {
			continue
		}
		if s.Knows(b.Pod.Spec.NodeName) {
			moves = append(moves, s.speak(b)...)
		}
		moves = append(moves, s.run(b)...)
	}
	return moves
}

// Knows reports whether the kubelet of a Node reaches the API server.
func (s *Simulation) Knows(node string) bool {
	m := s.Machine(node)
	return m.On && m.Reachable
}

// Current returns the pod of a body in the API; nil if it was removed.
func (s *Simulation) Current(b *Body) *corev1.Pod {
	if p := s.pod(b.Pod.Name); p != nil && p.UID == b.Pod.UID {
		return p
	}
	return nil
}

// speak returns the moves of a kubelet that involve the API server.
func (s *Simulation) speak(b *Body) (moves []Move) {
	now, uid := s.Current(b), string(b.Pod.UID)
	switch {
	case now == nil && !b.gone:
		return []Move{{"look" + uid, func() { b.gone = true }}}
	case now == nil && b.Over:
		return []Move{{"forget" + uid, func() { delete(s.Bodies, b.Pod.UID) }}}
	case now == nil:
		return nil
	}
	if now.ResourceVersion != b.Pod.ResourceVersion {
		moves = append(moves, Move{"look" + uid, func() { b.Pod = now }})
	}
	if status := b.Status(s.Now, now); !apiequality.Semantic.DeepEqual(status, now.Status) {
		return append(moves, Move{"report" + uid, func() {
			Edit(s.Cluster, now, func(p *corev1.Pod) { p.Status = status })
		}})
	}
	if b.Over && podstate.Terminating(now) && *now.DeletionGracePeriodSeconds > 0 {
		moves = append(moves, Move{"final" + uid, func() { s.DeleteNow(now) }})
	}
	return moves
}

// become changes the state of the program of a pod.
func (s *Simulation) become(b *Body, main State, what string) {
	b.Main, b.begun, b.asFound = main, b.begun || main == AtWork, false
	s.Say("    %s %s", b.Pod.Name, what)
	if s.Lives != nil {
		s.Lives(b)
	}
}

// run returns the moves on the machine.
func (s *Simulation) run(b *Body) (moves []Move) {
	uid := string(b.Pod.UID)
	does := func(what string, do func()) { moves = append(moves, Move{what + uid, do}) }
	ends := b.gone || b.Evicted || podstate.Terminating(b.Pod) || (podstate.Ended(b.Pod) && !b.Refused)
	switch {
	case b.Over:
		return nil
	case ends && !b.Signalled:
		does("tell", func() { b.Signalled, b.asFound = true, false })
		return moves
	case b.Signalled:
		does("exit", func() { s.exit(b) })
		return moves
	}
	if grant := b.Pod.Annotations[v1.AnnotationGrant]; grant != b.file && !b.Refused {
		does("file", func() { b.file = grant })
	}
	if what, do := s.begin(b); do != nil {
		does(what, do)
	}
	return moves
}

// exit ends the program of a pod. An agent hands the Lease over to the successor.
func (s *Simulation) exit(b *Body) {
	what := "stops"
	if b.Main == NotStarted {
		what = "does not start"
	}
	lease := s.lease()
	if next := lease.GetAnnotations()[v1.AnnotationNext]; next != "" && s.holdsLease(b.Pod) {
		Edit(s.Cluster, lease, func(l *coordinationv1.Lease) {
			delete(l.Annotations, v1.AnnotationNext)
			l.Spec.HolderIdentity, l.Spec.RenewTime = &next, ptr.To(metav1.NewMicroTime(s.Now))
			l.Spec.LeaseTransitions = ptr.To(ptr.Deref(l.Spec.LeaseTransitions, 0) + 1)
		})
	}
	b.Over = true
	s.become(b, NotStarted, what)
}

// begin returns the next step of the program of a pod, and its name; nil if there is none.
func (s *Simulation) begin(b *Body) (string, func()) {
	granted := strings.HasPrefix(b.file, string(b.Pod.UID)+" ") || s.holdsLease(b.Pod)
	switch {
	case b.stuck || b.Pod.Spec.Containers[0].Image == kubelet.BadImage:
		return "", nil
	case b.Main == AtGate && granted:
		return "pass", func() {
			b.passed = true
			s.become(b, AtWork, "runs its program")
		}
	case b.Refused || b.Main == AtGate || b.Main == AtWork:
		return "", nil
	}
	return "start", func() { s.start(b) }
}

// start starts the container of the program, or its gate.
func (s *Simulation) start(b *Body) {
	restarts := b.Main == Crashed
	if restarts {
		b.restarts++
	}
	held := waitsInContainer(b.Pod) || (!b.passed && waitsWhole(b.Pod))
	switch {
	case held && restarts:
		s.become(b, AtGate, "restarts, and waits at its gate")
	case held:
		s.become(b, AtGate, "waits at its gate")
	case restarts:
		s.become(b, AtWork, "restarts")
	default:
		s.become(b, AtWork, "runs its program without a gate")
	}
}

// lease returns the Lease of the object; an empty one if there is none.
func (s *Simulation) lease() *coordinationv1.Lease {
	lease, ok := s.All[objects.Key{Kind: "Lease", Namespace: s.Key.Namespace, Name: children.LeaseName(s.Key.Name)}].(*coordinationv1.Lease)
	if !ok {
		return &coordinationv1.Lease{}
	}
	return lease
}

// holdsLease reports whether the Lease of the object names the pod.
func (s *Simulation) holdsLease(p *corev1.Pod) bool {
	return fencing.HolderOf(s.lease()) == fencing.Identity(p) && children.LeaseDuration(p) > 0
}

// renewParts is how many times an agent renews the Lease within its duration.
const renewParts = 3

// renew renews the Lease as the agent of its holder does.
func (s *Simulation) renew() {
	lease := s.lease()
	for _, b := range s.Bodies {
		if b.Main != AtWork || !s.holdsLease(b.Pod) || !s.Knows(b.Pod.Spec.NodeName) {
			continue
		}
		if last := lease.Spec.RenewTime; last == nil || s.Now.Sub(last.Time) >= children.LeaseDuration(b.Pod)/renewParts {
			Edit(s.Cluster, lease, func(l *coordinationv1.Lease) { l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(s.Now)) })
		}
		return
	}
}

// Crash crashes the program of a pod. Its kubelet restarts it in place.
func (s *Simulation) Crash(b *Body) {
	b.Main, b.asFound = Crashed, false
	s.Say("    %s crashes", b.Pod.Name)
}

// SwitchOff switches a machine off.
func (s *Simulation) SwitchOff(m *Machine) {
	m.On, m.WasOff = false, true
	for _, b := range s.Bodies {
		if b.Pod.Spec.NodeName != m.Name || b.Over {
			continue
		}
		// The disk still has the record of the pod. Its init containers run again after the
		// start.
		b.Main, b.passed, b.file, b.Signalled, b.asFound = NotStarted, false, "", false, false
		b.restarts++
	}
}

// Boot switches the machine on. The kubelet runs nothing before it has reached the API
// server.
func (s *Simulation) Boot(m *Machine) {
	m.On, m.Reachable = true, true
	for uid, b := range s.Bodies {
		if b.Pod.Spec.NodeName != m.Name {
			continue
		}
		if now := s.Current(b); now != nil {
			b.Pod = now
		} else {
			delete(s.Bodies, uid)
		}
	}
}
