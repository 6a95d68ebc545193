package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
)

// podsHindered reports the pods of the current version that cannot be created or started, or whose
// deletion is blocked. During an upgrade it reports nothing: the upgrade may fix the pods, and has a
// deadline.
func podsHindered(f *facts.Facts, _ *rules.Plan) facts.Notice {
	if u := f.Record.Update; u != nil && !u.Returning && !facts.GivenUp(f.Record) {
		return facts.Notice{}
	}
	kept := ""
	if found := causes.Lasting(f.Causes.Stopped()); len(found) > 0 {
		kept = causes.TellOf("pod", f.Set.Namespace, found)
	}
	number := f.Record.CurrentVersion
	first, some := facts.FirstHindered(f.World, number)
	if !some {
		if still := stillHindered(f.World, number); still.Reason != "" || kept == "" {
			return still
		}
		return facts.Notice{Reason: v1alpha1.ReasonPodsHindered, Message: kept}
	}
	message := fmt.Sprintf("pods of version %d cannot be created or started: %s. ",
		number, strings.TrimPrefix(facts.Unready(f.World, number), "; not Ready: "))
	if f.Record.Phase == v1alpha1.PhaseWaiting {
		message += "The upgrade to the present template waits for them. " + upgradeAnyway(f.World) + ". "
	}
	message += "For details: " + first.Command
	if kept != "" {
		message += "; " + kept
	}
	return facts.Notice{Reason: v1alpha1.ReasonPodsHindered, Message: message}
}

// stillHindered returns the present condition if pods are missing and the events with the reasons have
// not been read yet, for example after a restart of the operator.
func stillHindered(w *facts.World, number int64) facts.Notice {
	present := meta.FindStatusCondition(w.Set.Status.Conditions, v1alpha1.ConditionDegraded)
	if present == nil || present.Status != metav1.ConditionTrue || present.Reason != v1alpha1.ReasonPodsHindered || w.Refusals != nil {
		return facts.Notice{}
	}
	for _, c := range w.Children.OfVersion(number) {
		if c.LacksPods() {
			return facts.Notice{Reason: present.Reason, Message: present.Message}
		}
	}
	return facts.Notice{}
}

// hindrancePasses reports whether something blocks pods of the current version, and all of it is
// temporary.
func hindrancePasses(f *facts.Facts) bool {
	found := causes.Lasting(f.Causes.Stopped())
	some := len(found) > 0
	if slices.ContainsFunc(found, causes.Hindered.NeedsPerson) {
		return false
	}
	for c, o := range facts.PodsOfVersion(f.World, f.Record.CurrentVersion) {
		h := facts.HindranceOn(f.World, c, o)
		if h.Pod == "" {
			continue
		}
		if c.Pods[o] != nil || causes.Refused(f.Refusals[h.Pod]).NeedsPerson() {
			return false
		}
		some = true
	}
	return some
}
