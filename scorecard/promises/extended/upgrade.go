package extended

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// How versions replace each other.

func canariesCoexist(ctx context.Context, c *kit.Cluster) {
	provesCanaries(ctx, c, 3, coexist)
}

func canariesPerOrdinal(ctx context.Context, c *kit.Cluster) {
	provesCanaries(ctx, c, 2, perOrdinal)
}

// provesCanaries upgrades a set of 3 with 2 canaries. At least budget pods of the 3 must always be
// Ready.
func provesCanaries(ctx context.Context, c *kit.Cluster, budget int, shape specChange) {
	pods := c.LookOut(ctx)
	x := newFixture(c, "canary", 3, shape, patiently, canaries(2), minReady(3))
	x.create(ctx)
	// Labels and annotations of the object are not part of its template.
	kit.Change(ctx, c, x.set, func(s *v1alpha1.ExtendedStatefulSet) {
		s.Labels, s.Annotations = map[string]string{"edited": "yes"}, map[string]string{"edited": "yes"}
	})
	capacity, few := pods.Hold(least("canary", budget)), pods.Hold(canariesFirst("canary", "2", 2, 3*time.Second))
	x.edit(ctx, inVersion("2"))
	x.serves(ctx, 2)
	c.Expect(x.set.Status.VersionHighWater).To(BeNumerically("==", 2), "labels and annotations created a version: %s", describe(x.set))
	c.Check(capacity.Kept())
	c.Check(few.Kept())
	x.Event(ctx, x.set, v1alpha1.EventUpgraded, "")
}

// canariesFirst returns a check that no more pods of a version than its canaries are created before
// that many have been Ready for the given time. The kubelet's clock has a resolution of seconds.
func canariesFirst(set, version string, canaries int, proof time.Duration) func(map[types.UID]*corev1.Pod) error {
	proven := false
	return func(pods map[types.UID]*corev1.Pod) error {
		made, good := 0, 0
		for _, p := range pods {
			if !ofSet(p, set) || p.Labels[v1alpha1.LabelVersion] != version {
				continue
			}
			made++
			for _, condition := range p.Status.Conditions {
				if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && time.Since(condition.LastTransitionTime.Time) >= proof-time.Second {
					good++
				}
			}
		}
		if proven = proven || good >= canaries; made > canaries && !proven {
			return fmt.Errorf("%d pods of version %s exist, and %d have been Ready for long enough: %s", made, version, good, roll(pods, set))
		}
		return nil
	}
}

// traffic records the selectors of the active Service, and the versions of its endpoints.
type traffic struct {
	mu        sync.Mutex
	selectors []string
	versions  []map[string]int // versions of the Ready endpoints, at each change
	err       error
}

func (t *traffic) sawService(name string) func(watch.Event) {
	return func(e watch.Event) {
		t.mu.Lock()
		defer t.mu.Unlock()
		s, ok := e.Object.(*corev1.Service)
		switch {
		case !ok:
			t.err = fmt.Errorf("the watch on Services failed: %v", e.Object)
		case s.Name == name:
			t.selectors = append(t.selectors, s.Spec.Selector[v1alpha1.LabelVersion])
		}
	}
}

func (t *traffic) sawEndpoints(service, set string) func(watch.Event) {
	return func(e watch.Event) {
		t.mu.Lock()
		defer t.mu.Unlock()
		s, ok := e.Object.(*discoveryv1.EndpointSlice)
		switch {
		case !ok:
			t.err = fmt.Errorf("the watch on EndpointSlices failed: %v", e.Object)
		case s.Labels[discoveryv1.LabelServiceName] == service:
			versions := map[string]int{}
			for _, p := range s.Endpoints {
				if p.TargetRef != nil && p.Conditions.Ready != nil && *p.Conditions.Ready {
					version, _, _ := strings.Cut(strings.TrimPrefix(p.TargetRef.Name, set+"-"), "-")
					versions[version]++
				}
			}
			t.versions = append(t.versions, versions)
		}
	}
}

// activeService upgrades from one version to another, and checks the Service of the version that
// serves.
func activeService(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "active", 2, coexist, patiently)
	x.set.Spec.Template.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	x.create(ctx)
	service := x.set.Name + "-active"
	var seen traffic
	watching, stop := context.WithCancel(ctx)
	defer stop()
	c.Until(ctx, service+" to select both pods", func(context.Context) {
		seen = traffic{}
		c.Check(kit.Follow(watching, c.Kube.DiscoveryV1().RESTClient(), "endpointslices", c.Namespace, seen.sawEndpoints(service, x.set.Name)))
		n := len(seen.versions)
		c.Expect(n).NotTo(BeZero(), "it selects %v", seen.versions)
		c.Expect(seen.versions[n-1]["v1"]).To(BeNumerically("==", 2), "it selects %v", seen.versions)
	})
	c.Check(kit.Follow(watching, c.Kube.CoreV1().RESTClient(), "services", c.Namespace, seen.sawService(service)))
	x.edit(ctx, inVersion("2"))
	x.serves(ctx, 2)
	c.Until(ctx, service+" to select both new pods", func(context.Context) {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		n := len(seen.versions)
		c.Expect(seen.versions[n-1]["v2"]).To(BeNumerically("==", 2), "it selects %v", seen.versions)
	})
	seen.mu.Lock()
	defer seen.mu.Unlock()
	c.Check(seen.oneSwitch())
}

// oneSwitch checks that the selector of the Service was changed once, and that its endpoints were
// always of one version only.
func (t *traffic) oneSwitch() error {
	if want := []string{"1", "2"}; !slices.Equal(t.selectors, want) {
		return errors.Join(t.err, fmt.Errorf("the Service selected versions %v, want %v", t.selectors, want))
	}
	for _, v := range t.versions {
		if len(v) != 1 {
			return errors.Join(t.err, fmt.Errorf("the Service selected %v: %v", v, t.versions))
		}
	}
	return t.err
}

// failingVersions has a first and a second version that never work, and upgrades nevertheless.
func failingVersions(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "failing", 1, coexist, patiently, probed(notReady), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true })
	versions := func(want map[string]bool) func(v1alpha1.ExtendedStatefulSetStatus) bool {
		return func(s v1alpha1.ExtendedStatefulSetStatus) bool { return maps.Equal(s.Versions, want) }
	}
	c.Put(ctx, x.set)
	x.says(ctx, "that version 1 fails", versions(map[string]bool{"1": false}))
	x.edit(ctx, inVersion("2"))
	x.says(ctx, "that versions 1 and 2 fail", versions(map[string]bool{"1": false, "2": false}))
	children := x.children(ctx)
	c.Expect(len(children)).To(Equal(2), "%d StatefulSets exist, and neither version runs", len(children))
	x.edit(ctx, inVersion("3"), probed(beReady))
	x.serves(ctx, 3)
	// The failing higher version is kept together with the lower version that runs.
	x.edit(ctx, inVersion("4"), probed(notReady), watchFor(5*time.Second, 20*time.Second))
	x.takenBack(ctx, v1alpha1.PhaseStale, 3)
	x.says(ctx, "that version 3 runs and version 4 fails", versions(map[string]bool{"3": true, "4": false}))
}

func retries(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	x := newFixture(c, "retries", 2, coexist, watchFor(15*time.Second, 2*time.Minute), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.RetryCount = 2 })
	x.create(ctx)
	capacity := pods.Hold(least(x.set.Name, 2))
	made := pods.Made(func(p *corev1.Pod) bool { return ofSet(p, x.set.Name) && p.Labels[v1alpha1.LabelVersion] == "2" })
	good := x.set.Spec.DeepCopy()
	// Without the probe, the container is Ready until it ends, which can be long on a busy machine.
	x.edit(ctx, inVersion("2"), running("exit 1"), probed(notReady))
	x.takenBack(ctx, v1alpha1.PhaseStale, 1)
	c.Expect(x.set.Status.Attempts).To(BeEquivalentTo(3), describe(x.set))
	// On a slow machine an attempt can end before the StatefulSet controller has created its pod.
	c.Expect(len(made())).To(And(BeNumerically(">", 1), BeNumerically("<=", 3)), "each attempt has its own pod: %s", describe(x.set))
	x.marked(ctx, v1alpha1.PhaseStale)
	x.Event(ctx, x.set, v1alpha1.EventAttemptFailed, "")
	c.Check(capacity.Kept())
	// Going back to the old version's template creates no new version.
	back := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
	x.edit(ctx, back)
	x.serves(ctx, 1)
	x.edit(ctx, inVersion("3"), patiently)
	x.serves(ctx, 3)
}

// waitsUntilReady has pods that become not Ready on command.
func waitsUntilReady(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "sick", 2, coexist, patiently, probed(beReady))
	x.create(ctx)
	x.shell(ctx, x.child(1)+"-0", beSick)
	unready := func(s v1alpha1.ExtendedStatefulSetStatus) bool { return s.ReadyReplicas == 1 }
	x.says(ctx, "a pod is unhealthy", unready)
	x.edit(ctx, inVersion("2"))
	x.says(ctx, "that it waits", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.Phase == v1alpha1.PhaseWaiting && slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
			return c.Reason == v1alpha1.ReasonCurrentNotReady
		})
	})
	children := x.children(ctx)
	c.Expect(len(children)).To(Equal(1), "it reports that it waits, and has %d StatefulSets", len(children))
	x.shell(ctx, x.child(1)+"-0", beReady)
	x.serves(ctx, 2)
	x.shell(ctx, x.child(2)+"-0", beSick)
	x.says(ctx, "a pod is unhealthy", unready)
	x.edit(ctx, inVersion("3"))
	x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true })
	x.serves(ctx, 3)
}
