package status

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
)

// Results are the results of the steps of a plan.
type Results struct {
	// Outcomes are the actions that were begun, with their errors.
	Outcomes []action.Outcome
	// Refused are the writes that the API server refuses, by the reason of the action.
	Refused map[string]facts.Refusal
}

// effective returns the actions with that verb that took effect.
func (r Results) effective(verb action.Verb) (done []action.Outcome) {
	for _, o := range r.Outcomes {
		if o.Verb == verb && o.Err == nil {
			done = append(done, o)
		}
	}
	return done
}

// wroteStatus reports whether a step that writes the status succeeded.
func (r Results) wroteStatus() bool { return slices.ContainsFunc(r.Outcomes, observe.WroteStatus) }

// deleted reports whether this pass deleted the object with that UID.
func (r Results) deleted(uid types.UID) bool {
	return slices.ContainsFunc(r.effective(action.Delete), func(o action.Outcome) bool { return o.Object.GetUID() == uid })
}

// createdClaims returns the claims that this pass created.
func (r Results) createdClaims() (claims []metav1.Object) {
	for _, o := range r.effective(action.Create) {
		if _, isClaim := o.Object.(*corev1.PersistentVolumeClaim); isClaim && o.Answer != nil {
			claims = append(claims, o.Answer)
		}
	}
	return claims
}

// succeeded reports whether the successor of a member was created.
func (r Results) succeeded(name string) bool {
	return slices.ContainsFunc(r.effective(action.Create), func(o action.Outcome) bool {
		return o.Object.GetAnnotations()[v1alpha1.AnnotationReplaces] == name
	})
}

// firstRefusal returns the first write that was refused permanently, unless a refusal for the same
// reason was reported before.
func (r Results) firstRefusal() (action.Outcome, bool) {
	for _, o := range r.Outcomes {
		if !observe.RefusedForGood(o.Err) || observe.Hides(o) {
			continue
		}
		if r.Refused[o.Reason].Times <= 1 {
			return o, true
		}
	}
	return action.Outcome{}, false
}

// advised returns the message of a refusal, with advice if a pod or a claim was refused.
func advised(f *facts.Facts, reason, message string) string {
	if message == "" || !slices.Contains(makesPods, reason) {
		return message
	}
	return message + "; " + causes.Refused(message).Help(f.Set.Namespace, "")
}

// makesPods are the reasons of the writes that create pods and claims, and of the dry-run create of
// a pod.
var makesPods = append(slices.Clone(facts.CreateReasons), facts.ReasonReturned, facts.ReasonClaim, facts.ReasonTrial)

// notice returns a notice with that reason about the refusal of the actions whose reason is of. prefix
// precedes the message. The notice is empty if no wanted write is refused.
func (r Results) notice(of, reason, prefix string, f *facts.Facts, p *rules.Plan) engine.Notice {
	refusal, refused := r.Refused[of]
	if !refused || !isWanted(refusal, f.World, p) {
		return engine.Notice{}
	}
	return engine.Notice{Reason: reason, Message: prefix + advised(f, of, refusal.Message)}
}

// ownNotice are the reasons of the actions whose refusal has a separate notice.
var ownNotice = []string{facts.ReasonExpand, facts.ReasonTrial}

// refusals returns the messages of all other refused writes that are still wanted.
func (r Results) refusals(f *facts.Facts, p *rules.Plan) (messages []string) {
	for reason, refused := range r.Refused {
		if !slices.Contains(ownNotice, reason) && isWanted(refused, f.World, p) {
			messages = append(messages, advised(f, reason, refused.Message))
		}
	}
	slices.Sort(messages)
	return messages
}

// createsRefused reports whether new members are refused.
func (r Results) createsRefused(now time.Time) bool {
	return slices.ContainsFunc(facts.CreateReasons, func(reason string) bool { return r.Refused[reason].Until.After(now) })
}

// isWanted reports whether a refused write is still wanted. After the retry time, a plan that still
// wants it would have steps.
func isWanted(r facts.Refusal, w *facts.World, p *rules.Plan) bool {
	return !w.Reached(r.Until) || len(p.Steps) > 0
}
