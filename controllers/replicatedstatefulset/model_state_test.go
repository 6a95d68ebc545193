package replicatedstatefulset_test

// A model of grants and commands as doc.go describes them, for a set of two members that wants one primary. A
// state is everything that matters at one moment, in the containers, in the network, in the API server and in the
// operators. Time is left out, except for one fact: whether a start that was sent can still begin.
//
// Each member has a current container. The record is about that one, or about an earlier one of the same name.

// modelState is comparable, and the key of the search.
type modelState struct {
	members [2]modelMember
	leader  modelProcess
	// former is an earlier leader, which was frozen before a write. It reads nothing any more: a process checks
	// right before each write that it leads, by its own clock.
	former modelWrite
}

// modelMember is a member, and its part of the record.
type modelMember struct {
	// In the container.
	role  modelRole
	start bool // a start is being executed

	armed modelEpoch // of the Lease that its agent renews

	// In the network.
	request      bool // a start that was sent
	requestEpoch modelEpoch

	// In the API server.
	reported         modelReport
	granted, started modelContainer // the containers of the grant and of the start on record
	// young is set while the start on record can begin. nextYoung is set if the current container began
	// meanwhile, so that the start may have reached it.
	young, nextYoung bool
	// holds is set if the Lease names the pod. grantEpoch is the epoch of the grant.
	holds      bool
	grantEpoch modelEpoch
}

type modelRole int8

const (
	modelIdle modelRole = iota
	modelSecondary
	modelPrimary
)

// modelReport is what the kubelet has reported about the current container.
type modelReport int8

const (
	modelRunning  modelReport = iota
	modelEnded                // only that the previous container has ended
	modelOutdated             // nothing: the API server shows the previous container as running
)

// modelContainer is a container in the record.
type modelContainer int8

const (
	modelNone modelContainer = iota
	modelCurrent
	modelOld
)

// modelProcess is the operator that leads.
type modelProcess struct {
	read    bool          // it has read the object
	stale   bool          // which has changed since
	grants  [2]modelEpoch // the epochs of the grants that it has read
	sight   modelSight
	write   modelWrite
	answers [2]modelAnswer
	starts  [2]modelEnd
}

// modelWrite is a write that was decided.
type modelWrite struct {
	at     modelStep
	target int8
	// old is set if the container for which it was decided has been replaced.
	old bool
	// newest is set if the object has the resourceVersion that was read, and bound if the Lease has it.
	newest, bound bool
	epoch         modelEpoch // of the grant
}

type modelStep int8

const (
	modelIdleStep modelStep = iota
	modelRecords
	modelSends
	modelEndsStart
	modelEndsGrant
	modelAdopts
	modelAssigns // names the pod in its Lease, and then sends
	modelNames
	modelTakesOver
	modelReleases
	modelRevokes
)

// writesLease reports whether a step is a write of a Lease.
func (at modelStep) writesLease() bool { return at >= modelAssigns && at <= modelReleases }

// modelAnswer is the last result of status that counts for the container that the API server shows.
type modelAnswer int8

const (
	modelUnasked modelAnswer = iota
	modelSaysIdle
	modelSaysSecondary
	modelSaysPrimary
)

// modelEnd is the end of the start on record as this process has seen it.
type modelEnd int8

const (
	modelUnseen    modelEnd = iota // it was not sent by this process, or its stream is broken
	modelAwaited                   // its stream is open
	modelSucceeded                 // it returned 0
	modelFailed                    // it returned another code, or was not sent
)

// modelRule is a rule that a model can drop.
type modelRule uint

const (
	ruleOneGrant          modelRule = 1 << iota // a start is sent only if there is no grant
	ruleRecordFirst                             // the grant and the start are on record before the start is sent
	ruleBound                                   // the record is written with the resourceVersion that was read
	ruleZeroIsConfirmed                         // a start that returned 0 is on record until status reports primary
	ruleUnknownStays                            // a start without a known end is on record until status reports primary
	ruleStartKeepsGrant                         // a grant stays while its start is on record
	ruleKubeletProves                           // a container has ended only if the kubelet has reported it
	ruleStrays                                  // a start whose container has ended is on record while it can begin
	ruleStraysNext                              // and while the container runs that began meanwhile
	ruleGrantWaits                              // the grant of an ended container stays until the next one is not primary
	ruleAnswersAfter                            // a result of status from before the end of a start does not count
	ruleInTime                                  // a process that was frozen does not send a start late
	rulePrompt                                  // not a rule: a kubelet reports a container in less than spec.StrayAfter
	ruleArmed                                   // a start begins only if the agent renews the Lease
	ruleArmedEpoch                              // and if that has the epoch of the start
	ruleAssignmentBound                         // the Lease is written with the resourceVersion that was read, for a start
	ruleTakeoverBound                           // and when it is taken over
	ruleReleaseBound                            // and when it is released
	ruleReleaseAfterGrant                       // a Lease is released only if there is no grant
	ruleLeaseFirst                              // a pass reads the Leases before the object
)

// modelFault is something that can happen in a world. In other worlds it does not happen.
type modelFault uint

const (
	faultCrashes  modelFault = 1 << iota // of containers, which restart
	faultDeposed                         // leaders are frozen and succeeded, at any moment
	faultStreams                         // streams break, and requests are lost
	faultEarly                           // exec returns 0 while the command runs (kubernetes#73056)
	faultSteps                           // primaries step down, by a command or on their own
	faultLeases                          // not a fault: each member has a Lease
	faultOneLease                        // not a fault: only member 1 has a Lease
)

// setModel is a world, and the rules that it drops.
type setModel struct {
	name    string
	faults  modelFault
	without modelRule
}

func (m *setModel) has(f modelFault) bool  { return m.faults&f != 0 }
func (m *setModel) obeys(r modelRule) bool { return m.without&r == 0 }

// broken reports whether two members are primary at the same time.
func (s *modelState) broken() bool {
	return s.members[0].role == modelPrimary && s.members[1].role == modelPrimary
}

// touch changes the resourceVersion of the object.
func (s *modelState) touch() {
	s.leader.write.newest, s.former.newest = false, false
	if s.leader.sight == (modelSight{}) {
		s.leader.forget() // it reads again, because its writes would be refused
	}
	s.leader.stale = s.leader.read // except those of a Lease
}

// normalize makes states equal that differ only in what has no effect.
func (s *modelState) normalize(m *setModel) {
	for _, w := range s.writes() {
		refused := !w.newest && m.obeys(ruleBound) && w.at != modelSends && !w.at.writesLease()
		if w.at == modelIdleStep || refused {
			*w = modelWrite{}
		}
	}
	if m.has(faultLeases) {
		s.normalizeLeases(m)
	}
	for i := range s.members {
		x := &s.members[i]
		if x.started == modelNone && x.granted == modelNone && !x.request && m.obeys(ruleRecordFirst) {
			x.young = x.young && s.sends(i)
		}
		if x.started == modelNone {
			s.leader.starts[i] = modelUnseen
		}
	}
}

// sends reports whether a process is about to send a start to a member.
func (s *modelState) sends(i int) bool {
	return s.leader.write.sendsTo(i) || s.former.sendsTo(i)
}

// sendsTo reports whether a start for a member follows this write.
func (w *modelWrite) sendsTo(i int) bool {
	sends := w.at == modelSends || w.at == modelAssigns
	return sends && int(w.target) == i
}
