package extendedstatefulset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

func TestConditionsSayWhatIsSo(t *testing.T) {
	for _, row := range []struct {
		name  string
		scene *scene
		of    func(f *facts.Facts, p *rules.Plan) metav1.Condition
		want  string
	}{
		{"a stable set", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}), status.Progressing, "False Complete: no operation in progress"},
		{"a version is stale, and the current version exists",
			of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).has(2, children.Span{}).but(stale2), status.Progressing, "False Complete: no operation in progress"},
		{"a version is stale, and the current version was deleted in one zone", of(plain()).but(inTwoZones).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).has(2, children.Span{}).but(stale2), status.Progressing, "True WaitingForPods: StatefulSet db-z1-v1 is missing and cannot be recreated because spec.template has changed; the next successful upgrade recreates its pods"},
		{"the Service name belongs to another application", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) {
			w.Set.Spec.Template.Spec.ServiceName = "db"
			for _, s := range children.BuildServices(w.Set, nil) {
				s.OwnerReferences = nil
				w.Services[s.Name] = s
			}
		}), status.Progressing, "True ServiceTaken: Service db-active does not belong to this object and is ignored, so it may select other pods: choose another name, or delete it so that the operator creates its own: kubectl -n ns delete service db-active"},
		{"an orphaned StatefulSet uses the claims", of(volumes()).has(1, children.Span{}).but(func(w *facts.World) {
			for o := range int32(3) {
				c := children.BuildClaim(w.Set, &w.Set.Spec.Template.Spec.VolumeClaimTemplates[0], w.Zones[0], o)
				w.Claims[c.Name] = c
			}
			orphan := children.BuildChild(w.Set, w.Zones[0], children.Version{Number: 3}, children.Span{Start: 0, Replicas: 3})
			orphan.OwnerReferences = nil
			observe.AddChild(w, orphan)
		}), status.Progressing, "True WaitingForPods: waiting until StatefulSet db-v3 is deleted, because it does not belong to this object but its pods use the same claims"},
		{"an orphaned StatefulSet uses the claims, and the Services have no owner", of(volumes()).but(serviceOf("", nil)).has(1, children.Span{}).but(func(w *facts.World) {
			deletedClaim(-1)(w)
			orphan := children.BuildChild(w.Set, w.Zones[0], children.Version{Number: 3}, children.Span{Start: 0, Replicas: 3})
			orphan.OwnerReferences = nil
			observe.AddChild(w, orphan)
		}), status.Progressing, "True WaitingForPods: waiting until StatefulSet db-v3 is deleted, because it does not belong to this object but its pods use the same claims"},
		{"the next attempt waits for the old version", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}, 2).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{}).but(givesBack),
			status.Progressing, "True Returning: attempt 1 with version 2 failed: why; db-v1 has 2 of 3 pods available; not Ready: db-v1-2"},
		{"the next attempt waits for a pod of the new version on a lost node", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).upgrading(v1alpha1.PhaseCanary, v1alpha1.HandoverCoexist).has(2, children.Span{}).but(givesBack).but(func(w *facts.World) {
			w.Children[1].Pods[0] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-v2-0", DeletionTimestamp: ptr.To(metav1.NewTime(noon.Add(-time.Hour)))}}
		}), status.Progressing, "True Returning: attempt 1 with version 2 failed: why; db-v2 still has pods"},
		{"a completed upgrade waits for a terminating Service", of(plain()).but(serviceOf("uid", &metav1.Time{Time: noon})).has(1, children.Span{Start: 0, Replicas: 3}).has(2, children.Span{Start: 0, Replicas: 3}).but(func(w *facts.World) {
			st := &w.Set.Status
			st.CurrentVersion, st.UpdateVersion, st.VersionHighWater, st.Phase = 2, 2, 2, v1alpha1.PhaseCleaningUp
		}), status.Progressing, "True Upgrading: version 2 serves, and StatefulSets of other versions are being deleted; waiting until Service db-active selects the current version"},
		{"configuration that is not tracked", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}), missing, "False ConfigNotFollowed: configuration is not tracked because spec.updateOnEnvChange is false"},
		{"configuration that exists", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(follows), missing, "False ConfigFound: all required ConfigMaps and Secrets exist"},
		{"configuration that is missing", of(plain()).has(1, children.Span{Start: 0, Replicas: 3}).but(follows).but(func(w *facts.World) {
			w.Config.Missing = map[string]facts.Notice{"db-v1": {Reason: v1alpha1.ReasonConfigMissing, Message: "Secret key"}}
		}), missing, "True ConfigMissing: Secret key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f, p := decided(row.scene.w)
			c := row.of(f, p)
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != row.want {
				t.Errorf("got  %s\nwant %s; %s", got, row.want, row.scene.says())
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

func inTwoZones(w *facts.World) {
	w.Zones, w.Set.Spec.Zones = []children.Zone{{Name: "a", Index: 0}, {Name: "b", Index: 1}}, []string{"a", "b"}
	w.Set.Status.Zones = []v1alpha1.ZoneStatus{{Name: "a"}, {Name: "b", Index: 1}}
}

func TestUpgradesAreAnnounced(t *testing.T) {
	at := func(phase v1alpha1.Phase, current, update int64, u *v1alpha1.UpdateStatus) v1alpha1.ExtendedStatefulSetStatus {
		return v1alpha1.ExtendedStatefulSetStatus{Phase: phase, CurrentVersion: current, UpdateVersion: update, Attempts: 1, Update: u}
	}
	under, back := &v1alpha1.UpdateStatus{}, &v1alpha1.UpdateStatus{Returning: true, Message: "why"}
	stable, failed := at(v1alpha1.PhaseStable, 1, 1, nil), at(v1alpha1.PhaseStale, 1, 2, &v1alpha1.UpdateStatus{Message: "why"})
	for _, row := range []struct {
		name     string
		was, now v1alpha1.ExtendedStatefulSetStatus
		want     string
	}{
		{"no change", stable, stable, ""},
		{"an upgrade begins", stable, at(v1alpha1.PhaseCanary, 1, 2, under), "Normal UpgradeBegun upgrade from version 1 to 2"},
		{"an attempt fails", at(v1alpha1.PhaseCanary, 1, 2, under), at(v1alpha1.PhaseCanary, 1, 2, back), "Warning AttemptFailed attempt 1 with version 2 failed: why"},
		{"a failed attempt is detected after the loss of the status", stable, at(v1alpha1.PhaseCanary, 1, 2, back), "Warning AttemptFailed attempt 1 with version 2 failed: why"},
		{"a version is marked stale", at(v1alpha1.PhaseCanary, 1, 2, under), failed, "Warning Stale version 2 was marked stale: why"},
		{"a corrected template follows", failed, at(v1alpha1.PhaseCanary, 1, 3, under), "Normal UpgradeBegun upgrade from version 1 to 3"},
		{"another template supersedes the upgrade", at(v1alpha1.PhaseCanary, 1, 2, under), at(v1alpha1.PhaseCanary, 1, 3, under),
			"Normal Superseded version 2 was superseded by another template, Normal UpgradeBegun upgrade from version 1 to 3"},
		{"the old template is restored during an upgrade", at(v1alpha1.PhaseCanary, 1, 2, under), at(v1alpha1.PhaseCleaningUp, 1, 1, nil), "Normal Superseded version 2 was superseded by another template"},
		{"an upgrade succeeds", at(v1alpha1.PhasePostJob, 1, 2, under), at(v1alpha1.PhaseCleaningUp, 2, 2, nil), "Normal Upgraded version 2 serves"},
	} {
		t.Run(row.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(5)
			set := plain()
			set.Status = row.was
			(&status.Reporter{Events: recorder}).Announce(&facts.Facts{World: &facts.World{Set: set}, Record: &row.now})
			close(recorder.Events)
			var told []string
			for e := range recorder.Events {
				told = append(told, e)
			}
			if got := strings.Join(told, ", "); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

func TestAVersionIsReadyInAnyZone(t *testing.T) {
	turn := func(w *facts.World) { w.Zones[0], w.Zones[1] = w.Zones[1], w.Zones[0] }
	s := of(plain()).but(inTwoZones).has(1, children.Span{Start: 0, Replicas: 3}).but(turn).has(1, children.Span{Start: 0, Replicas: 3}, 0, 1, 2).but(turn)
	f, p := decided(s.w)
	if got := status.Summarize(f, p).Versions; len(got) != 1 || !got["1"] {
		t.Errorf("got status %v for a version that is Ready in one of two zones", got)
	}
}
