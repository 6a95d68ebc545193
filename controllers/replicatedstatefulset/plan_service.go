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

// Whether a member serves clients does not determine its state: a frozen primary is still primary,
// and no other member may replace it while it runs.

// unserved states why a running member serves no clients. It is "" if it does.
func (m *member) unserved() string {
	switch {
	case !podstate.Ready(m.pod):
		return "its pod is not Ready"
	case m.notAnswering:
		return "status has not responded since " + m.askedAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// isShownPrimary reports whether the member is reported as primary and its Node is reachable.
func (m *member) isShownPrimary() bool {
	return m.shown == primary && !m.terminating() && !m.lost()
}

// notServing returns the members reported as primary that serve no clients.
func (all members) notServing() []*member {
	return all.among(func(m *member) bool { return m.isShownPrimary() && m.unserved() != "" })
}

func (all members) whyUnserved() string {
	var texts []string
	for _, m := range all.notServing() {
		texts = append(texts, fmt.Sprintf("%s is primary, but %s", m.name(), m.unserved()))
	}
	return strings.Join(texts, "; ")
}

// unreadySince returns when the kubelet reported the pod as not Ready, but not before the end of
// its last command or its grant.
func (f *facts) unreadySince(m *member) time.Time {
	since := m.startedAt()
	if at := m.changedAt(); at.After(since) {
		since = at
	}
	for _, c := range m.pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	i := slices.IndexFunc(
		f.record.granted,
		func(g v1alpha1.Grant) bool { return g.UID == m.pod.UID },
	)
	if i >= 0 && f.record.granted[i].Since.After(since) {
		since = f.record.granted[i].Since.Time
	}
	return since
}

// unreadyTooLong reports whether a primary has been unready for unreadyAfter. It uses the clock,
// because the kubelet observed it even if no operator ran.
func (c *clock) unreadyTooLong(m *member) bool {
	return m.isShownPrimary() && c.isUnreadyFor(m, unreadyAfter)
}

// followsUnready reports whether the pod of a secondary has been unready for unreadyAfter.
func (c *clock) followsUnready(m *member) bool {
	follows := m.shown == secondary && !m.terminating() && !m.lost() && !m.parked
	return follows && c.isUnreadyFor(m, unreadyAfter)
}

func (c *clock) isUnreadyFor(m *member, time time.Duration) bool {
	return !podstate.Ready(m.pod) && c.now.Sub(m.unreadySince) >= time
}

// secondariesUnready returns the notice about secondaries that are not Ready.
func secondariesUnready(f *facts) notice {
	unready := f.among(f.followsUnready)
	if len(unready) == 0 {
		return notice{}
	}
	m := unready[0]
	return notice{Reason: v1alpha1.ReasonMembersNotReady, Message: fmt.Sprintf(
		"%d of %d members run as secondaries, but their pods are not Ready: %s. For details: kubectl -n %s describe pod %s",
		len(unready), f.wanted(), namesOf(unready), m.pod.Namespace, m.name(),
	)}
}

// whyUnresponsive states for which members status does not answer, why, and what helps.
func (f *facts) whyUnresponsive(members []*member) string {
	first := members[0]
	text := "status does not respond: " + namesOf(members) + whySilent(members)
	if first.runs(v1alpha1.CommandStatus) && !first.askedAt.IsZero() {
		text = fmt.Sprintf(
			"status does not respond: %s (pending since %s)",
			namesOf(members), first.askedAt.UTC().Format(time.RFC3339),
		)
	}
	text += ". To check its status: " + f.askByHand(first)
	if choosesFirst(f) && !first.granted {
		text += blocking{facts: f, member: first}.remedy()
	}
	if first.granted {
		text += fmt.Sprintf(
			". No other member can replace %s while it runs; to delete its pod: kubectl -n %s delete pod %s",
			first.name(), first.pod.Namespace, first.name(),
		)
	}
	return text
}

// whySilent returns why the first of the unanswered status commands failed.
func whySilent(members []*member) string {
	for _, m := range members {
		if r, ok := m.result(v1alpha1.CommandStatus); ok && r.Outcome == podexec.Unknown && r.Why != "" {
			return fmt.Sprintf(" (%s: %s)", m.name(), r.Why)
		}
	}
	return ""
}
