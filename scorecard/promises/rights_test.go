package promises_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/rbac"
)

// compareRights looks into the audit log of a local cluster for what the operator
// was refused, and, if every promise was tried, for rights that none of them
// needs. The working folder is the project's.
func compareRights(t *testing.T, c *promises.Cluster, local *cluster.Cluster) {
	t.Helper()
	report, err := rbac.ReadReport(local.AuditLog(), filepath.Join("config", "rbac", "role.yaml"), c.Operator.Namespace, "stateful-operator-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("build", "rbac.txt"), text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range report.Refused {
		t.Errorf("the operator was refused: %s", line)
	}
	if t.Failed() || flag.Lookup("test.run").Value.String() != "" || flag.Lookup("test.skip").Value.String() != "" {
		return // not all was tried
	}
	for _, p := range report.Unused {
		t.Errorf("a role gives what no promise needs: %s", p)
	}
}
