package scorecard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

// Namespace and ServiceAccount are those of config/scorecard/rbac.
const (
	Namespace      = "stateful-operator-scorecard"
	ServiceAccount = "stateful-operator-scorecard"
)

// Run is one call of operator-sdk scorecard.
type Run struct {
	Kubeconfig string
	Bundle     string
	// Config is a file in place of the one in the bundle.
	Config string
	// Selector chooses tests by their labels; all if empty.
	Selector string
	// Untar is the image that unpacks the bundle; operator-sdk's own if empty.
	Untar string
	// Wait bounds all tests together.
	Wait time.Duration
}

// Do runs the tests. Those that fail are no error.
func (r Run) Do(ctx context.Context) (v1alpha3.TestList, error) {
	var list v1alpha3.TestList
	folder, err := programs(ctx)
	if err != nil {
		return list, err
	}
	args := []string{"scorecard", r.Bundle, "--output=json", "--selector=" + r.Selector, "--wait-time=" + r.Wait.String(),
		"--namespace=" + Namespace, "--service-account=" + ServiceAccount, "--pod-security=restricted"}
	if r.Untar != "" {
		args = append(args, "--untar-image="+r.Untar)
	}
	if r.Config != "" {
		args = append(args, "--config="+r.Config)
	}
	sdk := exec.CommandContext(ctx, filepath.Join(folder, "operator-sdk"), args...)
	sdk.Env = append(os.Environ(), "KUBECONFIG="+r.Kubeconfig)
	var out, words bytes.Buffer
	sdk.Stdout, sdk.Stderr = &out, &words
	err = sdk.Run()
	// Its exit code tells of failed tests, and of all else too.
	if bad := json.Unmarshal(out.Bytes(), &list); bad != nil {
		return list, fmt.Errorf("operator-sdk scorecard: %w: %s%s", errors.Join(err, bad), out.String(), words.String())
	}
	if (err != nil) != (len(Failed(list)) > 0) {
		err = fmt.Errorf("operator-sdk scorecard: %d tests failed, and its exit says %w: %s", len(Failed(list)), err, words.String())
		return list, err
	}
	return list, nil
}

// Failed are the tests that did not pass, in the words of their labels.
func Failed(list v1alpha3.TestList) []string {
	var failed []string
	for _, test := range list.Items {
		results := test.Status.Results
		if len(results) == 0 || slices.ContainsFunc(results, func(r v1alpha3.TestResult) bool { return r.State != v1alpha3.PassState }) {
			failed = append(failed, test.Spec.Labels["test"])
		}
	}
	return failed
}
