package spec_test

import (
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// lasting returns an object with fencing by a Lease of that duration.
func lasting(seconds int32) *fixture.SingletonFixture {
	return fixture.Singleton("db").Leased().With(func(s *v1.StatefulSingleton) { s.Spec.Fencing.LeaseDurationSeconds = &seconds })
}

func TestDefaultsOfFencing(t *testing.T) {
	for name, s := range map[string]*fixture.SingletonFixture{"unset": fixture.Singleton("db"), "empty": fixture.Singleton("db").With(func(s *v1.StatefulSingleton) { s.Spec.Fencing = &v1.Fencing{} })} {
		before := s.DeepCopy()
		got := spec.WithDefaults(&s.StatefulSingleton)
		if f := got.Spec.Fencing; f.Mode != v1.FencingProof || *f.LeaseDurationSeconds != 15 || spec.FencedByLease(got) {
			t.Errorf("%s: %v", name, f)
		}
		if !apiequality.Semantic.DeepEqual(before, &s.StatefulSingleton) {
			t.Errorf("%s: the argument was changed", name)
		}
	}
	if !spec.FencedByLease(&fixture.Singleton("db").Leased().StatefulSingleton) || spec.FencedByLease(&fixture.Singleton("db").StatefulSingleton) {
		t.Error("FencedByLease is wrong")
	}
}
