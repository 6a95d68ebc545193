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
	// Config is a file that replaces the one in the bundle.
	Config string
	// Selector selects tests by their labels. Default: all.
	Selector string
	// Untar is the image that unpacks the bundle. Default: operator-sdk's own.
	Untar string
	// Wait is the timeout of all tests together.
	Wait time.Duration
}

// Do runs the tests. Failed tests are not an error.
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
	// The exit code is the same for failed tests and for other errors.
	if bad := json.Unmarshal(out.Bytes(), &list); bad != nil {
		return list, fmt.Errorf("operator-sdk scorecard: %w: %s%s", errors.Join(err, bad), out.String(), words.String())
	}
	if (err != nil) != (len(Failed(list)) > 0) {
		err = fmt.Errorf("operator-sdk scorecard: %d tests failed, and it exited with %w: %s", len(Failed(list)), err, words.String())
		return list, err
	}
	return list, nil
}

// Failed returns the labels of the tests that did not pass.
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
