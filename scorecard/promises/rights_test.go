package promises_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// rights is the result of the local clusters' audit logs. It is set when the clusters are taken
// down.
var rights *rbac.Report

// readRights reads audit logs for the operators' requests.
func readRights(auditLogs []string) error {
	report, err := rbac.ReadReport(filepath.Join("config", "rbac"), operator.Namespace, auditLogs...)
	if err != nil {
		return err
	}
	rights = &report
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		return err
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("build", "rbac.txt"), []byte(text.String()), 0o644)
}

// The operator's requests must not be forbidden. If all promises passed, its roles must contain no
// rule that none of them needs.
var _ = ReportAfterSuite("rights of the operator", func(r Report) {
	if rights == nil {
		return // the audit log of KUBECONFIG's cluster is not available
	}
	Expect(rights.Refused).To(BeEmpty(), "the operator was refused this permission")
	if r.SuiteSucceeded && whole {
		Expect(rights.Unused).To(BeEmpty(), "a role grants this, and no promise requires it")
	}
})
