package trial

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An older API server accepts a pod with an unknown field, and drops the field.
func TestWhatIsLeftOutIsTold(t *testing.T) {
	pod := func() *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-a", Labels: map[string]string{"app": "db"}}, Spec: corev1.PodSpec{
			HostUsers:       ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{},
			InitContainers:  []corev1.Container{{Name: "first", Env: []corev1.EnvVar{{Name: "A", Value: "1"}}}},
			Containers:      []corev1.Container{{Name: "main", Image: "image", RestartPolicyRules: []corev1.ContainerRestartRule{{Action: "Restart"}}}},
			Tolerations:     []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}, {Key: "b", Operator: corev1.TolerationOpExists}},
			Resources:       &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
			Volumes:         []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}}
	}
	for _, r := range []struct {
		name  string
		makes func(*corev1.Pod)
		want  []string
	}{
		{"nothing", func(*corev1.Pod) {}, nil},
		{"one field", func(p *corev1.Pod) { p.Spec.HostUsers = nil }, []string{"spec.template.spec.hostUsers"}},
		{"two fields in order", func(p *corev1.Pod) { p.Spec.Resources, p.Spec.HostUsers = nil, nil }, []string{"spec.template.spec.hostUsers", "spec.template.spec.resources"}},
		{"a field of a container", func(p *corev1.Pod) { p.Spec.Containers[0].RestartPolicyRules = nil }, []string{"spec.template.spec.containers[0].restartPolicyRules"}},
		{"a field of a container that is now second", func(p *corev1.Pod) {
			p.Spec.Containers[0].RestartPolicyRules = nil
			p.Spec.Containers = append([]corev1.Container{{Name: "injected"}}, p.Spec.Containers...)
		}, []string{"spec.template.spec.containers[0].restartPolicyRules"}},
		{"a field of an item without a name", func(p *corev1.Pod) { p.Spec.Tolerations[1].Operator = "" }, []string{"spec.template.spec.tolerations[1].operator"}},
		{"a changed value is not listed", func(p *corev1.Pod) {
			p.Spec.Containers[0].Image, p.Spec.HostUsers = "mirror/image", ptr.To(true)
			p.Spec.Resources.Limits[corev1.ResourceCPU] = resource.MustParse("2")
		}, nil},
		{"an added value is not listed", func(p *corev1.Pod) { p.Spec.NodeName = "node" }, nil},
		{"an empty value is not listed", func(p *corev1.Pod) { p.Spec.SecurityContext = nil }, nil},
		{"a removed container is not listed", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "other"}} }, nil},
		{"a removed last item is not listed", func(p *corev1.Pod) { p.Spec.Tolerations = p.Spec.Tolerations[:1] }, nil},
	} {
		c := NewCourt(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
				r.makes(obj.(*corev1.Pod))
				return nil
			}}))
		warnings, err := c.Try(t.Context(), pod(), func(path string) string { return "spec.template." + path })
		var got []string
		for _, w := range warnings {
			path, words, _ := strings.Cut(w, ": ")
			got = append(got, path)
			if !strings.Contains(words, "the API server dropped this field") {
				t.Errorf("%s: %s", r.name, w)
			}
		}
		if err != nil || !slices.Equal(got, r.want) {
			t.Errorf("%s: %q and %v, want %q", r.name, got, err, r.want)
		}
	}
}

// Untrusted input can have any number of fields.
func TestFewFieldsAreToldOf(t *testing.T) {
	sent := map[string]any{}
	for _, name := range strings.Split("abcdefgh", "") {
		sent[name] = "x"
	}
	got := leftOut(sent, nil, func(path string) string { return path })
	if len(got) != maxLeftOut || !strings.HasPrefix(got[0], "a: ") || !strings.HasPrefix(got[maxLeftOut-1], "e: ") {
		t.Errorf("%d warnings: %q", len(got), got)
	}
}

func TestWhatIsRefusedLeavesNothingOut(t *testing.T) {
	no := errors.New("no")
	c := NewCourt(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			obj.(*corev1.Pod).Spec = corev1.PodSpec{}
			return no
		}}))
	warnings, err := c.Try(t.Context(), &corev1.Pod{Spec: corev1.PodSpec{NodeName: "a"}}, func(path string) string { return path })
	if len(warnings) > 0 || !errors.Is(err, no) {
		t.Errorf("%q and %v", warnings, err)
	}
}
