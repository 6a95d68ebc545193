package status

import (
	"fmt"
	"strings"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// leaseNotRenewed reports a pod whose agent cannot renew the Lease, so that its program does not run.
func leaseNotRenewed(f *facts.Facts) engine.Notice {
	m := f.NotRenewed()
	if m == nil {
		return engine.Notice{}
	}
	return engine.Notice{Reason: v1.ReasonPodFailing, Message: fmt.Sprintf("pod %[1]s has its turn, but its agent has not renewed Lease %[2]s for %[3]s, and does not let the program run without it. "+
		"The pod must reach the API server, and its service account must be able to write this Lease: check NetworkPolicies, and the log: kubectl -n %[4]s logs %[1]s -c %[5]s. "+
		"If it is not renewed for %[6]s, the pod loses its turn",
		m.Name(), f.Lease.Name, f.EndsAfter(), m.Pod.Namespace, strings.Join(m.Program, ","), f.LeaseDuration())}
}
