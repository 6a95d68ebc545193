package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	kjson "sigs.k8s.io/json"
)

const goodJob = `{"metadata":{"labels":{"a":"b"}},"spec":{"backoffLimit":2,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}},"onFailure":"Continue"}`

// E44: one object of another user must not keep the operator from reading all others.
func TestE44AJobThatCannotBeReadIsNoErrorOfTheList(t *testing.T) {
	for says, row := range map[string]struct{ template, want string }{
		"a number in a string field":     {`{"spec":{"containers":[{"name":5}]}}`, "cannot unmarshal number"},
		"a string in a list field":       {`{"spec":{"containers":"a"}}`, "cannot unmarshal string"},
		"a string in a number field":     {`{"spec":{"priority":"high"}}`, "cannot unmarshal string"},
		"an unknown field":               {`{"spec":{"container":[]}}`, `unknown field "spec.template.spec.container"`},
		"an invalid time":                {`{"metadata":{"creationTimestamp":"yesterday"}}`, "parsing time"},
		"a field name in another case":   {`{"spec":{"Containers":[]}}`, `unknown field "spec.template.spec.Containers"`},
		"a fraction in an integer field": {`{"spec":{"priority":1.5}}`, "cannot unmarshal number 1.5"},
		"a number of more than 32 bits":  {`{"spec":{"priority":4294967296}}`, "cannot unmarshal number"},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			bad := strings.Replace(goodJob, `{"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}`, row.template, 1)
			text := `{"items":[{"metadata":{"name":"one"},"spec":{"updateStrategy":{"preUpdateJob":` + bad + `}}},{"metadata":{"name":"two"}}]}`
			for decoder, decode := range map[string]func([]byte, any) error{"Go's": json.Unmarshal, "Kubernetes'": kjson.UnmarshalCaseSensitivePreserveInts} {
				var list ExtendedStatefulSetList
				g.Expect(decode([]byte(text), &list)).To(Succeed(), "%s decoder", decoder)
				g.Expect(list.Items).To(HaveLen(2))
				job := list.Items[0].Spec.UpdateStrategy.PreUpdateJob.DeepCopy()
				g.Expect(job.Problem).To(ContainSubstring(row.want))
				g.Expect(job.Spec.Template).To(Equal(corev1.PodTemplateSpec{}))
				g.Expect(job.Spec.BackoffLimit).To(Equal(ptr.To[int32](2)), "the remaining fields are decoded")
				g.Expect(job.OnFailure).To(Equal(OnFailureContinue))
			}
		})
	}
}

func TestAJobThatCanBeReadIsWhatItSays(t *testing.T) {
	g := NewWithT(t)
	var job UpdateJob
	g.Expect(json.Unmarshal([]byte(goodJob), &job)).To(Succeed())
	g.Expect(job.Problem).To(BeEmpty())
	g.Expect(job.Labels).To(HaveKeyWithValue("a", "b"))
	g.Expect(job.Spec.Template.Spec.Containers[0].Image).To(Equal("a"))
	written, err := json.Marshal(job)
	g.Expect(err).To(Succeed())
	var again UpdateJob
	g.Expect(json.Unmarshal(written, &again)).To(Succeed())
	g.Expect(again).To(Equal(job))
	g.Expect(json.Unmarshal([]byte(`{"onFailure":5,"spec":{}}`), &job)).NotTo(Succeed(), "errors that the schema detects are still returned")
}

// E44: an object has up to 1.5 MB, and three bytes of it become seven hundred in memory.
func TestE44WhatIsReadOfAJobIsBounded(t *testing.T) {
	g := NewWithT(t)
	var job UpdateJob
	many := `{"spec":{"template":{"spec":{"containers":[{}` + strings.Repeat(",{}", 100_000) + `]}}}}`
	g.Expect(json.Unmarshal([]byte(many), &job)).To(Succeed())
	g.Expect(job.Problem).To(Equal("300050 bytes of JSON are more than 131072"))
	g.Expect(job.Spec.Template.Spec.Containers).To(BeEmpty())
	long := `{"spec":{"template":{"` + strings.Repeat("x", 100_000) + `":1}}}`
	g.Expect(json.Unmarshal([]byte(long), &job)).To(Succeed())
	g.Expect(job.Problem).To(And(HavePrefix(`unknown field "spec.template.xxx`), HaveLen(256)))
}
