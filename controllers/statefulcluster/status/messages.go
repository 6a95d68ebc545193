package status

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/backup"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
)

// departedMessage returns a message about departed pods that stay terminating and that the set does
// not wait for; "" if there are none.
func departedMessage(f *facts.Facts) string {
	found := slices.DeleteFunc(causes.Lasting(f.Causes.Stopped()), func(h causes.Hindered) bool { return !hasDeparted(f, h.Name) })
	if len(found) == 0 {
		return ""
	}
	return "; " + causes.TellOf("pod", f.Set.Namespace, found)
}

// drainingMessage returns which members leave, and which members the drain waits for.
func drainingMessage(f *facts.Facts) string {
	return fmt.Sprintf("%s on cordoned nodes will be retired when new members are available: %s%s; to keep them: `kubectl uncordon %s`",
		facts.MemberCount(int32(len(f.Leaving))), facts.AtMost(3, facts.NamesOf(f.Leaving)), unready(f), strings.Join(nodesOf(f.Leaving, 3), " "))
}

// nodesOf returns the names of the Nodes of members, at most n of them.
func nodesOf(members []*facts.Member, n int) []string {
	var names []string
	for _, m := range members {
		names = append(names, m.Pod.Spec.NodeName)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), n)]
}

// keptUnrecorded returns a message that names these claims, with advice.
func keptUnrecorded(f *facts.Facts) string {
	names := f.Unrecorded()
	return fmt.Sprintf("claims have the set's labels but are not in status.claims, so they are kept regardless of the retention policy: %s; "+
		"to delete one: `kubectl -n %s delete pvc %s`; to keep it, remove it from the set: `kubectl -n %s label pvc %s %s-`",
		facts.SomeOf(names), f.Set.Namespace, names[0], f.Set.Namespace, names[0], v1alpha1.LabelClusterUID)
}

// AsideMessage returns which claims of lost members were set aside, and how to bring the members
// back; "" if there are none.
func AsideMessage(f *facts.Facts) string {
	var aside, waiting []string
	var member string
	for _, c := range f.Loose {
		switch {
		case !facts.RetainedAs(c, v1alpha1.RetainedLost), c.DeletionTimestamp != nil, facts.Deletable(f.World, c):
		case f.IsGiven(c):
			waiting = append(waiting, c.Name)
		default:
			aside, member = append(aside, c.Name), facts.MemberOf(c)
		}
	}
	var message string
	if len(aside) > 0 {
		message = fmt.Sprintf("; data of lost members was set aside on these claims: %s; to restore a member: "+
			"`kubectl -n %s annotate pvc -l %s=%s,%s=%s %s=%s`, then delete the pod of the member to replace, or raise replicas",
			facts.AtMost(3, aside), f.Set.Namespace, v1alpha1.LabelCluster, f.Set.Name, v1alpha1.LabelMember, member, v1alpha1.AnnotationAdopt, f.Set.Name)
	}
	if len(waiting) > 0 {
		message += fmt.Sprintf("; claims annotated for adoption wait until all claims of their member are annotated, its old pod is deleted and a slot is empty: %s; "+
			"delete the pod of the member to replace, or raise replicas", facts.AtMost(3, waiting))
	}
	return message
}

// adviseOnRestored returns the message about the decision that the user has to make.
func adviseOnRestored(f *facts.Facts) string {
	var several string
	if n := len(f.Offers.Namesakes); n > 1 {
		several = fmt.Sprintf(" (of %d sets: kubectl -n %s get pvc -L %s)", n, f.Set.Namespace, v1alpha1.LabelClusterUID)
	}
	return fmt.Sprintf("the set was restored from backup %s, and so were claims of a set with the same name%s: %s. No member is created on empty claims until you decide whether the set adopts them. "+
		"To adopt them, delete the pods that were restored with them, and annotate them: kubectl -n %s annotate pvc -l '%s=%s,%s notin (%s,%s)' %s=%s. "+
		"To start with empty claims: kubectl -n %s label stc %s %s-",
		backup.Of(f.Set), several, facts.AtMost(3, f.Offers.Restored),
		f.Set.Namespace, v1alpha1.LabelClusterUID, f.Offers.Namesakes[0],
		v1alpha1.LabelRetained, v1alpha1.RetainedLost, v1alpha1.RetainedScaled, v1alpha1.AnnotationAdopt, f.Set.Name,
		f.Set.Namespace, f.Set.Name, backup.Label)
}

// podsInTheWay returns the message about the pods that prevent members from using their claims.
func podsInTheWay(f *facts.Facts) string {
	pods := f.Offers.InTheWay
	return fmt.Sprintf("pods that the set does not own have the names of members whose claims were given to it, so these members are not created: %s. "+
		"Delete each of these pods (their claims are kept): kubectl -n %s delete pod %s", facts.SomeOf(pods), f.Set.Namespace, pods[0])
}

// unready returns a text that names up to 3 members that are not Ready and why, first those that
// need an action by the user; "" if all are Ready.
func unready(f *facts.Facts) string {
	var stuck, others []string
	for _, m := range f.Alive {
		if m.Ready() {
			continue
		}
		cause := causes.Of(m.Pod)
		why := cause.Word
		if cause.RunsUnready() {
			why = cause.String()
		}
		// A crashing container runs between two crashes. It is reported as crashing until its pod
		// is Ready or the spec changes, since otherwise the message would keep changing.
		if why == "" && f.Crashed[m.Pod.UID] {
			why = causes.CrashLoop
		}
		if why == "" {
			others = append(others, m.Name())
		} else {
			stuck = append(stuck, fmt.Sprintf("%s (%s)", m.Name(), why))
		}
	}
	if len(stuck)+len(others) == 0 {
		return ""
	}
	return "; not Ready: " + facts.AtMost(3, append(stuck, others...))
}

// unsettled returns a text that names up to 3 members that the update waits for; "" if there are
// none.
func unsettled(f *facts.Facts) string {
	if len(f.Unsettled) == 0 {
		return ""
	}
	return "; waiting until members that restarted since their update stay Ready: " + facts.AtMost(3, f.Unsettled)
}

// completeness returns the message of a set with no operation in progress. Members of other
// revisions may remain.
func completeness(f *facts.Facts, s *v1alpha1.StatefulClusterStatus) string {
	want, old := int32(f.Replicas()), f.NotAt(f.Spec)
	switch {
	case len(old) == 0:
		return "no operation in progress; the set has " + facts.MemberCount(want)
	case !f.Rolling():
		return fmt.Sprintf("%d of %d members have the new template; a member keeps its template until it is deleted (updateStrategy OnDelete)",
			s.UpdatedReplicas, want)
	}
	revisions := make([]string, 0, len(old))
	for _, m := range old {
		revisions = append(revisions, m.Revision())
	}
	slices.Sort(revisions)
	return fmt.Sprintf("%d of %d members have revision %s; rollingUpdate.partition keeps %s at revision %s",
		s.UpdatedReplicas, want, s.UpdateRevision, facts.MemberCount(int32(len(old))), facts.SomeOf(slices.Compact(revisions)))
}
