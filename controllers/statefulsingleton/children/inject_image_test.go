package children_test

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
)

// mounting returns a copy of the pod with the gate, on a cluster that supports image volumes.
func mounting(t *testing.T, p *corev1.Pod, s *fixture.SingletonFixture) *corev1.Pod {
	t.Helper()
	return fixture.InjectedIn(t, p, s, fixture.Mounting())
}

func gateVolumeOf(p *corev1.Pod) *corev1.Volume {
	i := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == v1.VolumeGate })
	if i < 0 {
		return nil
	}
	return &p.Spec.Volumes[i]
}

// TestS48APodMountsTheGate checks the complete pods in testdata.
func TestS48APodMountsTheGate(t *testing.T) {
	pod := fixture.Pod(fixture.Container("app").WithImage("app:1").WithCommand("serve")).Inits(fixture.Container("migrate").WithImage("app:1").WithCommand("migrate"))
	for file, s := range map[string]*fixture.SingletonFixture{
		"mounted-binary.yaml": fixture.Singleton("db").Mode(v1.GateBinary),
		"mounted-init.yaml":   fixture.Singleton("db").Mode(v1.GateInit),
		"mounted-script.yaml": fixture.Singleton("db").Mode(v1.GateScript),
		"mounted-lease.yaml":  fixture.Singleton("db").Leased(),
	} {
		text, err := yaml.Marshal(mounting(t, &pod.Pod, s))
		if err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", file), string(text))
	}
}

// TestS48TheGuardAllowsAMountedGate checks the pods of all modes.
func TestS48TheGuardAllowsAMountedGate(t *testing.T) {
	for _, mode := range []v1.GateMode{v1.GateBinary, v1.GateInit, v1.GateScript} {
		s := fixture.Singleton("db").Mode(mode)
		p := mounting(t, &fixture.Pod().Pod, s)
		if answer := newGuard(t, nil, &s.StatefulSingleton).create(p); answer != "" || !children.HasGate(p, &s.StatefulSingleton) {
			t.Errorf("mode %s: HasGate is %t, and the guard: %q", mode, children.HasGate(p, &s.StatefulSingleton), answer)
		}
	}
}

func TestS48APodKeepsItsVolume(t *testing.T) {
	s := fixture.Singleton("db")
	mounted := mounting(t, &fixture.Pod().Pod, s)
	mounted.Spec.Volumes[1].Image.Reference = "mirror/operator:0"
	if again := fixture.Injected(t, mounted, s); gateVolumeOf(again).Image == nil || gateVolumeOf(again).Image.Reference != "mirror/operator:0" || len(again.Spec.InitContainers) > 0 {
		t.Errorf("after an older Node has joined, the pod is %+v", again.Spec)
	}
	copied := fixture.Injected(t, &fixture.Pod().Pod, s)
	if again := mounting(t, copied, s); gateVolumeOf(again).EmptyDir == nil || len(again.Spec.InitContainers) != 1 {
		t.Errorf("after the last older Node has left, the pod is %+v", again.Spec)
	}
	mounted.Spec.Containers[0].Command, mounted.Spec.Containers[0].VolumeMounts = nil, nil // by another webhook
	if again := mounting(t, mounted, s); len(again.Spec.InitContainers) != 2 || again.Spec.InitContainers[0].VolumeMounts[0].Name != v1.VolumeGate {
		t.Errorf("in mode Init the pod is %+v", again.Spec)
	}
}

// TestS48AVolumeWithoutItsSourceIsFilled checks a webhook between two calls of ours that does not support image
// volumes. The API server makes a volume without a source an emptyDir.
func TestS48AVolumeWithoutItsSourceIsFilled(t *testing.T) {
	s := fixture.Singleton("db")
	p := mounting(t, &fixture.Pod().Pod, s)
	gateVolumeOf(p).VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	again := mounting(t, p, s)
	if gateVolumeOf(again).EmptyDir == nil || len(again.Spec.InitContainers) != 1 || again.Spec.InitContainers[0].Name != v1.ContainerInstall {
		t.Errorf("the pod is %+v", again.Spec)
	}
}

// TestS48NoEmptyDirIsDeclared checks that nothing is on the node's disk.
func TestS48NoEmptyDirIsDeclared(t *testing.T) {
	if p := mounting(t, &fixture.Pod().Pod, fixture.Singleton("db")); p.Annotations[children.AnnotationLocalVolumes] != "" {
		t.Errorf("the annotations are %v", p.Annotations)
	}
}

func TestS48AVolumeOfThatNameIsRefused(t *testing.T) {
	p := fixture.Pod().Volume(v1.VolumeGate, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "theirs"}})
	around := fixture.Mounting()
	if errs := children.Inject(&p.Pod, &fixture.Singleton("db").StatefulSingleton, around); len(errs) != 1 || errs[0].Field != "spec.volumes[0].name" {
		t.Errorf("the errors are %v", errs)
	}
	foreign := fixture.Pod().Volume(v1.VolumeGate, corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "theirs"}})
	if errs := children.Inject(&foreign.Pod, &fixture.Singleton("db").StatefulSingleton, around); len(errs) != 1 {
		t.Errorf("the errors are %v", errs)
	}
	// An image volume can have no script.
	s := fixture.Pod().Volume(v1.VolumeScripts, corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "theirs"}})
	if errs := children.Inject(&s.Pod, &fixture.Singleton("db").Mode(v1.GateScript).StatefulSingleton, around); len(errs) != 1 {
		t.Errorf("the errors are %v", errs)
	}
}
