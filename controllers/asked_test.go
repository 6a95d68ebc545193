package controllers

import (
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	extendedstatefulsetwebhooks "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	replicatedstatefulsetwebhooks "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	statefulclusterwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulcluster/webhooks"
	statefulsingletonwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// requesterKinds are the kinds whose requesters are checked, and the types of their specs.
var requesterKinds = []struct {
	kind requester.Kind
	spec reflect.Type
}{
	{statefulclusterwebhooks.Requester(), reflect.TypeFor[engev1alpha1.StatefulClusterSpec]()},
	{replicatedstatefulsetwebhooks.Requester(), reflect.TypeFor[clusterlabsv1alpha1.ReplicatedStatefulSetSpec]()},
	{extendedstatefulsetwebhooks.Requester(), reflect.TypeFor[fissilev1alpha1.ExtendedStatefulSetSpec]()},
	{statefulsingletonwebhooks.Requester(), reflect.TypeFor[statefulsingletonv1.StatefulSingletonSpec]()},
}

// N6: every field of every spec either requires a right of its requester, or is in the kind's table
// of free fields with a reason.
func TestEveryFieldAsksForARight(t *testing.T) {
	for _, row := range requesterKinds {
		t.Run(row.kind.Name, func(t *testing.T) {
			asking := map[string]bool{}
			for _, right := range row.kind.Rights {
				for _, field := range right.Fields {
					asking[field] = true
				}
			}
			for field := range asking {
				if !hasField(row.spec, field) {
					t.Errorf("a permission is required for field %s, which is not in the spec", field)
				}
			}
			for field, why := range row.kind.Free {
				if !hasField(row.spec, field) || why == "" || asking[field] {
					t.Errorf("field %s is free because %q; in the spec: %t, requires a permission: %t", field, why, hasField(row.spec, field), asking[field])
				}
			}
			for _, field := range unasked(row.kind, asking, row.spec, "") {
				t.Errorf("field %s requires no permission, and the table has no reason for it", field)
			}
		})
	}
}

// unasked returns the fields below a path that require no right and are not free. If only parts of
// a field require rights, each part is checked.
func unasked(kind requester.Kind, asking map[string]bool, of reflect.Type, path string) (fields []string) {
	for name, inner := range jsonFields(of) {
		field := strings.TrimPrefix(path+"."+name, ".")
		parts := slices.ContainsFunc(slices.Collect(maps.Keys(asking)), func(a string) bool { return strings.HasPrefix(a, field+".") })
		_, free := kind.Free[field]
		switch {
		case asking[field], free:
		case parts && inner.Kind() == reflect.Struct:
			fields = append(fields, unasked(kind, asking, inner, field)...)
		default:
			fields = append(fields, field)
		}
	}
	return fields
}

// hasField reports whether a type has a field at a path.
func hasField(of reflect.Type, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	inner, has := jsonFields(of)[name]
	return has && (!more || hasField(inner, rest))
}

// jsonFields returns the types of the fields of a struct by their JSON names, without pointers.
func jsonFields(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	if of.Kind() != reflect.Struct {
		return fields
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" || !field.IsExported():
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			for name, inner := range jsonFields(inner) {
				fields[name] = inner
			}
		default:
			fields[name] = inner
		}
	}
	return fields
}

// TestTheScorecardMayRequestEverything tests that the account of scorecard has each right that the
// requester of an object needs, so that no promise is refused on a user's cluster.
func TestTheScorecardMayRequestEverything(t *testing.T) {
	text, err := os.ReadFile("../config/scorecard/rbac/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal(text, &role); err != nil {
		t.Fatal(err)
	}
	for _, row := range requesterKinds {
		for _, right := range row.kind.Rights {
			resource := right.Resource
			if right.Subresource != "" {
				resource += "/" + right.Subresource
			}
			allows := func(r rbacv1.PolicyRule) bool {
				return slices.Contains(r.APIGroups, right.Group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, right.Verb)
			}
			if !slices.ContainsFunc(role.Rules, allows) {
				t.Errorf("%s: scorecard may not %s %s of group %q", row.kind.Name, right.Verb, resource, right.Group)
			}
		}
	}
}
