package statefulsingleton

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// Builders of objects and pods:
//
//	singleton("db").mode(v1.GateInit).containers("app")
//	pod(container("app").command("serve"), container("log")).labels("app", "db")
//
// By default a pod has the label app=db and one container "app" with image "app:1" and a
// command.

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

type podFixture struct{ corev1.Pod }

func pod(containers ...*containerFixture) *podFixture {
	p := &podFixture{corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: "ns", Labels: map[string]string{"app": "db"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways},
	}}
	if len(containers) == 0 {
		containers = append(containers, container("app").command("serve"))
	}
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, c.Container)
	}
	return p
}

func (p *podFixture) with(change func(*corev1.Pod)) *podFixture {
	change(&p.Pod)
	return p
}

func (p *podFixture) inits(containers ...*containerFixture) *podFixture {
	for _, c := range containers {
		p.Spec.InitContainers = append(p.Spec.InitContainers, c.Container)
	}
	return p
}

func (p *podFixture) volume(name string, source corev1.VolumeSource) *podFixture {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	return p
}

func (p *podFixture) claim(name string) *podFixture {
	return p.volume(name, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}

type containerFixture struct{ corev1.Container }

func container(name string) *containerFixture {
	return &containerFixture{corev1.Container{Name: name, Image: name + ":1"}}
}

func (c *containerFixture) image(image string) *containerFixture {
	c.Image = image
	return c
}

func (c *containerFixture) command(words ...string) *containerFixture {
	c.Command = words
	return c
}

func (c *containerFixture) args(words ...string) *containerFixture {
	c.Args = words
	return c
}

func (c *containerFixture) mount(volume, path string) *containerFixture {
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	return c
}

// resources sets requests and limits as "cpu/memory"; "" for none.
func (c *containerFixture) resources(requests, limits string) *containerFixture {
	for text, list := range map[*string]*corev1.ResourceList{&requests: &c.Resources.Requests, &limits: &c.Resources.Limits} {
		if cpu, memory, ok := strings.Cut(*text, "/"); ok {
			*list = corev1.ResourceList{}
			for name, amount := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
				if amount != "" {
					(*list)[name] = resource.MustParse(amount)
				}
			}
		}
	}
	return c
}

func (c *containerFixture) with(change func(*corev1.Container)) *containerFixture {
	change(&c.Container)
	return c
}

const gateImage = "example.com/operator:1"

func around(oneNodeClaims ...string) children.Surroundings {
	return children.Surroundings{Image: gateImage, OneNodeClaims: sets.New(oneNodeClaims...)}
}

// injected returns a copy of the pod with the gate.
func injected(t *testing.T, p *corev1.Pod, s *singletonFixture, oneNodeClaims ...string) *corev1.Pod {
	t.Helper()
	p = p.DeepCopy()
	if errs := children.Inject(p, &s.StatefulSingleton, around(oneNodeClaims...)); len(errs) > 0 {
		t.Fatalf("refused: %v", errs.ToAggregate())
	}
	return p
}

func names(containers []corev1.Container) string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return strings.Join(all, " ")
}

// one returns a random element.
func one[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// maybe returns true one time in n.
func maybe(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// randomPod returns a pod with random features that an injection must not change.
func randomPod(r *rand.Rand) *corev1.Pod {
	p := pod(randomContainer(r, "app"))
	for i := range r.IntN(3) {
		p.Spec.Containers = append(p.Spec.Containers, randomContainer(r, fmt.Sprintf("side%d", i)).Container)
	}
	for i := range r.IntN(3) {
		c := randomContainer(r, fmt.Sprintf("init%d", i))
		c.LivenessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil
		if maybe(r, 3) {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		p.inits(c)
	}
	p.Spec.RestartPolicy = one(r, corev1.RestartPolicyAlways, corev1.RestartPolicyAlways, corev1.RestartPolicyNever)
	if maybe(r, 2) {
		p.claim("data")
	}
	if maybe(r, 2) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/other"}}
	}
	if maybe(r, 2) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 5}}}}
	}
	if maybe(r, 2) {
		p.Annotations = map[string]string{"example.com/note": "mine"}
	}
	p.Spec.HostPID, p.Spec.HostNetwork = maybe(r, 8), maybe(r, 8)
	if !p.Spec.HostPID && maybe(r, 4) {
		p.Spec.ShareProcessNamespace = ptr.To(true)
	}
	if maybe(r, 2) {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(r.IntN(200)))
	}
	if maybe(r, 2) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	}
	return &p.Pod
}

func randomContainer(r *rand.Rand, name string) *containerFixture {
	c := container(name).image(one(r, "one:1", "two:2", "three:3"))
	if !maybe(r, 4) {
		c.command("serve", one(r, "", "two words", "$(HOME)"))
	}
	if maybe(r, 2) {
		c.args(one(r, "--flag", "a,b"), one(r, "", `"quoted"`))
	}
	if maybe(r, 3) {
		c.LivenessProbe = &corev1.Probe{InitialDelaySeconds: one(r, int32(0), 0, 5)}
	}
	if maybe(r, 6) {
		c.StartupProbe = &corev1.Probe{PeriodSeconds: 3}
	}
	if maybe(r, 6) {
		c.Lifecycle = one(r, &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}, &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}})
	}
	if maybe(r, 2) {
		c.mount("data", "/data")
	}
	if maybe(r, 2) {
		c.Env = []corev1.EnvVar{{Name: "HOME", Value: "/"}}
	}
	switch r.IntN(4) {
	case 0:
		c.resources("1/1Gi", "1/1Gi")
	case 1:
		c.resources("100m/", "/1Gi")
	case 2:
		c.SecurityContext = children.Restricted()
		c.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	return c
}

// tree returns an object as JSON.
func tree(t *testing.T, object any) any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// lost returns the parts of one JSON tree that are missing in the other: entries of
// objects, and entries of lists in their order.
func lost(path string, from, to any) []string {
	switch from := from.(type) {
	case map[string]any:
		to, ok := to.(map[string]any)
		if !ok {
			return []string{path}
		}
		var all []string
		for key, value := range from {
			all = append(all, lost(path+"."+key, value, to[key])...)
		}
		return all
	case []any:
		to, _ := to.([]any)
		for i, entry := range from {
			at := 0
			for at < len(to) && !webhooks.Alike(entry, to[at]) {
				at++
			}
			if at == len(to) {
				return []string{fmt.Sprintf("%s[%d]", path, i)}
			}
			if all := lost(fmt.Sprintf("%s[%d]", path, i), entry, to[at]); len(all) > 0 {
				return all
			}
			to = to[at+1:]
		}
		return nil
	}
	if !reflect.DeepEqual(from, to) {
		return []string{path}
	}
	return nil
}
