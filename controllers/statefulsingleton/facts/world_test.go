package facts_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
	"github.com/stateful-operator/stateful-operator/gate/script"
)

func TestSurroundings(t *testing.T) {
	drifted := fixture.WorldOf(fixture.Singleton("db"))
	drifted.Wrapper.Data = map[string]string{v1.FileScript: "rm -rf /", "mine": "stays"}
	missing := fixture.WorldOf(fixture.Singleton("db"))
	missing.Wrapper = nil
	shared := fixture.WorldOf(fixture.Singleton("db"))
	shared.Wrapper.OwnerReferences = nil
	fixture.Check(t, []fixture.Row{
		{"S2 the ConfigMap of the script is created", missing, []string{"create configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 a changed script is repaired", drifted, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"S2 each object is added as an owner of the script", shared, []string{"patch configmap statefulsingleton-wrapper: Wrapper"}},
		{"an object at rest causes no write", fixture.WorldOf(fixture.Held(), fixture.Granted("a", 1)), nil},
		{"S27 an object without pods causes no write", fixture.WorldOf(fixture.Singleton("db")), nil},
	})
	for _, step := range rules.Decide(facts.Derive(drifted)).Steps {
		if data := step[0][0].Object.(*corev1.ConfigMap).Data; data["mine"] != "stays" || data[v1.FileScript] != script.Text {
			t.Errorf("the repaired ConfigMap has data %v", data)
		}
	}
}
