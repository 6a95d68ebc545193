package statefulsingleton

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// released returns an object with release a in its spec, of that generation, and with that
// observed generation.
func released(generation, observed int64, orders ...v1.OrderStatus) *singletonFixture {
	return held().with(func(s *v1.StatefulSingleton) {
		s.Spec.Release = &v1.ReleaseOrder{ID: "a"}
		s.Generation, s.Status.ObservedGeneration, s.Status.Orders = generation, observed, orders
	})
}

func statusOfOrder(id string, result v1.OrderResult) v1.OrderStatus {
	return v1.OrderStatus{ID: id, Result: result, Time: metav1.NewTime(noon.Add(-time.Hour))}
}

func TestDecideRelease(t *testing.T) {
	all := []string{"patch pod a: LetGo", "patch pod b: LetGo > set a condition of pod b: Ready, True", "patch statefulsingleton db: Release"}
	check(t, []row{
		{"S46 a release does nothing before the object is deleted", worldOf(released(3, 2), granted("a", 1), waiting("b")), nil},
		{"S46 a release starts all pods at the same time when the object is deleted", worldOf(released(3, 2).goes(), granted("a", 1), waiting("b")), all},
		{"S46 a release that is already in the status starts all pods when the object is deleted", worldOf(released(4, 3, statusOfOrder("a", v1.OrderWaiting)).goes(), granted("a", 1), waiting("b")), all},
		{"S47 an ignored release does not start all pods", worldOf(released(4, 3, statusOfOrder("a", v1.OrderIgnored)).goes(), granted("a", 1), waiting("b")), nil},
		{"S47 a release that the object was created with does not start all pods before the first pass", worldOf(released(3, -1).goes(), granted("a", 1), waiting("b")), nil},
		{"S47 a release that is waiting in the status of a backup does not start all pods", worldOf(released(1, 9, statusOfOrder("a", v1.OrderWaiting)).goes(), granted("a", 1), waiting("b")), nil},
		{"S46 a release with an invalid id is ignored", worldOf(released(3, 2).goes().with(func(s *v1.StatefulSingleton) { s.Spec.Release.ID = "No ID" }), granted("a", 1), waiting("b")), nil},
	})
}

// TestOrdersInTheStatus checks the results of the current order and of the ignored ones in
// the status.
func TestOrdersInTheStatus(t *testing.T) {
	many := []v1.OrderStatus{statusOfOrder("w", v1.OrderWaiting)}
	for i := range 30 {
		many = append(many, statusOfOrder(fmt.Sprintf("n%d", i), v1.OrderIgnored))
	}
	for _, r := range []struct {
		name   string
		object *singletonFixture
		want   []string
	}{
		{"S46 a new release is Waiting", released(3, 2), []string{"a Waiting at once"}},
		{"S46 a release that is Waiting keeps its time", released(3, 3, statusOfOrder("a", v1.OrderWaiting)), []string{"a Waiting"}},
		{"S46 a release is Started with the deletion", released(4, 3, statusOfOrder("a", v1.OrderWaiting)).goes(), []string{"a Started at once"}},
		{"S47 a release that the object was created with is Ignored", released(1, -1), []string{"a Ignored at once"}},
		{"S47 a release that is Ignored stays Ignored", released(5, 4, statusOfOrder("b", v1.OrderIgnored), statusOfOrder("a", v1.OrderIgnored)), []string{"a Ignored", "b Ignored"}},
		{"S46 a release that is Waiting is removed with the field", released(5, 4, statusOfOrder("b", v1.OrderWaiting)).with(func(s *v1.StatefulSingleton) { s.Spec.Release = nil }), nil},
	} {
		var got []string
		for _, x := range status.Summarize(facts.Derive(worldOf(r.object))).Orders {
			text := x.ID + " " + string(x.Result)
			if x.Time.Time.Equal(noon) {
				text += " at once"
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(r.want) {
			t.Errorf("%s: status.orders is %v, want %v", r.name, got, r.want)
		}
	}
	if n := len(status.Summarize(facts.Derive(worldOf(released(3, 2, many...)))).Orders); n != order.Most {
		t.Errorf("S47 status.orders has %d items", n)
	}
}
