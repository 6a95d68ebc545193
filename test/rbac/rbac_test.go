package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

const roles = `
kind: ClusterRole
metadata: {name: manager-role}
rules:
- {apiGroups: [""], resources: [pods, pods/status], verbs: [get, patch]}
- {apiGroups: [apps], resources: [statefulsets], resourceNames: [one], verbs: [get]}
---
kind: Role
metadata: {name: own}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [list]}
`

func line(user, verb, group, resource, subresource, namespace, name, decision string) string {
	return fmt.Sprintf(`{"stage":"ResponseComplete","verb":%q,"user":{"username":%q},"objectRef":{"apiGroup":%q,"resource":%q,"subresource":%q,"namespace":%q,"name":%q},"annotations":{"authorization.k8s.io/decision":%q}}`+"\n",
		verb, user, group, resource, subresource, namespace, name, decision)
}

func TestCompare(t *testing.T) {
	log := line("me", "get", "", "pods", "", "a", "x", "allow") +
		line("me", "patch", "", "pods", "status", "a", "x", "allow") +
		line("me", "patch", "", "pods", "status", "a", "y", "allow") +
		line("you", "patch", "", "pods", "", "a", "x", "allow") + // of another user
		line("me", "get", "apps", "statefulsets", "", "a", "two", "allow") + // with another name
		line("me", "list", "", "secrets", "", "a", "", "allow") + // in another namespace
		line("me", "delete", "", "pods", "", "a", "x", "forbid") +
		`{"stage":"Resp` // still being written
	g := NewWithT(t)
	given, err := manifest.Read[rbacv1.ClusterRole]([]byte(roles))
	granted := Granted(given)
	g.Expect(granted, err).To(HaveLen(6))
	asked, err := ReadAudit(strings.NewReader(log), "me")
	g.Expect(err).To(Succeed())
	report := Compare(granted, asked, "own", func(p Permission) bool { return p.Resource == "pods/status" })
	var text strings.Builder
	g.Expect(report.Write(&text)).To(Succeed())
	const want = `       1  get pods (manager-role)
       2  patch pods/status (manager-role)
  UNUSED  patch pods (manager-role)
  UNUSED  get statefulsets.apps one (manager-role)
  UNUSED  list secrets (own)
 REFUSED  delete pods x in namespace a, 1 times
`
	g.Expect(text.String()).To(Equal(want))
	g.Expect(slices.IndexFunc(granted, func(p Permission) bool { return p.Own })).To(Equal(5), "the permission of the Role")
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	_, err := ReadAudit(strings.NewReader("no JSON\n"), "me")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("read the audit log")))
}
