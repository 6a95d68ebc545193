package children_test

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// TestS3AMatchingPodGetsTheGate checks the complete set of additions against the files in
// testdata.
func TestS3AMatchingPodGetsTheGate(t *testing.T) {
	whole := fixture.Pod(
		fixture.Container("app").WithImage("app:1").WithCommand("serve", "--data", "/data").WithArgs("two words").WithResources("100m/64Mi", "100m/64Mi").Mount("data", "/data"),
		fixture.Container("log").WithImage("log:1").WithResources("10m/16Mi", "10m/16Mi"),
	).Inits(fixture.Container("migrate").WithImage("app:1").WithCommand("migrate").WithResources("100m/64Mi", "100m/64Mi")).
		Volume("data", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	for file, s := range map[string]*fixture.SingletonFixture{
		"injected-binary.yaml":  fixture.Singleton("db").Mode(v1.GateBinary).Containers("app"),
		"injected-sidecar.yaml": fixture.Singleton("db").Mode(v1.GateBinary).Containers("app").Sidecar(),
		"injected-script.yaml":  fixture.Singleton("db").Mode(v1.GateScript).Containers("app"),
		"injected-init.yaml":    fixture.Singleton("db").Mode(v1.GateInit),
		"injected-lease.yaml":   fixture.Singleton("db").Containers("app").Leased(),
	} {
		t.Run(file, func(t *testing.T) {
			text, err := yaml.Marshal(fixture.Injected(t, &whole.Pod, s))
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", file), string(text))
		})
	}
}

// TestAuto checks the default mode of a pod (S3).
func TestAuto(t *testing.T) {
	hook := &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}}
	for _, r := range []struct {
		name string
		pod  *fixture.PodFixture
		want v1.GateMode
	}{
		{"a container with a command waits in the container", fixture.Pod(), v1.GateBinary},
		{"a container with arguments only holds back the whole pod: the entrypoint of the image is unknown", fixture.Pod(fixture.Container("app").WithArgs("serve")), v1.GateInit},
		{"a container without command and arguments holds back the whole pod", fixture.Pod(fixture.Container("app")), v1.GateInit},
		{"two containers with commands wait in the containers", fixture.Pod(fixture.Container("app").WithCommand("a"), fixture.Container("log").WithCommand("b")), v1.GateBinary},
		{"one of two containers without a command holds back the whole pod", fixture.Pod(fixture.Container("app").WithCommand("a"), fixture.Container("log")), v1.GateInit},
		{"S20 a startup probe would kill a waiting container", fixture.Pod(fixture.Container("app").WithCommand("a").With(func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} })), v1.GateInit},
		{"S20 a postStart hook would run at the same time as the old program", fixture.Pod(fixture.Container("app").WithCommand("a").With(func(c *corev1.Container) { c.Lifecycle = hook })), v1.GateInit},
		{"S20 a liveness probe that begins at once can wait for the grant", fixture.Pod(fixture.Container("app").WithCommand("a").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })), v1.GateBinary},
		{"S20 a liveness probe with a delay cannot wait for the grant: the delay would be over", fixture.Pod(fixture.Container("app").WithCommand("a").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{InitialDelaySeconds: 1} })), v1.GateInit},
		{"a readiness probe has no influence", fixture.Pod(fixture.Container("app").WithCommand("a").With(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{InitialDelaySeconds: 9} })), v1.GateBinary},
		{"init containers have no influence", fixture.Pod().Inits(fixture.Container("one")), v1.GateBinary},
	} {
		p := fixture.Injected(t, &r.pod.Pod, fixture.Singleton("db"))
		got := v1.GateBinary
		if slices.ContainsFunc(p.Spec.InitContainers, children.IsWait) {
			got = v1.GateInit
		}
		if got != r.want {
			t.Errorf("%s: %s, want %s", r.name, got, r.want)
		}
	}
	mesh := fixture.Pod(fixture.Container("app").WithCommand("a"), fixture.Container("mesh"))
	if p := fixture.Injected(t, &mesh.Pod, fixture.Singleton("db").Containers("app")); !children.IsHeld(&p.Spec.Containers[0]) || children.IsHeld(&p.Spec.Containers[1]) {
		t.Error("a container that is not part of the program needs a command")
	}
}

// TestS4Idempotent checks that existing parts are not added again, including those of other
// clients.
func TestS4Idempotent(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		before := fixture.RandomPod(r)
		s := fixture.Singleton("db").Mode(fixture.One(r, v1.GateAuto, v1.GateBinary, v1.GateScript, v1.GateInit))
		if fixture.Maybe(r, 3) {
			s.Sidecar()
		}
		if fixture.Maybe(r, 3) {
			s.Containers("app")
		}
		once := before.DeepCopy()
		around := fixture.Around()
		around.ImageVolumes = fixture.Maybe(r, 2)
		if errs := children.Inject(once, &s.StatefulSingleton, around); len(errs) > 0 {
			if !apiequality.Semantic.DeepEqual(once, before) {
				t.Fatalf("seed %d: the pod was refused and changed", seed)
			}
			continue
		}
		twice := once.DeepCopy()
		around.ImageVolumes = fixture.Maybe(r, 2) // a Node may have joined
		if errs := children.Inject(twice, &s.StatefulSingleton, around); len(errs) > 0 {
			t.Fatalf("seed %d: the second injection is refused: %v", seed, errs.ToAggregate())
		}
		if !apiequality.Semantic.DeepEqual(once, twice) {
			t.Fatalf("seed %d: the second injection added:\n%v", seed, fixture.Lost("", fixture.Tree(t, twice), fixture.Tree(t, once)))
		}
		if !children.HasGate(once, &s.StatefulSingleton) {
			t.Fatalf("seed %d: the pod has no gate", seed)
		}
		old, now := fixture.Tree(t, before), fixture.Tree(t, once)
		delete(old.(map[string]any)["spec"].(map[string]any), "terminationGracePeriodSeconds") // S5
		if gone := fixture.Lost("pod", old, now); len(gone) > 0 {
			t.Fatalf("seed %d: fields of the user's pod were removed or changed: %v", seed, gone)
		}
	}
}

func TestS4WhatIsThereIsKept(t *testing.T) {
	gate := corev1.PodReadinessGate{ConditionType: v1.ReadinessGate}
	own := fixture.Pod(fixture.Container("app").WithCommand("serve").Mount(v1.VolumeSignal, v1.PathSignal).With(func(c *corev1.Container) {
		c.Env = []corev1.EnvVar{{Name: v1.EnvOriginalEntrypoint, Value: "mine"}}
	})).Volume(v1.VolumeSignal, children.SignalVolume().VolumeSource).With(func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{gate}
		children.KeepApart(p, &fixture.Singleton("db").StatefulSingleton)
		p.Spec.Containers = append(p.Spec.Containers, children.SidecarContainer(p, "an/older:image"))
	})
	p := fixture.Injected(t, &own.Pod, fixture.Singleton("db").Mode(v1.GateBinary).Sidecar())
	for what, count := range map[string]int{
		"readiness gate":             len(p.Spec.ReadinessGates),
		"anti-affinity":              len(p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution),
		"sidecar":                    len(p.Spec.Containers) - 1,
		"signal volume":              len(p.Spec.Volumes) - 1,                    // and the gate's
		"mount of the signal volume": len(p.Spec.Containers[0].VolumeMounts) - 1, // and the gate's
		"ORIGINAL_ENTRYPOINT":        len(p.Spec.Containers[0].Env),
		"install container":          len(p.Spec.InitContainers),
	} {
		if count != 1 {
			t.Errorf("%d times %s", count, what)
		}
	}
	if p.Spec.Containers[1].Image != "an/older:image" || p.Spec.Containers[0].Env[0].Value != "mine" {
		t.Error("an existing variable was replaced")
	}
}

// TestReinvocation checks a second call of our webhook after other webhooks.
func TestReinvocation(t *testing.T) {
	s := fixture.Singleton("db")
	t.Run("a mesh adds a container without a command: the whole pod waits", func(t *testing.T) {
		p := fixture.Injected(t, &fixture.Pod().Pod, s)
		p.Spec.Containers = append(p.Spec.Containers, fixture.Container("mesh").Container)
		p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, fixture.Container("mesh-init").Container)
		again := fixture.Injected(t, p, s)
		if got, want := names(again.Spec.InitContainers), "gate-install gate-image-1 gate-image-2 gate-image-3 gate-wait mesh-init"; got != want {
			t.Errorf("init containers %s, want %s", got, want)
		}
		if !reflect.DeepEqual(p.Spec.Containers, again.Spec.Containers) {
			t.Error("the containers were changed")
		}
	})
	t.Run("a mesh adds a container that is not part of the program", func(t *testing.T) {
		p := fixture.Injected(t, &fixture.Pod().Pod, s.Containers("app"))
		p.Spec.Containers = append(p.Spec.Containers, fixture.Container("mesh").Container)
		if again := fixture.Injected(t, p, s); !apiequality.Semantic.DeepEqual(p, again) {
			t.Error("the pod was changed again")
		}
		s.Containers()
	})
	t.Run("a pod that waits as a whole still does when its container gets a command", func(t *testing.T) {
		p := fixture.Injected(t, &fixture.Pod(fixture.Container("app")).Pod, s)
		p.Spec.Containers[0].Command = []string{"serve"}
		if again := fixture.Injected(t, p, s); !apiequality.Semantic.DeepEqual(p, again) {
			t.Error("the pod was changed again")
		}
	})
	t.Run("an added argument is passed to the program", func(t *testing.T) {
		p := fixture.Injected(t, &fixture.Pod(fixture.Container("app").WithCommand("serve").WithArgs("one")).Pod, s)
		p.Spec.Containers[0].Args = append(p.Spec.Containers[0].Args, "two")
		again := fixture.Injected(t, p, s).Spec.Containers[0]
		if got := strings.Join(slices.Concat(again.Command, again.Args), " "); got != v1.GateInPod+" run -- serve one two" {
			t.Errorf("the command is %s", got)
		}
	})
	t.Run("a wrapper that is added before the gate waits as well", func(t *testing.T) {
		live := fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} })
		p := fixture.Injected(t, &fixture.Pod(live).Pod, s)
		p.Spec.Containers[0].Command = append([]string{"/vault-env"}, p.Spec.Containers[0].Command...)
		if again := fixture.Injected(t, p, s); !children.IsHeld(&again.Spec.Containers[0]) || again.Spec.Containers[0].Command[3] != "/vault-env" {
			t.Errorf("the command is %q", again.Spec.Containers[0].Command)
		}
	})
	t.Run("an image from a registry mirror and defaults of the API server do not make the gate foreign", func(t *testing.T) {
		p := fixture.Injected(t, &fixture.Pod(fixture.Container("app")).Pod, s.Sidecar())
		for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
			for i := range list {
				list[i].Image = "mirror/" + list[i].Image
				list[i].TerminationMessagePath, list[i].ImagePullPolicy = "/dev/termination-log", corev1.PullIfNotPresent
				list[i].VolumeMounts = append(list[i].VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token"})
			}
		}
		p.Spec.Volumes[0].DownwardAPI.DefaultMode = ptr.To(int32(0o644))
		if again := fixture.Injected(t, p, s); !apiequality.Semantic.DeepEqual(p, again) {
			t.Errorf("the pod was changed again: %v", fixture.Lost("", fixture.Tree(t, again), fixture.Tree(t, p)))
		}
	})
}

// TestS5GracePeriod checks which grace period takes effect.
func TestS5GracePeriod(t *testing.T) {
	for _, r := range []struct {
		name     string
		singular *fixture.SingletonFixture
		own      *int64
		want     *int64
	}{
		{"120 raises the pod's 60", fixture.Singleton("db").Grace(120, false), ptr.To(int64(60)), ptr.To(int64(120))},
		{"60 keeps the pod's 180, with respectPodGracePeriod true", fixture.Singleton("db").Grace(60, true), ptr.To(int64(180)), ptr.To(int64(180))},
		{"60 keeps the pod's 180, with respectPodGracePeriod false", fixture.Singleton("db").Grace(60, false), ptr.To(int64(180)), ptr.To(int64(180))},
		{"60 raises the pod's 30, with respectPodGracePeriod true", fixture.Singleton("db").Grace(60, true), ptr.To(int64(30)), ptr.To(int64(60))},
		{"0 keeps the pod's 7", fixture.Singleton("db").Grace(0, false), ptr.To(int64(7)), ptr.To(int64(7))},
		{"-1 keeps the pod's 7", fixture.Singleton("db").Grace(-1, true), ptr.To(int64(7)), ptr.To(int64(7))},
		{"0 keeps an unset value", fixture.Singleton("db").Grace(0, true), nil, nil},
		{"20 keeps an unset value, whose default is 30", fixture.Singleton("db").Grace(20, true), nil, nil},
		{"the default of 30 raises the pod's 10", fixture.Singleton("db"), ptr.To(int64(10)), ptr.To(int64(30))},
	} {
		p := fixture.Pod().With(func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = r.own })
		if got := fixture.Injected(t, &p.Pod, r.singular).Spec.TerminationGracePeriodSeconds; !reflect.DeepEqual(got, r.want) {
			t.Errorf("%s: %v, want %v", r.name, ptr.Deref(got, -1), ptr.Deref(r.want, -1))
		}
	}
}

// TestAGracePeriodIsShortenedByConsent checks that only the author of a pod may allow a
// shorter period.
func TestAGracePeriodIsShortenedByConsent(t *testing.T) {
	for _, r := range []struct {
		name, word string
		respect    bool
		want       int64
	}{
		{"without the annotation", "", false, 180}, {"with annotation true", "true", false, 60},
		{"with annotation yes", "yes", false, 180}, {"with annotation true, and respectPodGracePeriod true", "true", true, 180},
	} {
		p := fixture.Pod().With(func(p *corev1.Pod) {
			p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(180))
			p.Annotations = map[string]string{v1.AnnotationShortenGrace: r.word}
		})
		if got := *fixture.Injected(t, &p.Pod, fixture.Singleton("db").Grace(60, r.respect)).Spec.TerminationGracePeriodSeconds; got != r.want {
			t.Errorf("%s: %d, want %d", r.name, got, r.want)
		}
	}
}

// TestAPodThatLacksAContainerWaitsAsAWhole checks that with a wrong name in spec.containers
// the selected pods are created, and wait as a whole.
func TestAPodThatLacksAContainerWaitsAsAWhole(t *testing.T) {
	for _, mode := range fixture.Modes {
		s := fixture.Singleton("db").Mode(mode).Containers("app", "no-such")
		p := fixture.Injected(t, &fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship")).Pod, s)
		if !slices.ContainsFunc(p.Spec.InitContainers, children.IsWait) || children.IsHeld(&p.Spec.Containers[0]) || !children.HasGate(p, &s.StatefulSingleton) {
			t.Errorf("%s: the pod is not held back as a whole: %s, with %q", mode, names(p.Spec.InitContainers), p.Spec.Containers[0].Command)
		}
		if again := fixture.Injected(t, p, s); !apiequality.Semantic.DeepEqual(p, again) {
			t.Errorf("%s: the pod was changed again: %v", mode, fixture.Lost("", fixture.Tree(t, again), fixture.Tree(t, p)))
		}
		said := webhooks.PodWarnings(&fixture.Pod(fixture.App()).Pod, &s.StatefulSingleton)
		const want = "StatefulSingleton db holds back this pod as a whole, because it has no container no-such, which spec.containers of the StatefulSingleton lists as part of the program"
		if wanted := mode != v1.GateInit; wanted != (len(said) == 1 && said[0] == want) || !wanted && len(said) > 0 {
			t.Errorf("%s: warnings %q", mode, said)
		}
	}
}

// TestAPodSaysWhichObjectItWasMadeUnder checks that the webhook records the object that a
// pod was created under, and overwrites an existing value.
func TestAPodSaysWhichObjectItWasMadeUnder(t *testing.T) {
	forged := fixture.Pod().With(func(p *corev1.Pod) { p.Annotations = map[string]string{v1.AnnotationSingletonUID: "uid-of-another"} })
	for name, p := range map[string]*corev1.Pod{"a pod without the annotation": &fixture.Pod().Pod, "a pod with the UID of another object": &forged.Pod} {
		if got := fixture.Injected(t, p, fixture.Singleton("db")).Annotations[v1.AnnotationSingletonUID]; got != "uid-of-db" {
			t.Errorf("%s: the annotation is %q", name, got)
		}
	}
}

// TestS18ArgumentsAreCarriedVerbatim checks that every argument reaches the program
// unchanged.
func TestS18ArgumentsAreCarriedVerbatim(t *testing.T) {
	words := []string{"two words", `"quoted"`, "it's", ";", "a;b", "$(id -u)", "$(HOME)", "$$", "`id`", "a,b", "[", "]", "{}", "line\nbreak", "", "daemon off;", "&&", "<>&", "\\n", "--", "ü", "\u2028"}
	for mode, prefix := range map[v1.GateMode][]string{v1.GateBinary: {v1.GateInPod, "run", "--"}, v1.GateScript: {v1.ScriptInPod}} {
		before := fixture.Pod(fixture.Container("app").WithCommand(slices.Concat([]string{"nginx"}, words)...).WithArgs(words...))
		c := fixture.Injected(t, &before.Pod, fixture.Singleton("db").Mode(mode)).Spec.Containers[0]
		if got, want := c.Command, slices.Concat(prefix, []string{"nginx"}, words); !slices.Equal(got, want) {
			t.Errorf("%s: command %q, want %q", mode, got, want)
		}
		if !slices.Equal(c.Args, words) {
			t.Errorf("%s: args %q", mode, c.Args)
		}
		// The kubelet replaces $$ by $ in the value of a variable.
		text := strings.ReplaceAll(c.Env[0].Value, "$$", "$")
		var original struct {
			Command, Args []string
			Image         string
		}
		if err := json.Unmarshal([]byte(text), &original); err != nil {
			t.Fatal(err)
		}
		if c.Env[0].Name != "ORIGINAL_ENTRYPOINT" || !slices.Equal(original.Command, before.Spec.Containers[0].Command) ||
			!slices.Equal(original.Args, words) || original.Image != "app:1" {
			t.Errorf("%s: %s has value %s", mode, c.Env[0].Name, text)
		}
		if strings.Contains(text, `\u0026`) || strings.HasSuffix(text, "\n") {
			t.Errorf("%s: the JSON is escaped for HTML: %s", mode, text)
		}
	}
}

func TestS18WhatIsUnsetIsNull(t *testing.T) {
	c := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db")).Spec.Containers[0]
	if got, want := c.Env[0].Value, `{"command":["serve"],"args":null,"image":"app:1"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if c.Args != nil {
		t.Errorf("args %q", c.Args)
	}
}

// TestALongCommandHasNoVariable checks that there is no variable that is too long, because
// the kernel would not start the program.
func TestALongCommandHasNoVariable(t *testing.T) {
	c := fixture.Injected(t, &fixture.Pod(fixture.Container("app").WithCommand("sh", "-c", strings.Repeat("$", 33<<10))).Pod, fixture.Singleton("db")).Spec.Containers[0]
	if len(c.Env) > 0 || len(c.Command) != 6 {
		t.Errorf("%d variables, %d words", len(c.Env), len(c.Command))
	}
}

// TestS20AWaitingProgramIsNotProbed checks that the kubelet does not probe a waiting
// program.
func TestS20AWaitingProgramIsNotProbed(t *testing.T) {
	probed := fixture.Pod(fixture.Container("app").WithCommand("serve").With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} }),
		fixture.Container("other").WithCommand("serve"))
	for mode, want := range map[v1.GateMode]string{v1.GateBinary: "/var/run/gate/gate status", v1.GateScript: "/bin/sh -c read"} {
		p := fixture.Injected(t, &probed.Pod, fixture.Singleton("db").Mode(mode))
		probe := p.Spec.Containers[0].StartupProbe
		if probe == nil || probe.FailureThreshold < 1<<30 || !strings.HasPrefix(strings.Join(probe.Exec.Command, " "), want) {
			t.Errorf("%s: the startup probe is %v", mode, probe)
		}
		if p.Spec.Containers[1].StartupProbe != nil {
			t.Errorf("%s: a container without a liveness probe got a startup probe", mode)
		}
	}
	if p := fixture.Injected(t, &probed.Pod, fixture.Singleton("db").Mode(v1.GateInit)); p.Spec.Containers[0].StartupProbe != nil {
		t.Error("containers were changed in mode Init")
	}
}

// TestS22Placement checks that the next pod prefers a different node, if possible.
func TestS22Placement(t *testing.T) {
	want := `{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"podAffinityTerm":` +
		`{"labelSelector":{"matchLabels":{"apps.statefulsingleton.com/singleton":"db"}},"topologyKey":"kubernetes.io/hostname"}}]}}`
	p := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db"))
	if got, _ := json.Marshal(p.Spec.Affinity); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if p.Labels[v1.LabelSingleton] != "db" {
		t.Error("the pod lacks the label of the anti-affinity")
	}
	node := &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
	p = fixture.Injected(t, &fixture.Pod().With(func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{NodeAffinity: node} }).Pod, fixture.Singleton("db"))
	if !reflect.DeepEqual(p.Spec.Affinity.NodeAffinity, node) || p.Spec.Affinity.PodAntiAffinity == nil {
		t.Error("the pod's own node affinity was removed, or ours is missing")
	}
	together := strings.Replace(want, "podAntiAffinity", "podAffinity", 1)
	if got, _ := json.Marshal(fixture.Injected(t, &fixture.Pod().Claim("data").Pod, fixture.Singleton("db"), "data").Spec.Affinity); string(got) != together {
		t.Errorf("a pod whose volume is bound to one node has %s, want %s", got, together)
	}
	own := fixture.Pod().Claim("data").With(func(p *corev1.Pod) { p.Labels["statefulset.kubernetes.io/pod-name"] = "db-0" })
	if p = fixture.Injected(t, &own.Pod, fixture.Singleton("db"), "data"); p.Spec.Affinity != nil {
		t.Error("a pod of a StatefulSet, which has its own claims, got an affinity")
	}
	if p = fixture.Injected(t, &fixture.Pod().Claim("data").Pod, fixture.Singleton("db"), "other"); p.Spec.Affinity.PodAntiAffinity == nil {
		t.Error("the claim of another pod changed the affinity")
	}
}
