package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Decision is an action or a finding about an object, from its events or its status.
type Decision struct {
	Type    string    `json:"type"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	First   time.Time `json:"firstSeen,omitzero"` // zero if it is unknown
	Last    time.Time `json:"lastSeen"`
	Count   int32     `json:"count"`
	By      string    `json:"by,omitempty"`
}

// InvolvedUID is the field by which the API server selects the events of an object.
const InvolvedUID = "involvedObject.uid"

// Decisions returns the events of an object, the newest last. Repeated events are merged and
// counted.
func Decisions(ctx context.Context, c client.Reader, object client.Object) ([]Decision, error) {
	var events corev1.EventList
	of := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(InvolvedUID, string(object.GetUID()))}
	if err := c.List(ctx, &events, client.InNamespace(object.GetNamespace()), of); err != nil {
		return nil, fmt.Errorf("read the events: %w", err)
	}
	var decisions []Decision
	for i := range events.Items {
		decisions = merge(decisions, decisionOf(&events.Items[i]))
	}
	slices.SortStableFunc(decisions, byTime)
	return decisions, nil
}

// byTime compares the times of two decisions, the older first.
func byTime(a, b Decision) int {
	if order := a.Last.Compare(b.Last); order != 0 {
		return order
	}
	return strings.Compare(a.Message, b.Message)
}

// merge adds a decision, or increases the count of the same one.
func merge(all []Decision, one Decision) []Decision {
	for i := range all {
		if all[i].Reason != one.Reason || all[i].Message != one.Message {
			continue
		}
		all[i].Count += one.Count
		if one.First.Before(all[i].First) {
			all[i].First = one.First
		}
		if one.Last.After(all[i].Last) {
			all[i].Last = one.Last
		}
		return all
	}
	return append(all, one)
}

// decisionOf converts an event of either API: the older one has a count, the newer one has a
// series.
func decisionOf(event *corev1.Event) Decision {
	d := Decision{Type: event.Type, Reason: event.Reason, Message: event.Message, Count: max(event.Count, 1), By: event.ReportingController}
	if d.By == "" {
		d.By = event.Source.Component
	}
	d.First, d.Last = event.FirstTimestamp.Time, event.LastTimestamp.Time
	if d.First.IsZero() {
		d.First = event.EventTime.Time
	}
	if event.Series != nil {
		d.Count, d.Last = max(event.Series.Count, d.Count), event.Series.LastObservedTime.Time
	}
	if d.Last.IsZero() {
		d.Last = d.First
	}
	return d
}
