package promises

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// How versions take over from each other.

func canariesCoexist(ctx context.Context, c *Cluster) error {
	return c.provesCanaries(ctx, 3, coexist)
}

func canariesPerOrdinal(ctx context.Context, c *Cluster) error {
	return c.provesCanaries(ctx, 2, perOrdinal)
}

// provesCanaries upgrades a set of 3 with 2 canaries; of the 3 so many must always
// be Ready.
func (c *Cluster) provesCanaries(ctx context.Context, budget int, shape extendedChange) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("canary", 3, shape, patiently, canaries(2), minReady(3))
	if err := x.create(ctx); err != nil {
		return err
	}
	// What is said of the object is not in its template.
	err = change(ctx, c, x.set, func(s *v1alpha1.ExtendedStatefulSet) {
		s.Labels, s.Annotations = map[string]string{"edited": "yes"}, map[string]string{"edited": "yes"}
	})
	if err != nil {
		return err
	}
	capacity, few := pods.hold(least("canary", budget)), pods.hold(canariesFirst("canary", "2", 2, 3*time.Second))
	if err := errors.Join(x.edit(ctx, inVersion("2")), x.serves(ctx, 2)); err != nil {
		return errors.Join(err, capacity.kept())
	}
	if x.set.Status.VersionHighWater != 2 {
		return fmt.Errorf("labels and annotations made a version: %s", tellExtended(x.set))
	}
	return errors.Join(capacity.kept(), few.kept(), x.eventTold(ctx, v1alpha1.EventUpgraded))
}

// canariesFirst holds that no more pods of a version than its canaries are made
// before as many have been Ready for that long. The kubelet's clock has seconds.
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
			return fmt.Errorf("%d pods of version %s are there, and %d have been Ready for long enough: %s", made, version, good, roll(pods, set))
		}
		return nil
	}
}

// traffic remembers whom the active Service selected, and to whom it led.
type traffic struct {
	mu        sync.Mutex
	selectors []string
	versions  []map[string]int // of the Ready endpoints, at each change
	err       error
}

func (t *traffic) sawService(name string) func(watch.Event) {
	return func(e watch.Event) {
		t.mu.Lock()
		defer t.mu.Unlock()
		s, ok := e.Object.(*corev1.Service)
		switch {
		case !ok:
			t.err = fmt.Errorf("the watch on Services broke: %v", e.Object)
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
			t.err = fmt.Errorf("the watch on EndpointSlices broke: %v", e.Object)
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

// activeService upgrades from a version to another one and looks at what leads to
// the one that serves.
func activeService(ctx context.Context, c *Cluster) error {
	x := c.extended("active", 2, coexist, patiently)
	x.set.Spec.Template.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}}
	if err := x.create(ctx); err != nil {
		return err
	}
	service := x.set.Name + "-active"
	var seen traffic
	watching, stop := context.WithCancel(ctx)
	defer stop()
	err := until(ctx, service+" to lead to both pods", func(context.Context) error {
		seen = traffic{}
		if err := follow(watching, c.Kube.DiscoveryV1().RESTClient(), "endpointslices", c.Namespace, seen.sawEndpoints(service, x.set.Name)); err != nil {
			return err
		}
		if n := len(seen.versions); n == 0 || seen.versions[n-1]["v1"] != 2 {
			return fmt.Errorf("it leads to %v", seen.versions)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := follow(watching, c.Kube.CoreV1().RESTClient(), "services", c.Namespace, seen.sawService(service)); err != nil {
		return err
	}
	if err := errors.Join(x.edit(ctx, inVersion("2")), x.serves(ctx, 2)); err != nil {
		return err
	}
	err = until(ctx, service+" to lead to both new pods", func(context.Context) error {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if n := len(seen.versions); seen.versions[n-1]["v2"] != 2 {
			return fmt.Errorf("it leads to %v", seen.versions)
		}
		return nil
	})
	if err != nil {
		return err
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	return seen.oneSwitch()
}

// oneSwitch checks that the Service was written once, and that it led to pods of
// one version all the time.
func (t *traffic) oneSwitch() error {
	if want := []string{"1", "2"}; !slices.Equal(t.selectors, want) {
		return errors.Join(t.err, fmt.Errorf("the Service selected versions %v, and should go through %v", t.selectors, want))
	}
	for _, v := range t.versions {
		if len(v) != 1 {
			return errors.Join(t.err, fmt.Errorf("the Service led to %v: %v", v, t.versions))
		}
	}
	return t.err
}

// failingVersions has a first version that never works, and a second, and
// upgrades all the same.
func failingVersions(ctx context.Context, c *Cluster) error {
	x := c.extended("failing", 1, coexist, patiently, probed("false"), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true })
	versions := func(want map[string]bool) func(v1alpha1.ExtendedStatefulSetStatus) bool {
		return func(s v1alpha1.ExtendedStatefulSetStatus) bool { return maps.Equal(s.Versions, want) }
	}
	if err := errors.Join(c.Client.Create(ctx, x.set), x.says(ctx, "that version 1 fails", versions(map[string]bool{"1": false}))); err != nil {
		return err
	}
	if err := errors.Join(x.edit(ctx, inVersion("2")), x.says(ctx, "that versions 1 and 2 fail", versions(map[string]bool{"1": false, "2": false}))); err != nil {
		return err
	}
	children, err := x.children(ctx)
	if err != nil || len(children) != 2 {
		return errors.Join(err, fmt.Errorf("%d StatefulSets are there, and neither version runs", len(children)))
	}
	if err := errors.Join(x.edit(ctx, inVersion("3"), probed("true")), x.serves(ctx, 3)); err != nil {
		return err
	}
	// The higher one stays beside the lower one that runs.
	if err := x.edit(ctx, inVersion("4"), probed("false"), watchFor(5*time.Second, 20*time.Second)); err != nil {
		return err
	}
	if err := x.takenBack(ctx, v1alpha1.PhaseStale, 3); err != nil {
		return err
	}
	return x.says(ctx, "that version 3 runs and version 4 fails", versions(map[string]bool{"3": true, "4": false}))
}

func retries(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("retries", 2, coexist, watchFor(5*time.Second, time.Minute), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.RetryCount = 2 })
	if err := x.create(ctx); err != nil {
		return err
	}
	capacity := pods.hold(least(x.set.Name, 2))
	made := pods.made(func(p *corev1.Pod) bool { return ofSet(p, x.set.Name) && p.Labels[v1alpha1.LabelVersion] == "2" })
	good := x.set.Spec.DeepCopy()
	if err := errors.Join(x.edit(ctx, inVersion("2"), running("exit 1")), x.takenBack(ctx, v1alpha1.PhaseStale, 1)); err != nil {
		return err
	}
	if n := x.set.Status.Attempts; n != 3 || len(made()) != 3 {
		return fmt.Errorf("there should be 3 attempts with a pod each: %d pods, %s", len(made()), tellExtended(x.set))
	}
	if err := errors.Join(x.marked(ctx, v1alpha1.PhaseStale), x.eventTold(ctx, v1alpha1.EventAttemptFailed), capacity.kept()); err != nil {
		return err
	}
	// The old version's template is not a new version.
	back := func(s *v1alpha1.ExtendedStatefulSetSpec) { *s = *good.DeepCopy() }
	if err := errors.Join(x.edit(ctx, back), x.serves(ctx, 1)); err != nil {
		return err
	}
	return errors.Join(x.edit(ctx, inVersion("3"), patiently), x.serves(ctx, 3))
}

// waitsUntilReady has pods that say that they are sick when told.
func waitsUntilReady(ctx context.Context, c *Cluster) error {
	x := c.extended("sick", 2, coexist, patiently, probed("test ! -e /tmp/sick"))
	if err := x.create(ctx); err != nil {
		return err
	}
	if _, err := x.shell(ctx, x.child(1)+"-0", "touch /tmp/sick"); err != nil {
		return err
	}
	unready := func(s v1alpha1.ExtendedStatefulSetStatus) bool { return s.ReadyReplicas == 1 }
	if err := errors.Join(x.says(ctx, "that a pod is sick", unready), x.edit(ctx, inVersion("2"))); err != nil {
		return err
	}
	err := x.says(ctx, "that it waits", func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		return s.Phase == v1alpha1.PhaseWaiting && slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
			return c.Reason == v1alpha1.ReasonCurrentNotReady
		})
	})
	if err != nil {
		return err
	}
	if children, err := x.children(ctx); err != nil || len(children) != 1 {
		return errors.Join(err, fmt.Errorf("it says that it waits, and has %d StatefulSets", len(children)))
	}
	if _, err := x.shell(ctx, x.child(1)+"-0", "rm /tmp/sick"); err != nil {
		return err
	}
	if err := x.serves(ctx, 2); err != nil {
		return err
	}
	if _, err := x.shell(ctx, x.child(2)+"-0", "touch /tmp/sick"); err != nil {
		return err
	}
	if err := errors.Join(x.says(ctx, "that a pod is sick", unready), x.edit(ctx, inVersion("3"))); err != nil {
		return err
	}
	return errors.Join(x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateStrategy.UpdateNotReady = true }), x.serves(ctx, 3))
}
