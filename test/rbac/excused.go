package rbac

import (
	"slices"
	"strings"
)

// excuse is a reason to grant a permission that a run may not use.
type excuse struct {
	why string
	of  func(Permission) bool
}

var excuses = []excuse{
	{"caches start with a watch that streams the list (KEP-3157); they list if an API server refuses that",
		func(p Permission) bool { return p.Verb == "list" }},
	{"a created object is read if the response was lost, because another client may have created it",
		func(p Permission) bool {
			return p.Verb == "get" && is(p, "controllerrevisions", "jobs", "poddisruptionbudgets", "services")
		}},
	{"admission plugin OwnerReferencesPermissionEnforcement asks the authorizer, not the API server",
		func(p Permission) bool { return strings.HasSuffix(p.Resource, "/finalizers") && p.Verb == "update" }},
	{"an object gets one more owner, which the authorizer checks: covered by the API suite",
		func(p Permission) bool {
			return p.Verb == "delete" && (is(p, "configmaps") && p.Name == "statefulsingleton-wrapper" ||
				is(p, "validatingadmissionpolicies", "validatingadmissionpolicybindings"))
		}},
	{"the API server asks the authorizer: about parameters when the guard, or a policy on permissions in some namespaces, is written, and by the guard when a grant is written",
		func(p Permission) bool {
			parameters := p.Role == "installer-role" && is(p, "statefulclusters", "replicatedstatefulsets", "extendedstatefulsets")
			return (parameters || is(p, "statefulsingletons")) && p.Verb == "get" || is(p, "statefulsingletons/status") && p.Verb == "update"
		}},
	{"the API server asks the authorizer whether an apply that finds nothing may create",
		func(p Permission) bool {
			return p.Verb == "create" && is(p, "configmaps", "validatingwebhookconfigurations") && p.Name != ""
		}},
	{"commands start with a get before Kubernetes 1.35, and with a create since then, and the audit log has get",
		func(p Permission) bool { return is(p, "pods/exec") }},
	{"depends on the policy of a set, a long history, or a change of the numbers: covered by the API suites under this role",
		func(p Permission) bool {
			return p.Verb == "delete" && is(p, "persistentvolumeclaims", "controllerrevisions") || p.Verb == "patch" && is(p, "poddisruptionbudgets")
		}},
	{"claims of a ReplicatedStatefulSet are read and patched while they expand: covered by the API suite under this role",
		func(p Permission) bool {
			return p.Role == "replicatedstatefulset-role" && is(p, "persistentvolumeclaims")
		}},
	{"requested when a client reads the metrics, as the benchmarks do, and before a dry run in admission",
		func(p Permission) bool { return is(p, "tokenreviews", "subjectaccessreviews") }},
	{"admission reads the holder of a name only if it is taken: covered by the API suites",
		func(p Permission) bool { return p.Role == "webhook-role" && p.Verb == "get" }},
	{"an owner whose pods were refused is woken only if it does not retry before: covered by the API suite (S16)",
		func(p Permission) bool { return p.Verb == "patch" && is(p, "replicasets") }},
	{"a budget is deleted when the policy of evictions changes: covered by the API suite (RS-66, RS-69)",
		func(p Permission) bool { return p.Verb == "delete" && is(p, "poddisruptionbudgets") }},
	{"a repeated event is patched",
		func(p Permission) bool { return is(p, "events") && p.Verb == "patch" }},
	{"created once, by the first start that finds it missing, and renewed",
		func(p Permission) bool { return p.Own && is(p, "secrets") }},
}

func is(p Permission, resources ...string) bool { return slices.Contains(resources, p.Resource) }

// Excused reports whether a permission may be granted without being used in a run.
func Excused(p Permission) bool {
	return slices.ContainsFunc(excuses, func(e excuse) bool { return e.of(p) })
}
