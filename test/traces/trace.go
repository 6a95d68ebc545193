package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// singletonSuffix ends the name of the Lease of a StatefulSingleton.
const singletonSuffix = ".singleton"

// namespaceOf returns the namespace of a Lease.
func namespaceOf(lease string) string {
	namespace, _, _ := strings.Cut(lease, "/")
	return namespace
}

// place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

// trace is the record of a cluster.
type trace struct {
	writes     []*write
	endings    []*ending
	containers []*container
	// homes are the nodes of pods, by namespace and identity.
	homes map[string]string
	// bodiless is the number of writes of Leases whose bodies were not logged.
	bodiless int
}

// write is a request that has changed a Lease.
type write struct {
	place
	lease     string // namespace and name
	created   bool
	received  time.Time // by the API server
	completed time.Time
	by        requester
	bound     uint64 // the resourceVersion in the request, or 0
	after     state
}

// requester is the user of a request.
type requester struct {
	account string
	pod     string // the identity of the pod to which the token is bound, or ""
}

func (r requester) String() string {
	if r.pod == "" {
		return r.account
	}
	return "pod " + r.pod
}

// state is a version of a Lease.
type state struct {
	version  uint64
	uid      string
	owner    string // the UID of its owner
	holder   string // an identity, or ""
	next     string // the successor, or ""
	epoch    int64
	duration time.Duration
	renewed  string // renewTime
	acquired string // acquireTime
	fenced   string // the container that counts as ended
	rest     string // all other fields
}

// isHeldBy reports whether the Lease names the pod with that epoch.
func (s *state) isHeldBy(pod string, epoch int64) bool { return s.holder == pod && s.epoch == epoch }

// endAfter returns the time after a renewal in which its agent must end the program.
func (s *state) endAfter() time.Duration { return s.duration * 2 / 3 }

func isSingleton(lease string) bool { return strings.HasSuffix(lease, singletonSuffix) }
func isMember(lease string) bool    { return strings.HasSuffix(lease, v1alpha1.LeaseSuffix) }

// ending is a proof that a pod, or all pods of a node, run no program any more.
type ending struct {
	place
	at   time.Time
	pod  string // its namespace and identity, or namespace and name if its UID was not logged, or ""
	node string // or ""
}

// container is a run of an agent, and its log.
type container struct {
	place
	pod   string // an identity
	lease string // namespace and name
	began time.Time
	marks []mark
	// last is the last line of the program. Its time is zero if there is none.
	last mark
}

// mark is a line of a container's log.
type mark struct {
	place
	kind  markKind
	at    time.Time
	epoch int64
}

type markKind int

const (
	output   markKind = iota // of the program
	started                  // the program, or the member is armed
	handed                   // over
	fenced                   // the container ends
	disarmed                 // the member
	released                 // the program runs without the Lease
)

// isEmpty reports whether there is nothing to check.
func (t *trace) isEmpty() bool {
	return len(t.writes) == 0 && t.bodiless == 0 && len(t.containers) == 0
}

// clone returns a copy that can be changed.
func (t *trace) clone() *trace {
	c := &trace{bodiless: t.bodiless, homes: t.homes}
	for _, w := range t.writes {
		other := *w
		c.writes = append(c.writes, &other)
	}
	for _, e := range t.endings {
		other := *e
		c.endings = append(c.endings, &other)
	}
	for _, k := range t.containers {
		other := *k
		other.marks = slices.Clone(k.marks)
		c.containers = append(c.containers, &other)
	}
	return c
}
