// Command scorecard is the program of the image with the custom scorecard
// tests: it tries one promise of one kind on the cluster that its pod is in, and
// prints what came of it as a TestStatus and nothing else. The argument names
// the test (tests.go).
//
// Its service account needs the rights of config/scorecard/rbac. A promise gets
// a namespace of its own, whose pods run this image: it has a shell, and the
// programs of test/faults. PROMISES_OTHER_IMAGE is one more with a shell.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
)

func main() {
	flags := flag.NewFlagSet("scorecard TEST", flag.ExitOnError)
	within := flags.Duration("within", 15*time.Minute, "how long the test may take")
	_ = flags.Parse(os.Args[1:]) // exits on an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// What libraries say would not be JSON, and scorecard takes all output for it.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(ctx, *within)
	defer cancel()
	printStatus(os.Stdout, run(ctx, flags.Arg(0), inPod))
}

func printStatus(out io.Writer, result v1alpha3.TestResult) {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(v1alpha3.TestStatus{Results: []v1alpha3.TestResult{result}})
}

// run tries the promise of a test on the cluster that connect finds. A promise
// that is broken is a failure; one that could not be tried is an error.
func run(ctx context.Context, name string, connect func(context.Context) (*promises.Cluster, error)) (result v1alpha3.TestResult) {
	result = v1alpha3.TestResult{Name: name, State: v1alpha3.ErrorState, CreationTimestamp: metav1.Now()}
	var diary diary
	defer func() {
		if r := recover(); r != nil {
			result.State, result.Errors = v1alpha3.ErrorState, append(result.Errors, fmt.Sprint("panic: ", r))
		}
		result.Log = diary.String()
	}()
	promise, err := promised(name)
	if err != nil {
		result.Errors = []string{err.Error()}
		return result
	}
	diary.write("the promise: %s", promise.Name)
	c, err := connect(ctx)
	if err != nil {
		result.Errors = []string{err.Error()}
		return result
	}
	c.Log = diary.write
	own, remove, err := c.New(ctx)
	if err != nil {
		result.Errors = []string{err.Error()}
		result.Suggestions = []string{"the service account of this pod needs the rights in config/scorecard/rbac: operator-sdk scorecard --service-account"}
		return result
	}
	defer remove()
	if err := promise.Keep(ctx, own); err != nil {
		result.State, result.Errors = v1alpha3.FailState, sentences(err)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
		defer cancel()
		result.Suggestions = operators(ctx, own)
		diary.write("%s", scene(ctx, own))
		return result
	}
	result.State = v1alpha3.PassState
	return result
}

// sentences are the parts of an error that was joined.
func sentences(err error) []string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []string{err.Error()}
	}
	return strings.Split(err.Error(), "\n")
}

// diary takes what a promise says meanwhile.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) write(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(&d.text, format+"\n", args...)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}
