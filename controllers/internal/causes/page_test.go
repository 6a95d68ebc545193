package causes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
)

const pageBegin = `# Causes

Why a pod, a claim or a Job is not there, does not run, or does not go: what you see, and the command that helps. All kinds know these situations in the same words ([decision](decisions/0016-why-a-pod-is-not-there.md)); this page is written by ` + "`go test ./controllers/internal/causes -update`" + `.

Condition Degraded shows one when it has lasted for a minute: of a ReplicatedStatefulSet and a StatefulCluster with reason ` + "`MembersCannotStart`" + `, where a pod or claim of a StatefulCluster is refused with ` + "`WriteRefused`" + `; of the version of an ExtendedStatefulSet that serves with ` + "`PodsHindered`" + `. A version that is being tried shows it in condition Progressing, and in Stale when it is given up. A StatefulSingleton shows with ` + "`PodFailing`" + ` why the pod whose turn it is does not run, or is not created by its ReplicaSet or StatefulSet. What *needs a person* is Stalled, and kstatus says Failed; what *passes* is Reconciling, and kstatus says InProgress. Conditions go by themselves when the cause does. [Readiness](readiness.md) says more.

| situation | word | where it is seen | what it means | kstatus | what helps |
|---|---|---|---|---|---|
`

// W7: docs/causes.md contains each row of the table.
func TestW7PageHasEachSituation(t *testing.T) {
	var page strings.Builder
	page.WriteString(pageBegin)
	for _, r := range causes.Rows {
		kstatus := "InProgress"
		if r.Effect.String() == "needs a person" {
			kstatus = "Failed"
		}
		command := strings.NewReplacer("{n}", "<namespace>", "{p}", "<name>").Replace(r.Command)
		word := r.Word
		if word == "OutOf" {
			word = "OutOfcpu`, `OutOfmemory`, `OutOfpods"
		}
		fmt.Fprintf(&page, "| %s | `%s` | %s | it %s; %s | %s | %s: `%s` |\n", r.Situation, word, r.Seen, r.Verb, r.Effect, kstatus, r.Advice, command)
	}
	golden.Check(t, "../../../docs/causes.md", page.String())
}
