package status_test

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

// situation is a state of the pods, with the columns and conditions that an on-call engineer must see.
type situation struct {
	// sentence is how the engineer would describe it.
	sentence string
	scene    *fixture.Scene
	// columns are Desired, Ready, Version, Phase and Stale of kubectl get.
	columns string
	// These are the conditions that report the situation; all others are healthy.
	available, progressing string
	others                 []string
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
		{"all pods are available", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}), "3 3 1 Stable False", allAvailable, "False Complete: no operation in progress", nil},
		{"a quota refuses all pods of a new set", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(installing).But(fixture.Absent(1, quota)),
			"3 0 1 Promoting False", "False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, db-v1-1, db-v1-2 (" + quota + ")",
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, db-v1-1, db-v1-2 (" + quota + ")", nil},
		{"the claims of a new set have no StorageClass",
			fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(installing).But(fixture.States(1, fixture.Homeless)).But(fixture.DeletedClaim(-1)).But(func(w *facts.World) {
				for _, c := range w.Claims {
					c.Status.Phase, c.Spec.StorageClassName = corev1.ClaimPending, ptr.To("none")
				}
			}), "3 0 1 Promoting False",
			`False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0 (Unschedulable: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims; claim data-db-0 of StorageClass "none" is not bound), db-v1-1 (`,
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0 (Unschedulable: ", nil},
		{"one of three pods crashes", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).But(func(w *facts.World) { fixture.Crashing(1)(w.Children[0].Pods[2]) }),
			"3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-2 (CrashLoopBackOff: container main ended with code 1)",
			"True WaitingForPods: db-v1 has 2 of 3 pods available; not Ready: db-v1-2 (CrashLoopBackOff: container main ended with code 1)", nil},
		{"all three pods crash", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(fixture.States(1, fixture.Crashing(2))), "3 0 1 Stable False",
			"False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, db-v1-1, db-v1-2 (CrashLoopBackOff: container main ended with code 2)",
			"True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, db-v1-1, db-v1-2 (CrashLoopBackOff: container main ended with code 2)", nil},
		{"one pod is terminating", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) {
			w.Children[0].Pods[1].DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon))
		}), "3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-1 (it is being deleted)",
			"True WaitingForPods: db-v1 has 2 of 3 pods available; not Ready: db-v1-1 (it is being deleted)", nil},
		{"the API server refuses a write", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 2}).But(func(w *facts.World) { w.Refused = "patch statefulset db-v1: denied" }),
			"3 2 1 Stable False", "False PodsUnavailable: 2 of 3 pods are available",
			"True WriteRefused: the API server refuses a write, which will be retried: patch statefulset db-v1: denied", nil},
		{"the set is scaled to 0", fixture.Of(fixture.FakeSet(0)).Has(1, children.Span{}), "0 0 1 Stable False", "True AllPodsAvailable: 0 of 0 pods are available", "False Complete: no operation in progress", nil},
		{"the spec is invalid, and the pods of the last valid spec run", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) { w.Invalid = "spec.zones: what" }),
			"3 3 1 Stable False", "False InvalidSpec: the spec is invalid, and the operator makes no changes: spec.zones: what", "False InvalidSpec: spec.zones: what", nil},
	}
}

// inUpgrades are the situations in which another version is or was rolled out.
func inUpgrades() []situation {
	const canary, coexist, perOrdinal = v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist, v1alpha1.HandoverPerOrdinal
	upgrade := func(unready ...int32) *fixture.Scene {
		return fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(canary, coexist).Has(2, children.Span{Start: 0, Replicas: 1}, unready...)
	}
	failed := func(message string) func(*facts.World) {
		return func(w *facts.World) {
			w.Set.Status.Phase, w.Set.Status.Update.Reason, w.Set.Status.Update.Message = v1alpha1.PhaseStale, v1alpha1.ReasonCanaryFailed, message
			c := w.Children.Find(w.Zones[0].Index, 2)
			(&rules.ChildPatch{F: fixture.AsRecorded(w), C: c, Next: c.Set}).MarkStale()
		}
	}
	return []situation{
		{"the old version serves, and the canary cannot pull its image", upgrade(0).But(fixture.States(2, fixture.Pulling)), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; not Ready: db-v2-0 (ImagePullBackOff: image new (container main))", nil},
		{"two pods of the old version serve, and the canary on ordinal 2 crashes",
			fixture.Of(fixture.Volumes()).Has(1, children.Span{Start: 0, Replicas: 2}).Upgrading(canary, perOrdinal).Has(2, children.Span{Start: 2, Replicas: 1}, 2).But(fixture.States(2, fixture.Crashing(3))), "3 2 1 Canary False",
			"False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v2-2 (CrashLoopBackOff: container main ended with code 3)",
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; waiting until the canaries are good; not Ready: db-v2-2 (CrashLoopBackOff: container main ended with code 3)", nil},
		{"the canary is good and waits for approval", upgrade().But(fixture.Manual).But(fixture.Held(0)), "3 3 1 Canary False", allAvailable,
			"True WaitingForApproval: the canaries of version 2 are good; waiting for approval of its revision: " +
				`kubectl -n ns patch ests db --type=merge -p '{"spec":{"approvedRevision":"v2-b883872df0ff2555"}}'. To roll back, apply the template of version 1, which needs no approval`, nil},
		{"the user approved another version", upgrade().But(fixture.Manual).But(fixture.Held(0)).But(fixture.Word("v1-0")), "3 3 1 Canary False", allAvailable,
			"True WaitingForApproval: the canaries of version 2 are good; waiting for approval of its revision: " +
				`kubectl -n ns patch ests db --type=merge -p '{"spec":{"approvedRevision":"v2-b883872df0ff2555"}}'. To roll back, apply the template of version 1, which needs no approval; ` +
				`spec.approvedRevision "v1-0" is ignored: it is the revision of neither the current version nor the upgrade (v2-b883872df0ff2555)`, nil},
		{"the canary was good and crashes while it waits for approval", upgrade(0).But(fixture.Manual).But(fixture.States(2, fixture.Crashing(1))), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; not Ready: db-v2-0 (CrashLoopBackOff: container main ended with code 1)", nil},
		{"the approved version no longer exists", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(fixture.Manual).But(fixture.Word("v7-0")), "3 3 1 Stable False", allAvailable,
			`False Complete: no operation in progress; spec.approvedRevision "v7-0" is ignored: it is the revision of neither the current version nor the upgrade (v1-`, nil},
		{"the job for the canary runs", upgrade().But(fixture.AskedAt(v1alpha1.WhenCanary, "")), "3 3 1 Canary False", allAvailable,
			"True Upgrading: version 1 to 2, attempt 1, phase Canary; waiting until Job db-canary-v2-1 ends", nil},
		{"the job for the canary failed", upgrade().But(fixture.AskedAt(v1alpha1.WhenCanary, v1alpha1.JobFailed)), "3 3 1 Stale True", allAvailable,
			"True Returning: attempt 1 with version 2 failed: Job db-canary-v2-1 failed",
			[]string{"Stale=True PostUpdateJobFailed: version 2 was marked stale (attempts: 1): Job db-canary-v2-1 failed. Version 1 serves",
				"Aborted=True PostUpdateJobFailed: the upgrade to version 2 was aborted: Job db-canary-v2-1 failed"}},
		{"the old version serves, and the new one is stale because of a quota", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, coexist).
			Has(2, children.Span{}).But(failed("0 of 1 canaries were Ready within 5m0s (canaryWatchTime); not Ready: db-v2-0 (" + quota + ")")),
			"3 3 1 Stale True", allAvailable, "False Complete: no operation in progress", []string{
				"Stale=True CanaryFailed: version 2 was marked stale (attempts: 1): 0 of 1 canaries were Ready within 5m0s (canaryWatchTime); not Ready: db-v2-0 (" + quota +
					"). Version 1 serves. To try another version, edit spec.template. To retry the same template after the cause is fixed: " +
					`kubectl -n ns patch ests db --type=merge -p '{"spec":{"template":{"metadata":{"annotations":{"again":"2"}}}}}'`}},
		{"the new version is stale, and all pods of the old one crash", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).But(fixture.States(1, fixture.Crashing(1))).
			Upgrading(v1alpha1.PhaseStale, coexist).Has(2, children.Span{}).But(failed("why")), "3 0 1 Stale True",
			"False PodsUnavailable: 0 of 3 pods are available; not Ready: db-v1-0, ", "True WaitingForPods: db-v1 has 0 of 3 pods available; not Ready: db-v1-0, ",
			[]string{"Stale=True CanaryFailed: version 2 was marked stale (attempts: 1): why. Version 1 serves"}},
		{"an upgrade waits because a pod of the current version crashes", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0).Edited().But(func(w *facts.World) { fixture.Crashing(1)(w.Children[0].Pods[0]) }),
			"3 2 1 Waiting False", "False PodsUnavailable: 2 of 3 pods are available; not Ready: db-v1-0 (CrashLoopBackOff: container main ended with code 1)",
			"True CurrentNotReady: the upgrade waits until version 1 is Ready: db-v1 has 2 of 3 pods available. To upgrade anyway: kubectl -n ns patch ests db --type=merge -p '{\"spec\":{\"updateStrategy\":{\"updateNotReady\":true}}}'; not Ready: db-v1-0 (", nil},
		{"the job before the upgrade failed, and the old version serves", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseAborted, coexist).But(func(w *facts.World) {
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
			f, p := fixture.Decided(row.scene.W)
			s := status.Summarize(f, p)
			said := map[string]string{}
			for _, c := range s.Conditions {
				said[c.Type] = string(c.Status) + " " + c.Reason + ": " + c.Message
			}
			columns := fmt.Sprintf("%d %d %d %s %s", row.scene.W.Replicas, s.ReadyReplicas, s.CurrentVersion, s.Phase,
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
	crd, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "fissile.cloudfoundry.org_extendedstatefulsets.yaml"))
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
		scene  *fixture.Scene
		rebase bool
	}{
		{"a pod becomes not Ready", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 0), true},
		{"an upgrade begins", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Edited(), false},
		{"a canary fails", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{Start: 0, Replicas: 1}, 0).After(time.Hour), false},
	} {
		f, p := fixture.Decided(row.scene.W)
		steps := status.StatusPatch(f, p)
		if len(steps) != 1 || steps[0][0][0].Rebase != row.rebase {
			t.Errorf("%s: rebase should be %t: %v", row.name, row.rebase, steps.Strings())
		}
	}
}

func TestConditionsSayWhatIsSo(t *testing.T) {
	for _, row := range []struct {
		name  string
		scene *fixture.Scene
		of    func(f *facts.Facts, p *rules.Plan) metav1.Condition
		want  string
	}{
		{"a stable set", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}), status.Progressing, "False Complete: no operation in progress"},
		{"a version is stale, and the current version exists",
			fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).Has(2, children.Span{}).But(fixture.Stale2), status.Progressing, "False Complete: no operation in progress"},
		{"a version is stale, and the current version was deleted in one zone", fixture.Of(fixture.Plain()).But(fixture.InTwoZones).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).Has(2, children.Span{}).But(fixture.Stale2), status.Progressing, "True WaitingForPods: StatefulSet db-z1-v1 is missing and cannot be recreated because spec.template has changed; the next successful upgrade recreates its pods"},
		{"the Service name belongs to another application", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) {
			w.Set.Spec.Template.Spec.ServiceName = "db"
			for _, s := range children.BuildServices(w.Set, nil) {
				s.OwnerReferences = nil
				w.Services[s.Name] = s
			}
		}), status.Progressing, "True ServiceTaken: Service db-active does not belong to this object and is ignored, so it may select other pods: choose another name, or delete it so that the operator creates its own: kubectl -n ns delete service db-active"},
		{"an orphaned StatefulSet uses the claims", fixture.Of(fixture.Volumes()).Has(1, children.Span{}).But(func(w *facts.World) {
			for o := range int32(3) {
				c := children.BuildClaim(w.Set, &w.Set.Spec.Template.Spec.VolumeClaimTemplates[0], w.Zones[0], o)
				w.Claims[c.Name] = c
			}
			orphan := children.BuildChild(w.Set, w.Zones[0], children.Version{Number: 3}, children.Span{Start: 0, Replicas: 3})
			orphan.OwnerReferences = nil
			observe.AddChild(w, orphan)
		}), status.Progressing, "True WaitingForPods: waiting until StatefulSet db-v3 is deleted, because it does not belong to this object but its pods use the same claims"},
		{"an orphaned StatefulSet uses the claims, and the Services have no owner", fixture.Of(fixture.Volumes()).But(serviceOf("", nil)).Has(1, children.Span{}).But(func(w *facts.World) {
			fixture.DeletedClaim(-1)(w)
			orphan := children.BuildChild(w.Set, w.Zones[0], children.Version{Number: 3}, children.Span{Start: 0, Replicas: 3})
			orphan.OwnerReferences = nil
			observe.AddChild(w, orphan)
		}), status.Progressing, "True WaitingForPods: waiting until StatefulSet db-v3 is deleted, because it does not belong to this object but its pods use the same claims"},
		{"the next attempt waits for the old version", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}, 2).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{}).But(givesBack),
			status.Progressing, "True Returning: attempt 1 with version 2 failed: why; db-v1 has 2 of 3 pods available; not Ready: db-v1-2"},
		{"the next attempt waits for a pod of the new version on a lost node", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).Upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).Has(2, children.Span{}).But(givesBack).But(func(w *facts.World) {
			w.Children[1].Pods[0] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-v2-0", DeletionTimestamp: ptr.To(metav1.NewTime(fixture.Noon.Add(-time.Hour)))}}
		}), status.Progressing, "True Returning: attempt 1 with version 2 failed: why; db-v2 still has pods"},
		{"a completed upgrade waits for a terminating Service", fixture.Of(fixture.Plain()).But(serviceOf("uid", &metav1.Time{Time: fixture.Noon})).Has(1, children.Span{Start: 0, Replicas: 3}).Has(2, children.Span{Start: 0, Replicas: 3}).But(func(w *facts.World) {
			st := &w.Set.Status
			st.CurrentVersion, st.UpdateVersion, st.VersionHighWater, st.Phase = 2, 2, 2, v1alpha1.PhaseCleaningUp
		}), status.Progressing, "True Upgrading: version 2 serves, and StatefulSets of other versions are being deleted; waiting until Service db-active selects the current version"},
		{"configuration that is not tracked", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}), missing, "False ConfigNotFollowed: configuration is not tracked because spec.updateOnEnvChange is false"},
		{"configuration that exists", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(follows), missing, "False ConfigFound: all required ConfigMaps and Secrets exist"},
		{"configuration that is missing", fixture.Of(fixture.Plain()).Has(1, children.Span{Start: 0, Replicas: 3}).But(follows).But(func(w *facts.World) {
			w.Config.Missing = map[string]facts.Notice{"db-v1": {Reason: v1alpha1.ReasonConfigMissing, Message: "Secret key"}}
		}), missing, "True ConfigMissing: Secret key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, p := fixture.Decided(row.scene.W)
			c := row.of(f, p)
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != row.want {
				t.Errorf("got  %s\nwant %s; %s", got, row.want, row.scene.Says())
			}
		})
	}
}

// serviceOf adds the Services with the given owner; they select version 1. deleted is the deletion time
// of the active Service, or nil.
func serviceOf(owner types.UID, deleted *metav1.Time) func(*facts.World) {
	return func(w *facts.World) {
		w.Set.Spec.Template.Spec.ServiceName = "db"
		w.Digest, _ = children.DigestOf(w.Set)
		w.Set.Status.CurrentDigest = w.Digest
		for _, s := range children.BuildServices(w.Set, map[string]string{v1alpha1.LabelSet: "db", v1alpha1.LabelVersion: "1"}) {
			if s.OwnerReferences[0].UID = owner; s.Name == spec.ActiveService(w.Set) {
				s.DeletionTimestamp = deleted
			}
			w.Services[s.Name] = s
		}
	}
}

// givesBack sets a failed attempt that is followed by another.
func givesBack(w *facts.World) {
	w.Set.Spec.UpdateStrategy.RetryCount = 1
	u := w.Set.Status.Update
	u.Returning, u.Reason, u.Message = true, v1alpha1.ReasonCanaryFailed, "why"
}

func missing(f *facts.Facts, _ *rules.Plan) metav1.Condition { return status.ConfigMissing(f) }

func follows(w *facts.World) { w.Set.Spec.UpdateOnEnvChange = true }
