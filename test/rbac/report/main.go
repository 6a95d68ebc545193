// Command report compares the operator's roles with an audit log of the API server.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/stateful-operator/stateful-operator/test/rbac"
)

func main() {
	auditLog := flag.String("audit-log", "", "`file` that the API server wrote, at level Metadata or higher")
	roles := flag.String("roles", "config/rbac", "`folder` with the operator's roles and their bindings")
	namespace := flag.String("namespace", "stateful-operator-system", "`namespace` of the operator")
	flag.Parse()
	if err := run(*auditLog, *roles, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(auditLog, roles, namespace string) error {
	report, err := rbac.ReadReport(roles, namespace, auditLog)
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
