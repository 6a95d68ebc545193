package scorecard

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// What operator-sdk prints as xunit has its errors as they are, and is no XML
// where these have an ampersand or a bracket. So this is made from its JSON.

type xunitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Name    string       `xml:"name,attr"`
	Suites  []xunitSuite `xml:"testsuite"`
}

type xunitSuite struct {
	Name     string          `xml:"name,attr"`
	Tests    int             `xml:"tests,attr"`
	Failures int             `xml:"failures,attr"`
	Errors   int             `xml:"errors,attr"`
	Values   []xunitProperty `xml:"properties>property"`
	Cases    []xunitCase     `xml:"testcase"`
}

type xunitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type xunitCase struct {
	Name    string      `xml:"name,attr"`
	Failure *xunitWords `xml:"failure"`
	Error   *xunitWords `xml:"error"`
	Out     string      `xml:"system-out,omitempty"`
}

type xunitWords struct {
	Text string `xml:",chardata"`
}

// XUnit is a report for machines, a suite for each test.
func XUnit(list v1alpha3.TestList) ([]byte, error) {
	suites := xunitSuites{Name: "scorecard"}
	for _, test := range list.Items {
		suite := xunitSuite{Name: test.Spec.Labels["test"], Tests: len(test.Status.Results), Values: []xunitProperty{
			{"spec.image", test.Spec.Image},
			{"spec.entrypoint", strings.Join(test.Spec.Entrypoint, " ")},
			{"labels.test", test.Spec.Labels["test"]},
			{"labels.suite", test.Spec.Labels["suite"]},
		}}
		for _, result := range test.Status.Results {
			one := xunitCase{Name: result.Name, Out: result.Log}
			words := &xunitWords{Text: strings.Join(append(result.Errors, result.Suggestions...), "\n")}
			switch result.State {
			case v1alpha3.PassState:
			case v1alpha3.FailState:
				one.Failure = words
				suite.Failures++
			default:
				one.Error = words
				suite.Errors++
			}
			suite.Cases = append(suite.Cases, one)
		}
		suites.Suites = append(suites.Suites, suite)
	}
	text, err := xml.MarshalIndent(suites, "", "  ")
	return append([]byte(xml.Header), append(text, '\n')...), err
}

// WriteReports writes what came of tests as JSON and as xunit into a folder.
func WriteReports(list v1alpha3.TestList, folder string) error {
	asJSON, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	asXML, err := XUnit(list)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "scorecard.json"), append(asJSON, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "scorecard.xml"), asXML, 0o644))
}
