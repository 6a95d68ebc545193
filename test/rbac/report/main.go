// Command report compares the operator's roles with an audit log of the API server.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/stateful-operator/stateful-operator/test/rbac"
)

func main() {
	auditLog := flag.String("audit-log", "", "`file` that the API server wrote, at level Metadata or more")
	roles := flag.String("roles", "config/rbac/role.yaml", "`file` with the operator's roles")
	namespace := flag.String("namespace", "stateful-operator-system", "`namespace` of the operator")
	account := flag.String("service-account", "stateful-operator-controller-manager", "`name` of the operator's service account")
	flag.Parse()
	if err := run(*auditLog, *roles, *namespace, *account); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(auditLog, roles, namespace, account string) error {
	report, err := rbac.ReadReport(roles, namespace, account, auditLog)
	if err != nil {
		return err
	}
	if err := report.Write(os.Stdout); err != nil {
		return err
	}
	if n := len(report.Unused) + len(report.Refused); n > 0 {
		return fmt.Errorf("%d differences", n)
	}
	return nil
}
