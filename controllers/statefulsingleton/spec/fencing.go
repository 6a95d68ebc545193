package spec

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
)

// FencedByLease reports whether new pods of an object run their program by a Lease.
func FencedByLease(s *v1.StatefulSingleton) bool {
	return s.Spec.Fencing != nil && s.Spec.Fencing.Mode == v1.FencingLease
}

// WaitsInContainer reports whether the gate mode allows that an agent waits in the container of the program.
func WaitsInContainer(s *v1.StatefulSingleton) bool {
	return s.Spec.GateMode == v1.GateAuto || s.Spec.GateMode == v1.GateBinary
}

// validateFencing validates spec.fencing, after defaults.
func validateFencing(s *v1.StatefulSingleton, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if seconds := *s.Spec.Fencing.LeaseDurationSeconds; seconds < fencing.MinSeconds || seconds > fencing.MaxSeconds {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), seconds,
			fmt.Sprintf("must be from %d to %d seconds", fencing.MinSeconds, fencing.MaxSeconds)))
	}
	if FencedByLease(s) && !WaitsInContainer(s) {
		errs = append(errs, field.Invalid(at.Child("mode"), s.Spec.Fencing.Mode, fmt.Sprintf(
			"requires gateMode Auto or Binary, because the agent waits in the container of the program; set spec.gateMode to Auto instead of %s, or this to Proof", s.Spec.GateMode)))
	}
	return errs
}

// HandsOverCrashLoops reports whether a waiting pod takes over from one whose program ends again and again.
func HandsOverCrashLoops(s *v1.StatefulSingleton) bool {
	return s.Spec.OnCrashLoop == v1.CrashLoopHandsOver && FencedByLease(s)
}

// validateCrashLoop validates spec.onCrashLoop, after defaults. Without a Lease, the kubelet could restart the program
// while the next one runs.
func validateCrashLoop(s *v1.StatefulSingleton, at *field.Path) field.ErrorList {
	if s.Spec.OnCrashLoop != v1.CrashLoopHandsOver || FencedByLease(s) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, s.Spec.OnCrashLoop, fmt.Sprintf(
		"requires fencing.mode Lease, because the kubelet restarts the container at any time; set spec.fencing.mode to Lease instead of %s, or this to Restart", s.Spec.Fencing.Mode))}
}

// fencingWarnings returns warnings about spec.fencing, after defaults.
func fencingWarnings(s *v1.StatefulSingleton) []string {
	seconds, most := *s.Spec.Fencing.LeaseDurationSeconds, *s.Spec.MaxTransitionTime
	if !FencedByLease(s) || seconds <= most {
		return nil
	}
	return []string{fmt.Sprintf("spec.fencing.leaseDurationSeconds: %d seconds exceed maxTransitionTime (%d): "+
		"the takeover from a node that cannot be reached is reported as a handover that takes too long; lower it, or raise spec.maxTransitionTime (max 3600)", seconds, most)}
}
