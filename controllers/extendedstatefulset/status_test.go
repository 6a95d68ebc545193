package extendedstatefulset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

func TestConditionsSayWhatIsSo(t *testing.T) {
	for _, row := range []struct {
		name  string
		scene *scene
		of    func(w *world, p *plan) metav1.Condition
		want  string
	}{
		{"all is done", of(plain()).has(1, span{0, 3}), progressing, "False Complete: nothing is left to do"},
		{"a template was given up, and the version that serves is there",
			of(plain()).has(1, span{0, 3}).upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).has(2, span{}).but(stale2), progressing, "False Complete: nothing is left to do"},
		{"or was deleted by somebody in one zone", of(plain()).but(inTwoZones).has(1, span{0, 3}).upgrading(v1alpha1.PhaseStale, v1alpha1.HandoverCoexist).has(2, span{}).but(stale2), progressing, "True WaitingForPods: StatefulSet db-z1-v1 is gone, and spec.template is not what it was made from; the next good upgrade brings its pods back"},
		{"configuration that nobody looks at", of(plain()).has(1, span{0, 3}), missing, "False ConfigNotFollowed: nothing is looked at, since spec.updateOnEnvChange is false"},
		{"configuration that is there", of(plain()).has(1, span{0, 3}).but(follows), missing, "False ConfigFound: all that is required is there"},
		{"configuration that is not", of(plain()).has(1, span{0, 3}).but(follows).but(func(w *world) {
			w.missing = map[string]notice{"db-v1": {v1alpha1.ReasonConfigMissing, "Secret key"}}
		}), missing, "True ConfigMissing: Secret key"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := decide(row.scene.w)
			c := row.of(row.scene.w, &p)
			if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != row.want {
				t.Errorf("got  %s\nwant %s; %s", got, row.want, row.scene.says())
			}
		})
	}
}

func missing(w *world, _ *plan) metav1.Condition { return configMissing(w) }

func follows(w *world) { w.set.Spec.UpdateOnEnvChange = true }

func inTwoZones(w *world) {
	w.zones, w.set.Spec.Zones = []zone{{"a", 0}, {"b", 1}}, []string{"a", "b"}
	w.set.Status.Zones = []v1alpha1.ZoneStatus{{Name: "a"}, {Name: "b", Index: 1}}
}
