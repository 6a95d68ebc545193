package extendedstatefulset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// notice is the reason of a condition, and its message.
type notice struct{ reason, message string }

// summarize says what the operator sees, beside the books. Times of conditions
// that did not change stay as they are.
func summarize(w *world, p *plan) v1alpha1.ExtendedStatefulSetStatus {
	s := w.books.DeepCopy()
	s.ObservedGeneration = w.set.Generation
	if s.Versions = nil; len(w.children) > 0 {
		s.Versions = map[string]bool{}
	}
	for _, c := range w.children {
		key := strconv.FormatInt(c.version, 10)
		s.Versions[key] = s.Versions[key] || c.anyReady()
	}
	countPods(w, s)
	for _, c := range []metav1.Condition{available(w, s), progressing(w, p), stale(w), aborted(w), configMissing(w)} {
		c.ObservedGeneration, c.LastTransitionTime, c.Message = w.set.Generation, metav1.NewTime(w.now), short(c.Message)
		meta.SetStatusCondition(&s.Conditions, c)
	}
	return *s
}

// firstZone is the zone for which /scale speaks: with all of them an autoscaler
// would multiply.
func (w *world) firstZone() zone {
	return slices.MinFunc(w.zones, func(a, b zone) int { return cmp.Compare(a.index, b.index) })
}

// countPods counts the pods that serve: of the current version, or while ordinals
// move of any.
func countPods(w *world, s *v1alpha1.ExtendedStatefulSetStatus) {
	s.Replicas, s.ReadyReplicas = 0, 0
	for i := range s.Zones {
		s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = 0, 0
	}
	selector := w.serves()
	first := w.firstZone()
	if first.index != noZone {
		selector[v1alpha1.LabelZoneIndex] = strconv.Itoa(int(first.index))
	}
	s.Selector = labels.SelectorFromSet(selector).String()
	for _, z := range w.zones {
		pods, ready := int32(0), int32(0)
		for _, c := range w.children {
			if c.zone != z.index || c.version != s.CurrentVersion && !w.moving() {
				continue
			}
			for _, pod := range c.pods {
				if podstate.Terminating(pod) {
					continue
				}
				if pods++; podstate.Ready(pod) {
					ready++
				}
			}
		}
		if s.ReadyReplicas += ready; z == first {
			s.Replicas = pods
		}
		for i := range s.Zones {
			if s.Zones[i].Name == z.name {
				s.Zones[i].Replicas, s.Zones[i].ReadyReplicas = pods, ready
			}
		}
	}
}

func available(w *world, s *v1alpha1.ExtendedStatefulSetStatus) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse}
	if w.invalid != "" {
		c.Reason, c.Message = v1alpha1.ReasonInvalidSpec, "the spec cannot be served, and nothing is done: "+w.invalid
		return c
	}
	n, wanted := int32(0), w.replicas*int32(len(w.zones))
	for _, z := range w.zones {
		for o := range w.replicas {
			serves := slices.ContainsFunc(w.children, func(c *child) bool {
				return c.zone == z.index && (c.version == s.CurrentVersion || w.moving()) && w.available(c.pods[o])
			})
			if serves {
				n++
			}
		}
	}
	c.Message = fmt.Sprintf("%d of %d pods are available", n, wanted)
	if n >= wanted {
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonAllAvailable
		return c
	}
	c.Reason = v1alpha1.ReasonPodsUnavailable
	if number := s.CurrentVersion; w.moving() {
		c.Message += w.unready(0)
	} else if number != 0 {
		c.Message += w.unready(number)
	}
	return c
}

func progressing(w *world, p *plan) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionTrue}
	b, u := w.books, w.books.Update
	said := func(text string) string {
		return strings.TrimSuffix(text+"; waiting until "+p.Waiting.Message, "; waiting until ")
	}
	switch {
	case w.invalid != "":
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec, w.invalid
	case w.refused != "":
		c.Reason, c.Message = v1alpha1.ReasonWriteRefused, "the API server refuses what has to be written, and it is tried again: "+w.refused
	case w.disputed() != "":
		c.Reason, c.Message = v1alpha1.ReasonClaimTaken, w.disputed()
	case b.Phase == v1alpha1.PhaseWaiting && w.unreturned(b.CurrentVersion) != "":
		c.Reason, c.Message = v1alpha1.ReasonReturning, said("what an earlier template took is given back: "+w.unreturned(b.CurrentVersion))
	case b.Phase == v1alpha1.PhaseWaiting:
		c.Reason = v1alpha1.ReasonCurrentNotReady
		c.Message = fmt.Sprintf("the upgrade waits until version %d is Ready: %s. To upgrade all the same, set spec.updateStrategy.updateNotReady",
			b.CurrentVersion, w.unsettled(b.CurrentVersion))
	case u != nil && u.Returning, b.Phase == v1alpha1.PhaseStale && w.unreturned(b.CurrentVersion) != "":
		c.Reason, c.Message = v1alpha1.ReasonReturning, said(fmt.Sprintf("attempt %d with version %d failed: %s", b.Attempts, b.UpdateVersion, u.Message))
		if still := cmp.Or(w.unreturned(b.CurrentVersion), w.notReady(b.CurrentVersion)); p.Waiting.Message == "" && still != "" {
			c.Message += "; " + still
		}
	case u != nil && b.Phase != v1alpha1.PhaseStale && b.Phase != v1alpha1.PhaseAborted:
		c.Reason, c.Message = v1alpha1.ReasonUpgrading, said(fmt.Sprintf("version %d to %d, attempt %d, phase %s%s",
			b.CurrentVersion, b.UpdateVersion, b.Attempts, b.Phase, zone{name: u.Zone, index: zoneIndex(u.Zone)}.in()))
	case b.Phase == v1alpha1.PhaseCleaningUp:
		c.Reason, c.Message = v1alpha1.ReasonUpgrading, said(fmt.Sprintf("version %d serves, and what others have left goes", b.CurrentVersion))
	case w.restart.reason != "":
		c.Reason, c.Message = w.restart.reason, w.restart.message
	case w.foreignService() != "" && p.Waiting.Message == "":
		c.Reason = v1alpha1.ReasonServiceTaken
		c.Message = fmt.Sprintf("Service %s is not this object's and is left alone, so it may select other pods: delete it, and it is made anew, or take another name", w.foreignService())
	case p.acts() && !p.asksOnly():
		c.Reason, c.Message = v1alpha1.ReasonScaling, said("StatefulSets are brought to what the spec says")
	case p.Waiting.Message != "":
		c.Reason, c.Message = v1alpha1.ReasonWaiting, "waiting until "+p.Waiting.Message
	case w.notReady(b.CurrentVersion) != "":
		c.Reason, c.Message = v1alpha1.ReasonWaiting, w.notReady(b.CurrentVersion)
	case w.unserved() != "":
		c.Reason, c.Message = v1alpha1.ReasonWaiting, w.unserved()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonComplete, "nothing is left to do"
	}
	if c.Status == metav1.ConditionTrue && w.refused == "" {
		c.Message += w.unready(0)
	}
	return c
}

// unserved says which StatefulSet is not there although nothing is left to do; ""
// if all are. Somebody deleted it, and its content is not known any more.
func (w *world) unserved() string {
	for _, z := range w.zones {
		if n := w.books.CurrentVersion; n != 0 && w.child(z.index, n) == nil {
			return fmt.Sprintf("StatefulSet %s is gone, and spec.template is not what it was made from; the next good upgrade brings its pods back", childName(w.set.Name, z, n))
		}
	}
	return ""
}

// zoneIndex is only good for zone.in.
func zoneIndex(name string) int32 {
	if name == "" {
		return noZone
	}
	return 0
}

func stale(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionStale, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: "no version of the template was given up"}
	if w.books.Phase == v1alpha1.PhaseStale {
		c.Status, c.Reason = metav1.ConditionTrue, w.books.Update.Reason
		c.Message = fmt.Sprintf("version %d was given up (attempts: %d): %s. Version %d serves. Edit spec.template to try another version, or where the cause was not in it, mend that and try the same again: %s",
			w.books.UpdateVersion, w.books.Attempts, w.books.Update.Message, w.books.CurrentVersion, again(w.set, w.books.VersionHighWater))
	}
	return c
}

// again is the command that makes a version of the same template: an annotation is
// part of it.
func again(set *v1alpha1.ExtendedStatefulSet, highest int64) string {
	return fmt.Sprintf(`kubectl -n %s patch ests %s --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"%d"}}}}}'`,
		set.Namespace, set.Name, highest)
}

func aborted(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAborted, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonHealthy, Message: "no job stopped an upgrade"}
	u := w.books.Update
	if w.books.Phase == v1alpha1.PhaseAborted || w.books.Phase == v1alpha1.PhaseStale && u.Reason == v1alpha1.ReasonPostJobFailed {
		c.Status, c.Reason = metav1.ConditionTrue, u.Reason
		c.Message = fmt.Sprintf("the upgrade to version %d was stopped: %s. Version %d serves. Edit spec.template to try another version",
			w.books.UpdateVersion, u.Message, w.books.CurrentVersion)
	}
	return c
}

func configMissing(w *world) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionConfigMissing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConfigFound, Message: "all that is required is there"}
	if !w.set.Spec.UpdateOnEnvChange {
		c.Reason, c.Message = v1alpha1.ReasonConfigNotFollowed, "nothing is looked at, since spec.updateOnEnvChange is false"
		return c
	}
	for _, name := range slices.Sorted(maps.Keys(w.missing)) {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, w.missing[name].reason, w.missing[name].message
		break
	}
	return c
}

// bookLine says what a new status has in the books that the old one had not; ""
// for one that differs in what is seen only.
func bookLine(was, now *v1alpha1.ExtendedStatefulSetStatus) string {
	if sameBooks(was, now) {
		return ""
	}
	line := fmt.Sprintf("%s, version %d", now.Phase, now.CurrentVersion)
	if u := now.Update; u != nil {
		line += fmt.Sprintf(" to %d, attempt %d%s", now.UpdateVersion, now.Attempts, zone{u.Zone, zoneIndex(u.Zone)}.in())
		if u.Returning || now.Phase == v1alpha1.PhaseStale || now.Phase == v1alpha1.PhaseAborted {
			line += ", " + u.Reason
		}
		for _, job := range []*v1alpha1.JobStatus{u.PreJob, u.PostJob} {
			if job != nil {
				line += fmt.Sprintf(", %s %s", job.Name, cmp.Or(job.Result, "is known"))
			}
		}
	}
	return line
}

// short fits a text into a condition or an event.
func short(text string) string { return cut(text, 1000) }

// cut is a text without what is beyond so many bytes.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }
