package extendedstatefulset

import (
	"encoding/json"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/mutant"
)

// configRecord says what the hash in the pod template of a StatefulSet stands for.
// It is an annotation of the StatefulSet, where a change restarts nothing.
type configRecord struct {
	// Key names the key that Hash was made with.
	Key string `json:"key"`
	// Seen is the digest of the versions of all that was hashed.
	Seen string `json:"seen"`
	// Hash is of the contents.
	Hash string `json:"hash"`
	// Incomplete is true when something required was missing then.
	Incomplete bool `json:"incomplete,omitempty"`
	// Restarted is when the last restart for a change was begun.
	Restarted *metav1.Time `json:"restarted,omitempty"`
}

// recordOf reads the record of a StatefulSet; nil if there is none, or none that
// can be read.
func recordOf(child *appsv1.StatefulSet) *configRecord {
	var r configRecord
	if err := json.Unmarshal([]byte(child.Annotations[v1alpha1.AnnotationConfigRecord]), &r); err != nil || r.Key == "" {
		return nil
	}
	return &r
}

func (r configRecord) String() string {
	text, _ := json.Marshal(r) // strings, a bool and a time
	return string(text)
}

// configuration is what ConfigMaps and Secrets hold for one pod template now.
type configuration struct {
	// key, seen and hash are as in configRecord. No hash: nothing was read, since
	// nothing can have changed, or unreadable says why it could not be.
	key, seen, hash string
	// missing says what is required and not there, and who requires it.
	missing []string
	// unreadable says what could not be read; then nothing is known of contents.
	unreadable string
}

// record is that of a StatefulSet made with this configuration.
func (c configuration) record() configRecord {
	return configRecord{Key: c.key, Seen: c.seen, Hash: c.hash, Incomplete: len(c.missing) > 0}
}

// atRest reports whether contents need not be read to know that none changed.
func (r *configRecord) atRest(key, seen string) bool {
	return r != nil && r.Key == key && r.Seen == seen && !r.Incomplete
}

// configView is what is known about the configuration of one StatefulSet.
type configView struct {
	child *appsv1.StatefulSet
	configuration
	// since is when the first change that is not restarted for was seen.
	since time.Time
	// held says why its pods must not be restarted now; "" if they may.
	held string
	slot slot
}

// configTarget is what a StatefulSet has to carry, and why.
type configTarget struct {
	// hash is the annotation of the pod template; "" for none.
	hash string
	// record is the annotation of the StatefulSet; "" for none.
	record string
	// event is the reason of the event when this differs from what it carries.
	event string
	// wait is when to look again although no event will come; 0 is never.
	wait time.Duration
	// reason and message are for the conditions; "" if all is well.
	reason, message string
}

// restarts reports whether the target restarts pods.
func (w configTarget) restarts(child *appsv1.StatefulSet) bool {
	return w.hash != hashIn(child)
}

func hashIn(child *appsv1.StatefulSet) string {
	return child.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash]
}

// unfollowed is what a StatefulSet carries that is not restarted for changes. The
// hash stays in the pod template: to take it away would restart the pods.
func unfollowed(child *appsv1.StatefulSet) configTarget { return configTarget{hash: hashIn(child)} }

// changed reports whether contents are others than those of the record, as far as is
// known.
func (c configuration) changed(r *configRecord) bool {
	if r == nil || c.hash == "" {
		return false
	}
	if r.Key != c.key { // hashes of two keys cannot be compared; versions can
		return r.Seen != c.seen
	}
	return r.Hash != c.hash
}

// idle reports whether a StatefulSet has no pod that could be restarted.
func idle(child *appsv1.StatefulSet) bool {
	return child.Spec.Replicas != nil && *child.Spec.Replicas == 0
}

// targetConfig says what a StatefulSet has to carry. It keeps what it has unless it is
// known that contents changed and that pods may be restarted.
func targetConfig(v *configView, now time.Time) configTarget {
	r := recordOf(v.child)
	keep := configTarget{hash: hashIn(v.child), record: v.child.Annotations[v1alpha1.AnnotationConfigRecord]}
	switch {
	case v.unreadable != "":
		keep.reason, keep.message, keep.wait = v1alpha1.ReasonConfigUnreadable, v.unreadable, configRetry
		return keep
	case len(v.missing) > 0 && r != nil:
		keep.reason, keep.message = v1alpha1.ReasonConfigMissing, strings.Join(v.missing, "; ")
		return keep
	case v.hash == "":
		return keep
	case r == nil:
		// It is followed from now on; what its pods started with is not known.
		keep.record, keep.event = v.record().String(), v1alpha1.EventConfigFollowed
		if len(v.missing) > 0 {
			keep.reason, keep.message = v1alpha1.ReasonConfigMissing, strings.Join(v.missing, "; ")
		}
		return keep
	case !v.changed(r):
		return v.adopt(keep, r)
	}
	return v.restart(keep, r, now)
}

// adopt renews a record whose key was lost, although contents are the same: the
// next change is then told by its contents again.
func (v *configView) adopt(keep configTarget, r *configRecord) configTarget {
	if r.Key == v.key && (!r.Incomplete || len(v.missing) > 0) {
		return keep
	}
	renewed := v.record()
	renewed.Restarted = r.Restarted
	keep.record = renewed.String()
	if r.Key != v.key {
		keep.event = v1alpha1.EventConfigKeyChanged
	}
	return keep
}

// restart moves the hash, once the window is over and it is its turn.
func (v *configView) restart(keep configTarget, r *configRecord, now time.Time) configTarget {
	keep.reason = v1alpha1.ReasonConfigChanged
	idle := idle(v.child)
	due := v.since.Add(configWindow)
	switch {
	case now.Before(due):
		keep.wait = due.Sub(now)
		keep.message = "referenced configuration changed; the pods are restarted when the edits are over"
		return keep
	case v.held != "" && !idle:
		keep.message = "referenced configuration changed; the pods are not restarted yet, since " + v.held
		return keep
	case !v.slot.granted && !idle:
		keep.reason, keep.wait = v1alpha1.ReasonConfigTurn, slotRetry
		keep.message = "referenced configuration changed; the restart waits for its turn" + v.slot.String()
		return keep
	}
	next := v.record()
	if next.Restarted = r.Restarted; !idle {
		next.Restarted = &metav1.Time{Time: now}
	}
	target := configTarget{hash: v.hash, record: next.String(), event: v1alpha1.EventConfigRestart}
	if r.Key != v.key {
		target.event = v1alpha1.EventConfigKeyLost
	}
	return target
}

// holdsRestart says why the pods of a StatefulSet must not be restarted now; "" if
// they may. Beside an upgrade, what serves would have two pods down at a time.
func holdsRestart(s *v1alpha1.ExtendedStatefulSetStatus, number int64) string {
	if mutant.Is("ests-config-restarts-in-upgrades") { // what serves is restarted beside an upgrade
		return ""
	}
	if s.Update == nil || givenUp(s) || number != s.CurrentVersion {
		return ""
	}
	return "an upgrade is under way"
}

// look is what is known about the configuration of the StatefulSets of one object.
type look struct {
	views map[types.UID]*configView // none if they are not restarted for changes
	// fresh is for StatefulSets that are yet to be made; nil if none are.
	fresh *configuration
}

// configFacts is what follows from the configuration for the StatefulSets of an object.
type configFacts struct {
	// stamps are, by the name of a StatefulSet that is there or to be made, what it has to
	// carry of the configuration. One that is not here keeps what it has.
	stamps map[string]configStamp
	// missing says, by the name of a StatefulSet, what it requires and what is not
	// there or cannot be read, with a reason of condition ConfigMissing.
	missing map[string]notice
	// restart says why pods are yet to be restarted for a change of configuration.
	restart notice
	// wait is when to look at the configuration again; 0 is never.
	wait time.Duration
}

// configure says of each StatefulSet, and of those that come, what it has to carry.
func configure(w *world, l look, coming []string) configFacts {
	f := configFacts{stamps: map[string]configStamp{}, missing: map[string]notice{}}
	for _, c := range w.children {
		v, followed := l.views[c.set.UID]
		if !followed {
			f.stamps[c.set.Name] = unfollowed(c.set).stamp()
			continue
		}
		target := targetConfig(v, w.now)
		f.stamps[c.set.Name] = target.stamp()
		switch target.reason {
		case "":
		case v1alpha1.ReasonConfigMissing, v1alpha1.ReasonConfigUnreadable:
			f.missing[c.set.Name] = notice{Reason: target.reason, Message: target.message}
		default:
			f.restart = notice{Reason: target.reason, Message: c.set.Name + ": " + target.message}
		}
		f.wait = soonest(f.wait, target.wait)
	}
	if l.fresh == nil {
		return f
	}
	stamp, problem := freshStamp(l.fresh)
	for _, name := range coming {
		f.stamps[name] = stamp
		if problem.Reason == "" {
			continue
		}
		f.missing[name] = problem
		f.wait = soonest(f.wait, w.set.CreationTimestamp.Add(missingGrace).Sub(w.now))
		if problem.Reason == v1alpha1.ReasonConfigUnreadable {
			f.wait = soonest(f.wait, configRetry)
		}
	}
	return f
}

// stamp is what is written for a target.
func (w configTarget) stamp() configStamp { return configStamp{w.hash, w.record, w.event} }

// freshStamp is for a StatefulSet that is yet to be made, and why it must not be made
// yet: it would not be known what its pods start with.
func freshStamp(c *configuration) (stamp configStamp, problem notice) {
	switch {
	case c.unreadable != "":
		return configStamp{}, notice{Reason: v1alpha1.ReasonConfigUnreadable, Message: c.unreadable}
	case len(c.missing) > 0:
		problem = notice{Reason: v1alpha1.ReasonConfigMissing, Message: strings.Join(c.missing, "; ")}
	}
	return configStamp{hash: c.hash, record: c.record().String()}, problem
}

// configHolds reports whether a StatefulSet must not be made yet.
func (w *world) configHolds(name string) bool {
	switch w.config.missing[name].Reason {
	case v1alpha1.ReasonConfigUnreadable:
		return true
	case v1alpha1.ReasonConfigMissing:
		return len(w.children) == 0 && w.now.Before(w.set.CreationTimestamp.Add(missingGrace))
	}
	return false
}

// rolls reports whether the pods of a StatefulSet are being replaced by such of
// another revision. The StatefulSet controller makes the revisions equal when all
// pods have the new one and are Ready.
func rolls(child *appsv1.StatefulSet) bool {
	s := &child.Status
	if child.DeletionTimestamp != nil || idle(child) {
		return false
	}
	return s.ObservedGeneration < child.Generation || s.CurrentRevision != s.UpdateRevision
}

// restartsSince is when the restart for a change began that is under way; zero if
// none is.
func restartsSince(child *appsv1.StatefulSet) time.Time {
	if r := recordOf(child); r != nil && r.Restarted != nil && rolls(child) {
		return r.Restarted.Time
	}
	return time.Time{}
}
