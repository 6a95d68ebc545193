package application

import (
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
)

// spec.fencing adds flags to process 1 of the members. The flags of a pod, and not the spec, determine
// whether its member has a Lease, because the pod may be older than the spec.

const (
	volumeFencing = "application-fencing"
	// leaseOfPod is the flag with the name of the Lease. The kubelet replaces the variable, which is
	// one of those that all containers get.
	leaseOfPod = fencing.LeaseFlag + "$(POD_NAME)" + v1alpha1.LeaseSuffix

	defaultLeaseSeconds = 30

	idleArgument   = "idle"
	fencedArgument = "fenced"
	epochFlag      = "--epoch="
	leasedWords    = 5 // AGENT TYPE idle LEASE DURATION
	fencedWords    = 4 // AGENT fenced EPOCH --
)

// FencedByLease reports whether new pods have Leases.
func FencedByLease(set *v1alpha1.ReplicatedStatefulSet) bool {
	return set.Spec.Fencing != nil && set.Spec.Fencing.Mode == v1alpha1.FencingLease
}

// process1 returns the command of process 1.
func (f *filling) process1(name string) []string {
	command := []string{agentInPod, name, idleArgument}
	if !FencedByLease(f.set) || !hasOnePrimary(f.set.Spec.Application.Type) {
		return command
	}
	f.volume(volumeFencing, fencing.Volume(volumeFencing).VolumeSource)
	f.mount(corev1.VolumeMount{Name: volumeFencing, MountPath: fencing.Path, ReadOnly: true})
	return append(command, leaseOfPod, fencing.DurationArgument(ptr.Deref(f.set.Spec.Fencing.LeaseDurationSeconds, defaultLeaseSeconds)))
}

// LeaseDuration returns the duration of the Lease that process 1 of a container renews. It is 0 if there is none.
// Arguments could change the flags.
func LeaseDuration(c *corev1.Container) time.Duration {
	if len(c.Command) != leasedWords || len(c.Args) > 0 || !slices.Equal(c.Command[2:4], []string{idleArgument, leaseOfPod}) {
		return 0
	}
	return fencing.DurationOf(c.Command[4])
}

// Fenced returns a command that begins only while process 1 of its container renews the Lease of that epoch. agent
// is the path of the agent in the container.
func Fenced(agent string, epoch int64, argv []string) []string {
	return append([]string{agent, fencedArgument, epochFlag + strconv.FormatInt(epoch, 10), "--"}, argv...)
}

// Unfenced returns the epoch and the command in a command of Fenced. The epoch is 0 for any other command.
func Unfenced(argv []string) (epoch int64, rest []string) {
	if len(argv) < fencedWords || argv[1] != fencedArgument {
		return 0, argv
	}
	text, isEpoch := strings.CutPrefix(argv[2], epochFlag)
	epoch, err := strconv.ParseInt(text, 10, 64)
	if !isEpoch || err != nil {
		return 0, argv
	}
	return epoch, argv[fencedWords:]
}

// validateFencing checks spec.fencing.
func validateFencing(spec *v1alpha1.ReplicatedStatefulSetSpec) field.ErrorList {
	at := field.NewPath("spec", "fencing")
	if spec.Fencing == nil {
		return nil
	}
	var errs field.ErrorList
	if s := ptr.Deref(spec.Fencing.LeaseDurationSeconds, defaultLeaseSeconds); s < fencing.MinSeconds || s > fencing.MaxSeconds {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), s, "must be from 10 to 600 seconds"))
	}
	if spec.Fencing.Mode != v1alpha1.FencingLease {
		return errs
	}
	at = at.Child("mode")
	switch {
	case spec.Application == nil:
		errs = append(errs, field.Invalid(at, spec.Fencing.Mode,
			"requires spec.application, whose agent renews the Lease as process 1 of the container; set it to Proof"))
	case !hasOnePrimary(spec.Application.Type):
		errs = append(errs, field.Invalid(at, spec.Fencing.Mode,
			"all members of "+string(spec.Application.Type)+" are primaries, and a member that cannot reach the majority stops serving; set it to Proof"))
	case lacksFlags(spec):
		errs = append(errs, field.Invalid(at, spec.Fencing.Mode,
			"the command in spec.pod.containers is not that of the agent, which renews the Lease; remove the command, or set this to Proof"))
	}
	return errs
}

// lacksFlags reports whether process 1 of a filled set does not renew a Lease.
func lacksFlags(spec *v1alpha1.ReplicatedStatefulSetSpec) bool {
	i := spec.Pod.CommandContainer()
	return i < len(spec.Pod.Containers) && LeaseDuration(&spec.Pod.Containers[i]) == 0
}
