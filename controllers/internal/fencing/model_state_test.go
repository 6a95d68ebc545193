package fencing

// A model of the protocol in doc.go. A state is everything that matters at one moment, in the API server, in the
// agents, in the network and in the operators. resourceVersions are only compared with those that were read, so
// the model stores whether they still match. Time is a number of ticks; a move takes none.

const (
	members   = 2
	operators = 2
	// leaseDuration is D in ticks.
	leaseDuration = 3
	// lastEpoch bounds the search.
	lastEpoch = 2
)

// state is comparable, and the key of the search.
type state struct {
	lease     lease
	agents    [members]agent
	operators [operators]operator
}

// slot is the index of a member plus 1.
type slot int8

const noMember slot = 0

// lease is the Lease of an object.
type lease struct {
	holder slot
	next   slot // the successor that an operator has named
	epoch  int8 // the number of changes of the holder
}

// agent is process 1 of a member's container, with its program.
type agent struct {
	program program
	// age is the time since the last renewal that succeeded was sent, by the agent's clock. late is set if that
	// clock has lost a tick since then. epoch is that of the Lease when the program was started.
	age   int8
	late  bool
	epoch int8
	// cut is set while the agent cannot reach the API server.
	cut    bool
	frozen frozen
	// holds is set if the agent was the holder when it last read or wrote the Lease. current is set if the Lease
	// has not changed since.
	holds, current bool
	request        request
}

type program int8

const (
	off program = iota // it waits, or its container restarts
	working
	ended // it does not start again
)

// frozen is the part of a container that the kernel does not schedule.
type frozen int8

const (
	nothing frozen = iota
	everything
	agentOnly
)

// request is a write of an agent in the network.
type request struct {
	at  progress
	age int8 // time since it was sent
	// bound is set if the Lease still has the resourceVersion to which the write is bound. After the write it is
	// set if the Lease has not changed since.
	bound bool
	// orphan is set if the process that has sent it does not run any more.
	orphan bool
	// to is the next holder: the agent itself in a renewal.
	to    slot
	epoch int8 // of the Lease after the write
}

type progress int8

const (
	none progress = iota
	sent
	succeeded
)

// operator is an operator process, and its next write.
type operator struct {
	at step
	// current is set if the Lease has not changed since it was read, and watched is the time since then.
	current bool
	watched int8
	to      slot
}

type step int8

const (
	idle step = iota
	watching
	takingOver
	assigning
	naming
)

// rule is a rule that a model can drop.
type rule uint

const (
	endsItself       rule = 1 << iota // the agent ends its program when no renewal has succeeded for S
	endsBefore                        // S is less than D
	agesFromSend                      // the age of a renewal is measured from the moment before it was sent
	renewsFirst                       // a restarted agent renews before it starts the program
	startsWithFresh                   // a renewal that was answered later than S does not start the program
	renewalBound                      // a renewal is bound to the resourceVersion that was read
	handoverBound                     // and so is the agent's handover
	takeoverBound                     // and the operator's takeover
	assignmentBound                   // and its choice of the next holder
	handsOverAfter                    // the agent hands over when its program has ended
	watchesWholeTime                  // the operator takes the Lease over when it has not changed for D
)

// fault is something that can happen in a world. In other worlds it does not happen.
type fault uint

const (
	cuts       fault = 1 << iota // of the network of one member
	crashes                      // of containers, which restart
	losses                       // of responses
	ends                         // of programs
	successors                   // operators name them, and agents hand over
	freezes                      // of an agent with its program
	starves                      // of an agent alone, while its program runs
	slowClocks                   // an agent's clock loses one tick in D
)

// model is a world, and the rules that it drops.
type model struct {
	name    string
	faults  fault
	without rule
}

func (m *model) has(f fault) bool  { return m.faults&f != 0 }
func (m *model) obeys(r rule) bool { return m.without&r == 0 }

// endAfter returns S in ticks.
func (m *model) endAfter() int8 {
	if !m.obeys(endsBefore) {
		return leaseDuration
	}
	return leaseDuration - 1
}

// runs reports whether the program of a member executes.
func (s *state) runs(i int) bool {
	return s.agents[i].program == working && s.agents[i].frozen != everything
}

// broken reports whether two programs execute at the same time.
func (s *state) broken() bool { return s.runs(0) && s.runs(1) }

// change changes the Lease. What was read before is outdated.
func (s *state) change(l lease) {
	s.lease = l
	for i := range s.agents {
		s.agents[i].current, s.agents[i].request.bound = false, false
	}
	for i := range s.operators {
		s.operators[i].current = false
	}
}

// normalize makes states equal that differ only in what has no effect.
func (s *state) normalize(m *model) {
	for i := range s.agents {
		a := &s.agents[i]
		if a.program != working {
			a.age, a.late, a.epoch = 0, false, 0
		}
		if a.program == working {
			a.age = min(a.age, m.endAfter())
		}
		r := &a.request
		hopeless := r.at == sent && !r.bound && m.obeys(renewalBound|handoverBound)
		if r.at == none || hopeless {
			*r = request{}
		}
		if r.orphan {
			r.age = 0
		}
		r.age = min(r.age, m.endAfter())
	}
	for k := range s.operators {
		if o := &s.operators[k]; !o.current && m.obeys(takeoverBound|assignmentBound) {
			*o = operator{}
		}
	}
}
