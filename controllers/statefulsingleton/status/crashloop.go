package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
)

// whenOtherStarts returns when another pod starts, although the program of the active one does not run.
func whenOtherStarts(f *facts.Facts) string {
	switch {
	case f.Active != nil && f.Active.CrashLoops:
		return "a waiting pod takes over when the program ends again, or when the Lease has expired"
	case f.Active != nil && f.InCrashLoop(f.Active):
		return "no other pod starts until it is deleted, because no pod waits that can take over: at its gate, on a Node that is Ready, and not in a crash loop before"
	}
	return "no other pod starts until it is deleted"
}

// crashLooped sets condition RolloutHeld to True if a pod of the newest revision does not replace the running one,
// because its own program was in a crash loop.
func crashLooped(f *facts.Facts, c *metav1.Condition) {
	old := f.Active
	if old == nil || !old.Lives() || !old.Family.Rolls {
		return
	}
	i := slices.IndexFunc(f.Waiting, func(m *facts.Member) bool { return m.Tried && m.Family.Follows(&old.Family) })
	if i < 0 {
		return
	}
	next := f.Waiting[i]
	c.Status, c.Reason = metav1.ConditionTrue, v1.ReasonCrashLooped
	c.Message = fmt.Sprintf("pod %[1]s of the newest revision does not replace pod %[2]s, because its program was in a crash loop, and spec.onCrashLoop is Handover. "+
		"See: kubectl -n %[3]s logs %[1]s --previous. To start it again when the cause is fixed: kubectl -n %[3]s delete pod %[1]s",
		next.Name(), old.Name(), old.Pod.Namespace)
}
