package checkcommands

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects decodes manifests.
func objects(t *testing.T, texts ...string) (all []*unstructured.Unstructured) {
	t.Helper()
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

func TestAManifestIsDecoded(t *testing.T) {
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for _, row := range []struct {
		sentence     string
		texts        []string
		sets, others int
		err          string
	}{
		{"with objects that its pods need", []string{configMap,
			"apiVersion: clusterlabs.org/v1alpha1\nkind: ReplicatedStatefulSet\nmetadata: {name: a}\nspec: {pod: {containers: []}}\n"}, 1, 1, ""},
		{"with an unknown field", []string{"apiVersion: clusterlabs.org/v1alpha1\nkind: ReplicatedStatefulSet\nmetadata: {name: a}\nspec: {size: 3}\n"},
			0, 0, `decode ReplicatedStatefulSet a: .*unknown field "spec.size"`},
		{"without a set", []string{configMap}, 0, 1, "no ReplicatedStatefulSet"},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			g := NewWithT(t)
			m, err := Decode(objects(t, row.texts...))
			if row.err == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(MatchRegexp(row.err)))
			}
			g.Expect([]int{len(m.sets), len(m.others)}).To(Equal([]int{row.sets, row.others}), "sets and others")
		})
	}
}
