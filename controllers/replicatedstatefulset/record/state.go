package record

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// State is the known state of a member's application.
type State string

const (
	Pending   State = "pending"   // the kubelet reports that its container is not running
	Unknown   State = "unknown"   // any state is possible
	Idle      State = "idle"      // status reports that it has stopped
	Secondary State = "secondary" // status reports that it runs, and not as primary
	Primary   State = "primary"   // status reports that it runs as primary
	Failed    State = "failed"    // status reports a failure
)

// OCF exit codes.
const (
	ocfArgs, ocfInstalled = 2, 5 // first and last code that exclude a start in this pod
	OCFNotConfigured      = 6
	ocfNotRunning         = 7
	ocfPrimary            = 8
	OCFDegraded           = 190
	OCFDegradedPrimary    = 191
)

// stateBy returns the state that a status result reports. Without a secondary command, a running
// member is a primary.
func stateBy(set *v1alpha1.ReplicatedStatefulSet, r podexec.Result) State {
	if r.Outcome == podexec.Succeeded {
		r.Code = 0
	}
	switch r.Code {
	case ocfNotRunning:
		return Idle
	case ocfPrimary, OCFDegradedPrimary:
		return Primary
	case 0, OCFDegraded:
		if spec.HasCommand(set, v1alpha1.CommandSecondary) {
			return Secondary
		}
		return Primary
	}
	return Failed
}

// CommandOf returns the command on record in a pod. It returns nil if there is none.
func CommandOf(commands []v1alpha1.RunningCommand, pod types.UID) *v1alpha1.RunningCommand {
	for i := range commands {
		if commands[i].UID == pod {
			return &commands[i]
		}
	}
	return nil
}

// SequenceOf parses a sequence result, which must be one unsigned integer.
func SequenceOf(r podexec.Result) (uint64, bool) {
	if r.Outcome != podexec.Succeeded || r.Cut {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(r.Stdout), 10, 64)
	return n, err == nil
}
