package children_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/internal/stranger"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

const toProof = "set spec.fencing.mode of the StatefulSingleton to Proof"

// agentOf returns the command of the agent before that of the program.
func agentOf(object, duration string, program ...string) []string {
	return slices.Concat([]string{v1.AgentInPod, "run", "--lease=" + object + ".singleton", "--duration=" + duration, "--"}, program)
}

func TestNamesOfALease(t *testing.T) {
	if got := children.LeaseName("db"); got != "db.singleton" {
		t.Error(got)
	}
}

// TestTheAgentRunsTheProgram checks the command, the probe and the mounts with fencing by a Lease.
func TestTheAgentRunsTheProgram(t *testing.T) {
	for _, r := range []struct {
		name    string
		seconds *int32
		want    string
	}{
		{"the default duration", nil, "15s"}, {"a duration of the user", ptr.To(int32(60)), "60s"},
		{"a duration below the min", ptr.To(int32(1)), "10s"}, {"a duration above the max", ptr.To(int32(6000)), "600s"},
	} {
		s := fixture.Singleton("db").Leased()
		s.Spec.Fencing.LeaseDurationSeconds = r.seconds
		live := fixture.Container("app").WithCommand("serve", "$$").WithArgs("two words").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })
		p := fixture.Injected(t, &fixture.Pod(live).Pod, s)
		c := p.Spec.Containers[0]
		if want := agentOf("db", r.want, "serve", "$$"); !slices.Equal(c.Command, want) || !slices.Equal(c.Args, []string{"two words"}) {
			t.Errorf("%s: the command is %q with %q, want %q", r.name, c.Command, c.Args, want)
		}
		if !slices.Equal(c.StartupProbe.Exec.Command, []string{v1.AgentInPod, "started"}) {
			t.Errorf("%s: the startup probe is %v", r.name, c.StartupProbe)
		}
		want, _ := time.ParseDuration(r.want)
		if got := children.LeaseDuration(p); got != want || !children.IsLeased(p, &s.StatefulSingleton) || !children.HasGate(p, &s.StatefulSingleton) {
			t.Errorf("%s: the pod has a Lease of %s", r.name, got)
		}
	}
	if got := children.LeaseDuration(fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db"))); got != 0 {
		t.Errorf("a pod without a Lease has one of %s", got)
	}
}

// TestTheFormOfAPodWithFencing checks which pods get the agent.
func TestTheFormOfAPodWithFencing(t *testing.T) {
	const agent, gate, wait, none = "agent", "gate", "wait", "none"
	for _, r := range []struct {
		name     string
		pod      *fixture.PodFixture
		singular *fixture.SingletonFixture
		want     string
	}{
		{"gate mode Auto", fixture.Pod(), fixture.Singleton("db").Leased(), agent},
		{"gate mode Binary", fixture.Pod(), fixture.Singleton("db").Leased().Mode(v1.GateBinary), agent},
		{"gate mode Init, which validation refuses", fixture.Pod(), fixture.Singleton("db").Leased().Mode(v1.GateInit), wait},
		{"gate mode Script, which validation refuses", fixture.Pod(), fixture.Singleton("db").Leased().Mode(v1.GateScript), gate},
		{"fencing mode Proof", fixture.Pod(), fixture.Singleton("db").With(func(s *v1.StatefulSingleton) { s.Spec.Fencing = &v1.Fencing{Mode: v1.FencingProof} }), gate},
		{"a pod that lacks a container of the program waits as a whole, for a grant", fixture.Pod(), fixture.Singleton("db").Leased().Containers("app", "no-such"), wait},
		{"a pod that lacks all containers of the program waits as a whole, for a grant", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.HostPID = true }), fixture.Singleton("db").Leased().Containers("no-such"), wait},
		{"a container that is not part of the program", fixture.Pod(fixture.App(), fixture.Container("log")), fixture.Singleton("db").Leased().Containers("app"), agent},
		{"the status sidecar", fixture.Pod(), fixture.Singleton("db").Leased().Sidecar(), agent},
	} {
		for _, around := range []children.Surroundings{fixture.Around(), fixture.Mounting()} {
			p := fixture.InjectedIn(t, &r.pod.Pod, r.singular, around)
			got := none
			switch c := &p.Spec.Containers[0]; {
			case slices.ContainsFunc(p.Spec.InitContainers, children.IsWait):
				got = wait
			case children.IsLeased(p, &r.singular.StatefulSingleton):
				got = agent
			case children.IsHeld(c):
				got = gate
			}
			if got != r.want || !children.HasGate(p, &r.singular.StatefulSingleton) {
				t.Errorf("%s, image volumes %t: %s, want %s", r.name, around.ImageVolumes, got, r.want)
			}
			if again := fixture.InjectedIn(t, p, r.singular, around); !apiequality.Semantic.DeepEqual(p, again) {
				t.Errorf("%s: the pod was changed again: %v", r.name, fixture.Lost("", fixture.Tree(t, again), fixture.Tree(t, p)))
			}
		}
	}
}

// TestAModeThatChangesMeanwhile checks that a pod keeps its form if the object changes between two calls.
func TestAModeThatChangesMeanwhile(t *testing.T) {
	plain, leased := fixture.Singleton("db"), fixture.Singleton("db").Leased()
	noCommand := fixture.Pod(fixture.Container("app"))
	for _, r := range []struct {
		name        string
		pod         *fixture.PodFixture
		first, then *fixture.SingletonFixture
	}{
		{"from Proof to Lease", fixture.Pod(), plain, leased}, {"from Lease to Proof", fixture.Pod(), leased, plain},
		{"from Lease to gate mode Init", fixture.Pod(), leased, fixture.Singleton("db").Mode(v1.GateInit)},
		{"from Lease to gate mode Script", fixture.Pod(), leased, fixture.Singleton("db").Mode(v1.GateScript)},
		{"to another duration", fixture.Pod(), leased, fixture.Singleton("db").Leased().With(func(s *v1.StatefulSingleton) { s.Spec.Fencing.LeaseDurationSeconds = ptr.To(int32(99)) })},
		{"from gate mode Init to Lease", fixture.Pod(), fixture.Singleton("db").Mode(v1.GateInit), leased},
		{"of a pod that waits as a whole, from Proof to Lease", noCommand, plain, leased},
		{"of a pod that waits as a whole, from Proof to Lease with gate mode Binary", noCommand, plain, fixture.Singleton("db").Leased().Mode(v1.GateBinary)},
	} {
		for _, around := range []children.Surroundings{fixture.Around(), fixture.Mounting()} {
			once := fixture.InjectedIn(t, &r.pod.Pod, r.first, around)
			if again := fixture.InjectedIn(t, once, r.then, around); !apiequality.Semantic.DeepEqual(once, again) || !children.HasGate(again, &r.then.StatefulSingleton) {
				t.Errorf("%s: the pod was changed again: %v", r.name, fixture.Lost("", fixture.Tree(t, again), fixture.Tree(t, once)))
			}
		}
	}
}

// TestTheAgentStaysProcess1 checks a webhook that adds a wrapper before the agent.
func TestTheAgentStaysProcess1(t *testing.T) {
	s := fixture.Singleton("db").Leased()
	p := fixture.Injected(t, &fixture.Pod(fixture.Container("app").WithCommand("serve", "--", "run")).Pod, s)
	p.Spec.Containers[0].Command = append([]string{"/vault-env", "--"}, p.Spec.Containers[0].Command...)
	again := fixture.Injected(t, p, s)
	if got, want := again.Spec.Containers[0].Command, agentOf("db", "15s", "/vault-env", "--", "serve", "--", "run"); !slices.Equal(got, want) {
		t.Errorf("the command is %q, want %q", got, want)
	}
	changes, err := webhooks.Changes(p, again)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var patched corev1.Pod
	if err := json.Unmarshal(stranger.Patched(t, text, &admissionv1.AdmissionResponse{Patch: patch}), &patched); err != nil {
		t.Fatal(err)
	}
	if !apiequality.Semantic.DeepEqual(&patched, again) {
		t.Errorf("the patch makes %q", patched.Spec.Containers[0].Command)
	}
}

// TestIdempotentWithALease is TestS4Idempotent with fencing by a Lease.
func TestIdempotentWithALease(t *testing.T) {
	injected := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 11))
		before := fixture.RandomPod(r)
		before.Spec.HostPID, before.Spec.ShareProcessNamespace = false, nil
		s := fixture.Singleton("db").Leased().Containers("app")
		if fixture.Maybe(r, 3) {
			s.Sidecar()
		}
		around := fixture.Around()
		around.ImageVolumes = fixture.Maybe(r, 2)
		once := before.DeepCopy()
		if errs := children.Inject(once, &s.StatefulSingleton, around); len(errs) > 0 {
			if !apiequality.Semantic.DeepEqual(once, before) {
				t.Fatalf("seed %d: the pod was refused and changed", seed)
			}
			if text := errs.ToAggregate().Error(); strings.Contains(text, "gateMode") || !strings.Contains(text, toProof) {
				t.Fatalf("seed %d: the remedy is missing, or does not help: %s", seed, text)
			}
			continue
		}
		injected++
		around.ImageVolumes = fixture.Maybe(r, 2)
		if twice := fixture.InjectedIn(t, once, s, around); !apiequality.Semantic.DeepEqual(once, twice) {
			t.Fatalf("seed %d: the second injection added:\n%v", seed, fixture.Lost("", fixture.Tree(t, twice), fixture.Tree(t, once)))
		}
		old, now := fixture.Tree(t, before), fixture.Tree(t, once)
		delete(old.(map[string]any)["spec"].(map[string]any), "terminationGracePeriodSeconds") // S5
		if gone := fixture.Lost("pod", old, now); len(gone) > 0 {
			t.Fatalf("seed %d: fields of the user's pod were removed or changed: %v", seed, gone)
		}
	}
	if injected < 500 {
		t.Errorf("only %d pods were injected", injected)
	}
}

// TestWhatTheAgentCannotRun checks that pods in which the agent cannot run the program are rejected.
func TestWhatTheAgentCannotRun(t *testing.T) {
	leased := fixture.Singleton("db").Leased()
	const first = `Forbidden: it must be false in fencing mode Lease: the agent ends the program by ending process 1 of its container; set it to false, or ` + toProof
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	moved := fixture.Pod(fixture.Container("app").WithCommand("/vault-env").WithArgs(agentOf("db", "15s", "serve")...))
	foreign := fencing.Volume(v1.VolumeFencing).VolumeSource
	foreign.Projected.Sources[1].ConfigMap.Name = "mine"
	for _, r := range []refusal{
		{"no command", fixture.Pod(fixture.Container("app").WithArgs("x")), leased,
			`spec.containers[0].command: Required value: fencing mode Lease runs the command of the container, and the entrypoint of the image is unknown; set the command, or ` + toProof + `, or list the containers of the program in its spec.containers if this is not one`},
		{"a startup probe", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} })), leased,
			`spec.containers[0].startupProbe: Forbidden: it would fail and stop the container while the program waits; ` + toProof},
		{"a postStart hook", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}} })), leased,
			`spec.containers[0].lifecycle.postStart: Forbidden: it would run while the program waits, and stop the container if it fails; ` + toProof},
		{"a liveness probe with a delay", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{InitialDelaySeconds: 9} })), leased,
			`spec.containers[0].livenessProbe.initialDelaySeconds: Forbidden: it begins with the start of the container, and would be over when the program starts; ` + toProof},
		{"two containers", fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship")), leased,
			`spec.containers: Forbidden: the program has 2 containers, and fencing mode Lease requires exactly one; list the container of the program in spec.containers of the StatefulSingleton, or set its spec.fencing.mode to Proof`},
		{"two containers in spec.containers", fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship")), fixture.Singleton("db").Leased().Containers("app", "log"),
			`spec.containers: Forbidden: the program has 2 containers, and fencing mode Lease requires exactly one; list the container of the program in spec.containers of the StatefulSingleton, or set its spec.fencing.mode to Proof`},
		{"hostPID", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.HostPID = true }), leased, `spec.hostPID: ` + first},
		{"shareProcessNamespace", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = ptr.To(true) }), leased, `spec.shareProcessNamespace: ` + first},
		{"shareProcessNamespace false", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.ShareProcessNamespace = ptr.To(false) }), leased, ""},
		{"a pod without a token of its service account", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = ptr.To(false) }), leased, ""},
		{"a fencing-volume of another client", fixture.Pod().Volume(v1.VolumeFencing, foreign), leased, `spec.volumes[0].name: Invalid value: "fencing-volume"` + anotherName},
		{"a fencing-volume is accepted without fencing by a Lease", fixture.Pod(fixture.App().Mount(v1.VolumeFencing, "/x")).Volume(v1.VolumeFencing, emptyDir), fixture.Singleton("db"), ""},
		{"a mount at ours", fixture.Pod(fixture.App().Mount("data", "/run/fencing")).Volume("data", emptyDir), leased,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/run/fencing": the operator mounts its own volume at /var/run/fencing; mount yours elsewhere, or ` + toProof},
		{"a mount of the fencing-volume at another path", fixture.Pod(fixture.App().Mount(v1.VolumeFencing, "/x")), leased, `spec.containers[0].volumeMounts[0].name: Forbidden: volume fencing-volume` + alone},
		{"an init container that mounts the fencing-volume", fixture.Pod(fixture.App()).Inits(fixture.Container("own").Mount(v1.VolumeFencing, v1.PathFencing)), leased, `spec.initContainers[0].volumeMounts[0].name: Forbidden: volume fencing-volume` + alone},
		{"an agent that another webhook has moved", moved, leased,
			`spec.containers[0].args: Forbidden: another webhook has moved the agent there, which must be process 1 of the container; exclude the pod from that webhook, or ` + toProof},
		{"the agent of another object", fixture.Pod(fixture.Container("app").WithCommand(agentOf("web", "15s", "serve")...)), fixture.Singleton("db"),
			`spec.containers[0].command: Forbidden: it runs /var/run/gate/agent with a Lease of another object, or an invalid duration; remove the agent from the command, because the operator adds it`},
		{"the agent with an invalid duration", fixture.Pod(fixture.Container("app").WithCommand(agentOf("db", "9s", "serve")...)), leased,
			`spec.containers[0].command: Forbidden: it runs /var/run/gate/agent with a Lease of another object, or an invalid duration; remove the agent from the command, because the operator adds it`},
		{"a pod with the agent that lacks a container", fixture.Pod(fixture.Container("app").WithCommand(agentOf("db", "15s", "serve")...)), fixture.Singleton("db").Leased().Containers("app", "log"),
			`spec.containers: Forbidden: spec.containers of the StatefulSingleton was changed while this pod was created; create the pod again`},
	} {
		t.Run(r.name, r.check)
	}
}

// leaseRow is a change of an injected pod, and the results of HasGate and IsLeased.
type leaseRow struct {
	name              string
	change            func(*corev1.Pod)
	singular          *fixture.SingletonFixture
	hasGate, isLeased bool
}

// check checks also that the guard decides as HasGate does.
func (r leaseRow) check(t *testing.T) {
	p := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Leased())
	r.change(p)
	if got := children.HasGate(p, &r.singular.StatefulSingleton); got != r.hasGate {
		t.Errorf("HasGate is %t", got)
	}
	if got := children.IsLeased(p, &r.singular.StatefulSingleton); got != r.isLeased {
		t.Errorf("IsLeased is %t", got)
	}
	want := noGate
	if r.hasGate {
		want = ""
	}
	if got := newGuard(t, nil, &r.singular.StatefulSingleton).create(p); got != responseOf(want) {
		t.Errorf("the guard returns %q", got)
	}
}

// program returns a change of the container of the program.
func program(change func(*corev1.Container)) func(*corev1.Pod) {
	return func(p *corev1.Pod) { change(&p.Spec.Containers[0]) }
}

// TestWhoIsLeased checks pods by their containers.
func TestWhoIsLeased(t *testing.T) {
	s := fixture.Singleton("db").Leased()
	for _, r := range []leaseRow{
		{"an injected pod", func(*corev1.Pod) {}, s, true, true},
		{"the mode was changed since", func(*corev1.Pod) {}, fixture.Singleton("db").Mode(v1.GateInit), true, true},
		{"the max duration", program(func(c *corev1.Container) { c.Command[3] = "--duration=600s" }), s, true, true},
		{"the Lease of another object", program(func(c *corev1.Container) { c.Command[2] = "--lease=web.singleton" }), s, false, false},
		{"no Lease", program(func(c *corev1.Container) { c.Command[2] = "--lease=" }), s, false, false},
		{"a duration below the min", program(func(c *corev1.Container) { c.Command[3] = "--duration=9s" }), s, false, false},
		{"a duration above the max", program(func(c *corev1.Container) { c.Command[3] = "--duration=601s" }), s, false, false},
		{"a duration in another unit", program(func(c *corev1.Container) { c.Command[3] = "--duration=15m" }), s, false, false},
		{"a duration of two", program(func(c *corev1.Container) { c.Command[3] = "--duration=15s --duration=15s" }), s, false, false},
		{"another command of the agent", program(func(c *corev1.Container) { c.Command[1] = "started" }), s, false, false},
		{"no program", program(func(c *corev1.Container) { c.Command = c.Command[:5] }), s, false, false},
		{"a wrapper before the agent", program(func(c *corev1.Container) { c.Command = append([]string{"/vault-env"}, c.Command...) }), s, false, false},
		{"an agent that other containers can write to", func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, fixture.Container("own").Mount(v1.VolumeGate, "/x").Container)
		}, s, false, true},
		{"two containers with the agent", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, twin(p)) }, s, false, false},
		{"two containers, one of them the program", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, twin(p)) }, fixture.Singleton("db").Containers("app"), true, true},
		{"a container with a gate, and one with the agent", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, fixture.Container("log").WithCommand(v1.GateInPod, "run", "--", "ship").Container)
		}, s, false, false},
		{"a pod that lacks a container", func(*corev1.Pod) {}, fixture.Singleton("db").Containers("app", "log"), false, true},
		{"a pod that waits as a whole", func(p *corev1.Pod) {
			p.Spec.InitContainers = fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Mode(v1.GateInit)).Spec.InitContainers
		}, s, true, false},
	} {
		t.Run(r.name, r.check)
	}
}

// TestTheFencingVolumeIsOurs checks pods by their volumes, and the mounts of them.
func TestTheFencingVolumeIsOurs(t *testing.T) {
	s := fixture.Singleton("db").Leased()
	fencing := func(change func(*corev1.ProjectedVolumeSource)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(p.Spec.Volumes[2].Projected) }
	}
	for _, r := range []leaseRow{
		{"no fencing-volume", func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[:2] }, s, false, true},
		{"the certificates of another client", fencing(func(v *corev1.ProjectedVolumeSource) { v.Sources[1].ConfigMap.Name = "mine" }), s, false, true},
		{"other certificates", fencing(func(v *corev1.ProjectedVolumeSource) { v.Sources[1].ConfigMap.Items[0].Key = "mine" }), s, false, true},
		{"optional certificates", fencing(func(v *corev1.ProjectedVolumeSource) { v.Sources[1].ConfigMap.Optional = ptr.To(true) }), s, false, true},
		{"a token for another audience", fencing(func(v *corev1.ProjectedVolumeSource) { v.Sources[0].ServiceAccountToken.Audience = "x" }), s, false, true},
		{"a token of another lifetime", fencing(func(v *corev1.ProjectedVolumeSource) {
			v.Sources[0].ServiceAccountToken.ExpirationSeconds = ptr.To(int64(600))
		}), s, false, true},
		{"the identity of another pod", fencing(func(v *corev1.ProjectedVolumeSource) {
			v.Sources[2].DownwardAPI.Items[2].FieldRef.FieldPath = "metadata.labels['uid']"
		}), s, false, true},
		{"another namespace", fencing(func(v *corev1.ProjectedVolumeSource) {
			v.Sources[2].DownwardAPI.Items[0].FieldRef.FieldPath = "metadata.name"
		}), s, false, true},
		{"an additional file of the pod", fencing(func(v *corev1.ProjectedVolumeSource) {
			v.Sources[2].DownwardAPI.Items = append(v.Sources[2].DownwardAPI.Items, v.Sources[2].DownwardAPI.Items[0])
		}), s, false, true},
		{"an additional source", fencing(func(v *corev1.ProjectedVolumeSource) { v.Sources = append(v.Sources, v.Sources[1]) }), s, false, true},
		{"another mode of the files", fencing(func(v *corev1.ProjectedVolumeSource) { v.DefaultMode = ptr.To(int32(0o600)) }), s, false, true},
		{"another volume of that name", func(p *corev1.Pod) { p.Spec.Volumes[2].VolumeSource = corev1.VolumeSource{} }, s, false, true},
		{"a writable mount of the fencing-volume", program(func(c *corev1.Container) { c.VolumeMounts[2].ReadOnly = false }), s, false, true},
		{"a mount of the fencing-volume at another path", program(func(c *corev1.Container) { c.VolumeMounts[2].MountPath = "/x" }), s, false, true},
		{"a part of the fencing-volume", program(func(c *corev1.Container) { c.VolumeMounts[2].SubPath = "x" }), s, false, true},
		{"no signal volume", func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[1:] }, s, false, true},
	} {
		t.Run(r.name, r.check)
	}
}

// twin returns a copy of the container of the program.
func twin(p *corev1.Pod) corev1.Container {
	c := *p.Spec.Containers[0].DeepCopy()
	c.Name = "twin"
	return c
}

// TestTheLongestLeaseCounts checks that a container that is not the program cannot shorten the Lease.
func TestTheLongestLeaseCounts(t *testing.T) {
	p := fixture.Pod(fixture.Container("log").WithCommand(agentOf("db", "10s", "x")...), fixture.Container("app").WithCommand(agentOf("db", "60s", "x")...),
		fixture.Container("bad").WithCommand(agentOf("db", "6000s", "x")...))
	if got := children.LeaseDuration(&p.Pod); got != time.Minute {
		t.Errorf("the duration is %s", got)
	}
}

// TestTheAgentNeedsNoGrant checks that a program that runs without a grant is no sign of a foreign gate.
func TestTheAgentNeedsNoGrant(t *testing.T) {
	live := fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })
	status := &corev1.ContainerStatus{Started: ptr.To(true)}
	ended := &corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}
	for s, want := range map[*fixture.SingletonFixture]bool{fixture.Singleton("db"): true, fixture.Singleton("db").Leased(): false} {
		c := &fixture.Injected(t, &fixture.Pod(live).Pod, s).Spec.Containers[0]
		if children.LetThrough(c, status) != want || children.LetThrough(c, ended) != want {
			t.Errorf("with fencing %v the container was let through: %t", s.Spec.Fencing, !want)
		}
	}
}

// TestWhereTheAgentIs is TestW16WhereTheGateIs with fencing by a Lease.
func TestWhereTheAgentIs(t *testing.T) {
	for limit, medium := range map[string]corev1.StorageMedium{"256Mi": corev1.StorageMediumDefault, "255Mi": corev1.StorageMediumMemory} {
		p := &fixture.Pod().Pod
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(limit)}
		p = fixture.Injected(t, p, fixture.Singleton("db").Leased())
		if got := gateVolumeOf(p).EmptyDir; got.Medium != medium || got.SizeLimit.String() != "64Mi" {
			t.Errorf("with a limit of %s the volume is %v", limit, got)
		}
	}
}
