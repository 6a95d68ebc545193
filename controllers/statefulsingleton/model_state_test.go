package statefulsingleton_test

// The protocol of doc.go as a model: a state is everything that matters at one
// instant, in the API server, on the nodes and in the operators. A pod has a
// slot; a slot is a name, and each pod that is made in it has a new UID. Times
// are left out: whatever can take time, takes any. resourceVersions and UIDs
// are never compared but with what one operator has read, so the model keeps
// the answers: does it still hold what it read?

type state struct {
	pods      [3]pod
	nodes     [2]node
	objects   [2]object
	operators [2]process
}

type pod struct {
	// In the API server.
	made   bool // there is such a pod
	gated  bool
	grant  grant // the annotation
	kept   bool  // our finalizer
	dying  bool  // deletionTimestamp
	late   bool  // created while the object was being deleted
	phase  phase
	shown  shown // the container statuses, as reported last
	labels labels

	// On the node, whatever the API server shows.
	program program

	// What the promise does not cover: a program that started beside these pods
	// while no object held it back, and one that goes on after its pod was force
	// deleted before a finalizer of ours was on it, or after an object let it go.
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
	ended           // the kubelet says so
	collected       // pod garbage collection says so
	confirmed       // and after it the kubelet
)

const (
	nothing    shown = iota // no container ever ran
	up                      // of a gate or a program: they look the same
	terminated              // for good or for a moment: they look the same
)

const (
	matching labels = iota
	marked          // no longer the selector's, but those of the webhook
	stranger        // neither
)

const (
	absent program = iota
	waits          // the gate does
	working
	crashed  // and the kubelet will start it again
	finished // for good
)

// node is a machine and what the API server has of it.
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
	cutOff         // the kubelet does not reach the API server
	off
)

const (
	registered   word = iota
	unregistered      // its Node is gone
	outOfService      // the administrator says that the machine is off: the taint, or no Node for 60 s
)

// object is a StatefulSingleton.
type object struct {
	made    bool
	settled bool // every API server's guard knows it
	dying   bool // deletionTimestamp; our finalizer keeps it
	younger bool // than another whose selector overlaps, by its creationTimestamp
	holder  slot
}

// slot names a pod by its UID: its place in state.pods, and 1. A pod that left
// the API server is no one.
type slot uint8

const noPod slot = 0

// process is a process: what it has read, and the write that it will make.
type process struct {
	at     step
	target slot
	holder slot  // as it was read
	newest bool  // the object has still the resourceVersion that was read
	same   bool  // and so has the target
	gone   bool  // the target has left the API server; another may have its name
	fenced uint8 // Nodes that were read as fenced, where a rule is broken
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
)

// rule is one that the model can do without.
type rule uint64

const (
	lock                   rule = 1 << iota // status.holder is written with the resourceVersion that was read
	grantBoundToUID                         // the grant is written to the pod's UID, not to its name
	grantBoundToVersion                     // and with the resourceVersion that was read
	grantBringsFinalizer                    // annotation and finalizer are one write
	stoppedNeedsPhase                       // a pod has stopped only in phase Succeeded or Failed,
	stoppedNeedsContainers                  // with its containers terminated,
	stoppedNeedsKubelet                     // by the kubelet's word, not pod garbage collection's,
	stoppedNeedsStatuses                    // and without any status only if it waited at a gate
	liveRead                                // the pods are read from the API server
	gateAsksForUID                          // a grant is for one UID
	ungatedCount                            // pods without the gate may run,
	newcomersCount                          // also those that were created while the object is being deleted,
	relabelledCount                         // and those with our label but not the selector's,
	grantedCount                            // and those with a grant or our finalizer,
	namedCount                              // and the holder without a grant,
	holderStays                             // who is not withdrawn while it lives,
	endedWaitsNoMore                        // nor granted once its phase has ended,
	holderByName                            // and found by its name
	adopts                                  // a granted pod becomes the holder of a new object
	protects                                // a pod that may run gets our finalizer
	guard                                   // the API server refuses pods without the gate,
	guardStays                              // also while the object is being deleted,
	settles                                 // a new object starts no pod until every guard knows it
	fenceNeedsWord                          // a Node is fenced by an administrator's word,
	fenceNeedsSilence                       // while it is not Ready,
	fenceNeedsEnd                           // and a pod on it once it can never start again,
	nodesReadLast                           // which is read after the pod
	rivalsStop                              // an object starts no pod while another's selector overlaps,
	youngerYields                           // or at least the younger does not
	objectReadFirst                         // the object is read before the pods
	objectStaysForHolder                    // an object stays while its holder can be granted
	looseBoundToVersion                     // its end takes finalizers off with the resourceVersion that was read
	orphansWait                             // no pod is granted without an object
	refusedAreDeleted                       // a user deletes pods that a kubelet refused
	lostUncounted                           // not a rule: see pod.unwatched
)

// fault is something that a world can have; in others it does not happen.
type fault uint16

const (
	crashes   fault = 1 << iota // of programs, which their kubelets start again
	forced                      // pods are force deleted
	ungated                     // pods without the gate are made, while nothing refuses them
	copies                      // pods are made with another pod's grant
	relabels                    // labels are edited, where the guard lets it pass,
	unguarded                   // or at any time
	refusals                    // a kubelet refuses a pod that is bound to its node
	deletions                   // of the object, and it is made again
	outages                     // of nodes
	lateTaint                   // the taint is taken off when the machine is on again, as Kubernetes' documents say
	skew                        // creationTimestamps do not tell which object is older
)

// model is a world, and the rules that it does without.
type model struct {
	name                            string
	pods, nodes, objects, operators int
	faults                          fault
	without                         rule
	revokes                         revokes
}

// revokes is what an operator does with a granted pod whose Node is fenced,
// instead of waiting until it is deleted.
type revokes uint8

const (
	nothingElse       revokes = iota
	grantOnly                 // takes the grant back, and releases the pod when that was read
	grantAndFinalizer         // takes both off in one write
)

func (m *model) has(f fault) bool  { return m.faults&f != 0 }
func (m *model) obeys(r rule) bool { return m.without&r == 0 }

// broken reports whether two programs run at once, contrary to the promise.
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

// remove takes the pod out of the API server. What runs of it, runs on.
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
	running := p.program == working || p.program == crashed
	if !running || p.unwatched && m.obeys(lostUncounted) {
		s.free(i)
		return
	}
	*p = pod{program: p.program, beside: p.beside}
}

// free makes the slot ready for a pod of a new UID.
func (s *state) free(i int8) {
	s.pods[i] = pod{}
	for k := range s.pods {
		s.pods[k].beside &^= 1 << i
	}
}

// dropRefused drops writes that the API server will refuse: they are as good as not
// made, and the operator as good as idle.
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
	case writeHolder:
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
