package children_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

func names(containers []corev1.Container) string {
	var all []string
	for i := range containers {
		all = append(all, containers[i].Name)
	}
	return strings.Join(all, " ")
}

// podSecurity returns the API server's own checks of the standard "restricted".
func podSecurity(t *testing.T) func(*corev1.Pod) string {
	t.Helper()
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(p *corev1.Pod) string {
		answer := policy.AggregateCheckResults(checks.EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &p.ObjectMeta, &p.Spec))
		return answer.ForbiddenDetail()
	}
}

// TestS21PodSecurityRestricted checks that a pod that a restricted namespace admits is also
// admitted with the gate, wherever the pod sets that it is not root.
func TestS21PodSecurityRestricted(t *testing.T) {
	violations := podSecurity(t)
	inPod := func(p *corev1.Pod) {
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	}
	in := func(change func(*corev1.SecurityContext)) *fixture.ContainerFixture {
		return fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
			change(c.SecurityContext)
		})
	}
	least := func(*corev1.SecurityContext) {}
	own := func(sc *corev1.SecurityContext) {
		sc.RunAsNonRoot = ptr.To(true)
		sc.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
	}{
		{"set for the pod", fixture.Pod(in(least)).With(inPod)},
		{"set for each container", fixture.Pod(in(own))},
		{"set for each container, with a user", fixture.Pod(in(func(sc *corev1.SecurityContext) { own(sc); sc.RunAsUser = ptr.To(int64(1000)) }))},
		{"set for the pod, with a user", fixture.Pod(in(least)).With(func(p *corev1.Pod) { inPod(p); p.Spec.SecurityContext.RunAsUser = ptr.To(int64(1000)) })},
		{"with its own init container", fixture.Pod(in(own)).Inits(in(own).WithImage("other:1").With(func(c *corev1.Container) { c.Name = "init" }))},
	} {
		if v := violations(&r.pod.Pod); v != "" {
			t.Fatalf("%s: the fixture itself is refused: %s", r.name, v)
		}
		for _, mode := range fixture.Modes {
			if v := violations(fixture.Injected(t, &r.pod.Pod, fixture.Singleton("db").Mode(mode).Sidecar())); v != "" {
				t.Errorf("%s, %s: %s", r.name, mode, v)
			}
		}
		if v := violations(fixture.Injected(t, &r.pod.Pod, fixture.Singleton("db").Leased())); v != "" {
			t.Errorf("%s, with fencing by a Lease: %s", r.name, v)
		}
	}
}

// TestS21OpenShiftRestricted checks the requirements of OpenShift's restricted-v2 for a
// container. No user is set except the one that the author of the pod chose for the image
// of a program.
func TestS21OpenShiftRestricted(t *testing.T) {
	for _, mode := range fixture.Modes {
		before := fixture.Pod(fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To(int64(1234)), RunAsGroup: ptr.To(int64(5)), SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1"}}
		}))
		p := fixture.Injected(t, &before.Pod, fixture.Singleton("db").Mode(mode).Sidecar())
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				c := &list[i]
				if !children.IsOurs(c) {
					continue
				}
				sc := c.SecurityContext
				if *sc.AllowPrivilegeEscalation || sc.Privileged != nil || sc.Capabilities.Drop[0] != "ALL" || sc.Capabilities.Add != nil ||
					sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || !*sc.ReadOnlyRootFilesystem {
					t.Errorf("%s: %s has too many privileges: %v", mode, c.Name, sc)
				}
				if children.IsImage(c) != (sc.RunAsUser != nil) {
					t.Errorf("%s: %s has user %v", mode, c.Name, sc.RunAsUser)
				}
				if children.IsImage(c) && (*sc.RunAsUser != 1234 || *sc.RunAsGroup != 5 || sc.SELinuxOptions.Level != "s0:c1") {
					t.Errorf("%s: %s does not run as the user of the container with its image", mode, c.Name)
				}
			}
		}
		for _, v := range p.Spec.Volumes {
			if v.DownwardAPI == nil && v.EmptyDir == nil && v.ConfigMap == nil {
				t.Errorf("%s: policies may not allow the kind of volume %s", mode, v.Name)
			}
		}
	}
}

// TestRootIsNotContradicted checks that a pod that runs as root, explicitly or by default,
// can still do so. An init container with runAsNonRoot would never start there.
func TestRootIsNotContradicted(t *testing.T) {
	nonRoot := func(p *corev1.Pod) string {
		var said []string
		for i := range p.Spec.InitContainers {
			c := &p.Spec.InitContainers[i]
			said = append(said, fmt.Sprintf("%s:%v", c.Name, ptr.Deref(c.SecurityContext.RunAsNonRoot, false)))
		}
		return strings.Join(said, " ")
	}
	s := fixture.Singleton("db").Mode(v1.GateInit)
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want string
	}{
		{"the user of the image is unknown, so runAsNonRoot is not set for it", fixture.Pod(), "gate-install:true gate-image-1:false gate-wait:true"},
		{"the pod runs as root", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(0))} }),
			"gate-install:false gate-image-1:false gate-wait:false"},
		{"the pod sets a user", fixture.Pod().With(func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To(int64(7))}
		}),
			"gate-install:true gate-image-1:false gate-wait:true"},
		{"the container sets unrelated fields", fixture.Pod(fixture.Container("app").With(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)} })),
			"gate-install:true gate-image-1:false gate-wait:true"},
		{"the container sets runAsNonRoot", fixture.Pod(fixture.Container("app").With(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)} })),
			"gate-install:true gate-image-1:true gate-wait:true"},
	} {
		if got := nonRoot(fixture.Injected(t, &r.pod.Pod, s)); got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
}

// classOf returns the QoS class of a pod, as the API server computes it: from the CPU and
// memory of all containers, including init containers.
func classOf(p *corev1.Pod) corev1.PodQOSClass {
	best, full := true, true
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				limit, limited := list[i].Resources.Limits[name]
				request, asked := list[i].Resources.Requests[name]
				best = best && (!limited || limit.IsZero()) && (!asked || request.IsZero())
				full = full && limited && (!asked || request.Cmp(limit) == 0)
			}
		}
	}
	switch {
	case best:
		return corev1.PodQOSBestEffort
	case full:
		return corev1.PodQOSGuaranteed
	}
	return corev1.PodQOSBurstable
}

// TestTheQoSClassStays checks that the gate keeps the pod's class. Only a sidecar, whose
// resources are fixed, changes BestEffort to Burstable.
func TestTheQoSClassStays(t *testing.T) {
	seen := map[corev1.PodQOSClass]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		before := fixture.RandomPod(r)
		if fixture.Maybe(r, 2) {
			same := fixture.One(r, fixture.Container("x").WithResources("1/1Gi", "1/1Gi"), fixture.Container("x")).Resources
			for i := range before.Spec.Containers {
				before.Spec.Containers[i].Resources = same
			}
			for i := range before.Spec.InitContainers {
				before.Spec.InitContainers[i].Resources = same
			}
		}
		s := fixture.Singleton("db").Mode(fixture.One(r, v1.GateAuto, v1.GateInit))
		if fixture.Maybe(r, 2) {
			s.Sidecar()
		}
		after := fixture.Injected(t, before, s)
		was, is := classOf(before), classOf(after)
		seen[was]++
		lifted := was == corev1.PodQOSBestEffort && strings.Contains(names(after.Spec.Containers), v1.ContainerSidecar)
		if was != is && (!lifted || is != corev1.PodQOSBurstable) {
			t.Fatalf("seed %d: a %s pod became %s", seed, was, is)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only these classes were covered: %v", seen)
	}
}

// TestTheGateCostsTheSchedulerNothing checks that the gate does not raise the pod's
// requests. The scheduler uses the larger of the largest init container and the sum of the
// containers, so init containers that request no more than one container cost nothing.
func TestTheGateCostsTheSchedulerNothing(t *testing.T) {
	before := fixture.Pod(fixture.Container("app").WithCommand("serve").WithResources("500m/1Gi", "/2Gi").With(func(c *corev1.Container) {
		c.Resources.Limits["example.com/gpu"] = *c.Resources.Limits.Memory()
	}), fixture.Container("log").WithCommand("ship").WithResources("10m/16Mi", ""))
	p := fixture.Injected(t, &before.Pod, fixture.Singleton("db").Mode(v1.GateInit))
	for i := range p.Spec.InitContainers {
		c := &p.Spec.InitContainers[i]
		if c.Resources.Requests.Cpu().Cmp(*before.Spec.Containers[0].Resources.Requests.Cpu()) > 0 {
			t.Errorf("%s requests more CPU than the program", c.Name)
		}
		if _, ok := c.Resources.Limits["example.com/gpu"]; ok {
			t.Errorf("%s requests a device", c.Name)
		}
	}
}

// TestJobsEnd checks that a pod that runs to completion gets no sidecar.
func TestJobsEnd(t *testing.T) {
	for policy, want := range map[corev1.RestartPolicy]string{
		corev1.RestartPolicyAlways: "app status-sidecar", corev1.RestartPolicyOnFailure: "app", corev1.RestartPolicyNever: "app",
	} {
		p := fixture.Injected(t, &fixture.Pod().With(func(p *corev1.Pod) { p.Spec.RestartPolicy = policy }).Pod, fixture.Singleton("db").Mode(v1.GateScript))
		if got := names(p.Spec.Containers); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
	}
}

// TestSharingIsLeftAlone checks that the namespaces that a pod shares with its node or
// between its containers are not changed.
func TestSharingIsLeftAlone(t *testing.T) {
	before := fixture.Pod().With(func(p *corev1.Pod) {
		p.Spec.HostPID, p.Spec.HostIPC, p.Spec.HostNetwork = true, true, true
	})
	p := fixture.Injected(t, &before.Pod, fixture.Singleton("db"))
	if !p.Spec.HostPID || !p.Spec.HostIPC || !p.Spec.HostNetwork || p.Spec.ShareProcessNamespace != nil || !children.HasGate(p, &fixture.Singleton("db").StatefulSingleton) {
		t.Errorf("%v", p.Spec)
	}
}
