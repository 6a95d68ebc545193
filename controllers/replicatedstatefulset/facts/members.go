package facts

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// Among returns the members for which is returns true.
func (all Members) Among(is func(*Member) bool) (found []*Member) {
	for _, m := range all {
		if is(m) {
			found = append(found, m)
		}
	}
	return found
}

// Named returns the member of that name. It returns nil if there is none.
func (all Members) Named(name string) *Member {
	for _, m := range all {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// ByUID returns the member with that pod. It returns nil if there is none.
func (all Members) ByUID(uid types.UID) *Member {
	for _, m := range all {
		if m.Pod.UID == uid {
			return m
		}
	}
	return nil
}

// Primaries returns the members that run as primary and are not about to stop.
func (all Members) Primaries() []*Member { return all.Among((*Member).IsPrimary) }

// Candidates returns the members in the state that may be started or take a role.
func (all Members) Candidates(s record.State) []*Member {
	return all.Among(func(m *Member) bool { return m.State == s && m.Startable() })
}

// ChangedAt returns when the last mutating command in any member ended.
func (all Members) ChangedAt() (last time.Time) {
	for _, m := range all {
		if at := m.ChangedAt(); at.After(last) {
			last = at
		}
	}
	return last
}

// NamesOf returns the names of members for messages.
func NamesOf(members []*Member) string {
	names := make([]string, 0, len(members))
	for _, m := range members {
		names = append(names, m.Name())
	}
	return strings.Join(names, ", ")
}

// NotServing returns the members reported as primary that serve no clients.
func (all Members) NotServing() []*Member {
	return all.Among(func(m *Member) bool { return m.IsShownPrimary() && m.Unserved() != "" })
}

// WhyUnserved states why the primaries of NotServing serve no clients.
func (all Members) WhyUnserved() string {
	var texts []string
	for _, m := range all.NotServing() {
		texts = append(texts, fmt.Sprintf("%s is primary, but %s", m.Name(), m.Unserved()))
	}
	return strings.Join(texts, "; ")
}

// WithoutStatus returns the running members that have not answered status in this container. No
// member becomes primary before they have.
func (all Members) WithoutStatus() []*Member { return all.Among(lacksStatus) }

func lacksStatus(m *Member) bool {
	if m.State != record.Unknown || m.Command != nil || m.Terminating() {
		return false
	}
	return m.Reachable() && !m.Answers(v1alpha1.CommandStatus)
}
