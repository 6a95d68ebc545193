package statefulcluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

// invariants checks what must hold at every step of every story.
type invariants struct {
	s     *stage
	seen  *facts.World      // the world that the operator acts on now
	names map[string]string // the last UID of each name
	slots map[string]string // members by the lost one whose slot they fill
	open  map[string]bool   // slots of lost members without a Ready replacement
	// unwanted are members that a user evicted or deleted, or that the operator removed in a
	// scale-down.
	unwanted map[string]bool
	// lenient is true while others act between the operator's reads and its writes. The operator
	// cannot guarantee a budget then.
	lenient bool
}

func newInvariants(s *stage) *invariants {
	return &invariants{s: s, names: map[string]string{}, slots: map[string]string{}, open: map[string]bool{}, unwanted: map[string]bool{}}
}

// changed is called for every change of an object.
func (l *invariants) changed(act *action.Action, was, is client.Object) {
	switch o := first(is, was).(type) {
	case *corev1.PersistentVolumeClaim:
		if act != nil && act.Verb == action.Patch && facts.RetainedAs(o, v1alpha1.RetainedLost) {
			l.setAside(o)
		}
		if act != nil && act.Verb == action.Delete {
			l.s.Breaks("claim %s is deleted with policy Retain", o.Name)
		}
	case *corev1.Pod:
		l.watched(act, was, is)
		switch {
		case act == nil && metav1.GetControllerOf(o) == nil:
			// A foreign pod.
		case was == nil:
			l.born(act, o)
		case act != nil && act.Verb == action.Delete:
			l.deleted(act, was.(*corev1.Pod))
		case act != nil && act.Verb == action.Patch && o.Annotations[v1alpha1.AnnotationInPlace] != "":
			l.disrupted(was.(*corev1.Pod))
		case podstate.WasReady(o):
			delete(l.open, l.slots[o.Name])
		}
	}
}

// watched notes which members a user evicted or deleted, or the operator removed in a scale-down.
func (l *invariants) watched(act *action.Action, was, is client.Object) {
	if is == nil {
		pod := was.(*corev1.Pod)
		if act == nil && !podstate.Disrupted(pod) || podstate.Evicted(pod) {
			l.unwanted[pod.Name] = true
		}
		return
	}
	if act != nil && act.Verb == action.Delete && act.Reason != facts.ReasonUpdate {
		l.unwanted[is.GetName()] = true
	}
}

// setAside checks a claim that was labelled as lost. While no member is Ready, that is allowed only
// for members that a user evicted or deleted.
func (l *invariants) setAside(c *corev1.PersistentVolumeClaim) {
	if l.seen == nil || !facts.FindReadySince(l.seen).IsZero() || l.lenient {
		return
	}
	if name := "db-" + facts.MemberOf(c); !l.unwanted[name] {
		l.s.Breaks("claim %s is set aside while no member is Ready", c.Name)
	}
}

func first(is, was client.Object) client.Object {
	if is != nil {
		return is
	}
	return was
}

func (l *invariants) born(act *action.Action, p *corev1.Pod) {
	if old, used := l.names[p.Name]; used && !l.updating(p.Name, old) {
		l.s.Breaks("the name %s is reused for a pod that is not in status.updating", p.Name)
	}
	l.names[p.Name] = string(p.UID)
	id := p.Labels[v1alpha1.LabelMember]
	for _, v := range p.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && c.ClaimName != "db-"+v.Name+"-"+id {
			l.s.Breaks("%s mounts %s, a claim of another member", p.Name, c.ClaimName)
		}
	}
	for _, c := range l.s.Claims(p) {
		if c.Labels[v1alpha1.LabelRetained] != "" {
			l.s.Breaks("%s attaches %s, which was set aside as %s", p.Name, c.Name, c.Labels[v1alpha1.LabelRetained])
		}
	}
	if old := p.Annotations[v1alpha1.AnnotationReplaces]; l.slots[old] != "" {
		l.slots[p.Name] = l.slots[old]
	}
	if n, most := len(l.s.members()), int(*l.seen.Set.Spec.Replicas)+l.seen.MaxExtra(); n > most && act != nil && act.Reason != facts.ReasonReturned {
		l.s.Breaks("%d pods exist that are not terminating, max is %d", n, most)
	}
}

func (l *invariants) updating(name, uid string) bool {
	for _, e := range l.s.set().Status.Updating {
		if e.Name == name && (string(e.UID) == uid || e.UID == "") {
			return true
		}
	}
	return false
}

func (l *invariants) deleted(act *action.Action, p *corev1.Pod) {
	switch act.Reason {
	case facts.ReasonUpdate:
		if !l.updating(p.Name, string(p.UID)) {
			l.s.Breaks("%s is deleted for an update and is not in status.updating", p.Name)
		}
		l.disrupted(p)
	case facts.ReasonRetired:
		delete(l.open, l.slots[p.Name])
		if n := len(l.s.members()) + len(l.s.set().Status.Updating); n < int(*l.seen.Set.Spec.Replicas) && !l.lenient {
			l.s.Breaks("%s is retired, which leaves %d of %d members", p.Name, n, *l.seen.Set.Spec.Replicas)
		}
		l.drained(p)
	default:
		if f := facts.Derive(l.seen); f.ReplacesFirst() && rules.CountSuccessors(f) <= 0 {
			break // all slots are filled without it
		}
		if l.slots[p.Name] == "" {
			l.slots[p.Name] = p.Name
		}
		l.open[l.slots[p.Name]] = true
		if most := l.seen.MaxConcurrent(); len(l.open) > most && !l.lenient {
			l.s.Breaks("%s is replaced with %d open slots, max is %d", p.Name, len(l.open), most)
		}
	}
}

// drained checks the retirement of a member. If its node was cordoned, all replicas must be
// available without it.
func (l *invariants) drained(p *corev1.Pod) {
	i := slices.IndexFunc(l.seen.Members, func(m *facts.Member) bool { return m.Pod.UID == p.UID })
	f := facts.Derive(l.seen)
	if l.lenient || i < 0 || !f.Leaves(l.seen.Members[i]) || f.Occupied() > f.Wanted() || f.MaxSurge() > 0 {
		return // a scale-down, or an update
	}
	if n, least := l.availableBeside(p), f.Replicas(); n < least {
		l.s.Breaks("%s is retired from its cordoned node with %d available members, min is %d", p.Name, n, least)
	}
}

// availableBeside returns the number of available members other than p.
func (l *invariants) availableBeside(p *corev1.Pod) (n int) {
	for _, other := range l.s.members() {
		if ok, _ := l.seen.Available(&facts.Member{Pod: other}); ok && other.Name != p.Name {
			n++
		}
	}
	return n
}

// disrupted checks that an update of an available member keeps enough members available.
func (l *invariants) disrupted(p *corev1.Pod) {
	ok, _ := l.seen.Available(&facts.Member{Pod: p})
	if !ok || l.lenient {
		return
	}
	left := l.availableBeside(p)
	if least := int(*l.seen.Set.Spec.Replicas) - l.seen.MaxUnavailable(); left < least {
		l.s.Breaks("the update of %s leaves %d available members, min is %d", p.Name, left, least)
	}
}
