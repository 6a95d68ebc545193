package status_test

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/status"
)

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
			set := fixture.Plain()
			set.Status = row.was
			status.Announce(recorder, &facts.Facts{World: &facts.World{Set: set}, Record: &row.now})
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
