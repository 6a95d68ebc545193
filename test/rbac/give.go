package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// Give creates the named ClusterRoles of a file, such as config/rbac/role.yaml, if they do not exist,
// and binds them to a user in a namespace, or in all if namespace is "".
func Give(ctx context.Context, c client.Client, file, namespace, user string, names ...string) error {
	roles, err := manifest.ReadFile[rbacv1.ClusterRole](file)
	if err != nil {
		return err
	}
	for _, role := range roles {
		if role.Kind != "ClusterRole" || !slices.Contains(names, role.Name) {
			continue
		}
		if err := c.Create(ctx, &role); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		if err := Bind(ctx, c, namespace, "ClusterRole", role.Name, user); err != nil {
			return err
		}
	}
	return nil
}

// Allow grants a user a verb on a resource of a namespace, and waits as Bind does.
func Allow(ctx context.Context, c client.Client, namespace, user, verb, group, resource string) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "may-", Namespace: namespace},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}}}
	if err := c.Create(ctx, role); err != nil {
		return err
	}
	return Bind(ctx, c, namespace, "Role", role.Name, user)
}

// Bind grants a user the rules of a Role or ClusterRole in a namespace, or in all if namespace is "".
// It returns when the API server authorizes the first permission of each rule, because its caches of
// roles and bindings lag.
func Bind(ctx context.Context, c client.Client, namespace, kind, role, user string) error {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	its := metav1.ObjectMeta{Namespace: namespace, GenerateName: "test-"}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: its, RoleRef: ref, Subjects: subjects}
	if namespace == "" {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: its, RoleRef: ref, Subjects: subjects}
	}
	if err := c.Create(ctx, binding); err != nil {
		return err
	}
	rules, err := rulesOf(ctx, c, namespace, kind, role)
	if err != nil {
		return err
	}
	for _, rule := range rules {
		if len(rule.Resources) == 0 {
			continue // a rule for URLs
		}
		if err := await(ctx, c, namespace, user, rule); err != nil {
			return fmt.Errorf("%s %s for %s: %w", kind, role, user, err)
		}
	}
	return nil
}

func rulesOf(ctx context.Context, c client.Client, namespace, kind, name string) ([]rbacv1.PolicyRule, error) {
	if kind == "Role" {
		role := &rbacv1.Role{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, role)
		return role.Rules, err
	}
	role := &rbacv1.ClusterRole{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, role)
	return role.Rules, err
}

// await waits until the API server authorizes the first permission of a rule for the user.
func await(ctx context.Context, c client.Client, namespace, user string, rule rbacv1.PolicyRule) error {
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource}
	if len(rule.ResourceNames) > 0 {
		asked.Name = rule.ResourceNames[0]
	}
	return wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: asked}}
		err := c.Create(ctx, review)
		return review.Status.Allowed, err
	})
}
