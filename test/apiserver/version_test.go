package apiserver

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/version"
)

func TestWordsOfEachVersion(t *testing.T) {
	g := NewWithT(t)
	old, now := Server{version: version.MustParseGeneric("1.30.14")}, Server{version: version.MustParseGeneric("1.36.3")}
	g.Expect(old.AtLeast("1.33")).To(BeFalse())
	g.Expect(now.AtLeast("1.33")).To(BeTrue())
	for _, r := range []struct {
		said, means string
		later       bool // whether a later API server returns the same message
	}{
		{`spec.a: Invalid value: "string": no`, `spec.a: Invalid value: "many": no`, false},
		{`spec.a: Invalid value: "": no`, `spec.a: Invalid value: "many": no`, false},
		{`spec.a: Invalid value: "integer": no`, `spec.a: Invalid value: -1: no`, false},
		{`spec.a: Invalid value: "object": no`, `spec.a: Invalid value: no`, true},
		{`[a: Required value, <nil>: Invalid value: "null": some]`, `[a: Required value, <nil>: Invalid value: null: some]`, true},
		{`admission webhook "a.b" denied the request: spec.a: Invalid value: 5: no`, `spec.a: Invalid value: 5: no`, true},
	} {
		said := Said(errors.New(r.said))
		g.Expect(said).To(old.Says(r.means))
		g.Expect(said + ", or else").To(old.Mentions(r.means))
		if r.later {
			g.Expect(said).To(now.Says(r.means))
		} else {
			g.Expect(said).NotTo(now.Mentions(r.means))
		}
	}
	g.Expect("a: Invalid value: 5: no").NotTo(old.Mentions("a: Invalid value: 6: no"), "another value is another refusal")
	g.Expect(Said(nil)).To(BeEmpty())
}
