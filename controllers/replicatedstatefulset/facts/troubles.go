package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// troubles are the checks for problems of a set, the most important first. Each returns its reason
// and message, or nothing.
var troubles = []func(*Facts) Notice{
	invalidSpec, foreignObject, foreignPods, wrongConfiguration, fencingNotPermitted, nodeUnreachable, agentUnknown, secretMissing, configMissing, writeRefused, podUndone,
	membersFailed, MembersUnresponsive, membersDegraded, tooManyPrimaries,
}

// Trouble returns condition Degraded with the reasons that also block updates.
func Trouble(f *Facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue}
	found := engine.First(troubles, func(check func(*Facts) Notice) Notice { return check(f) })
	if c.Reason, c.Message = found.Reason, found.Message; found.Message != "" {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonHealthy, "no problems detected"
	return c
}

func invalidSpec(f *Facts) Notice {
	if f.Invalid == "" {
		return Notice{}
	}
	return Notice{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: "the spec is invalid, and the operator takes no action: " + f.Invalid,
	}
}

// configMissing returns the notice about missing configuration. It also blocks updates, because a
// recreated member would not start.
func configMissing(f *Facts) Notice {
	t := &f.Config.Target
	if t.Reason != configuration.ReasonMissing {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonConfigMissing,
		Message: t.Message + ". Members are not updated until it exists: create it, or make the reference optional"}
}

// HasFailed reports whether a member has failed, or cannot be started in its pod. Parked members
// never count as failed, because a user works on them.
func (f *Facts) HasFailed(m *Member) bool {
	if m.Parked {
		return false
	}
	return m.Shown == record.Failed || m.NeedsStop() || m.CannotRunHere
}

func foreignObject(f *Facts) Notice {
	described, child := f.Foreign()
	if child == nil {
		return Notice{}
	}
	return Notice{
		Reason:  v1alpha1.ReasonForeignObject,
		Message: children.WhoseIsIt(described, f.Set.Namespace, child),
	}
}

// Foreign returns an object that has the name of a child but belongs to another object, and its
// description. It returns nil if there is none.
func (w *World) Foreign() (described string, child metav1.Object) {
	for _, name := range []string{spec.ServiceName(w.Set), w.Set.PrimaryServiceName(), spec.ActiveServiceName(w.Set)} {
		if s := w.Services[name]; s != nil && !w.Ours(s) {
			return "Service " + name, s
		}
	}
	if s := w.Stateful; s != nil && !w.Ours(s) {
		return "StatefulSet " + s.Name, s
	}
	for _, b := range []*policyv1.PodDisruptionBudget{w.Budget, w.PrimaryBudget} {
		if b != nil && !w.Ours(b) {
			return "PodDisruptionBudget " + b.Name, b
		}
	}
	return w.foreignFencing()
}

// foreignFencing returns the same for a Lease of a member, and for the rights on it.
func (w *World) foreignFencing() (described string, child metav1.Object) {
	f := &w.Fencing
	for _, pod := range slices.Sorted(maps.Keys(f.Foreign)) {
		return "Lease " + f.Foreign[pod].Name, f.Foreign[pod]
	}
	switch {
	case f.Role != nil && !w.Ours(f.Role):
		return "Role " + f.Role.Name, f.Role
	case f.RoleBinding != nil && !w.Ours(f.RoleBinding):
		return "RoleBinding " + f.RoleBinding.Name, f.RoleBinding
	}
	return "", nil
}

func foreignPods(f *Facts) Notice {
	foreign := f.Among(func(m *Member) bool { return m.WhyForeign != "" })
	if len(foreign) == 0 {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonForeignPods, Message: explainForeignPods(foreign)}
}

func wrongConfiguration(f *Facts) Notice {
	why := f.Fatal()
	if why == "" {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonMembersFailed, Message: why}
}

func nodeUnreachable(f *Facts) Notice {
	lost := f.Among((*Member).OutOfReach)
	if len(lost) == 0 {
		return Notice{}
	}
	m := lost[0]
	if m.Node.Missing {
		return Notice{Reason: v1alpha1.ReasonNodeUnreachable, Message: fmt.Sprintf("%s may be primary on Node %s, which no longer exists. "+
			"Another member takes over when the Node has been missing for %s; if its machine is still running, power it off",
			m.Name(), m.Pod.Spec.NodeName, spec.FenceAfter)}
	}
	if f.GrantThatExpires(m) != nil {
		return Notice{Reason: v1alpha1.ReasonNodeUnreachable, Message: fmt.Sprintf("%s may be primary on Node %s, which is unreachable. Another member takes over when %s has not renewed its Lease for %s",
			m.Name(), m.Pod.Spec.NodeName, m.Name(), m.LeaseDuration())}
	}
	return Notice{Reason: v1alpha1.ReasonNodeUnreachable, Message: fmt.Sprintf("%s may be primary on Node %s, which is unreachable, and no other member takes over until it has stopped. "+
		"If the machine is off, mark the Node as out of service: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		m.Name(), m.Pod.Spec.NodeName, m.Pod.Spec.NodeName)}
}

// NeedsFencing reports whether a member that may be primary on an unreachable Node has no Lease that expires.
func NeedsFencing(f *Facts) bool {
	return slices.ContainsFunc(f.Members, func(m *Member) bool { return m.OutOfReach() && f.GrantThatExpires(m) == nil })
}

func fencingNotPermitted(f *Facts) Notice { return f.Fencing.Problem }

func secretMissing(f *Facts) Notice {
	if len(f.MissingSecrets) == 0 {
		return Notice{}
	}
	return Notice{
		Reason:  v1alpha1.ReasonSecretMissing,
		Message: "these Secrets of spec.TLS or spec.application do not exist: " + strings.Join(f.MissingSecrets, ", "),
	}
}

// agentUnknown states why the pods of spec.application cannot be created.
func agentUnknown(f *Facts) Notice {
	if f.WhyNoAgent == "" || f.Set.Status.Agent != nil {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonAgentUnknown, Message: "the image of the agent for spec.application is unknown: " + f.WhyNoAgent}
}

// WriteUndone returns the notice about writes that an admission webhook or policy reverts.
func WriteUndone(f *Facts) Notice {
	message := f.Undone.Message()
	if message == "" {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonWriteRefused, Message: message}
}

// podUndone returns the same notice if the reverted writes are on pods, for example role labels.
// This blocks updates, because a role could not be handed over.
func podUndone(f *Facts) Notice {
	if !f.Undone.Touches("pod") {
		return Notice{}
	}
	return WriteUndone(f)
}

func writeRefused(f *Facts) Notice {
	if f.Refused == "" {
		return Notice{}
	}
	return Notice{
		Reason:  v1alpha1.ReasonWriteRefused,
		Message: "the API server refuses a required write, which will be retried: " + f.Refused,
	}
}

func membersFailed(f *Facts) Notice {
	broken := f.Among(func(m *Member) bool { return f.HasFailed(m) || f.StartsInVain(m) })
	if len(broken) == 0 {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonMembersFailed, Message: "failed: " + NamesOf(broken)}
}

// StartsInVain reports whether a member was started failureThreshold times or more and made no
// primary.
func (f *Facts) StartsInVain(m *Member) bool {
	x := m.Failure
	return x != nil && !m.Parked && record.IsUnconfirmedStart(x) && x.Count >= *f.Set.Spec.FailureThreshold && m.Shown != record.Secondary
}

// MembersUnresponsive returns the notice about members in which status does not answer.
func MembersUnresponsive(f *Facts) Notice {
	members := f.Among(func(m *Member) bool { return !m.Parked && (m.NotAnswering || m.Unresponsive()) })
	if len(members) == 0 {
		return Notice{}
	}
	return Notice{Reason: v1alpha1.ReasonMembersDegraded, Message: f.whyUnresponsive(members)}
}

func membersDegraded(f *Facts) Notice {
	degraded := f.Among(func(m *Member) bool { return m.Degraded() && !m.Parked })
	if len(degraded) == 0 {
		return Notice{}
	}
	message := "status reports degraded members (exit code 190 or 191): "
	if f.Set.Spec.Application != nil {
		message = "members copy all data of the primary, which takes some time (see their logs): "
	}
	return Notice{Reason: v1alpha1.ReasonMembersDegraded, Message: message + NamesOf(degraded)}
}

func tooManyPrimaries(f *Facts) Notice {
	live := f.Primaries()
	if !f.MayRunCommands() || len(live) <= f.WantedPrimaries() {
		return Notice{}
	}
	return Notice{
		Reason:  v1alpha1.ReasonRecovering,
		Message: "more members are primary than requested: " + NamesOf(live),
	}
}
