package statefulsingleton_test

// A model of the protocol in doc.go. A state is everything that matters at one moment, in
// the API server, on the nodes and in the operators. Each pod has a slot, which stands for
// its name. Each pod created in a slot has a new UID. Time is left out: every step may take
// any time. resourceVersions and UIDs are only compared with those that an operator has
// read, so the model stores whether they still match.

type state struct {
	pods      [3]pod
	nodes     [2]node
	objects   [2]object
	operators [2]process
	lease     lease
}

type pod struct {
	// In the API server.
	made   bool // the pod exists
	gated  bool
	grant  grant // the annotation
	kept   bool  // our finalizer is set
	dying  bool  // deletionTimestamp is set
	late   bool  // created while the object was terminating
	phase  phase
	shown  shown // the last reported container statuses
	labels labels
	leased bool // an agent runs the program, see model_lease_test.go
	older  bool // created before the present object

	// On the node, regardless of the API server.
	program program

	// Exceptions from the guarantee. beside are the pods that existed when this program
	// started while no object held it back. unwatched is a program that keeps running after
	// its pod was force deleted before it had our finalizer, or after an object released
	// it.
	beside    uint8
	unwatched bool
}

type (
	grant   uint8
	phase   uint8
	shown   uint8
	labels  uint8
	program uint8
)

const (
	noGrant grant = iota
	foreignGrant
	ownGrant
)

const (
	living    phase = iota
	ended           // reported by the kubelet
	collected       // reported by pod garbage collection
	confirmed       // reported by pod garbage collection, then by the kubelet
)

const (
	nothing    shown = iota // no container ever ran
	up                      // a gate or a program runs, which look the same
	terminated              // permanently or temporarily, which look the same
)

const (
	matching labels = iota
	marked          // only the labels of the webhook, no longer those of the selector
	stranger        // neither
)

const (
	absent program = iota
	waits          // the gate waits
	working
	crashed  // the kubelet will restart it
	finished // permanently
)

// node is a machine, and its Node in the API server.
type node struct {
	machine machine
	word    word
}

type (
	machine uint8
	word    uint8
)

const (
	works  machine = iota
	cutOff         // the kubelet cannot reach the API server
	off
)

const (
	registered   word = iota
	unregistered      // the Node was deleted
	outOfService      // an administrator has declared the machine off: the taint, or no Node for 60 s
)

// object is a StatefulSingleton.
type object struct {
	made    bool
	settled bool // the guard of every API server knows it
	dying   bool // deletionTimestamp is set; our finalizer keeps it
	younger bool // than another object with an overlapping selector, by creationTimestamp
	holder  slot
	leased  bool // a holder was named while there was a Lease
	pending bool // the Lease has not been written since the holder was named
}

// slot identifies a pod by its UID: the index in state.pods, plus 1. A pod that was removed
// from the API server has no slot.
type slot uint8

const noPod slot = 0

// process is an operator process: the data it has read, and its next write.
type process struct {
	at     step
	target slot
	holder slot  // as it was read
	newest bool  // the object still has the resourceVersion that was read
	same   bool  // the target still has the resourceVersion that was read
	gone   bool  // the target was removed from the API server; another pod may have its name
	fenced uint8 // Nodes that were read as fenced, if a rule is broken
	seen   sight
	agent  bool // an agent runs the program of the target
}

type step uint8

const (
	idle step = iota
	readObject
	readNoObject
	readPodsFirst
	writeHolder
	writeGrant
	writeAdopted
	writeFinalizer
	writeRelease
	writeRevoke
	writeLoose
	writeFree
	writeLetGo
	readLease
	writeNewLease
	writeLease
	writeNext
)

// rule is a rule that the model can drop.
type rule uint64

const (
	lock                   rule = 1 << iota // status.holder is written with the resourceVersion that was read
	grantBoundToUID                         // the grant is written to the pod's UID, not to its name
	grantBoundToVersion                     // the grant is written with the pod's resourceVersion that was read
	grantBringsFinalizer                    // annotation and finalizer are one write
	stoppedNeedsPhase                       // a pod has stopped only if its phase is Succeeded or Failed
	stoppedNeedsContainers                  // a pod has stopped only if its containers are terminated
	stoppedNeedsKubelet                     // a phase that pod garbage collection set does not count
	stoppedNeedsStatuses                    // a pod without statuses has stopped only if it waited at a gate
	liveRead                                // the pods are read from the API server
	gateAsksForUID                          // a grant is for one UID
	ungatedCount                            // pods without the gate may run
	newcomersCount                          // pods that are created while the object is terminating may run
	relabelledCount                         // pods with our label but without the selector's may run
	grantedCount                            // pods with a grant or our finalizer may run
	namedCount                              // the holder may run even without a grant
	holderStays                             // the holder is not replaced while it lives
	endedWaitsNoMore                        // an ended pod is not granted
	holderByName                            // the holder is read by its name
	adopts                                  // a granted pod becomes the holder of a new object
	protects                                // a pod that may run gets our finalizer
	guard                                   // the API server rejects pods without the gate
	guardStays                              // it also does so while the object is terminating
	settles                                 // a new object starts no pod until every guard knows it
	fenceNeedsWord                          // a Node is fenced only by an administrator's statement
	fenceNeedsSilence                       // a Node is fenced only while it is not Ready
	fenceNeedsEnd                           // a pod on a fenced Node has stopped only if it cannot start again
	nodesReadLast                           // a Node is read after its pod
	rivalsStop                              // an object starts no pod while another object's selector overlaps
	youngerYields                           // the younger of two such objects starts no pod
	objectReadFirst                         // the object is read before the pods
	objectStaysForHolder                    // an object is kept while its holder can be granted
	looseBoundToVersion                     // its end removes finalizers with the resourceVersion read
	orphansWait                             // no pod is granted without an object
	refusedAreDeleted                       // a user deletes pods that a kubelet refused
	lostUncounted                           // not a rule: see pod.unwatched
	assignmentBound                         // the Lease is assigned with the resourceVersion that was read
	grantFollowsLease                       // a grant is written after the Lease, if there is one
	pendingStays                            // a holder is not replaced by that of the Lease before the Lease was written for it
	newLeaseWaits                           // a recreated Lease has an unknown holder
	unseenHolderCounts                      // a holder of the Lease that is not among the pods may run
	renewsFirst                             // an agent starts its program only after a renewal
)

// fault is something that can happen in a world. In other worlds it does not happen.
type fault uint16

const (
	crashes    fault = 1 << iota // of programs, which their kubelets restart
	forced                       // pods are force deleted
	ungated                      // pods without the gate are created while nothing rejects them
	copies                       // pods are created with another pod's grant
	relabels                     // labels are edited where the guard allows it
	unguarded                    // labels are edited at any time
	refusals                     // a kubelet refuses a pod that is bound to its node
	deletions                    // of the object, which is then recreated
	outages                      // of nodes
	lateTaint                    // the taint is removed when the machine is on again, as Kubernetes documents
	leases                       // agents run programs
	mixed                        // and pods with the gate alone are created beside them
	successors                   // operators name successors in the Lease
	lostLeases                   // a user deletes the Lease
	skew                         // creationTimestamps do not show which object is older
)

// model is a world, and the rules that it drops.
type model struct {
	name                            string
	pods, nodes, objects, operators int
	faults                          fault
	without                         rule
	revokes                         revokes
}

// revokes is how an operator treats a granted pod whose Node is fenced, instead of waiting
// until the pod is deleted.
type revokes uint8

const (
	nothingElse       revokes = iota
	grantOnly                 // removes the grant, and releases the pod when the removal was read
	grantAndFinalizer         // removes both in one write
)

func (m *model) has(f fault) bool  { return m.faults&f != 0 }
func (m *model) obeys(r rule) bool { return m.without&r == 0 }

// broken reports whether two programs run at once in violation of the guarantee.
func (s *state) broken() bool {
	for a := range s.pods {
		for b := range a {
			if s.pods[a].program == working && s.pods[b].program == working &&
				s.pods[a].beside&(1<<b) == 0 && s.pods[b].beside&(1<<a) == 0 {
				return true
			}
		}
	}
	return false
}

// touch changes the pod's resourceVersion.
func (s *state) touch(pod int8) {
	for i := range s.operators {
		if s.operators[i].target == slot(pod+1) {
			s.operators[i].same = false
		}
	}
}

// touchObject changes the object's resourceVersion.
func (s *state) touchObject(m *model, object int8) {
	for i := range s.operators {
		if int8(i%m.objects) == object {
			s.operators[i].newest = false
		}
	}
}

// remove removes the pod from the API server. Its running program keeps running.
func (s *state) remove(m *model, i int8) {
	s.touch(i)
	for k := range s.objects {
		if s.objects[k].holder == slot(i+1) {
			s.objects[k].holder = noPod
		}
	}
	for k := range s.operators {
		o := &s.operators[k]
		if o.holder == slot(i+1) {
			o.holder = noPod
		}
		if o.target == slot(i+1) {
			o.gone = true
		}
	}
	p := &s.pods[i]
	running := p.program == working || p.program == crashed || p.leased && p.program == waits
	if !running || p.unwatched && m.obeys(lostUncounted) {
		s.free(i)
		return
	}
	*p = pod{program: p.program, beside: p.beside, leased: p.leased, older: p.older}
}

// free prepares the slot for a pod with a new UID.
func (s *state) free(i int8) {
	s.pods[i] = pod{}
	s.forgetLeaseOf(i)
	for k := range s.pods {
		s.pods[k].beside &^= 1 << i
	}
}

// dropRefused drops writes that the API server will reject. They have no effect, so the
// operator counts as idle.
func (s *state) dropRefused(m *model) {
	for i := range s.operators {
		o := &s.operators[i]
		if o.at != idle && o.hopeless(m, s) {
			*o = process{}
		}
	}
}

func (o *process) hopeless(m *model, s *state) bool {
	var target pod
	if o.target != noPod {
		target = s.pods[o.target-1]
	}
	bound := !o.gone || !m.obeys(grantBoundToUID)
	switch o.at {
	case writeNewLease, writeLease, writeNext:
		return o.leaseRefused(m, s)
	case writeHolder:
		if o.agent {
			return !o.newest && m.obeys(lock)
		}
		return !o.newest && m.obeys(lock) || !bound
	case writeAdopted:
		return !o.newest && m.obeys(lock) || o.gone
	case writeGrant:
		return !bound || target.dying || !o.same && m.obeys(grantBoundToVersion) && m.obeys(grantBoundToUID)
	case writeFinalizer:
		return o.gone || target.dying
	case writeRelease, writeRevoke:
		return o.gone
	case writeLetGo:
		return !o.same
	case writeLoose:
		return o.gone || !o.same && m.obeys(looseBoundToVersion)
	case writeFree:
		return !o.newest
	}
	return false
}
