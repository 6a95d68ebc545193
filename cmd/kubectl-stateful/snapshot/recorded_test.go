package snapshot

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

func TestWithRecorded(t *testing.T) {
	noon := time.Date(2026, time.November, 25, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return noon.Add(time.Duration(minute) * time.Minute) }
	event := func(minute int, message string, count int32) Decision {
		return Decision{Type: "Normal", Reason: "Promoted", Message: message, First: noon, Last: at(minute), Count: count, By: "replicatedstatefulset"}
	}
	stored := func(minute int, message string, count int32) rssv1alpha1.Decision {
		return rssv1alpha1.Decision{Time: metav1.NewTime(at(minute)), Reason: "Promoted", Message: message, Count: count}
	}
	only := func(minute int, message string, count int32) Decision {
		d := Decision{Type: "Normal", Reason: "Promoted", Message: message, Last: at(minute), Count: count}
		if count == 1 {
			d.First = d.Last
		}
		return d
	}
	unknownSince := func(d Decision) Decision {
		d.First = time.Time{}
		return d
	}
	long := strings.Repeat("a", 128)
	for _, row := range []struct {
		name   string
		events []Decision
		stored []rssv1alpha1.Decision
		want   []Decision
	}{
		{"neither", nil, nil, nil},
		{"only an event", []Decision{event(1, "a", 1)}, nil, []Decision{event(1, "a", 1)}},
		{"the event is gone", nil, []rssv1alpha1.Decision{stored(1, "a", 0), stored(2, "b", 3)}, []Decision{only(1, "a", 1), only(2, "b", 3)}},
		{"both", []Decision{event(1, "a", 1)}, []rssv1alpha1.Decision{stored(1, "a", 0)}, []Decision{event(1, "a", 1)}},
		{"the newest is last", []Decision{event(2, "b", 1)}, []rssv1alpha1.Decision{stored(3, "c", 0), stored(1, "a", 0)}, []Decision{only(1, "a", 1), event(2, "b", 1), only(3, "c", 1)}},
		{"the message is cut", []Decision{event(1, long+"b", 1)}, []rssv1alpha1.Decision{stored(1, long, 0)}, []Decision{event(1, long+"b", 1)}},
		{"the start of another message", []Decision{event(1, "ab", 1)}, []rssv1alpha1.Decision{stored(1, "a", 0)}, []Decision{event(1, "ab", 1), only(1, "a", 1)}},
		{"earlier events have expired", []Decision{event(1, "a", 2)}, []rssv1alpha1.Decision{stored(1, "a", 5)}, []Decision{unknownSince(event(1, "a", 5))}},
		{"a series of events has the message of the first one and the time of the last one", []Decision{event(5, "a", 2)},
			[]rssv1alpha1.Decision{stored(1, "a", 0), stored(4, "b", 0)}, []Decision{only(1, "a", 1).by(), only(4, "b", 1)}},
		{"the newest of two events is merged", []Decision{event(1, long+"b", 1), event(30, long+"c", 1)}, []rssv1alpha1.Decision{stored(30, long, 2)},
			[]Decision{event(1, long+"b", 1), unknownSince(event(30, long+"c", 2))}},
		{"decisions of one second keep their order", nil, []rssv1alpha1.Decision{stored(1, "b", 0), stored(1, "a", 0)}, []Decision{only(1, "b", 1), only(1, "a", 1)}},
		{"the event was not updated yet", []Decision{event(1, "a", 5)}, []rssv1alpha1.Decision{stored(9, "a", 5)}, []Decision{event(9, "a", 5)}},
	} {
		set := &rssv1alpha1.ReplicatedStatefulSet{Status: rssv1alpha1.ReplicatedStatefulSetStatus{Decisions: row.stored}}
		if got := WithRecorded(row.events, set); !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, got, row.want)
		}
	}
}

// by returns the decision of an event of the operator.
func (d Decision) by() Decision {
	d.By = "replicatedstatefulset"
	return d
}

func TestDecisionsOfEachKindAreRead(t *testing.T) {
	stc, rss, ests, ssn := &stcv1alpha1.StatefulCluster{}, &rssv1alpha1.ReplicatedStatefulSet{}, &estsv1alpha1.ExtendedStatefulSet{}, &ssnv1.StatefulSingleton{}
	stc.Status.Decisions = []stcv1alpha1.Decision{{Reason: "A", Warning: true}}
	rss.Status.Decisions = []rssv1alpha1.Decision{{Reason: "A", Warning: true}}
	ests.Status.Decisions = []estsv1alpha1.Decision{{Reason: "A", Warning: true}}
	ssn.Status.Decisions = []ssnv1.Decision{{Reason: "A", Warning: true}}
	for _, object := range []client.Object{stc, rss, ests, ssn} {
		if got := WithRecorded(nil, object); len(got) != 1 || got[0].Type != "Warning" || got[0].Reason != "A" {
			t.Errorf("%T: %v", object, got)
		}
	}
}
