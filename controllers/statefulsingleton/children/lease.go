package children

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// The pods of spec.fencing.mode Lease. The agent takes the place of the gate in the container of the
// program, and runs the program while the Lease names its pod. A grant in the annotation starts the
// program without the Lease.

// LeaseName returns the name of the Lease of an object. It is also the name of its
// PodDisruptionBudget, which is another kind.
func LeaseName(object string) string { return object + leaseSuffix }

const leaseSuffix = ".singleton"

// gateLease is mode Binary with the agent in place of the gate. It follows from spec.fencing, and is
// not a value of spec.gateMode.
const gateLease v1.GateMode = "Lease"

const (
	leaseWords    = 5 // of the command before the program's
	leaseProgram  = "run"
	endOfFlags    = "--"
	noLeaseRemedy = "set spec.fencing.mode of the StatefulSingleton to Proof"
)

var leaseProbe = []string{v1.AgentInPod, "started"}

// isFencing reports whether the volume is the one with the credentials for the Lease.
func isFencing(v corev1.Volume) bool { return Same(&v, ptr.To(fencing.Volume(v1.VolumeFencing))) }

// leaseGate returns the command that runs a program while the Lease names its pod.
func leaseGate(s *v1.StatefulSingleton) []string {
	return []string{v1.AgentInPod, leaseProgram, fencing.LeaseFlag + LeaseName(s.Name), fencing.DurationArgument(*s.Spec.Fencing.LeaseDurationSeconds), endOfFlags}
}

// isLeaseGate reports whether a command starts with the agent, for any Lease.
func isLeaseGate(command []string) bool {
	switch {
	case len(command) < leaseWords, command[0] != v1.AgentInPod, command[1] != leaseProgram, command[leaseWords-1] != endOfFlags:
		return false
	}
	return strings.HasPrefix(command[2], fencing.LeaseFlag) && strings.HasPrefix(command[3], fencing.DurationFlag)
}

// isLeaseGateOf reports whether a command starts with the agent, for the Lease of this object.
func isLeaseGateOf(command []string, s *v1.StatefulSingleton) bool {
	return isLeaseGate(command) && command[2] == fencing.LeaseFlag+LeaseName(s.Name) && fencing.DurationOf(command[3]) > 0
}

// leaseIndex returns where the agent is in a command; -1 if it is not.
func leaseIndex(command []string) int {
	for i := range command {
		if isLeaseGate(command[i:]) {
			return i
		}
	}
	return -1
}

// agentFirst moves the agent to the front of a command, before a wrapper that another webhook has
// added: it must be process 1 of the container.
func agentFirst(command []string, at int) []string {
	return slices.Concat(command[at:at+leaseWords], command[:at], command[at+leaseWords:])
}

// isLeased reports whether the agent runs the container's program.
func isLeased(c *corev1.Container) bool { return isLeaseGate(c.Command) && len(c.Command) > leaseWords }

// IsLeased reports whether the Lease of the object decides whether the pod runs its program. In a pod
// that waits as a whole, the grant decides.
func IsLeased(pod *corev1.Pod, s *v1.StatefulSingleton) bool {
	program := Program(pod, s)
	if len(program) != 1 || slices.ContainsFunc(pod.Spec.InitContainers, IsWait) {
		return false
	}
	return isLeased(program[0]) && isLeaseGateOf(program[0].Command, s)
}

// hasLeaseGate reports whether a pod cannot start the program without the Lease or a grant.
func hasLeaseGate(pod *corev1.Pod, s *v1.StatefulSingleton) bool {
	return IsLeased(pod, s) && len(s.Spec.Containers) <= 1 && slices.ContainsFunc(pod.Spec.Volumes, isFencing)
}

// LeaseDuration returns the duration of the Lease with which the pod runs its program; 0 if it runs it
// without. It is the longest one, should several containers have one.
func LeaseDuration(pod *corev1.Pod) time.Duration {
	var longest time.Duration
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; isLeased(c) {
			longest = max(longest, fencing.DurationOf(c.Command[3]))
		}
	}
	return longest
}

// wantsLease reports whether a pod gets the agent. A pod that has got a gate in an earlier call keeps
// it. A gate mode that validation refuses is not overridden.
func wantsLease(pod *corev1.Pod, s *v1.StatefulSingleton) bool {
	return spec.FencedByLease(s) && spec.WaitsInContainer(s) && !hasGateOfAnyMode(pod)
}

// hasAgent reports whether an earlier call has added the agent. Another webhook may have added a
// wrapper before it.
func hasAgent(pod *corev1.Pod) bool {
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return isInstallOf(&c, gateLease) }) {
		return true
	}
	return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return leaseIndex(c.Command) >= 0 || leaseIndex(c.Args) >= 0 })
}

// hasGateOfAnyMode reports whether an earlier call has added a gate that waits for a grant.
func hasGateOfAnyMode(pod *corev1.Pod) bool {
	inits := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return IsWait(c) || isInstallOf(&c, v1.GateBinary) || isInstallOf(&c, v1.GateScript)
	})
	return inits || slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		words := slices.Concat(c.Command, c.Args)
		return slices.Contains(words, v1.GateInPod) || slices.Contains(words, v1.ScriptInPod)
	})
}

// leaseRefusals returns why a pod cannot run its program by the agent, besides the obstacles in the
// container of the program.
func leaseRefusals(pod *corev1.Pod, s *v1.StatefulSingleton, podSpec *field.Path) field.ErrorList {
	const first = "it must be false in fencing mode Lease: the agent ends the program by ending process 1 of its container; set it to false, or " + noLeaseRemedy
	var errs field.ErrorList
	if pod.Spec.HostPID {
		errs = append(errs, field.Forbidden(podSpec.Child("hostPID"), first))
	}
	if ptr.Deref(pod.Spec.ShareProcessNamespace, false) {
		errs = append(errs, field.Forbidden(podSpec.Child("shareProcessNamespace"), first))
	}
	switch count := len(Program(pod, s)); {
	case len(Lacking(pod, s)) > 0: // another webhook has changed the pod, or a user the object
		errs = append(errs, field.Forbidden(podSpec.Child("containers"),
			"spec.containers of the StatefulSingleton was changed while this pod was created; create the pod again"))
	case count > 1:
		errs = append(errs, field.Forbidden(podSpec.Child("containers"), fmt.Sprintf(
			"the program has %d containers, and fencing mode Lease requires exactly one; list the container of the program in spec.containers of the StatefulSingleton, or set its spec.fencing.mode to Proof", count)))
	}
	return errs
}

// leaseObstacles returns why the agent that a container has already cannot run its program.
func leaseObstacles(c *corev1.Container, at *field.Path, s *v1.StatefulSingleton) field.ErrorList {
	if leaseIndex(c.Args) >= 0 {
		return field.ErrorList{field.Forbidden(at.Child("args"),
			"another webhook has moved the agent there, which must be process 1 of the container; exclude the pod from that webhook, or "+noLeaseRemedy)}
	}
	if i := leaseIndex(c.Command); i >= 0 && !isLeaseGateOf(c.Command[i:], s) {
		return field.ErrorList{field.Forbidden(at.Child("command"),
			"it runs "+v1.AgentInPod+" with a Lease of another object, or an invalid duration; remove the agent from the command, because the operator adds it")}
	}
	return nil
}

// The checks of the guard, in CEL.

// leasedCEL returns isLeaseGateOf, for container c of the object params.
func leasedCEL() string {
	return fmt.Sprintf(`has(c.command) && size(c.command) > %d && c.command[0] == %q && c.command[1] == %q && c.command[2] == %q + params.metadata.name + %q && c.command[3].matches(%q) && c.command[4] == %q`,
		leaseWords, v1.AgentInPod, leaseProgram, fencing.LeaseFlag, leaseSuffix, fencing.DurationPattern, endOfFlags)
}

// fencingCEL returns isFencing, for volume v.
func fencingCEL() string {
	const token, ca, files = `v.projected.sources[0].serviceAccountToken`, `v.projected.sources[1].configMap`, `v.projected.sources[2].downwardAPI`
	fields := fencing.Fields()
	all := []string{
		fmt.Sprintf(`v.name == %q && has(v.projected) && has(v.projected.defaultMode) && v.projected.defaultMode == %d`, v1.VolumeFencing, fencing.FileMode),
		`has(v.projected.sources) && size(v.projected.sources) == 3`,
		fmt.Sprintf(`has(%[1]s) && %[1]s.path == %[2]q && has(%[1]s.expirationSeconds) && %[1]s.expirationSeconds == %[3]d && !has(%[1]s.audience)`, token, fencing.TokenFile, fencing.TokenSeconds),
		fmt.Sprintf(`has(%[1]s) && has(%[1]s.name) && %[1]s.name == %[2]q && !has(%[1]s.optional)`, ca, fencing.CAConfigMap),
		fmt.Sprintf(`has(%[1]s.items) && size(%[1]s.items) == 1 && %[1]s.items[0].key == %[2]q && %[1]s.items[0].path == %[2]q && !has(%[1]s.items[0].mode)`, ca, fencing.CAFile),
		fmt.Sprintf(`has(%[1]s) && has(%[1]s.items) && size(%[1]s.items) == %[2]d`, files, len(fields)),
	}
	for i, f := range fields {
		all = append(all, fmt.Sprintf(`%[1]s.path == %[2]q && has(%[1]s.fieldRef) && %[1]s.fieldRef.fieldPath == %[3]q && !has(%[1]s.mode)`,
			fmt.Sprintf("%s.items[%d]", files, i), f.Path, f.FieldRef.FieldPath))
	}
	return strings.Join(all, " && ")
}
