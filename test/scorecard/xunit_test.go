package scorecard

import (
	"encoding/xml"
	"testing"

	"github.com/onsi/ginkgo/v2/reporters"
	. "github.com/onsi/gomega"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// reported returns a list with a result in each state, and characters that XML must escape.
func reported() v1alpha3.TestList {
	list := v1alpha3.NewTestList()
	for name, result := range map[string]v1alpha3.TestResult{
		"good":   {State: v1alpha3.PassState},
		"broken": {State: v1alpha3.FailState, Errors: []string{"a <b> & c"}, Suggestions: []string{"try it"}, Log: "1 < 2"},
		"none":   {State: v1alpha3.ErrorState, Errors: []string{"no cluster"}},
	} {
		test := v1alpha3.NewTest()
		test.Spec.Labels = map[string]string{"test": name}
		result.Name = name
		test.Status.Results = []v1alpha3.TestResult{result}
		list.Items = append(list.Items, test)
	}
	return list
}

func TestXUnit(t *testing.T) {
	g := NewWithT(t)
	text, err := XUnit(reported())
	g.Expect(err).To(Succeed())
	var read reporters.JUnitTestSuites
	g.Expect(xml.Unmarshal(text, &read)).To(Succeed(), "%s", text)
	g.Expect([]int{len(read.TestSuites), read.Failures, read.Errors}).To(Equal([]int{3, 1, 1}), "suites, failures, errors")
	for _, suite := range read.TestSuites {
		one := suite.TestCases[0]
		g.Expect(one.Failure != nil).To(Equal(suite.Name == "broken"), "%+v", one)
		g.Expect(one.Error != nil).To(Equal(suite.Name == "none"), "%+v", one)
		g.Expect([]int{suite.Failures, suite.Errors}).To(Equal(map[string][]int{"good": {0, 0}, "broken": {1, 0}, "none": {0, 1}}[suite.Name]), suite.Name)
		if one.Failure != nil {
			g.Expect([]string{one.Failure.Description, one.SystemOut}).To(Equal([]string{"a <b> & c\ntry it", "1 < 2"}))
		}
		if one.Error != nil {
			g.Expect(one.Error.Description).To(Equal("no cluster"))
		}
	}
}

func TestFailed(t *testing.T) {
	list := reported()
	silent := v1alpha3.NewTest()
	silent.Spec.Labels = map[string]string{"test": "silent"}
	list.Items = append(list.Items, silent) // no result is no success
	NewWithT(t).Expect(Failed(list)).To(ConsistOf("broken", "none", "silent"))
}
