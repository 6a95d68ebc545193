package claim

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func claim(name, size string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if size != "" {
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	return c
}

func TestMount(t *testing.T) {
	spec := &corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}, {Name: "scratch"}}}
	Mount(spec, []corev1.PersistentVolumeClaim{*claim("data", "1Gi"), *claim("logs", "1Gi")}, func(template string) string { return Name("db", template, "x") })
	var got []string
	for _, v := range spec.Volumes {
		name := v.Name
		if v.PersistentVolumeClaim != nil {
			name += "=" + v.PersistentVolumeClaim.ClaimName
		}
		got = append(got, name)
	}
	if want := []string{"data=db-data-x", "logs=db-logs-x", "scratch"}; !slices.Equal(got, want) {
		t.Errorf("the pod has volumes %q, want %q: a claim wins over a volume of its name", got, want)
	}
}

func TestGrow(t *testing.T) {
	for _, r := range []struct{ name, live, template, want string }{
		{"to what the template asks", "1Gi", "2Gi", "2Gi"},
		{"not to the same size in other words", "1Gi", "1024Mi", ""},
		{"never to less", "2Gi", "1Gi", ""},
		{"from nothing", "", "1Gi", "1Gi"},
		{"not to nothing", "1Gi", "", ""},
	} {
		live := claim("a", r.live)
		grown, grows := Grow(live, claim("t", r.template))
		size := Storage(grown)
		if grows != (r.want != "") || grows && size.String() != r.want {
			t.Errorf("%s: %t, %s", r.name, grows, size.String())
		}
		if before := Storage(live); grows && before.Cmp(size) == 0 {
			t.Errorf("%s: the live claim was changed", r.name)
		}
	}
}

func TestSameButSize(t *testing.T) {
	other := claim("a", "1Gi")
	other.Spec.StorageClassName = ptr.To("fast")
	seen := claim("a", "1Gi")
	seen.Status.Phase = corev1.ClaimBound
	for _, r := range []struct {
		name string
		b    *corev1.PersistentVolumeClaim
		want bool
	}{
		{"another size", claim("a", "5Gi"), true}, {"no size", claim("a", ""), true}, {"another status", seen, true},
		{"another name", claim("b", "1Gi"), false}, {"another class", other, false},
	} {
		a := claim("a", "1Gi")
		if sameButSize(a, r.b) != r.want {
			t.Errorf("%s: %t", r.name, !r.want)
		}
		if size := Storage(a); size.IsZero() {
			t.Errorf("%s: the question changed what it was asked about", r.name)
		}
	}
}
