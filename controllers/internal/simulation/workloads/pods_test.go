package workloads

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestIdentity tests what the controller adds to the template of a pod.
func TestIdentity(t *testing.T) {
	s := newStage(t, claims("Retain", "Retain"), startAt(1), func(set *appsv1.StatefulSet) {
		set.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}, {Name: "tmp"}}
	})
	p := s.pod("db-2")
	labels := map[string]string{"app": "db", appsv1.PodIndexLabel: "2", appsv1.StatefulSetPodNameLabel: "db-2",
		appsv1.ControllerRevisionHashLabelKey: s.set().Status.UpdateRevision}
	for label, value := range labels {
		if p.Labels[label] != value {
			t.Errorf("label %s is %q", label, p.Labels[label])
		}
	}
	if p.Spec.Hostname != "db-2" || p.Spec.Subdomain != "peers" || !metav1.IsControlledBy(p, s.set()) {
		t.Errorf("the pod is %+v", p)
	}
	if v := p.Spec.Volumes; len(v) != 2 || v[0].Name != "tmp" || v[1].PersistentVolumeClaim.ClaimName != "data-db-2" {
		t.Errorf("the volumes are %+v", v)
	}
}

// TestAdoption tests which pods are released and adopted after their labels or owners have changed.
func TestAdoption(t *testing.T) {
	relabel := func(p *corev1.Pod) { p.Labels["app"] = "other" }
	orphan := func(p *corev1.Pod) { p.OwnerReferences = nil }
	for _, row := range []struct {
		name     string
		pod      func(*corev1.Pod)
		set      func(*appsv1.StatefulSet)
		wantOurs bool
		want     string
	}{
		{"nothing has changed", func(*corev1.Pod) {}, nil, true, ""},
		{"other labels", relabel, nil, false, " is released by its StatefulSet"},
		{"no owner", orphan, nil, true, " is adopted by its StatefulSet"},
		{"no owner and other labels", func(p *corev1.Pod) { relabel(p); orphan(p) }, nil, false, ""},
		{"no owner, and excess", orphan, scale(2), false, " is deleted by its StatefulSet"},
		{"another owner", func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, nil, false, ""},
		{"another name", func(p *corev1.Pod) { p.Name = "db-x"; orphan(p) }, nil, false, ""},
		{"a selector of any labels", relabel, func(set *appsv1.StatefulSet) { set.Spec.Selector = &metav1.LabelSelector{} }, true, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t)
			p := s.pod("db-2")
			s.Remove(p)
			if row.set != nil {
				s.edit(row.set)
			}
			row.pod(p)
			from := len(s.Story)
			s.Put(p)
			s.rest()
			now := s.pod(p.Name)
			if isOurs := now != nil && metav1.IsControlledBy(now, s.set()); isOurs != row.wantOurs {
				t.Errorf("the StatefulSet controls the pod: %t", isOurs)
			}
			if row.want != "" && !slices.Equal(s.lines(from, row.want), []string{p.Name}) {
				t.Errorf("the story is %q", s.Story[from:])
			}
			if row.want == "" && len(s.lines(from, "by its StatefulSet")) > 0 {
				t.Errorf("the story is %q", s.Story[from:])
			}
		})
	}
}

// TestATakenName tests that the controller creates a pod only once no other pod has its name, and that it deletes no pods
// until then.
func TestATakenName(t *testing.T) {
	s := newStage(t, parallel, scale(0))
	s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db-1"}, Spec: s.set().Spec.Template.Spec})
	s.edit(scale(2))
	s.rest()
	s.CreatePod(s.set(), 1)
	if p := s.pod("db-1"); len(p.OwnerReferences) > 0 || s.pod("db-0") == nil {
		t.Errorf("pods %q", s.pods())
	}
	s.DeleteNow(s.pod("db-1"))
	s.rest()
	if p := s.pod("db-1"); p == nil || !metav1.IsControlledBy(p, s.set()) {
		t.Errorf("pods %q", s.pods())
	}
}
