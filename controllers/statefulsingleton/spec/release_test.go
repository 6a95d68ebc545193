package spec_test

import (
	"fmt"
	"testing"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/order"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// TestOrdersInTheStatus checks the results of the current order and of the ignored ones in
// the status.
func TestOrdersInTheStatus(t *testing.T) {
	many := []v1.OrderStatus{fixture.StatusOfOrder("w", v1.OrderWaiting)}
	for i := range 30 {
		many = append(many, fixture.StatusOfOrder(fmt.Sprintf("n%d", i), v1.OrderIgnored))
	}
	for _, r := range []struct {
		name   string
		object *fixture.SingletonFixture
		want   []string
	}{
		{"S46 a new release is Waiting", fixture.Released(3, 2), []string{"a Waiting at once"}},
		{"S46 a release that is Waiting keeps its time", fixture.Released(3, 3, fixture.StatusOfOrder("a", v1.OrderWaiting)), []string{"a Waiting"}},
		{"S46 a release is Started with the deletion", fixture.Released(4, 3, fixture.StatusOfOrder("a", v1.OrderWaiting)).Goes(), []string{"a Started at once"}},
		{"S47 a release that the object was created with is Ignored", fixture.Released(1, -1), []string{"a Ignored at once"}},
		{"S47 a release that the object has when its spec is decoded for the first time is Ignored", fixture.Released(2, 1).Decoded(), []string{"a Ignored at once"}},
		{"S47 a release that is Ignored stays Ignored", fixture.Released(5, 4, fixture.StatusOfOrder("b", v1.OrderIgnored), fixture.StatusOfOrder("a", v1.OrderIgnored)), []string{"a Ignored", "b Ignored"}},
		{"S46 a release that is Waiting is removed with the field", fixture.Released(5, 4, fixture.StatusOfOrder("b", v1.OrderWaiting)).With(func(s *v1.StatefulSingleton) { s.Spec.Release = nil }), nil},
	} {
		var got []string
		for _, x := range status.Summarize(facts.Derive(fixture.WorldOf(r.object))).Orders {
			text := x.ID + " " + string(x.Result)
			if x.Time.Time.Equal(fixture.Noon) {
				text += " at once"
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(r.want) {
			t.Errorf("%s: status.orders is %v, want %v", r.name, got, r.want)
		}
	}
	if n := len(status.Summarize(facts.Derive(fixture.WorldOf(fixture.Released(3, 2, many...)))).Orders); n != order.Most {
		t.Errorf("S47 status.orders has %d items", n)
	}
}
