package facts_test

import (
	"testing"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func TestOrder(t *testing.T) {
	fixture.Check(t, []fixture.Row{
		{"the oldest pod is next", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Age(1), fixture.Waiting("b").Age(2)), []string{fixture.GrantB}},
		{"a pod of the newest revision is next before an older pod", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Of("d").Old().Age(9), fixture.Waiting("b").Of("d").Age(1)), []string{fixture.GrantB}},
		{"a pod of an older revision is next if no pod of the newest can start", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Of("d").Stuck("ErrImagePull"), fixture.Waiting("b").Of("d").Old()), []string{fixture.GrantB}},
		{"a pod whose gate runs is next before an older pod", fixture.WorldOf(fixture.Held(), fixture.Waiting("c").Silent().Age(9), fixture.Waiting("b").Age(1)), []string{fixture.GrantB}},
		{"a pod without a kubelet status waits", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Silent()), nil},
		{"a pod without a Node waits", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Unscheduled()), nil},
		{"a pod whose image cannot be pulled waits", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Stuck("ImagePullBackOff")), nil},
		{"a pod that is starting gets its grant before its gate runs", fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a").Stuck("ContainerCreating")), []string{fixture.GrantA}},
	})
}
