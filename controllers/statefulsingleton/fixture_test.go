package statefulsingleton

import (
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// Objects and pods are said in these words:
//
//	singleton("db").mode(v1.GateInit).containers("app")
//	pod(container("app").command("serve"), container("log")).labels("app", "db")
//
// A pod has the label app=db and, if nothing is said, one container "app" with
// image "app:1" that says its command.

type singletonFixture struct{ v1.StatefulSingleton }

func singleton(name string) *singletonFixture {
	return &singletonFixture{v1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-of-" + name)},
		Spec:       v1.StatefulSingletonSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
	}}
}

func (s *singletonFixture) mode(mode v1.GateMode) *singletonFixture {
	s.Spec.GateMode = mode
	return s
}

func (s *singletonFixture) containers(names ...string) *singletonFixture {
	s.Spec.Containers = names
	return s
}

func (s *singletonFixture) sidecar() *singletonFixture {
	s.Spec.StatusSidecar = ptr.To(true)
	return s
}

func (s *singletonFixture) grace(seconds int64, respect bool) *singletonFixture {
	s.Spec.TerminationGracePeriod, s.Spec.RespectPodGracePeriod = &seconds, &respect
	return s
}

func (s *singletonFixture) selecting(selector metav1.LabelSelector) *singletonFixture {
	s.Spec.Selector = &selector
	return s
}

func (s *singletonFixture) madeAt(second int) *singletonFixture {
	s.CreationTimestamp = metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, second, 0, time.UTC))
	return s
}

func (s *singletonFixture) deleted() *singletonFixture {
	s.DeletionTimestamp = ptr.To(metav1.NewTime(time.Date(2026, time.March, 1, 13, 0, 0, 0, time.UTC)))
	return s
}

func all(fixtures ...*singletonFixture) []v1.StatefulSingleton {
	var list []v1.StatefulSingleton
	for _, f := range fixtures {
		list = append(list, f.StatefulSingleton)
	}
	return list
}

// one picks one of these.
func one[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// maybe is true one time in n.
func maybe(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }
