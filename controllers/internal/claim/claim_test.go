package claim

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
		t.Errorf("the pod has volumes %q, want %q: a claim takes precedence over a volume of the same name", got, want)
	}
}

func TestAdjust(t *testing.T) {
	of := func(size, class string) *corev1.PersistentVolumeClaim {
		c := claim("a", size)
		if class != "" {
			c.Spec.VolumeAttributesClassName = &class
		}
		return c
	}
	for _, r := range []struct {
		name           string
		live, template *corev1.PersistentVolumeClaim
		size, class    string // of the adjusted claim
		changes        string
	}{
		{"a larger template expands the claim", of("1Gi", ""), of("2Gi", ""), "2Gi", "", "grows to 2Gi"},
		{"the same size in another unit changes nothing", of("1Gi", ""), of("1024Mi", ""), "1Gi", "", ""},
		{"a smaller template does not shrink the claim", of("2Gi", ""), of("1Gi", ""), "2Gi", "", ""},
		{"a claim without a size gets the size of the template", of("", ""), of("1Gi", ""), "1Gi", "", "grows to 1Gi"},
		{"a template without a size changes nothing", of("1Gi", ""), of("", ""), "1Gi", "", ""},
		{"a claim without a volumeAttributesClassName gets the one of the template", of("1Gi", ""), of("1Gi", "gold"), "1Gi", "gold", "gets volumeAttributesClassName gold"},
		{"another volumeAttributesClassName replaces the one of the claim", of("1Gi", "silver"), of("1Gi", "gold"), "1Gi", "gold", "gets volumeAttributesClassName gold"},
		{"an equal volumeAttributesClassName changes nothing", of("1Gi", "gold"), of("1Gi", "gold"), "1Gi", "gold", ""},
		{"a template without a volumeAttributesClassName keeps the one of the claim", of("1Gi", "gold"), of("1Gi", ""), "1Gi", "gold", ""},
		{"size and attributes class change together", of("1Gi", "silver"), of("2Gi", "gold"), "2Gi", "gold", "grows to 2Gi, gets volumeAttributesClassName gold"},
	} {
		t.Run(r.name, func(t *testing.T) {
			before := r.live.DeepCopy()
			adjusted, changes := Adjust(r.live, r.template)
			size := Storage(adjusted)
			if changes != r.changes || size.String() != r.size || attributesClass(adjusted) != r.class {
				t.Errorf("got %q, %s, class %q", changes, size.String(), attributesClass(adjusted))
			}
			if !apiequality.Semantic.DeepEqual(r.live, before) {
				t.Error("the cached claim was modified")
			}
		})
	}
}

func TestSameButAdjustable(t *testing.T) {
	other := claim("a", "1Gi")
	other.Spec.StorageClassName = ptr.To("fast")
	gold := claim("a", "1Gi")
	gold.Spec.VolumeAttributesClassName = ptr.To("gold")
	seen := claim("a", "1Gi")
	seen.Status.Phase = corev1.ClaimBound
	for _, r := range []struct {
		name string
		b    *corev1.PersistentVolumeClaim
		want bool
	}{
		{"another size", claim("a", "5Gi"), true}, {"no size", claim("a", ""), true}, {"another status", seen, true},
		{"another volumeAttributesClassName", gold, true},
		{"another name", claim("b", "1Gi"), false}, {"another class", other, false},
	} {
		a := claim("a", "1Gi")
		if sameButAdjustable(a, r.b) != r.want {
			t.Errorf("%s: %t", r.name, !r.want)
		}
		if size := Storage(a); size.IsZero() {
			t.Errorf("%s: the comparison modified its arguments", r.name)
		}
	}
}
