package status

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// Effects are the effects of the reasons of condition Degraded on tools that wait for the
// object.
var Effects = kstatus.Effects{
	v1.ReasonInvalidSpec:         kstatus.NeedsPerson,
	v1.ReasonTooMany:             kstatus.NeedsPerson,
	v1.ReasonSeveralRunning:      kstatus.NeedsPerson,
	v1.ReasonScriptFailing:       kstatus.NeedsPerson,
	v1.ReasonFencingNotPermitted: kstatus.NeedsPerson,
	v1.ReasonWriteRefused:        kstatus.NeedsPerson, // a rejection, not an outage
	v1.ReasonTimeout:             kstatus.NeedsPerson,
	v1.ReasonNodeLost:            kstatus.NeedsPerson, // except for a missing Node: see withKstatus
	v1.ReasonPodFailing:          kstatus.Passes,      // except for a cause that needs manual intervention: see withKstatus
	v1.ReasonContainersMissing:   kstatus.Beside,      // it works as gate mode Init does
	v1.ReasonNotReplacedFirst:    kstatus.Beside,      // it works as with onEviction Replace
}

// passes reports whether another pod starts without manual intervention: after FenceAfter, or when the Lease has
// expired.
func passes(m *facts.Member) bool { return m.Node.Missing || m.HoldsLease }

// withKstatus adds the conditions that tools wait for.
func withKstatus(f *facts.Facts, conditions []metav1.Condition) []metav1.Condition {
	find := func(kind string) *metav1.Condition { return meta.FindStatusCondition(conditions, kind) }
	bad := find(v1.ConditionDegraded)
	v := Effects.Of(conditions)
	v.Idle = find(v1.ConditionAvailable).Reason == v1.ReasonNoPods
	switch {
	case f.OlderRival() != nil && v.Blocker.Reason == "":
		v.Blocker = kstatus.Notice(find(v1.ConditionSelectorConflict))
	case bad.Reason == v1.ReasonNodeLost && passes(onLostNode(f)):
		v.Blocker, v.Obstacle = v.Obstacle, v.Blocker
	case bad.Reason == v1.ReasonPodFailing && waitsForPerson(f):
		v.Blocker, v.Obstacle = v.Obstacle, engine.Notice{}
	}
	return kstatus.With(conditions, v)
}
