package snapshot

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// cutFrom is the size in bytes from which on a recorded message may lack its end.
const cutFrom = 125

// sameTime is the max time between an event and its record in the status.
const sameTime = time.Minute

// WithRecorded adds the decisions in the status of an object to those of its events, the newest last. Of
// a decision that both have, the event is kept, because it has the whole message. Its count and time are
// those of the status if other events about it have expired or were not sent, or if the event may be about
// several decisions.
func WithRecorded(decisions []Decision, object client.Object) []Decision {
	all, recorded := slices.Clone(decisions), recordedIn(object)
	for place, r := range recorded {
		i := newest(decisions, r)
		if i < 0 {
			all = append(all, r)
			continue
		}
		if r.Last.Sub(all[i].Last) > sameTime {
			all[i].Last = r.Last
		}
		if r.Count > all[i].Count {
			all[i].Count, all[i].First = r.Count, r.First
		}
		if hasLater(recorded[place+1:], r) {
			all[i].Last, all[i].Count, all[i].First = r.Last, r.Count, r.First
		}
	}
	slices.SortStableFunc(all, func(a, b Decision) int { return a.Last.Compare(b.Last) })
	return all
}

// newest returns the index of the newest event that a recorded decision belongs to, or -1. The events are
// sorted by time.
func newest(events []Decision, r Decision) int {
	for i := len(events) - 1; i >= 0; i-- {
		if records(r, events[i]) {
			return i
		}
	}
	return -1
}

// hasLater reports whether there is a later decision with the same reason and type. Events of both can be one
// series, which has the message of the first one and the time of the last one.
func hasLater(later []Decision, r Decision) bool {
	return slices.ContainsFunc(later, func(l Decision) bool { return l.Reason == r.Reason && l.Type == r.Type })
}

// records reports whether a recorded decision is that of an event.
func records(r, event Decision) bool {
	cut := len(r.Message) >= cutFrom && strings.HasPrefix(event.Message, r.Message)
	return r.Reason == event.Reason && (cut || r.Message == event.Message)
}

// recordedIn returns status.decisions of an object of one of the kinds.
func recordedIn(object client.Object) []Decision {
	switch o := object.(type) {
	case *stcv1alpha1.StatefulCluster:
		return convert(o.Status.Decisions)
	case *rssv1alpha1.ReplicatedStatefulSet:
		return convert(o.Status.Decisions)
	case *estsv1alpha1.ExtendedStatefulSet:
		return convert(o.Status.Decisions)
	case *ssnv1.StatefulSingleton:
		return convert(o.Status.Decisions)
	}
	return nil
}

// recorded is the type of a decision in the status of a kind.
type recorded interface {
	stcv1alpha1.Decision | rssv1alpha1.Decision | estsv1alpha1.Decision | ssnv1.Decision
}

// convert converts status.decisions of a kind.
func convert[R recorded](list []R) (decisions []Decision) {
	for _, r := range list {
		from := rssv1alpha1.Decision(r) // the types of all kinds have the same fields
		d := Decision{Type: corev1.EventTypeNormal, Reason: from.Reason, Message: from.Message, Last: from.Time.Time, Count: max(from.Count, 1)}
		if from.Warning {
			d.Type = corev1.EventTypeWarning
		}
		if d.Count == 1 {
			d.First = d.Last
		}
		decisions = append(decisions, d)
	}
	return decisions
}
