package simulate

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

// begun returns a simulation of a set that is at rest.
func begun(t *testing.T, set *v1alpha1.ReplicatedStatefulSet) *Simulation {
	t.Helper()
	c := clusterWith(t, set)
	s, isSimulation := Kind{}.Start(c, shop).(*Simulation)
	if !isSimulation {
		t.Fatal("the operator is of another type")
	}
	return s
}

// TestAKilledOperator tests that a killed operator writes nothing more in its pass, and that the next one continues.
func TestAKilledOperator(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	first := s.Reader
	edit(t, s.Cluster, func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Image = "two" })
	attempts := 0
	s.Interfere = func(int, action.Action) (before, after error) {
		attempts++
		return simulation.ErrKilled, nil
	}
	for range 3 {
		s.Look()
		s.Pass()
		if attempts > 0 {
			break
		}
	}
	if attempts != 1 || s.Reader == first {
		t.Errorf("%d writes were attempted, and the operator was restarted: %t", attempts, s.Reader != first)
	}
	s.Interfere = nil
	if !simulation.Run(s.Cluster, s, patience) {
		t.Error("the next operator does not come to rest")
	}
	for name, p := range podsIn(s.Cluster) {
		if p.Spec.Containers[0].Image != "two" {
			t.Errorf("%s has image %s", name, p.Spec.Containers[0].Image)
		}
	}
}

// TestAFailedWrite tests that the error of a write is that of the pass, and that an operator waits for its own writes.
func TestAFailedWrite(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	edit(t, s.Cluster, func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = new(int32(4)) })
	broken := errors.New("broken")
	s.Interfere = func(int, action.Action) (before, after error) { return broken, nil }
	s.Look()
	passed := s.Pass()
	for range 3 {
		if passed.Err != nil {
			break
		}
		s.Look()
		passed = s.Pass()
	}
	if !errors.Is(passed.Err, broken) || !passed.Acted {
		t.Errorf("the pass ended with %v", passed)
	}
	s.Interfere = nil
	writes := s.Writes()
	if s.Pass(); s.Writes() != writes {
		t.Error("the operator does not wait until its cache shows its writes")
	}
	s.Hasty = true
	if s.Pass(); s.Writes() == writes {
		t.Error("a hasty operator waits")
	}
}

func TestStoriesContainNoQueries(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	if story := strings.Join(s.Story, "\n"); strings.Contains(story, "Ask") || strings.Contains(story, observed) {
		t.Errorf("the story is\n%s", story)
	}
}

// TestWhatIsNotInTheCluster tests that a missing namespace exists, and that nothing is known about a missing Secret.
func TestWhatIsNotInTheCluster(t *testing.T) {
	s := begun(t, fixture.SetOf(1, 1))
	if err := s.Reader.Live.Get(t.Context(), client.ObjectKey{Name: shop.Namespace}, &corev1.Namespace{}); err != nil {
		t.Error(err)
	}
	secret := configuration.Metadata(configuration.KindSecret)
	if err := s.Reader.Cache.Get(t.Context(), client.ObjectKey{Namespace: shop.Namespace, Name: "passwords"}, secret); !apierrors.IsForbidden(err) {
		t.Errorf("reading a Secret: %v", err)
	}
}

func TestTheAgentOnRecordStays(t *testing.T) {
	s := begun(t, fixture.PostgreSQL())
	if image, err := s.agentImage(t.Context()); image != fixture.AgentImage || err != nil {
		t.Errorf("the image is %s, %v", image, err)
	}
	s.Remove(s.Set())
	if image, err := s.agentImage(t.Context()); image != anyAgent || err != nil {
		t.Errorf("without a set the image is %s, %v", image, err)
	}
}

// TestADeletedSet tests that members stop, and that their pods are released.
func TestADeletedSet(t *testing.T) {
	s := begun(t, fixture.SetOf(3, 1))
	s.Delete(s.Set())
	if !simulation.Run(s.Cluster, s, patience) {
		t.Fatal("there is no rest")
	}
	if s.Set() != nil || s.StatefulSet() != nil || len(s.Pods()) > 0 {
		t.Errorf("%d pods are left:\n%s", len(s.Pods()), strings.Join(s.Story, "\n"))
	}
}

// oneKey is a key that is never lost.
type oneKey struct{}

func (oneKey) Current(context.Context, bool) ([]byte, error) { return make([]byte, 32), nil }

// TestASetThatFollowsASecret tests that a simulation without Secrets keeps the configuration that the pods have.
func TestASetThatFollowsASecret(t *testing.T) {
	c := clusterWith(t, fixture.SetOf(3, 1))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: "creds", UID: "creds"}}
	c.Put(secret)
	c.Indexes = map[string]func(client.Object) string{configuration.IndexRestarts: func(o client.Object) string {
		return strings.Join(configuration.RestartIndex(facts.RestartsSince)(o), "")
	}}
	edit(t, c, func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec = fixture.Follows(fixture.SetOf(3, 1)).Spec })
	s := New(c, shop)
	s.AnswersAtOnce, s.Config = true, func() *observe.ConfigReader {
		return &observe.ConfigReader{Reader: configuration.Reader{Live: c, Key: oneKey{}, MaxBytes: observe.MaxConfigBytes},
			Turns:   configuration.Turns{Kind: "ReplicatedStatefulSet", Began: facts.RestartsSince, Wake: func(types.NamespacedName) {}},
			Secrets: &configuration.Secrets{}}
	}
	s.resume()
	s.Restart()
	hasSettled := simulation.Run(c, s, patience)
	secret.Data = map[string][]byte{"a": []byte("two")}
	c.Put(secret)
	if !hasSettled || !simulation.Run(c, s, patience) || facts.StampOf(s.StatefulSet()).Hash == "" {
		t.Fatalf("the StatefulSet has stamp %+v", facts.StampOf(s.StatefulSet()))
	}
	live := copyOf(c)
	live.Remove(secret)
	changes := watch(live)
	if settle(t, live); len(*changes) > 0 {
		t.Errorf("the changes are %q", *changes)
	}
}

// guarded is an operator whose passes must not modify the objects that they read, because reads return no copies.
type guarded struct {
	*Simulation
	t *testing.T
}

// Pass runs one pass.
func (g guarded) Pass() simulation.Passed {
	g.t.Helper()
	before := map[client.Object]client.Object{}
	for _, obj := range g.All {
		before[obj] = objects.Clone(obj)
	}
	passed := g.Simulation.Pass()
	for obj, was := range before {
		if !reflect.DeepEqual(obj, was) {
			g.t.Errorf("a pass has modified the stored %s %s", objects.KindOf(obj), obj.GetName())
		}
	}
	return passed
}

// TestPassesModifyNoObject tests that passes change only copies of stored objects.
func TestPassesModifyNoObject(t *testing.T) {
	for _, image := range []string{"one", "two"} {
		s := begun(t, fixture.SetOf(3, 1))
		edit(t, s.Cluster, func(set *v1alpha1.ReplicatedStatefulSet) {
			set.Spec.Replicas, set.Spec.Pod.Containers[0].Image = ptr.To(int32(2)), image
		})
		if !simulation.Run(s.Cluster, guarded{s, t}, patience) || len(podsIn(s.Cluster)) != 2 {
			t.Errorf("%d pods, and the set does not come to rest:\n%s", len(podsIn(s.Cluster)), strings.Join(s.Story, "\n"))
		}
	}
}

// TestDecidesLive tests that an operator that decides only on live objects acts as one that first decides on its cache.
func TestDecidesLive(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ReplicatedStatefulSet){
		"another image": func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Pod.Containers[0].Image = "two" },
		"fewer members": func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = ptr.To(int32(2)) },
		"more members":  func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = ptr.To(int32(5)) },
		"a stop":        func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Replicas = ptr.To(int32(0)) },
		"another image while paused": func(set *v1alpha1.ReplicatedStatefulSet) {
			set.Spec.Paused, set.Spec.Pod.Containers[0].Image = true, "two"
		},
	} {
		t.Run(name, func(t *testing.T) {
			var stories [2][]string
			for i := range stories {
				s := begun(t, fixture.SetOf(3, 1))
				s.reconciler.DecidesLive = i == 0
				edit(t, s.Cluster, change)
				from := len(s.Story)
				if !simulation.Run(s.Cluster, s, patience) {
					t.Fatalf("the set does not come to rest:\n%s", strings.Join(s.Story[from:], "\n"))
				}
				stories[i] = s.Story[from:]
			}
			if !slices.Equal(stories[0], stories[1]) {
				t.Errorf("live:\n%s\n\ncached first:\n%s", strings.Join(stories[0], "\n"), strings.Join(stories[1], "\n"))
			}
		})
	}
}
