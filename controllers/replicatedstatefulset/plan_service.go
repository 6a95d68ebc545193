package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// Whether a member serves clients is another question than what it is: a primary that is
// frozen is primary, and nobody may take its place while it runs.

// unanswered reports whether the member runs, and status has not answered for
// answersWithin. What the status of the object says of that stays until it answers: a new
// operator has not asked that long.
func (w *world) unanswered(m *member) bool {
	return m.reachable() && (m.unheard || !m.askedAt.IsZero() && w.watch.Elapsed(m.askedAt, w.now) >= answersWithin)
}

// unserved says why a member that runs its application serves no clients; "" if it does.
func (w *world) unserved(m *member) string {
	switch {
	case !podstate.Ready(m.pod):
		return "its pod is not Ready"
	case w.unanswered(m):
		return "status has not answered since " + m.askedAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// notServing are the primaries, as they are shown, that serve no clients.
func (w *world) notServing() []*member {
	return w.among(func(m *member) bool {
		return w.shown(m) == primary && !m.terminating() && !m.lost() && w.unserved(m) != ""
	})
}

// outOfReach reports whether the member may be primary on a Node that does not answer.
func (w *world) outOfReach(m *member) bool { return m.lost() && w.granted(m) }

func (w *world) whyUnserved() string {
	var texts []string
	for _, m := range w.notServing() {
		texts = append(texts, fmt.Sprintf("%s is primary, but %s", m.name(), w.unserved(m)))
	}
	return strings.Join(texts, "; ")
}

// unreadySince is since when the pod of a primary has not been Ready, by the kubelet's
// word, and not before it was told to be primary.
func (w *world) unreadySince(m *member) time.Time {
	since := m.startedAt()
	for _, c := range m.pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	if i := slices.IndexFunc(w.books.grants, func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID }); i >= 0 && w.books.grants[i].Since.After(since) {
		since = w.books.grants[i].Since.Time
	}
	return since
}

// unreadyTooLong reports whether a primary has been without clients for unreadyAfter. It
// is what the kubelet saw, whoever looked meanwhile.
func (w *world) unreadyTooLong(m *member) bool {
	return w.shown(m) == primary && !m.terminating() && !m.lost() && !podstate.Ready(m.pod) && w.now.Sub(w.unreadySince(m)) >= unreadyAfter
}

// whyMute says of whom status gives no answer, why, and what helps.
func (w *world) whyMute(mute []*member) string {
	first := mute[0]
	text := "status does not answer: " + namesOf(mute) + whySilent(mute)
	if first.busy != nil && first.busy.Name == v1alpha1.CommandStatus && !first.askedAt.IsZero() {
		text = fmt.Sprintf("status does not answer: %s (asked since %s)", namesOf(mute), first.askedAt.UTC().Format(time.RFC3339))
	}
	text += ". See for yourself: " + w.askByHand(first)
	if w.granted(first) {
		text += fmt.Sprintf(". No other takes the place of %s while it runs; to end it: kubectl -n %s delete pod %s", first.name(), first.pod.Namespace, first.name())
	}
	return text
}

// whySilent is why the first of them that was asked in vain gave no answer.
func whySilent(members []*member) string {
	for _, m := range members {
		if r, ok := m.result(v1alpha1.CommandStatus); ok && r.Outcome == podexec.Unknown && r.Why != "" {
			return fmt.Sprintf(" (%s: %s)", m.name(), r.Why)
		}
	}
	return ""
}
