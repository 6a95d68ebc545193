package scorecard

import (
	"encoding/xml"
	"testing"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// reported is a list with a result in each state, and words that XML minds.
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
	text, err := XUnit(reported())
	if err != nil {
		t.Fatal(err)
	}
	var read xunitSuites
	if err := xml.Unmarshal(text, &read); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	failures, errors := 0, 0
	for _, suite := range read.Suites {
		failures, errors = failures+suite.Failures, errors+suite.Errors
		one := suite.Cases[0]
		switch suite.Name {
		case "good":
			if one.Failure != nil || one.Error != nil {
				t.Errorf("a test that passed: %+v", one)
			}
		case "broken":
			if one.Failure == nil || one.Failure.Text != "a <b> & c\ntry it" || one.Out != "1 < 2" {
				t.Errorf("a test that failed: %+v", one)
			}
		case "none":
			if one.Error == nil || one.Error.Text != "no cluster" {
				t.Errorf("a test that could not be run: %+v", one)
			}
		}
	}
	if len(read.Suites) != 3 || failures != 1 || errors != 1 {
		t.Errorf("%d suites, %d failures, %d errors", len(read.Suites), failures, errors)
	}
}

func TestFailed(t *testing.T) {
	list := reported()
	silent := v1alpha3.NewTest()
	silent.Spec.Labels = map[string]string{"test": "silent"}
	list.Items = append(list.Items, silent) // no result is no success
	if failed := Failed(list); len(failed) != 3 {
		t.Errorf("failed: %v", failed)
	}
}
