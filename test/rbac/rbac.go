// Package rbac compares the permissions of the operator's roles with its requests in the API server's
// audit log.
package rbac

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/stateful-operator/stateful-operator/test/auditlog"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// Permission is one verb on one resource, granted by a role.
type Permission struct {
	Role, Group, Resource, Verb string
	// Name is the name of the only object that it is for, or "" for all.
	Name string
	// Own is true if it is only for the operator's own namespace.
	Own bool
}

func (p Permission) String() string {
	text := p.Verb + " " + qualified(p.Resource, p.Group)
	if p.Name != "" {
		text += " " + p.Name
	}
	return text + " (" + p.Role + ")"
}

func qualified(resource, group string) string {
	if group == "" {
		return resource
	}
	main, sub, _ := strings.Cut(resource, "/")
	return strings.TrimSuffix(main+"."+group+"/"+sub, "/")
}

// Granted returns the permissions of Roles and ClusterRoles, such as those of config/rbac/role.yaml.
func Granted(roles []rbacv1.ClusterRole) (all []Permission) {
	for i := range roles {
		for _, rule := range roles[i].Rules {
			all = append(all, expand(&roles[i], rule)...)
		}
	}
	return all
}

func expand(role *rbacv1.ClusterRole, rule rbacv1.PolicyRule) (all []Permission) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Permission{Role: role.Name, Group: group, Resource: resource, Verb: verb, Name: name, Own: role.Kind == "Role"})
				}
			}
		}
	}
	return all
}

// Request is a request to the API server.
type Request struct{ Verb, Group, Resource, Namespace, Name string }

func (r Request) String() string {
	text := r.Verb + " " + qualified(r.Resource, r.Group)
	if r.Name != "" {
		text += " " + r.Name
	}
	if r.Namespace != "" {
		text += " in namespace " + r.Namespace
	}
	return text
}

// Asked counts the requests of one user.
type Asked struct{ Allowed, Forbidden map[Request]int }

// ReadAudit reads a log of level Metadata or more. An incomplete last line is skipped: the API server
// may still be writing it.
func ReadAudit(log io.Reader, user string) (Asked, error) {
	asked := Asked{map[Request]int{}, map[Request]int{}}
	err := auditlog.Read(log, user, func(e *auditv1.Event) {
		// A watch that has not ended has only reached stage ResponseStarted.
		if e.User.Username != user || e.Stage != auditv1.StageResponseComplete && e.Stage != auditv1.StageResponseStarted || e.ObjectRef.Resource == "" {
			return
		}
		r := Request{e.Verb, e.ObjectRef.APIGroup, auditlog.Resource(e), e.ObjectRef.Namespace, e.ObjectRef.Name}
		switch e.Annotations["authorization.k8s.io/decision"] {
		case "allow":
			asked.Allowed[r]++
		case "forbid":
			asked.Forbidden[r]++
		}
	})
	return asked, err
}

// Report is the difference between granted and used permissions.
type Report struct {
	// Unused was never used, and is not excused.
	Unused []Permission
	// Refused was requested without being granted.
	Refused []string
	// Used counts the requests for each permission.
	Used map[Permission]int
}

// Compare looks for unnecessary and for missing permissions. namespace is the operator's own. excused
// reports whether a permission may stay unused.
func Compare(granted []Permission, asked Asked, namespace string, excused func(Permission) bool) Report {
	report := Report{Used: map[Permission]int{}}
	for _, p := range granted {
		for r, n := range asked.Allowed {
			if p.allows(r, namespace) {
				report.Used[p] += n
			}
		}
		if report.Used[p] == 0 && !excused(p) {
			report.Unused = append(report.Unused, p)
		}
	}
	for r, n := range asked.Forbidden {
		report.Refused = append(report.Refused, fmt.Sprintf("%s, %d times", r, n))
	}
	slices.Sort(report.Refused)
	return report
}

func (p Permission) allows(r Request, namespace string) bool {
	return p.Verb == r.Verb && p.Group == r.Group && p.Resource == r.Resource &&
		(p.Name == "" || p.Name == r.Name) && (!p.Own || r.Namespace == namespace)
}

// prefix is the name prefix of config/default.
const prefix = "stateful-operator-"

// ReadReport compares the roles in a folder, such as config/rbac, with audit logs, for operators in
// that namespace. Each account with roles there is compared separately.
func ReadReport(folder, namespace string, auditLogs ...string) (Report, error) {
	roles, err := manifest.ReadFile[rbacv1.ClusterRole](filepath.Join(folder, "role.yaml")) // a Role has the same fields
	if err != nil {
		return Report{}, err
	}
	bindings, err := manifest.ReadFile[rbacv1.ClusterRoleBinding](filepath.Join(folder, "role_bindings.yaml")) // and a RoleBinding
	if err != nil {
		return Report{}, err
	}
	all := Report{Used: map[Permission]int{}}
	for account, given := range byAccount(roles, bindings) {
		asked, err := readAudits("system:serviceaccount:"+namespace+":"+prefix+account, auditLogs)
		if err != nil {
			return Report{}, err
		}
		report := Compare(Granted(given), asked, namespace, Excused)
		all.Unused = append(all.Unused, report.Unused...)
		all.Refused = append(all.Refused, report.Refused...)
		for p, n := range report.Used {
			all.Used[p] += n
		}
	}
	return all, nil
}

// byAccount returns the roles of each account.
func byAccount(roles []rbacv1.ClusterRole, bindings []rbacv1.ClusterRoleBinding) map[string][]rbacv1.ClusterRole {
	all := map[string][]rbacv1.ClusterRole{}
	for _, binding := range bindings {
		for _, subject := range binding.Subjects {
			for i := range roles {
				if roles[i].Kind == binding.RoleRef.Kind && roles[i].Name == binding.RoleRef.Name {
					all[subject.Name] = append(all[subject.Name], roles[i])
				}
			}
		}
	}
	return all
}

func readAudits(user string, files []string) (Asked, error) {
	var logs []io.Reader
	for _, path := range files {
		log, err := os.Open(path)
		if err != nil {
			return Asked{}, err
		}
		defer log.Close()
		logs = append(logs, log)
	}
	return ReadAudit(io.MultiReader(logs...), user)
}

// Write prints the report as a table.
func (r Report) Write(out io.Writer) error {
	var text strings.Builder
	for _, p := range slices.SortedFunc(maps.Keys(r.Used), func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Name, b.Name))
	}) {
		fmt.Fprintf(&text, "%8d  %s\n", r.Used[p], p)
	}
	for _, p := range r.Unused {
		fmt.Fprintf(&text, "  UNUSED  %s\n", p)
	}
	for _, line := range r.Refused {
		fmt.Fprintf(&text, " REFUSED  %s\n", line)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
