package extendedstatefulset

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

// misfortunes are disturbances that may occur at any time, and actions of the user.
var misfortunes = []func(*stage, *rand.Rand){
	func(s *stage, r *rand.Rand) { s.image([]string{"one", "two", "three", "bad", "bad"}[r.Intn(5)]) },
	func(s *stage, r *rand.Rand) { s.image([]string{"one", "two", "three", "bad", "bad"}[r.Intn(5)]) },
	func(s *stage, r *rand.Rand) { s.scale(int32(r.Intn(6))) },
	func(s *stage, _ *rand.Rand) { s.scale(0) },
	func(s *stage, _ *rand.Rand) {
		s.loseStatus()
		clear(s.made) // the numbers of deleted versions are lost with the status
		clear(s.high)
	},
	func(s *stage, _ *rand.Rand) { s.Restart() },
	func(s *stage, r *rand.Rand) { s.Now = s.Now.Add(time.Duration(r.Intn(12)) * time.Minute) },
	func(s *stage, r *rand.Rand) {
		s.change("another strategy", func(set *v1alpha1.ExtendedStatefulSet) {
			u := &set.Spec.UpdateStrategy
			u.RetryCount, u.UpdateNotReady, u.Canaries = int32(r.Intn(2)), r.Intn(2) == 0, ptr.To(int32(1+r.Intn(2)))
			u.CanaryWatchTime = &metav1.Duration{Duration: time.Duration(1+r.Intn(5)) * time.Minute}
			u.PreUpdateJob = []*v1alpha1.UpdateJob{nil, fixture.Job("fine"), fixture.Job("bad"), fixture.Job("hangs")}[r.Intn(4)]
			u.PostUpdateJob = []*v1alpha1.UpdateJob{nil, fixture.Job("fine"), fixture.Job("bad"), fixture.Job("hangs")}[r.Intn(4)]
		})
	},
	func(s *stage, r *rand.Rand) {
		if len(s.set().Spec.Zones) > 0 {
			s.zones([][]string{{"a"}, {"a", "b"}, {"b", "a"}, {"c", "a"}}[r.Intn(4)]...)
		}
	},
	func(s *stage, r *rand.Rand) {
		if all := s.children(); len(all) > 0 {
			c := all[r.Intn(len(all))]
			s.Say("# %s is deleted", c.Name)
			s.Delete(c)
		}
	},
	func(s *stage, r *rand.Rand) {
		if all := s.children(); len(all) > 0 {
			s.edit(all[r.Intn(len(all))].Name, func(c *appsv1.StatefulSet) { c.Labels, c.Annotations = nil, nil })
		}
	},
	func(s *stage, r *rand.Rand) {
		if all := s.pods(); len(all) > 0 {
			pod := all[r.Intn(len(all))]
			s.Say("# %s is deleted", pod.Name)
			s.Delete(pod)
		}
	},
	func(s *stage, r *rand.Rand) {
		if all := s.pods(); len(all) > 0 {
			pod := all[r.Intn(len(all))]
			s.Say("# %s is deleted immediately", pod.Name)
			s.Remove(pod)
		}
	},
	func(s *stage, r *rand.Rand) {
		if all := s.pods(); len(all) > 0 {
			if pod := all[r.Intn(len(all))]; len(pod.Status.Conditions) > 0 && kubelet.BadImage != pod.Spec.Containers[0].Image {
				s.ready(pod.Name, corev1.ConditionFalse)
			}
		}
	},
}

// TestLoad verifies random combinations of disturbances: no two pods use the same claim, no claim is
// lost, no version number or Job is used twice, and a good template with replicas is finally served
// without manual intervention.
func TestLoad(t *testing.T) {
	first, count := simtest.Orders(12)
	for i := first; i < first+count; i++ {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewSource(int64(i)))
			set := fixture.FakeSet(3)
			if i%2 == 0 {
				set = fixture.WithClaims(set)
			}
			if i%3 == 0 {
				set.Spec.Zones = []string{"a", "b"}
			}
			s := newStage(t, set)
			s.rest()
			s.Shuffle = r
			for range 12 {
				misfortunes[r.Intn(len(misfortunes))](s, r)
				s.act(r.Intn(40))
			}
			s.Shuffle = nil
			s.Say("# the load is over")
			s.settle()
			s.change("a good template", func(set *v1alpha1.ExtendedStatefulSet) {
				set.Spec.Template.Spec.Replicas, set.Spec.Template.Spec.Template.Spec.Containers[0].Image = ptr.To(int32(3)), "good"
				set.Spec.UpdateStrategy = v1alpha1.UpdateStrategy{UpdateNotReady: true}
			})
			s.rest()
			all := s.pods()
			good := !slices.ContainsFunc(all, func(p *corev1.Pod) bool { return p.Spec.Containers[0].Image != "good" })
			if s.set().Status.Phase != v1alpha1.PhaseStable || !good || len(all) != 3*max(1, len(s.set().Spec.Zones)) {
				s.Fatal(t, fmt.Sprintf("%d pods: %s", len(all), strings.Join(imagesOf(all), ", ")))
			}
		})
	}
}

func imagesOf(pods []*corev1.Pod) (all []string) {
	for _, p := range pods {
		all = append(all, p.Name+" "+p.Spec.Containers[0].Image)
	}
	return all
}

// act lets all participants act the given number of times, in random order and with an outdated cache.
func (s *stage) act(times int) {
	s.t.Helper()
	for range times {
		if s.Shuffle.Intn(2) == 0 {
			s.Look()
		}
		s.pass()
		if moves := s.Moves(); len(moves) > 0 {
			moves[s.Shuffle.Intn(len(moves))]()
		}
		s.Check(s.t)
		s.Now = s.Now.Add(100 * time.Millisecond)
	}
}
