package promises_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// The program of these tests is also in the image of the custom scorecard tests, under the name
// scorecard. Its argument is the name of a test (scorecard_table_test.go). It runs the promise of
// that test on the cluster of its own pod, and prints only the result, as a TestStatus.
//
// Its service account needs the rights in config/scorecard/rbac. Each promise gets a namespace of
// its own. The pods in it run this image: it has a shell, and the programs of test/faults.
// PROMISES_OTHER_IMAGE is another image with a shell.

// suggestion is the name of report entries with instructions for the user.
const suggestion = "suggestion"

// scorecard is the test that runs for operator-sdk's scorecard, and its result. It is nil in `make
// test`.
var scorecard *v1alpha3.TestResult

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "scorecard" {
		os.Exit(m.Run())
	}
	flags := flag.NewFlagSet("scorecard TEST", flag.ExitOnError)
	within := flags.Duration("within", 15*time.Minute, "the timeout of the test")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	scorecard = &v1alpha3.TestResult{Name: flags.Arg(0), State: v1alpha3.ErrorState, CreationTimestamp: metav1.Now()}
	if names := testNames(); !slices.Contains(names, scorecard.Name) {
		scorecard.Errors = []string{fmt.Sprintf("there is no test %q, only %s", scorecard.Name, strings.Join(names, ", "))}
		printStatus(os.Stdout, *scorecard)
		return
	}
	os.Args = []string{os.Args[0], "-test.run=^TestPromises$", "-ginkgo.label-filter=" + scorecard.Name,
		fmt.Sprint("-ginkgo.timeout=", *within)}
	out, err := silence()
	if err != nil {
		panic(err)
	}
	m.Run()
	printStatus(out, *scorecard)
	os.Exit(0) // scorecard reads the output only after success
}

// silence suppresses standard output and standard error, also for libraries that write there at any
// level: scorecard reads all output as the result. It returns the previous standard output.
func silence() (io.Writer, error) {
	klog.SetLogger(logr.Discard())
	out, err := syscall.Dup(1)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	for _, fd := range []int{1, 2} {
		if err := syscall.Dup3(int(null.Fd()), fd, 0); err != nil {
			return nil, err
		}
	}
	return os.NewFile(uintptr(out), "output"), nil
}

func printStatus(out io.Writer, result v1alpha3.TestResult) {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}})
}

// ready returns the cluster of this pod, or an error if promises cannot be tested there.
func ready(ctx context.Context) (*kit.Cluster, error) {
	c, err := inPod(ctx)
	if err != nil {
		return nil, err
	}
	_, remove, err := c.New(ctx)
	if err != nil {
		AddReportEntry(suggestion, "the service account of this pod needs the rights in config/scorecard/rbac: operator-sdk scorecard --service-account")
		return nil, err
	}
	remove()
	return c, nil
}

var _ = ReportAfterSuite("result for operator-sdk scorecard", func(r Report) {
	if scorecard != nil {
		judge(scorecard, r)
	}
})

// judge sets the result of a test. A broken promise is a failure. A promise that could not be
// tested is an error.
func judge(result *v1alpha3.TestResult, r Report) {
	var log strings.Builder
	for _, spec := range r.SpecReports {
		if spec.LeafNodeType.Is(types.NodeTypeIt) {
			switch spec.State {
			case types.SpecStateSkipped:
				continue
			case types.SpecStatePassed:
				result.State = v1alpha3.PassState
			case types.SpecStateFailed, types.SpecStateTimedout:
				result.State = v1alpha3.FailState
			}
			fmt.Fprintf(&log, "promise: %s\n", spec.LeafNodeText)
		}
		if spec.State.Is(types.SpecStateFailureStates) {
			result.Errors = append(result.Errors, strings.TrimSpace(spec.Failure.Message+"\n"+spec.Failure.ForwardedPanic))
		}
		log.WriteString(spec.CapturedGinkgoWriterOutput)
		for _, entry := range spec.ReportEntries {
			if entry.Name == suggestion {
				result.Suggestions = append(result.Suggestions, entry.StringRepresentation())
			} else {
				fmt.Fprintf(&log, "%s:\n%s\n", entry.Name, entry.StringRepresentation())
			}
		}
	}
	if len(result.Errors) > 0 && result.State == v1alpha3.PassState {
		result.State = v1alpha3.FailState // a step after the promise failed
	}
	result.Log = log.String()
}
