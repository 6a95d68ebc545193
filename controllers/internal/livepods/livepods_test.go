package livepods

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listOf returns a response of the API server with one pod for each size in bytes.
func listOf(sizes ...int) string {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, size := range sizes {
		list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"fill": strings.Repeat("x", size)}}})
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestPodsAreReadOneAtATime(t *testing.T) {
	for _, row := range []struct {
		name, answer string
		pods         int
		large        bool
		fails        string
	}{
		{"none", listOf(), 0, false, ""},
		{"not a list", `{"items":null}`, 0, false, ""},
		{"some", listOf(10, 20), 2, false, ""},
		{"a large list takes a slot", listOf(600<<10, 600<<10), 2, true, ""},
		{"a list above the limit", listOf(8<<20, 8<<20), 0, true, "exceed 16 MiB"},
		{"a truncated list", strings.TrimSuffix(listOf(10), "]}"), 0, false, "EOF"},
		{"a list truncated at the end", strings.TrimSuffix(listOf(10), "}"), 0, false, "EOF"},
	} {
		t.Run(row.name, func(t *testing.T) {
			g, large := NewWithT(t), false
			var got corev1.PodList
			err := decodePods(&bounded{Reader: strings.NewReader(row.answer), most: 16 << 20, enter: func() error { large = true; return nil }}, &got)
			g.Expect(large).To(Equal(row.large))
			if row.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(row.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got.Items).To(HaveLen(row.pods))
		})
	}
}
