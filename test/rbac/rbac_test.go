package rbac

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
		line("you", "patch", "", "pods", "", "a", "x", "allow") + // somebody else's
		line("me", "get", "apps", "statefulsets", "", "a", "two", "allow") + // by another name
		line("me", "list", "", "secrets", "", "a", "", "allow") + // in another namespace
		line("me", "delete", "", "pods", "", "a", "x", "forbid") +
		`{"stage":"Resp` // is being written
	given, err := manifest.Read[rbacv1.ClusterRole]([]byte(roles))
	granted := Granted(given)
	if err != nil || len(granted) != 6 {
		t.Fatal(granted, err)
	}
	asked, err := ReadAudit(strings.NewReader(log), "me")
	if err != nil {
		t.Fatal(err)
	}
	report := Compare(granted, asked, "own", func(p Permission) bool { return p.Resource == "pods/status" })
	var text strings.Builder
	if err := report.Write(&text); err != nil {
		t.Fatal(err)
	}
	const want = `       1  get pods (manager-role)
       2  patch pods/status (manager-role)
  UNUSED  patch pods (manager-role)
  UNUSED  get statefulsets.apps one (manager-role)
  UNUSED  list secrets (own)
 REFUSED  delete pods x in namespace a, 1 times
`
	if text.String() != want {
		t.Errorf("got\n%swant\n%s", &text, want)
	}
	if own := slices.IndexFunc(granted, func(p Permission) bool { return p.Own }); own != 5 {
		t.Errorf("the permission of the Role is number %d", own)
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	if _, err := ReadAudit(strings.NewReader("no JSON\n"), "me"); err == nil {
		t.Error("a log that is none is read")
	}
}
