package extendedstatefulset

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// situation is a state of the pods, with the columns and conditions that an on-call engineer must see.
type situation struct {
	// sentence is how the engineer would describe it.
	sentence string
	scene    *scene
	// columns are Desired, Ready, Version, Phase and Stale of kubectl get.
	columns string
	// These are the conditions that report the situation; all others are healthy.
	available, progressing string
	others                 []string
}

// states changes the pods of a version like kubelets and the scheduler.
func states(number int64, change func(*corev1.Pod)) func(*facts.World) {
	return func(w *facts.World) {
		for _, pod := range w.Children.Find(w.Zones[0].Index, number).Pods {
			change(pod)
		}
	}
}

func crashing(code int32) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}}}}
	}
}

func pulling(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Image: "new", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
}

func homeless(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: none."})
}

func absent(number int64, why string) func(*facts.World) {
	return func(w *facts.World) {
		c := w.Children.Find(w.Zones[0].Index, number)
		c.Pods, w.Refusals = map[int32]*corev1.Pod{}, map[string]string{}
		for o := c.Span().Start; o < c.Span().End(); o++ {
			w.Refusals[fmt.Sprintf("%s-%d", c.Set.Name, o)] = why
		}
	}
}

func withStatus(f func(*v1alpha1.ExtendedStatefulSetStatus)) func(*facts.World) {
	return func(w *facts.World) { f(&w.Set.Status) }
}

const (
	quota        = "it cannot be created: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3"
	allAvailable = "True AllPodsAvailable: 3 of 3 pods are available"
)

func situations() []situation {
	installing := withStatus(func(s *v1alpha1.ExtendedStatefulSetStatus) { s.Phase = v1alpha1.PhasePromoting })
	return []situation{
		{"all pods are available", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}), "3 3 1 Stable False", allAvailable, "False Complete: no operation in progress", nil},
		{"a quota refuses all pods of a new set", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(installing).but(absent(1, quota)),
			"3 0 1 Promoting False", "False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, db-v1-1, db-v1-2 (" + quota + ")",
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, db-v1-1, db-v1-2 (" + quota + ")", nil},
		{"the claims of a new set have no StorageClass",
			of(volumes()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).but(installing).but(states(1, homeless)).but(deletedClaim(-1)).but(func(w *facts.World) {
				for _, c := range w.Claims {
					c.Status.Phase, c.Spec.StorageClassName = corev1.ClaimPending, ptr.To("none")
				}
			}), "3 0 1 Promoting False",
			`False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0 (Unschedulable: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims; claim data-db-0 of StorageClass "none" is not bound), db-v1-1 (`,
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0 (Unschedulable: ", nil},
		{"one of three pods crashes", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 2).but(func(w *facts.World) { crashing(1)(w.Children[0].Pods[2]) }),
			"3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-2 (CrashLoopBackOff: container main ended with code 1)",
			"True WaitingForPods: db-v1 has 2 of 3 pods available; not Ready: db-v1-2 (CrashLoopBackOff: container main ended with code 1)", nil},
		{"all three pods crash", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).but(states(1, crashing(2))), "3 0 1 Stable False",
			"False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, db-v1-1, db-v1-2 (CrashLoopBackOff: container main ended with code 2)",
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, db-v1-1, db-v1-2 (CrashLoopBackOff: container main ended with code 2)", nil},
		{"one pod is terminating", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) {
			w.Children[0].Pods[1].DeletionTimestamp = ptr.To(metav1.NewTime(noon))
		}), "3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-1 (it is being deleted)",
			"True WaitingForPods: db-v1 has 2 of 3 pods available; not Ready: db-v1-1 (it is being deleted)", nil},
		{"the API server refuses a write", of(plain()).has(1, children.Span{Start: 0, Replicas: 2}).but(func(w *facts.World) { w.Refused = "patch statefulset db-v1: denied" }),
			"3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available",
			"True WriteRefused: the API server refuses a write, which will be retried: patch statefulset db-v1: denied", nil},
		{"the set is scaled to 0", of(fakeSet(0)).has(1, children.Span{}), "0 0 1 Stable False", "True AllPodsAvailable: 0 of 0 pods are available", "False Complete: no operation in progress", nil},
		{"the spec is invalid, and the pods of the last valid spec run", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) { w.Invalid = "spec.zones: what" }),
			"3 3 1 Stable False", "False InvalidSpec: the spec is invalid, and the operator makes no changes: spec.zones: what", "False InvalidSpec: spec.zones: what", nil},
	}
}

// inUpgrades are the situations in which another version is or was rolled out.
func inUpgrades() []situation {
	const canary, coexist, perOrdinal = v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist, v1alpha1.HandoverPerOrdinal
	upgrade := func(unready ...int32) *scene {
		return of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(canary, coexist).has(2, children.Span{Start: 0, Replicas: 1}, unready...)
	}
	failed := func(message string) func(*facts.World) {
		return func(w *facts.World) {
			w.Set.Status.Phase, w.Set.Status.Update.Reason, w.Set.Status.Update.Message = v1alpha1.PhaseStale, v1alpha1.ReasonCanaryFailed, message
			c := w.Children.Find(w.Zones[0].Index, 2)
			(&rules.ChildPatch{F: asRecorded(w), C: c, Next: c.Set}).MarkStale()
		}
	}
	return []situation{
		{"the old version serves, and the canary cannot pull its image", upgrade(0).but(states(2, pulling)), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; not Ready: db-v2-0 (ImagePullBackOff: image new (container main))", nil},
		{"two pods of the old version serve, and the canary on ordinal 2 crashes",
			of(volumes()).has(1, children.Span{Start: 0, Replicas: 2}).upgrading(canary, perOrdinal).has(2, children.Span{Start: 2, Replicas: 1}, 2).but(states(2, crashing(3))), "3 2 1 Canary False",
			"False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v2-2 (CrashLoopBackOff: container main ended with code 3)",
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; waiting until the canaries are good; not Ready: db-v2-2 (CrashLoopBackOff: container main ended with code 3)", nil},
		{"the canary is good and waits for approval", upgrade().but(manual).but(held(0)), "3 3 1 Canary False", allAvailable,
			"True WaitingForApproval: the canaries of version 2 are good; waiting for approval of its revision: " +
				`kubectl -n ns patch ests db --type=merge -p '{"spec":{"approvedRevision":"v2-b883872df0ff2555"}}'. To roll back, apply the template of version 1, which needs no approval`, nil},
		{"the user approved another version", upgrade().but(manual).but(held(0)).but(word("v1-0")), "3 3 1 Canary False", allAvailable,
			"True WaitingForApproval: the canaries of version 2 are good; waiting for approval of its revision: " +
				`kubectl -n ns patch ests db --type=merge -p '{"spec":{"approvedRevision":"v2-b883872df0ff2555"}}'. To roll back, apply the template of version 1, which needs no approval; ` +
				`spec.approvedRevision "v1-0" is ignored: it is the revision of neither the current version nor the upgrade (v2-b883872df0ff2555)`, nil},
		{"the canary was good and crashes while it waits for approval", upgrade(0).but(manual).but(states(2, crashing(1))), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; not Ready: db-v2-0 (CrashLoopBackOff: container main ended with code 1)", nil},
		{"the approved version no longer exists", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(manual).but(word("v7-0")), "3 3 1 Stable False", allAvailable,
			`False Complete: no operation in progress; spec.approvedRevision "v7-0" is ignored: it is the revision of neither the current version nor the upgrade (v1-`, nil},
		{"the job for the canary runs", upgrade().but(askedAt(v1alpha1.WhenCanary, "")), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; waiting until Job db-canary-v2-1 ends", nil},
		{"the job for the canary failed", upgrade().but(askedAt(v1alpha1.WhenCanary, v1alpha1.JobFailed)), "3 3 1 Stale True", allAvailable,
			"True Returning: attempt 1 with version 2 failed: Job db-canary-v2-1 failed",
			[]string{"Stale=True PostUpdateJobFailed: version 2 was marked stale (attempts: 1): Job db-canary-v2-1 failed. Version 1 serves",
				"Aborted=True PostUpdateJobFailed: the upgrade to version 2 was aborted: Job db-canary-v2-1 failed"}},
		{"the old version serves, and the new one is stale because of a quota", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, coexist).
			has(2, children.Span{}).but(failed("0 of 1 canaries were Ready within 5m0s (canaryWatchTime); not Ready: db-v2-0 (" + quota + ")")),
			"3 3 1 Stale True", allAvailable, "False Complete: no operation in progress", []string{
				"Stale=True CanaryFailed: version 2 was marked stale (attempts: 1): 0 of 1 canaries were Ready within 5m0s (canaryWatchTime); not Ready: db-v2-0 (" + quota +
					"). Version 1 serves. To try another version, edit spec.template. To retry the same template after the cause is fixed: " +
					`kubectl -n ns patch ests db --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"2"}}}}}'`}},
		{"the new version is stale, and all pods of the old one crash", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).but(states(1, crashing(1))).
			upgrading(v1alpha1.PhaseStale, coexist).has(2, children.Span{}).but(failed("why")), "3 0 1 Stale True",
			"False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, ", "True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, ",
			[]string{"Stale=True CanaryFailed: version 2 was marked stale (attempts: 1): why. Version 1 serves"}},
		{"an upgrade waits because a pod of the current version crashes", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0).edited().but(func(w *facts.World) { crashing(1)(w.Children[0].Pods[0]) }),
			"3 2 1 Waiting False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-0 (CrashLoopBackOff: container main ended with code 1)",
			"True CurrentNotReady: the upgrade waits until version 1 is Ready: db-v1 has 2 of 3 pods available. To upgrade anyway: kubectl -n ns patch ests db --type=merge -p '{\"spec\":{\"updateStrategy\":{\"updateNotReady\":true}}}'; not Ready: db-v1-0 (", nil},
		{"the job before the upgrade failed, and the old version serves", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseAborted, coexist).but(func(w *facts.World) {
			w.Set.Status.Update.Reason, w.Set.Status.Update.Message = v1alpha1.ReasonPreJobFailed, "Job db-pre-v2-1 failed"
		}), "3 3 1 Aborted False", allAvailable, "False Complete: no operation in progress",
			[]string{"Aborted=True PreUpdateJobFailed: the upgrade to version 2 was aborted: Job db-pre-v2-1 failed. Version 1 serves"}},
	}
}

// TestV13V14SituationsAreSaidAsTheyAre verifies V13 and V14: conditions and columns match how an
// on-call engineer would describe the pods.
func TestV13V14SituationsAreSaidAsTheyAre(t *testing.T) {
	for _, row := range append(situations(), inUpgrades()...) {
		t.Run(row.sentence, func(t *testing.T) {
			f, p := decided(row.scene.w)
			s := status.Summarize(f, p)
			said := map[string]string{}
			for _, c := range s.Conditions {
				said[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			columns := fmt.Sprintf("%d %d %d %s %s", row.scene.w.Replicas, s.ReadyReplicas, s.CurrentVersion, s.Phase,
				meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionStale).Status)
			if columns != row.columns {
				t.Errorf("got columns %s, want %s", columns, row.columns)
			}
			want := map[string]string{v1alpha1.ConditionAvailable: row.available, v1alpha1.ConditionProgressing: row.progressing,
				v1alpha1.ConditionStale: "False ", v1alpha1.ConditionAborted: "False ", v1alpha1.ConditionConfigMissing: "False "}
			for _, other := range row.others {
				kind, text, _ := strings.Cut(other, "=")
				want[kind] = text
			}
			for kind, text := range want {
				if !strings.HasPrefix(said[kind], text) {
					t.Errorf("condition %s: got\n%s, want\n%s", kind, said[kind], text)
				}
			}
		})
	}
}

// TestV13ColumnsAreShown verifies that the API server shows the columns of situation (V13).
func TestV13ColumnsAreShown(t *testing.T) {
	crd, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "fissile.cloudfoundry.org_extendedstatefulsets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	columns, _, _ := strings.Cut(string(crd), "    name: v1alpha1\n")
	at := 0
	for _, path := range []string{".spec.template.spec.replicas", ".status.readyReplicas", ".status.currentVersion", ".status.phase",
		`.status.conditions[?(@.type=="Stale")].status`} {
		i := strings.Index(columns[at:], "jsonPath: "+path+"\n")
		if i < 0 {
			t.Fatalf("column %s is missing or at another position", path)
		}
		at += i
	}
}

// TestV7WhatIsSeenNeedsNoObjectThatStaysAsItIs verifies V7: observed state is written to the latest
// object, so that edits of the spec do not block it. The record is written only if the object has not
// changed since it was read.
func TestV7WhatIsSeenNeedsNoObjectThatStaysAsItIs(t *testing.T) {
	for _, row := range []struct {
		name   string
		scene  *scene
		rebase bool
	}{
		{"a pod becomes not Ready", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 0), true},
		{"an upgrade begins", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).edited(), false},
		{"a canary fails", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{Start: 0, Replicas: 1}, 0).after(time.Hour), false},
	} {
		f, p := decided(row.scene.w)
		steps := status.StatusPatch(f, p)
		if len(steps) != 1 || steps[0][0][0].Rebase != row.rebase {
			t.Errorf("%s: rebase should be %t: %v", row.name, row.rebase, steps.Strings())
		}
	}
}
