package rbac

import (
	"context"
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// Give makes ClusterRoles of a file, such as config/rbac/role.yaml, and gives a user what
// they allow, in all namespaces.
func Give(ctx context.Context, c client.Client, file, user string, names ...string) error {
	roles, err := manifest.ReadFile[rbacv1.ClusterRole](file)
	if err != nil {
		return err
	}
	for _, role := range roles {
		if role.Kind != "ClusterRole" || !slices.Contains(names, role.Name) {
			continue
		}
		if err := errors.Join(c.Create(ctx, &role), Bind(ctx, c, role.Name, user)); err != nil {
			return err
		}
	}
	return nil
}

// Bind gives a user what a ClusterRole allows, in all namespaces.
func Bind(ctx context.Context, c client.Client, role, user string) error {
	return c.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

// Allow lets a user do that with those objects of a namespace.
func Allow(ctx context.Context, c client.Client, namespace, user, verb, group, resource string) error {
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: "may-", Namespace: namespace},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}}}
	if err := c.Create(ctx, role); err != nil {
		return err
	}
	return c.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}
