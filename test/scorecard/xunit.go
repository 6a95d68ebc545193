package scorecard

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// XUnit returns a JUnit report with one suite per test. operator-sdk's own xunit output does not escape
// errors, and is invalid XML if they contain an ampersand or a bracket. So the report is generated from
// its JSON.
func XUnit(list v1alpha3.TestList) ([]byte, error) {
	var all reporters.JUnitTestSuites
	for _, test := range list.Items {
		suite := reporters.JUnitTestSuite{Name: test.Spec.Labels["test"], Package: "scorecard", Tests: len(test.Status.Results)}
		suite.Properties.Properties = []reporters.JUnitProperty{
			{Name: "spec.image", Value: test.Spec.Image},
			{Name: "spec.entrypoint", Value: strings.Join(test.Spec.Entrypoint, " ")},
			{Name: "labels.test", Value: test.Spec.Labels["test"]},
			{Name: "labels.suite", Value: test.Spec.Labels["suite"]},
		}
		for _, result := range test.Status.Results {
			one := reporters.JUnitTestCase{Name: result.Name, Classname: suite.Name, Status: string(result.State), SystemOut: result.Log}
			words := strings.Join(append(result.Errors, result.Suggestions...), "\n")
			switch result.State {
			case v1alpha3.PassState:
			case v1alpha3.FailState:
				one.Failure = &reporters.JUnitFailure{Description: words}
				suite.Failures++
			default:
				one.Error = &reporters.JUnitError{Description: words}
				suite.Errors++
			}
			suite.TestCases = append(suite.TestCases, one)
		}
		all.Tests, all.Failures, all.Errors = all.Tests+suite.Tests, all.Failures+suite.Failures, all.Errors+suite.Errors
		all.TestSuites = append(all.TestSuites, suite)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// WriteReports writes the results of tests as JSON and as xunit into a folder.
func WriteReports(list v1alpha3.TestList, folder string) error {
	asJSON, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	asXML, err := XUnit(list)
	if err != nil {
		return err
	}
	return errors.Join(
		os.MkdirAll(folder, 0o755),
		os.WriteFile(filepath.Join(folder, "scorecard.json"), append(asJSON, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "scorecard.xml"), asXML, 0o644))
}
