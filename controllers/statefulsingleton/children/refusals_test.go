package children_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

const anotherName = ": the operator adds its own to the pod; choose another name"

const alone = " belongs to the operator, which holds back programs with it; mount another volume"

// more returns our signal-volume with one more file.
func more(path string) corev1.VolumeSource {
	v := children.SignalVolume().VolumeSource
	v.DownwardAPI.Items = append(v.DownwardAPI.Items, corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['x']"}})
	return v
}

// refusal is a pod and its expected error; "" if it is admitted.
type refusal struct {
	name     string
	pod      *fixture.PodFixture
	singular *fixture.SingletonFixture
	want     string
}

func (r refusal) check(t *testing.T) {
	p, got := r.pod.DeepCopy(), ""
	if errs := children.Inject(p, &r.singular.StatefulSingleton, fixture.Around()); len(errs) > 0 {
		got = errs.ToAggregate().Error()
	}
	if got != r.want {
		t.Errorf("the refusal is\n  %s\nwant\n  %s", got, r.want)
	}
	if r.want != "" && !apiequality.Semantic.DeepEqual(p, &r.pod.Pod) {
		t.Error("the refused pod was changed")
	}
}

var binary, scripted, whole = fixture.Singleton("db").Mode(v1.GateBinary), fixture.Singleton("db").Mode(v1.GateScript), fixture.Singleton("db").Mode(v1.GateInit)

// TestS4Clashes checks that conflicts with our names are rejected, with a remedy.
func TestS4Clashes(t *testing.T) {
	hostPath := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	for _, r := range []refusal{
		{"S4 H8 a signal-volume of type hostPath, which another pod can write to", fixture.Pod().Volume(v1.VolumeSignal, hostPath), binary,
			`spec.volumes[0].name: Invalid value: "signal-volume"` + anotherName},
		{"S4 a signal-volume with another annotation", fixture.Pod().Volume(v1.VolumeSignal, corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
			Items: []corev1.DownwardAPIVolumeFile{{Path: v1.FileSignal, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}},
				{Path: v1.FilePodUID, FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.uid"}}}}}), whole,
			`spec.volumes[0].name: Invalid value: "signal-volume"` + anotherName},
		{"a gate-volume of another client", fixture.Pod().Volume(v1.VolumeGate, emptyDir), binary, `spec.volumes[0].name: Invalid value: "gate-volume"` + anotherName},
		{"a gate-volume is accepted in a mode without one", fixture.Pod().Volume(v1.VolumeGate, emptyDir), scripted, ""},
		{"wrapper-scripts of another client", fixture.Pod().Volume(v1.VolumeScripts, emptyDir), scripted, `spec.volumes[0].name: Invalid value: "wrapper-scripts"` + anotherName},
		{"wrapper-scripts from the ConfigMap, which other clients can change", fixture.Pod().Volume(v1.VolumeScripts, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: v1.ConfigMapWrapper}, DefaultMode: ptr.To(int32(0o755))}}), scripted,
			`spec.volumes[0].name: Invalid value: "wrapper-scripts"` + anotherName},
		{"wrapper-scripts are accepted in a mode without them", fixture.Pod().Volume(v1.VolumeScripts, emptyDir), binary, ""},
		{"a status-sidecar of the user", fixture.Pod(fixture.App(), fixture.Container("status-sidecar").WithCommand("sleep")), binary, `spec.containers[1].name: Invalid value: "status-sidecar"` + anotherName},
		{"a status-sidecar of the user, with statusSidecar false", fixture.Pod(fixture.App(), fixture.Container("status-sidecar")), whole, `spec.containers[1].name: Invalid value: "status-sidecar"` + anotherName},
		{"init containers with our names", fixture.Pod().Inits(fixture.Container("gate-wait"), fixture.Container("gate-install"), fixture.Container("gate-image-7")), whole,
			`[spec.initContainers[0].name: Invalid value: "gate-wait"` + anotherName + `, spec.initContainers[1].name: Invalid value: "gate-install"` + anotherName +
				`, spec.initContainers[2].name: Invalid value: "gate-image-7"` + anotherName + `]`},
		{"a mount at the path of ours", fixture.Pod(fixture.App().Mount("data", "/var/run/signal/")).Volume("data", emptyDir), binary,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/var/run/signal/": the operator mounts its own volume at /var/run/signal; mount yours elsewhere, or set spec.gateMode of the StatefulSingleton to Init`},
		{"a mount below ours", fixture.Pod(fixture.App().Mount("data", "/opt/wrapper/x")).Volume("data", emptyDir), scripted,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/opt/wrapper/x": the operator mounts its own volume at /opt/wrapper; mount yours elsewhere, or set spec.gateMode of the StatefulSingleton to Init`},
		{"a mount at ours through a symlink of images", fixture.Pod(fixture.App().Mount("data", "/run/gate")).Volume("data", emptyDir), binary,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/run/gate": the operator mounts its own volume at /var/run/gate; mount yours elsewhere, or set spec.gateMode of the StatefulSingleton to Init`},
		{"a mount at ours in a container that is not part of the program", fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship").Mount("data", "/var/run/signal")).Volume("data", emptyDir),
			fixture.Singleton("db").Mode(v1.GateBinary).Containers("app"), ""},
		{"a mount at ours if the whole pod waits", fixture.Pod(fixture.App().Mount("data", "/var/run/signal")).Volume("data", emptyDir), whole, ""},
		{"an init container that mounts the gate's volume at another path", fixture.Pod(fixture.App()).Inits(fixture.Container("own").Mount(v1.VolumeGate, "/gate")), binary,
			`spec.initContainers[0].volumeMounts[0].name: Forbidden: volume gate-volume` + alone},
		{"an init container that mounts the gate's volume at our path", fixture.Pod(fixture.App()).Inits(fixture.Container("own").Mount(v1.VolumeGate, v1.PathGate)), binary,
			`spec.initContainers[0].volumeMounts[0].name: Forbidden: volume gate-volume` + alone},
		{"an init container that mounts the gate's volume if the whole pod waits", fixture.Pod(fixture.App()).Inits(fixture.Container("own").Mount(v1.VolumeGate, "/gate")), whole,
			`spec.initContainers[0].volumeMounts[0].name: Forbidden: volume gate-volume` + alone},
		{"an init container that mounts the script's volume", fixture.Pod(fixture.App()).Inits(fixture.Container("own").Mount(v1.VolumeScripts, "/gate")), scripted,
			`spec.initContainers[0].volumeMounts[0].name: Forbidden: volume wrapper-scripts` + alone},
		{"a program that can write to its own gate", fixture.Pod(fixture.App().Mount(v1.VolumeGate, v1.PathGate)), binary,
			`spec.containers[0].volumeMounts[0].name: Forbidden: volume gate-volume` + alone},
		{"a program that mounts a subPath of the gate's volume", fixture.Pod(fixture.App().With(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: v1.VolumeGate, MountPath: v1.PathGate, ReadOnly: true, SubPath: "x"}}
		})), binary, `spec.containers[0].volumeMounts[0].name: Forbidden: volume gate-volume` + alone},
		{"another container that mounts the signal volume", fixture.Pod(fixture.App(), fixture.Container("log").WithCommand("ship").Mount(v1.VolumeSignal, "/x")), fixture.Singleton("db").Mode(v1.GateBinary).Containers("app"),
			`spec.containers[1].volumeMounts[0].name: Forbidden: volume signal-volume` + alone},
		{"a program that mounts the signal volume as the operator does", fixture.Pod(fixture.App().Mount(v1.VolumeSignal, v1.PathSignal)), binary, ""},
		{"a signal-volume with an additional file", fixture.Pod(fixture.App()).Volume(v1.VolumeSignal, more(v1.FileSignal)), binary, `spec.volumes[0].name: Invalid value: "signal-volume"` + anotherName},
		{"a mount above ours", fixture.Pod(fixture.App().Mount("data", "/run")).Volume("data", emptyDir), binary, ""},
		{"a mount whose path only begins like ours", fixture.Pod(fixture.App().Mount("data", "/var/run/signals")).Volume("data", emptyDir), binary, ""},
		{"a read-only mount above ours", fixture.Pod(fixture.App().Mount("conf", "/opt")).Volume("conf", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), scripted,
			`spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/opt": it is read-only, and the operator has to mount its own volume below it at /opt/wrapper; mount yours elsewhere, or set spec.gateMode of the StatefulSingleton to Init`},
	} {
		t.Run(r.name, r.check)
	}
}

// TestWhatCannotBeHeld checks that pods that cannot be held back in the chosen mode are
// rejected.
func TestWhatCannotBeHeld(t *testing.T) {
	for _, r := range []refusal{
		{"spec.containers with a container that the pod lacks", fixture.Pod(fixture.App()), fixture.Singleton("db").Mode(v1.GateBinary).Containers("app", "postgres"), ""},
		{"spec.containers with a container that the pod lacks, in mode Init", fixture.Pod(fixture.App()), fixture.Singleton("db").Mode(v1.GateInit).Containers("postgres"), ""},
		{"S18 no command in a mode that needs one", fixture.Pod(fixture.App(), fixture.Container("log").WithArgs("x")), binary,
			`spec.containers[1].command: Required value: gate mode Binary runs the command of the container, and the entrypoint of the image is unknown; set the command, or set spec.gateMode of the StatefulSingleton to Auto or Init, or list the containers of the program in its spec.containers if this is not one`},
		{"S20 a startup probe in a mode that does not support it", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} })), scripted,
			`spec.containers[0].startupProbe: Forbidden: it would fail and stop the container while the program waits; set spec.gateMode of the StatefulSingleton to Auto or Init`},
		{"S20 a postStart hook in a mode that does not support it", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{}} })), binary,
			`spec.containers[0].lifecycle.postStart: Forbidden: it would run while the program waits, and stop the container if it fails; set spec.gateMode of the StatefulSingleton to Auto or Init`},
		{"S20 a liveness probe with a delay in a mode that does not support it", fixture.Pod(fixture.App().With(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{InitialDelaySeconds: 9} })), binary,
			`spec.containers[0].livenessProbe.initialDelaySeconds: Forbidden: it begins with the start of the container, and would be over when the program starts; set spec.gateMode of the StatefulSingleton to Auto or Init`},
		{"a pod for Windows", fixture.Pod().With(func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }), fixture.Singleton("db"),
			`spec.os.name: Unsupported value: "windows": supported values: "linux"`},
	} {
		t.Run(r.name, r.check)
	}
}

// TestAVolumeIsOursByItsContent checks that our gate-volume is distinguished from another
// one by its size.
func TestAVolumeIsOursByItsContent(t *testing.T) {
	ours := children.HomeOf(v1.GateBinary).EmptyVolume(corev1.StorageMediumDefault)
	ours.EmptyDir.SizeLimit = ptr.To(resource.MustParse("16384Ki"))
	if !children.Same(&ours, ptr.To(children.HomeOf(v1.GateBinary).EmptyVolume(corev1.StorageMediumDefault))) {
		t.Error("16384Ki is not recognized as 16Mi")
	}
	ours.EmptyDir.Medium = corev1.StorageMediumHugePages
	if children.Same(&ours, ptr.To(children.HomeOf(v1.GateBinary).EmptyVolume(corev1.StorageMediumDefault))) {
		t.Error("a volume of huge pages is recognized as ours")
	}
}

func TestWhoHasAGate(t *testing.T) {
	s := fixture.Singleton("db").Mode(v1.GateBinary)
	each := fixture.Injected(t, &fixture.Pod(fixture.Container("app").WithCommand("serve"), fixture.Container("log").WithCommand("ship")).Pod, s)
	waiting := fixture.Injected(t, &fixture.Pod().Pod, fixture.Singleton("db").Mode(v1.GateInit))
	for _, r := range []struct {
		name     string
		pod      *corev1.Pod
		change   func(*corev1.Pod)
		singular *fixture.SingletonFixture
		want     bool
	}{
		{"an injected pod", each, nil, s, true},
		{"a pod that waits as a whole", waiting, nil, s, true},
		{"a pod without injection", &fixture.Pod().Pod, nil, s, false},
		{"a pod with only the labels and annotations of the gate", &fixture.Pod().Pod, func(p *corev1.Pod) {
			p.Labels[v1.LabelManaged], p.Annotations = v1.True, map[string]string{v1.AnnotationManaged: v1.True}
			p.Spec.ReadinessGates = each.Spec.ReadinessGates
		}, s, false},
		{"a pod without the signal volume", each, func(p *corev1.Pod) { p.Spec.Volumes = nil }, s, false},
		{"a pod whose signal volume has an additional file", each, func(p *corev1.Pod) { p.Spec.Volumes[0].VolumeSource = more(v1.FileSignal) }, s, false},
		{"a pod whose gate other containers can write to", each, func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, fixture.Container("own").Mount(v1.VolumeGate, "/x").Container)
		}, s, false},
		{"a pod with a container that does not wait", each, func(p *corev1.Pod) { p.Spec.Containers[1].Command = nil }, s, false},
		{"a pod with a container that does not wait and is not part of the program", each, func(p *corev1.Pod) { p.Spec.Containers[1].Command = nil },
			fixture.Singleton("db").Containers("app"), true},
		{"a pod that lacks its program", each, nil, fixture.Singleton("db").Containers("app", "postgres"), false},
		{"a gate without a command", each, func(p *corev1.Pod) { p.Spec.Containers[0].Command = p.Spec.Containers[0].Command[:3] }, s, false},
		{"a container with the name of ours and another command", waiting, func(p *corev1.Pod) { p.Spec.InitContainers[2].Command = []string{"true"} }, s, false},
	} {
		p := r.pod.DeepCopy()
		if r.change != nil {
			r.change(p)
		}
		if got := children.HasGate(p, &r.singular.StatefulSingleton); got != r.want {
			t.Errorf("%s: %v (init containers %s)", r.name, got, strings.TrimSpace(names(p.Spec.InitContainers)))
		}
	}
}
