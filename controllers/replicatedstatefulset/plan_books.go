package replicatedstatefulset

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// books are what must not be forgotten. Who may be primary, and which commands
// may still run, is in them before it is so, and leaves them on proof only: they
// are a superset of the truth, always.
type books struct {
	epoch     int64
	grants    []v1alpha1.Grant
	commands  []v1alpha1.RunningCommand
	failures  []v1alpha1.Failure
	sequences []v1alpha1.Sequence
	// news says what was learned, for people.
	news []news
}

// news is a piece of it, with the reason of its event.
type news struct {
	reason, text string
	warns        bool
}

// learn brings the books up to date with the world.
func learn(w *world) books {
	s := w.set.Status.DeepCopy()
	b := books{epoch: s.Epoch, grants: s.Grants, commands: s.Commands, failures: s.Failures, sequences: s.Sequences}
	w.books = b // states are asked for below, and need the commands
	b.commands = slices.DeleteFunc(b.commands, func(c v1alpha1.RunningCommand) bool { return b.ended(w, &c) })
	w.books = b
	b.grants = slices.DeleteFunc(b.grants, func(g v1alpha1.Grant) bool {
		why := w.revoked(&g)
		if why != "" {
			b.tellRevoked(w, &g, why)
		}
		return why != ""
	})
	w.books = b
	for _, m := range w.members {
		if w.state(m) == primary && !w.grantedIn(m) {
			b.grants = append(b.grants, w.grant(m, b.epoch))
			b.tell(v1alpha1.EventRoleChanged, "%s is found running as primary", m.name())
			w.books = b
		}
	}
	b.forgive(w)
	b.note(w)
	return b
}

func (b *books) tell(reason, format string, args ...any) {
	b.news = append(b.news, news{reason: reason, text: fmt.Sprintf(format, args...)})
}

func (b *books) warn(reason, format string, args ...any) {
	b.news = append(b.news, news{reason: reason, text: fmt.Sprintf(format, args...), warns: true})
}

// kind is the type of its event.
func (n *news) kind() string {
	if n.warns {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// tellRevoked tells that a container is not primary: not any more, or never was.
func (b *books) tellRevoked(w *world, g *v1alpha1.Grant, why string) {
	reason := v1alpha1.EventNotPromoted
	if slices.Contains(w.set.Status.Members.Primary, g.Pod) {
		reason = v1alpha1.EventDemoted
	}
	b.tell(reason, "%s is not primary: %s", g.Pod, why)
}

// succeededAs is the reason of the event that a command has taken effect.
func succeededAs(command string) string {
	switch command {
	case v1alpha1.CommandSeed:
		return v1alpha1.EventSeeded
	case v1alpha1.CommandStop:
		return v1alpha1.EventMemberStopped
	case v1alpha1.CommandDemote:
		return v1alpha1.EventDemoted
	}
	return v1alpha1.EventMemberStarted
}

func (w *world) grant(m *member, epoch int64) v1alpha1.Grant {
	return v1alpha1.Grant{Pod: m.name(), UID: m.pod.UID, ContainerID: m.running(), Epoch: epoch, Since: metav1.NewMicroTime(w.now)}
}

// containerGone tells whether a container has ended, by the kubelet's word, or
// can be taken to have by an administrator's.
func (w *world) containerGone(pod types.UID, id string) bool {
	m := w.byUID(pod)
	if m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) {
		return true
	}
	for i := range m.pod.Status.ContainerStatuses {
		s := &m.pod.Status.ContainerStatuses[i]
		if last := s.LastTerminationState.Terminated; s.State.Terminated != nil && s.ContainerID == id || last != nil && last.ContainerID == id {
			return true
		}
		if s.ContainerID == id {
			return false
		}
	}
	// The kubelet names the newest container that it made: the one before is gone.
	c := m.container()
	return c != nil && c.ContainerID != ""
}

// successor is the container that runs under the name of a member in place of
// another; nil if none does.
func (w *world) successor(name, id string) *member {
	if m := w.named(name); m != nil && m.running() != "" && m.running() != id && !w.containerGone(m.pod.UID, m.running()) {
		return m
	}
	return nil
}

// revoked says why a container that was granted is not primary any more; "" if
// that is not proven.
func (w *world) revoked(g *v1alpha1.Grant) string {
	if slices.ContainsFunc(w.books.commands, func(c v1alpha1.RunningCommand) bool {
		return c.Pod == g.Pod && c.ContainerID == g.ContainerID && startsPrimary(c.Name)
	}) {
		return "" // a start whose end was not seen may take effect
	}
	if w.containerGone(g.UID, g.ContainerID) {
		// A start that was meant for it may have reached the next one of the same
		// pod, whose kubelet has not told of that yet. In another pod's container its
		// end would not count as seen, and it would be in the books still.
		if m := w.byUID(g.UID); m == nil || podstate.Stopped(m.pod, true) || w.fenced(m) {
			return "its container has ended"
		}
		if next := w.successor(g.Pod, g.ContainerID); next != nil {
			s := w.state(next)
			if s != idle && s != secondary && (s != primary || !w.grantedIn(next)) {
				return ""
			}
		} else if !w.now.After(strayUntil(g.Since, g.BeginWithin)) {
			return ""
		}
		return "its container has ended"
	}
	m := w.byUID(g.UID)
	if m.running() != g.ContainerID {
		return ""
	}
	switch w.state(m) {
	case idle:
		return "status says that it has stopped"
	case secondary:
		return "status says that it is secondary"
	}
	return ""
}

// clean takes back that a member needs a stop before it is started again.
func (b *books) clean(m *member) {
	for i := range b.failures {
		if m != nil && b.failures[i].UID == m.pod.UID {
			b.failures[i].Unclean = false
		}
	}
}

// forgive drops the failures that say nothing any more.
func (b *books) forgive(w *world) {
	for _, m := range w.members {
		f := w.failure(m)
		if s := w.state(m); s == primary || s == secondary && f != nil && f.Code == 0 && starts(f.Command) { // it came up late
			b.clean(m)
		}
	}
	b.failures = slices.DeleteFunc(b.failures, func(f v1alpha1.Failure) bool {
		m := w.named(f.Pod)
		if f.Code == ocfNotConfigured && f.Generation == w.set.Generation {
			return false // another pod makes the spec no better
		}
		switch {
		case m == nil:
		case dud(&f) && (w.state(m) == primary && !m.terminating() || f.Generation != w.set.Generation), !dud(&f) && m.pod.UID != f.UID:
			return true
		}
		barred := f.Code >= ocfArgs && f.Code <= ocfInstalled && f.Generation == w.set.Generation
		unclean := m != nil && f.Unclean && f.ContainerID == m.running()
		return !barred && !unclean && w.now.Sub(f.Last.Time) > failureWindow(&w.set.Spec)
	})
	slices.SortFunc(b.failures, func(a, c v1alpha1.Failure) int { return strings.Compare(a.Pod, c.Pod) })
}

// note keeps what members said of their copies while it could be compared. What an
// idle member says beside one that runs is about to be overwritten, and a lower
// number than before is a copy that lost something.
func (b *books) note(w *world) {
	runs := len(b.grants) > 0 || slices.ContainsFunc(w.members, func(m *member) bool { return w.shown(m) == secondary || w.shown(m) == primary })
	for _, m := range w.members {
		r, ok := m.answer(v1alpha1.CommandSequence)
		n, known := sequenceOf(r)
		if !ok || !known || runs && w.state(m) == idle {
			continue
		}
		b.record(m, n)
	}
}

// record puts down how new the copy of a member is, if it is newer than what is
// on record, or as new in a later epoch.
func (b *books) record(m *member, n uint64) {
	r, _ := m.answer(v1alpha1.CommandSequence)
	later := !slices.ContainsFunc(b.grants, func(g v1alpha1.Grant) bool { return !r.Began.After(g.Since.Time) })
	now := v1alpha1.Sequence{Pod: m.name(), Sequence: strconv.FormatUint(n, 10), Epoch: b.epoch, Time: metav1.NewTime(r.Began.Truncate(time.Second))}
	b.sequences = slices.Clone(b.sequences)
	if i := slices.IndexFunc(b.sequences, func(s v1alpha1.Sequence) bool { return s.Pod == m.name() }); i < 0 {
		b.sequences = append(b.sequences, now)
	} else if had := recorded(b.sequences[i]); n > had || n == had && later && b.epoch > b.sequences[i].Epoch {
		b.sequences[i] = now
	}
	slices.SortFunc(b.sequences, func(x, y v1alpha1.Sequence) int {
		return cmp.Or(len(x.Pod)-len(y.Pod), strings.Compare(x.Pod, y.Pod))
	})
}

func recorded(s v1alpha1.Sequence) uint64 {
	n, err := strconv.ParseUint(s.Sequence, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// newest is the highest sequence ever recorded, and whose it is.
func (b *books) newest() (highest uint64, pod string) {
	for _, s := range b.sequences {
		if n := recorded(s); n > highest {
			highest, pod = n, s.Pod
		}
	}
	return highest, pod
}

// into puts the books into a status.
func (b *books) into(s *v1alpha1.ReplicatedStatefulSetStatus) {
	s.Epoch, s.Grants, s.Commands, s.Failures, s.Sequences = b.epoch, b.grants, b.commands, b.failures, b.sequences
}

// keepBooks writes what was learned of grants and commands, before anything else
// is decided on it. The rest waits for the next write of the status.
func keepBooks(w *world, p *plan) {
	s := &w.set.Status
	if apiequality.Semantic.DeepEqual(s.Grants, w.books.grants) && apiequality.Semantic.DeepEqual(s.Commands, w.books.commands) {
		return
	}
	var texts []string
	for _, n := range w.books.news {
		texts = append(texts, n.text)
	}
	p.Do(action.Chain{w.write(w.books, reasonLearned, strings.Join(texts, "; "))})
}

// write is the patch that puts books into the status, bound to what was read.
func (w *world) write(b books, reason, detail string) action.Action {
	set := w.set.DeepCopy()
	b.into(&set.Status)
	return action.Action{Verb: action.PatchStatus, Object: set, From: w.set, Reason: reason, Detail: detail}
}

// fenced and powerless are what an administrator says of a machine: it is off,
// and the pod will not start when it is on again, because it is deleted or ended.
func (w *world) fenced(m *member) bool {
	return w.powerless(m) && (m.terminating() || podstate.Ended(m.pod))
}

func (w *world) powerless(m *member) bool {
	return m.node.OutOfService && !m.node.Ready || m.node.Missing && w.watch.Elapsed(m.node.MissingSince, w.now) >= fenceAfter
}
