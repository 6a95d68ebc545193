package plan

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDiff(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: "1", Labels: map[string]string{"app": "a"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db:1"}, {Name: "log", Image: "log:1", Args: []string{"a", "b"}}}}}
		change(p)
		return p
	}
	for _, row := range []struct {
		name   string
		change func(*corev1.Pod)
		want   []Field
	}{
		{"nothing", func(*corev1.Pod) {}, []Field{}},
		{"what users do not write", func(p *corev1.Pod) {
			p.ResourceVersion, p.Status.Phase = "2", corev1.PodRunning
			p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
		}, []Field{}},
		{"an image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "db:2" },
			[]Field{{"spec.containers[db].image", `"db:1"`, `"db:2"`}}},
		{"a list without names", func(p *corev1.Pod) { p.Spec.Containers[1].Args = []string{"b"} },
			[]Field{{"spec.containers[log].args", `["a","b"]`, `["b"]`}}},
		{"the order of a list", func(p *corev1.Pod) {
			p.Spec.Containers[0], p.Spec.Containers[1] = p.Spec.Containers[1], p.Spec.Containers[0]
		}, []Field{{"spec.containers", `[{"image":"db:1","name":"db","resources":{}},{"args":["a","b"],"image":"log:1","name":"log","resources":{}}]`,
			`[{"args":["a","b"],"image":"log:1","name":"log","resources":{}},{"image":"db:1","name":"db","resources":{}}]`}}},
		{"a removed and an added field", func(p *corev1.Pod) {
			p.Labels, p.Spec.NodeName = nil, "n1"
		}, []Field{{"metadata.labels.app", `"a"`, ""}, {"spec.nodeName", "", `"n1"`}}},
	} {
		got, err := Diff(pod(func(*corev1.Pod) {}), pod(row.change))
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", row.name, got, err, row.want)
		}
	}
	if got, err := Diff(nil, pod(func(*corev1.Pod) {})); err != nil || len(got) > 0 {
		t.Errorf("a new object: %+v, %v", got, err)
	}
}
