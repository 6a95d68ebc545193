package children_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
)

func TestWhatARunningPodCanTake(t *testing.T) {
	patches := fixture.UpdatesInPlace("a")
	for _, r := range []struct {
		name string
		old  func(*corev1.PodTemplateSpec)
		want []string
	}{
		{"SC-22 SC-40 a changed image", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Image = "zero" }, patches},
		{"a changed label", func(p *corev1.PodTemplateSpec) { p.Labels["tier"] = "old" }, patches},
		{"a changed annotation", func(p *corev1.PodTemplateSpec) { p.Annotations = map[string]string{"note": "old"} }, patches},
		{"a removed resource request", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Resources = fixture.Cpu("1") }, fixture.Recreates("a")},
		{"a changed image and a removed resource request", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Resources = "zero", fixture.Cpu("1")
		}, fixture.Recreates("a")},
		{"a changed command", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Command = []string{"x"} }, fixture.Recreates("a")},
		{"a changed environment and image", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers[0].Image, p.Spec.Containers[0].Env = "zero", []corev1.EnvVar{{Name: "x"}}
		}, fixture.Recreates("a")},
		{"a removed container", func(p *corev1.PodTemplateSpec) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "side", Image: "s"})
		}, fixture.Recreates("a")},
		{"a removed init container", func(p *corev1.PodTemplateSpec) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "i"}}
		}, fixture.Recreates("a")},
		{"a removed volume", func(p *corev1.PodTemplateSpec) { p.Spec.Volumes = []corev1.Volume{{Name: "v"}} }, fixture.Recreates("a")},
	} {
		fixture.Check(t, []fixture.Row{{Name: r.name, World: fixture.Seen(fixture.Set("db"), fixture.OldA(), fixture.OldB(), fixture.OldC(), fixture.ChangedOld(r.old)), Want: r.want}})
	}
}
