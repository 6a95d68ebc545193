package spec_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// many returns a map with n keys.
func many(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprintf("k%d", i)] = "v"
	}
	return all
}

type setSpec = v1alpha1.ExtendedStatefulSetSpec

// insideBounds are the limits of items within a spec: the max number, a function that sets a given
// number, and the error message above the max.
var insideBounds = []struct {
	name string
	most int
	set  func(s *setSpec, n int)
	want string
}{
	{"attempts", 100, func(s *setSpec, n int) { s.UpdateStrategy.RetryCount = int32(n) }, "spec.updateStrategy.retryCount: Invalid value: 101: may be at most 100; take fewer attempts"},
	{"canaryWatchTime", 720, func(s *setSpec, n int) {
		d := &metav1.Duration{Duration: time.Duration(n) * time.Hour}
		s.UpdateStrategy.CanaryWatchTime, s.UpdateStrategy.UpdateWatchTime = d, d
	}, `spec.updateStrategy.canaryWatchTime: Invalid value: "721h0m0s": may be at most 720h; take a shorter time`},
	{"labels", 64, func(s *setSpec, n int) { s.Template.Labels = many(n) }, "spec.template.metadata.labels: Invalid value: 65: may be at most 64; take fewer labels"},
	{"annotations", 64, func(s *setSpec, n int) { s.Template.Annotations = many(n) }, "spec.template.metadata.annotations: Invalid value: 65: may be at most 64; take fewer annotations"},
	{"labels of pods", 64, func(s *setSpec, n int) {
		s.Template.Spec.Template.Labels = many(n - 1)
		s.Template.Spec.Template.Labels["app"] = "db"
	}, "spec.template.spec.template.metadata.labels: Invalid value: 65: may be at most 64"},
	{"matchLabels of the selector", 32, func(s *setSpec, n int) {
		s.Template.Spec.Selector.MatchLabels, s.Template.Spec.Template.Labels = many(n), many(n)
	}, "spec.template.spec.selector.matchLabels: Invalid value: 33: may be at most 32; select by fewer labels"},
	{"expressions", 32, func(s *setSpec, n int) {
		for range n {
			s.Template.Spec.Selector.MatchExpressions = append(s.Template.Spec.Selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpExists})
		}
	}, "spec.template.spec.selector.matchExpressions: Invalid value: 33: may be at most 32; take fewer expressions"},
	{"values", 64, func(s *setSpec, n int) {
		s.Template.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: slices.Repeat([]string{"db"}, n)}}
	}, "spec.template.spec.selector.matchExpressions[0].values: Invalid value: 65: may be at most 64; take fewer values"},
	{"containers", 64, func(s *setSpec, n int) {
		s.Template.Spec.Template.Spec.Containers = make([]corev1.Container, n)
	}, "spec.template.spec.template.spec.containers: Invalid value: 65: may be at most 64; take fewer containers"},
	{"init containers", 64, func(s *setSpec, n int) {
		s.Template.Spec.Template.Spec.InitContainers = make([]corev1.Container, n)
	}, "spec.template.spec.template.spec.initContainers: Invalid value: 65: may be at most 64"},
	{"volumes", 256, func(s *setSpec, n int) { s.Template.Spec.Template.Spec.Volumes = make([]corev1.Volume, n) }, "spec.template.spec.template.spec.volumes: Invalid value: 257: may be at most 256"},
	{"image pull secrets", 64, func(s *setSpec, n int) {
		s.Template.Spec.Template.Spec.ImagePullSecrets = make([]corev1.LocalObjectReference, n)
	}, "spec.template.spec.template.spec.imagePullSecrets: Invalid value: 65: may be at most 64"},
	{"ports", 256, func(s *setSpec, n int) {
		s.Template.Spec.Template.Spec.Containers[0].Ports = make([]corev1.ContainerPort, n)
	}, "spec.template.spec.template.spec.containers: Invalid value: 257: may be at most 256; take fewer ports in all containers"},
	{"tracked ConfigMaps and Secrets", 256, func(s *setSpec, n int) {
		s.UpdateOnEnvChange = true
		for i := range n {
			s.Template.Spec.Template.Spec.Containers[0].EnvFrom = append(s.Template.Spec.Template.Spec.Containers[0].EnvFrom,
				corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint(i)}}})
		}
	}, "spec.updateOnEnvChange: Invalid value: true: at most 256 ConfigMaps and Secrets can be tracked, and template references more; reference fewer, or set this to false"},
	{"pods of a job", 100, func(s *setSpec, n int) {
		s.UpdateStrategy.PreUpdateJob = fixture.Job("x")
		s.UpdateStrategy.PreUpdateJob.Spec.Parallelism = ptr.To(int32(n))
	}, "spec.updateStrategy.preUpdateJob.spec.parallelism: Invalid value: 101: may be at most 100; take fewer pods at a time"},
	{"completions of a job", 1000, func(s *setSpec, n int) {
		s.UpdateStrategy.PostUpdateJob = fixture.Job("x")
		s.UpdateStrategy.PostUpdateJob.Spec.Completions = ptr.To(int32(n))
	}, "spec.updateStrategy.postUpdateJob.spec.completions: Invalid value: 1001: may be at most 1000; take fewer completions"},
	{"probes", 16, func(s *setSpec, n int) {
		s.ActivePassiveProbes, s.Template.Spec.Template.Spec.Containers = map[string]v1alpha1.ActivePassiveProbe{}, nil
		for name := range many(n) {
			s.ActivePassiveProbes[name] = asking("/ask")
			s.Template.Spec.Template.Spec.Containers = append(s.Template.Spec.Template.Spec.Containers, corev1.Container{Name: name})
		}
	}, "spec.activePassiveProbes: Invalid value: 17: may be at most 16; take fewer probes"},
	{"arguments of a probe", 64, func(s *setSpec, n int) {
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": asking(slices.Repeat([]string{"x"}, n)...)}
	}, "spec.activePassiveProbes[main].exec.command: Invalid value: 65: may be at most 64; take fewer arguments, or write a script"},
	{"bytes of a probe", 16384, func(s *setSpec, n int) {
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": asking(strings.Repeat("x", n))}
	}, "spec.activePassiveProbes[main].exec.command: Invalid value: 16385: may be at most 16384; take fewer bytes, or write a script"},
	{"the period of a probe", 3600, func(s *setSpec, n int) {
		p := asking("x")
		p.PeriodSeconds = int32(n)
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": p}
	}, "spec.activePassiveProbes[main].periodSeconds: Invalid value: 3601: may be at most 3600; use a shorter period"},
	{"the timeout of a probe", 3600, func(s *setSpec, n int) {
		p := asking("x")
		p.TimeoutSeconds = int32(n)
		s.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": p}
	}, "spec.activePassiveProbes[main].timeoutSeconds: Invalid value: 3601: may be at most 3600; use a shorter timeout"},
	{"total size", 256 << 10, func(s *setSpec, n int) { swell(s, n) }, `spec: Invalid value: "262145 bytes": may have at most 262144 bytes; move long values into ConfigMaps`},
	{"total size in all zones", 64 << 10, func(s *setSpec, n int) {
		for i := range 64 {
			s.Zones = append(s.Zones, fmt.Sprint("z", i))
		}
		swell(s, n)
	}, `spec: Invalid value: "65537 bytes": times the number of zones may be at most 4194304 bytes, since each zone has a copy; take fewer zones, or move long values into ConfigMaps`},
}

// TestBoundsOfWhatIsInside verifies the limits of lists, maps and strings, which are iterated over in
// each pass.
func TestBoundsOfWhatIsInside(t *testing.T) {
	for _, row := range insideBounds {
		t.Run(row.name, func(t *testing.T) {
			said := func(n int) string {
				set := spec.WithDefaults(fixture.FakeSet(3))
				row.set(&set.Spec, n)
				if errs := spec.Validate(set); len(errs) > 0 {
					return errs.ToAggregate().Error()
				}
				return ""
			}
			if got := said(row.most); got != "" {
				t.Errorf("a value at the limit is refused: %s", got)
			}
			if got := said(row.most + 1); !strings.Contains(got, row.want) {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
}

func asking(argv ...string) v1alpha1.ActivePassiveProbe {
	return v1alpha1.ActivePassiveProbe{Exec: &corev1.ExecAction{Command: argv}, PeriodSeconds: 1, TimeoutSeconds: 1}
}

// swell increases the size of a spec to the given number of bytes.
func swell(s *v1alpha1.ExtendedStatefulSetSpec, to int) {
	s.Template.Annotations = map[string]string{"a": "x"}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	s.Template.Annotations["a"] = strings.Repeat("x", to-len(raw)+1)
}

// TestALargeObjectCostsLittle verifies that each pass over a large object that bypassed admission is
// cheap.
func TestALargeObjectCostsLittle(t *testing.T) {
	set := fixture.Plain()
	pod := &set.Spec.Template.Spec.Template.Spec
	set.Spec.UpdateOnEnvChange = true
	for i := range 50_000 {
		pod.Containers[0].Ports = append(pod.Containers[0].Ports, corev1.ContainerPort{ContainerPort: int32(i)})
		set.Spec.Zones = append(set.Spec.Zones, fmt.Sprint(i))
	}
	for i := range 20_000 {
		pod.Containers[0].EnvFrom = append(pod.Containers[0].EnvFrom,
			corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint(i)}}})
	}
	began := time.Now()
	if why := spec.Problem(spec.WithDefaults(set)); !strings.Contains(why, "spec.zones: Invalid value: 50000: may be at most 64; take fewer zones") {
		t.Error(why)
	}
	if n := len(children.ZonesOf(set, &set.Status)); n != spec.MaxZones {
		t.Errorf("got %d zones of a spec above the limit", n)
	}
	if n := len(children.BuildServices(set, nil)[0].Spec.Ports); n != spec.MaxPorts {
		t.Errorf("got a Service with %d ports of a spec above the limit", n)
	}
	if n := len(configuration.Origins(pod)); n > configuration.MaxSources+1 {
		t.Errorf("got %d sources of a spec above the limit", n)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the check takes %s", took)
	}
}

// TestBounds verifies that a value at a limit is accepted, and that a value above it is rejected with a
// message about how to fix it.
func TestBounds(t *testing.T) {
	replicas := func(n int32) func(*v1alpha1.ExtendedStatefulSet) {
		return func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Replicas = &n }
	}
	templates := func(n int) func(*v1alpha1.ExtendedStatefulSet) {
		return func(set *v1alpha1.ExtendedStatefulSet) {
			t := &set.Spec.Template.Spec
			for i := range n - 1 {
				t.VolumeClaimTemplates = append(t.VolumeClaimTemplates, t.VolumeClaimTemplates[0])
				t.VolumeClaimTemplates[i+1].Name = fmt.Sprintf("data-%d", i)
			}
		}
	}
	zones := func(n int) func(*v1alpha1.ExtendedStatefulSet) {
		return func(set *v1alpha1.ExtendedStatefulSet) {
			set.Spec.Zones = nil
			for i := range n {
				set.Spec.Zones = append(set.Spec.Zones, fmt.Sprintf("z%d", i))
			}
		}
	}
	both := func(all ...func(*v1alpha1.ExtendedStatefulSet)) func(*v1alpha1.ExtendedStatefulSet) {
		return func(set *v1alpha1.ExtendedStatefulSet) {
			for _, f := range all {
				f(set)
			}
		}
	}
	scaling := func(low, high int32) func(*v1alpha1.ExtendedStatefulSet) {
		return func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Scaling = &v1alpha1.Scaling{Min: &low, Max: &high} }
	}
	canaries := func(n int32) func(*v1alpha1.ExtendedStatefulSet) {
		return both(replicas(spec.MaxReplicas), func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.UpdateStrategy.Canaries = &n })
	}
	for _, row := range []struct {
		name       string
		most, more func(*v1alpha1.ExtendedStatefulSet)
		want       string
	}{
		{"replicas", replicas(1000), replicas(1001), "spec.template.spec.replicas: Invalid value: 1001: may be at most 1000; take fewer replicas"},
		{"the largest number", replicas(1000), replicas(math.MaxInt32), "spec.template.spec.replicas: Invalid value: 2147483647: may be at most 1000; take fewer replicas"},
		{"pods in all zones", both(zones(64), replicas(31)), both(zones(64), replicas(32)),
			"spec.template.spec.replicas: Invalid value: 32: times the number of zones may be at most 2000; take fewer replicas or fewer zones"},
		{"claims", both(templates(16), replicas(250)), both(templates(16), replicas(251)),
			"spec.template.spec.replicas: Invalid value: 251: times the number of zones and of claim templates may be at most 4000; take fewer replicas, zones or claim templates"},
		{"claim templates", templates(16), templates(17), "spec.template.spec.volumeClaimTemplates: Invalid value: 17: may be at most 16; take fewer claim templates"},
		{"zones", zones(64), zones(65), "spec.zones: Invalid value: 65: may be at most 64; take fewer zones"},
		{"scaling.max", scaling(0, 1000), scaling(0, 1001), "spec.scaling.max: Invalid value: 1001: may be at most 1000, the max number of replicas; lower it"},
		{"scaling.min", both(replicas(1000), scaling(1000, 1000)), both(replicas(1000), scaling(1001, 1000)), "spec.scaling.min: Invalid value: 1001: may"},
		{"canaries", canaries(1000), canaries(1001), "spec.updateStrategy.canaries: Invalid value: 1001: may be at most 1000; take fewer canaries"},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := fixture.WithClaims(fixture.FakeSet(3))
			row.most(set)
			if errs := spec.Validate(spec.WithDefaults(set)); len(errs) > 0 {
				t.Errorf("a value at the limit is refused: %v", errs)
			}
			set = fixture.WithClaims(fixture.FakeSet(3))
			row.more(set)
			if errs := spec.Validate(spec.WithDefaults(set)); len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), row.want) {
				t.Errorf("got %v, want %s", errs, row.want)
			}
		})
	}
}

// TestWideRulesOfBefore verifies that an existing object with scaling rules above the limit of replicas
// is still served.
func TestWideRulesOfBefore(t *testing.T) {
	set := fixture.Plain()
	set.Spec.Scaling = &v1alpha1.Scaling{Max: ptr.To[int32](math.MaxInt32)}
	if why := spec.Problem(spec.WithDefaults(set)); why != "" {
		t.Error(why)
	}
	if len(spec.Validate(spec.WithDefaults(set))) == 0 {
		t.Error("scaling rules above the limit were accepted")
	}
}
