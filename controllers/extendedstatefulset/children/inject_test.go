package children_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

func claimOf(pod *corev1.Pod) string { return pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName }

func TestInject(t *testing.T) {
	only := children.Zone{Index: children.NoZone}
	side := fixture.WithClaims(fixture.FakeSet(3))
	side.Spec.UpdateStrategy.Handover = v1alpha1.HandoverCoexist
	for _, r := range []struct {
		name            string
		pod             *corev1.Pod
		claim, hostname string
	}{
		{"version 1 gets the claim and the host name of the ordinal", fixture.NewPod(fixture.WithClaims(fixture.FakeSet(3)), only, 1), "data-db-2", "db-2"},
		{"version 12 gets the claim and the host name of the ordinal", fixture.NewPod(fixture.WithClaims(fixture.FakeSet(3)), only, 12), "data-db-2", "db-2"},
		{"with zones, the claim and the host name have the zone", fixture.NewPod(fixture.WithClaims(fixture.FakeSet(3)), children.Zone{Name: "a", Index: 10}, 12), "data-db-z10-2", "db-z10-2"},
		{"with Coexist, the host name has the version", fixture.NewPod(side, only, 12), "data-db-2", "db-v12-2"},
	} {
		if why := fixture.Injected(r.pod); why != "" {
			t.Errorf("%s: %s", r.name, why)
		}
		if got := claimOf(r.pod); got != r.claim {
			t.Errorf("%s: claim %s, want %s", r.name, got, r.claim)
		}
		if got := r.pod.Spec.Hostname; got != r.hostname {
			t.Errorf("%s: host name %s, want %s", r.name, got, r.hostname)
		}
		if got := r.pod.Labels[v1alpha1.LabelPodOrdinal]; got != "2" {
			t.Errorf("%s: ordinal %q", r.name, got)
		}
		if changes, why := children.Inject(fixture.ReadBorn(t, r.pod)); why != "" || len(changes) > 0 {
			t.Errorf("%s: a second call changes the pod: %s, %v", r.name, why, changes)
		}
	}
}

func TestInjectLeavesVolumesOfTheUserAlone(t *testing.T) {
	pod := fixture.NewPod(fixture.WithClaims(fixture.FakeSet(3)), children.Zone{Index: children.NoZone}, 1)
	users := []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "shared"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other-unassigned"}}},
		{Name: "c", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, users...)
	if why := fixture.Injected(pod); why != "" {
		t.Fatal(why)
	}
	if got := pod.Spec.Volumes[1:]; !apiequality.Semantic.DeepEqual(got, users) {
		t.Errorf("got user volumes %v", got)
	}
}

// TestInjectGivesNoPodTheClaimsOfAnother verifies that a pod with inconsistent labels, owner or name is
// not changed, and so stays on a claim that never exists.
func TestInjectGivesNoPodTheClaimsOfAnother(t *testing.T) {
	const (
		label = "label fissile.cloudfoundry.org/statefulset-name does not match label fissile.cloudfoundry.org/extendedstatefulset"
		owner = "its controller is not StatefulSet db-v1"
		index = "label apps.kubernetes.io/pod-index does not match the pod name"
	)
	labelled := func(key, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Labels[key] = value }
	}
	for _, r := range []struct {
		name   string
		change func(*corev1.Pod)
		want   string
	}{
		{"a pod without an index", func(pod *corev1.Pod) { delete(pod.Labels, appsv1.PodIndexLabel) },
			"label apps.kubernetes.io/pod-index is missing; StatefulSets set it since Kubernetes 1.28"},
		{"an index that differs from the name", labelled(appsv1.PodIndexLabel, "1"), index},
		{"an index that is not a number", labelled(appsv1.PodIndexLabel, "two"), index},
		{"a negative index", labelled(appsv1.PodIndexLabel, "-2"), index},
		{"an index with a leading zero", labelled(appsv1.PodIndexLabel, "02"), index},
		{"another name", func(pod *corev1.Pod) { pod.Name = "mine" }, index},
		{"a generated name", func(pod *corev1.Pod) { pod.Name, pod.GenerateName = "", "db-v1-" }, index},
		{"no owner", func(pod *corev1.Pod) { pod.OwnerReferences = nil }, owner},
		{"an owner that is not the controller", func(pod *corev1.Pod) { pod.OwnerReferences[0].Controller = nil }, owner},
		{"an owner of another kind", func(pod *corev1.Pod) { pod.OwnerReferences[0].Kind = "ReplicaSet" }, owner},
		{"an owner of another API", func(pod *corev1.Pod) { pod.OwnerReferences[0].APIVersion = "example.com/v1" }, owner},
		{"an owner of another name", func(pod *corev1.Pod) { pod.OwnerReferences[0].Name = "web-v1" }, owner},
		{"an owner of another version", labelled(v1alpha1.LabelVersion, "2"), "its controller is not StatefulSet db-v2"},
		{"no version", func(pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelVersion) }, "its controller is not StatefulSet db-v"},
		{"the label of another object", labelled(v1alpha1.LabelSet, "web"), label},
		{"the label of an object whose name is a prefix", labelled(v1alpha1.LabelSet, "d"), label},
		{"the zone of another object", labelled(v1alpha1.LabelStatefulSet, "web-z0"), label},
		{"an invalid zone", labelled(v1alpha1.LabelStatefulSet, "db-zone"), label},
		{"a zone index with a leading zero", labelled(v1alpha1.LabelStatefulSet, "db-z00"), label},
		{"no name", func(pod *corev1.Pod) { pod.Labels[v1alpha1.LabelSet], pod.Labels[v1alpha1.LabelStatefulSet] = "", "" }, label},
	} {
		pod := fixture.NewPod(fixture.WithClaims(fixture.FakeSet(3)), children.Zone{Index: children.NoZone}, 1)
		r.change(pod)
		before := pod.DeepCopy()
		if why := fixture.Injected(pod); why != r.want {
			t.Errorf("%s: %q, want %q", r.name, why, r.want)
		}
		if !apiequality.Semantic.DeepEqual(pod, before) || claimOf(pod) != "db-unassigned" {
			t.Errorf("%s: the pod was changed", r.name)
		}
	}
}
