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
	{"caches begin with a watch that streams the list (KEP-3157); they list where an API server refuses that",
		func(p Permission) bool { return p.Verb == "list" }},
	{"what is created is read where the answer was lost, and somebody may have been first",
		func(p Permission) bool {
			return p.Verb == "get" && is(p, "controllerrevisions", "jobs", "poddisruptionbudgets", "services")
		}},
	{"admission plugin OwnerReferencesPermissionEnforcement asks the authorizer, not the API server",
		func(p Permission) bool { return strings.HasSuffix(p.Resource, "/finalizers") && p.Verb == "update" }},
	{"the same, where an object gets one owner more: the API suite shows it",
		func(p Permission) bool {
			return p.Verb == "delete" && (is(p, "configmaps") && p.Name == "statefulsingleton-wrapper" ||
				is(p, "validatingadmissionpolicies", "validatingadmissionpolicybindings"))
		}},
	{"the API server asks the authorizer: about parameters when the guard, or a policy on rights in some namespaces, is written, and by the guard when a grant is",
		func(p Permission) bool {
			parameters := p.Role == "installer-role" && is(p, "statefulclusters", "replicatedstatefulsets", "extendedstatefulsets")
			return (parameters || is(p, "statefulsingletons")) && p.Verb == "get" || is(p, "statefulsingletons/status") && p.Verb == "update"
		}},
	{"the API server asks the authorizer whether an apply that finds nothing may create",
		func(p Permission) bool {
			return p.Verb == "create" && is(p, "configmaps", "validatingwebhookconfigurations") && p.Name != ""
		}},
	{"commands begin as a get before Kubernetes 1.35, and as a create after it, of which the audit log says get",
		func(p Permission) bool { return is(p, "pods/exec") }},
	{"happens by the policy of a set, with a long history, or when the numbers change: the API suites show it under this role",
		func(p Permission) bool {
			return p.Verb == "delete" && is(p, "persistentvolumeclaims", "controllerrevisions") || p.Verb == "patch" && is(p, "poddisruptionbudgets")
		}},
	{"claims of a ReplicatedStatefulSet are read and patched while they have to grow: the API suite shows it under this role",
		func(p Permission) bool {
			return p.Role == "replicatedstatefulset-role" && is(p, "persistentvolumeclaims")
		}},
	{"asked when somebody reads the metrics, which the benchmarks do, and before a dry run, which admission makes",
		func(p Permission) bool { return is(p, "tokenreviews", "subjectaccessreviews") }},
	{"admission looks at who has a name only where it is taken: the API suites show it",
		func(p Permission) bool { return p.Role == "webhook-role" && p.Verb == "get" }},
	{"an owner whose pods were refused is woken only if it does not try again by itself before: the API suite shows it (S16)",
		func(p Permission) bool { return p.Verb == "patch" && is(p, "replicasets") }},
	{"a budget goes when the policy of evictions changes: the API suite shows it (RS-66, RS-69)",
		func(p Permission) bool { return p.Verb == "delete" && is(p, "poddisruptionbudgets") }},
	{"an event that repeats is patched",
		func(p Permission) bool { return is(p, "events") && p.Verb == "patch" }},
	{"made once, by whichever start finds it missing, and renewed",
		func(p Permission) bool { return p.Own && is(p, "secrets") }},
}

func is(p Permission, resources ...string) bool { return slices.Contains(resources, p.Resource) }

// Excused reports whether a permission may be granted without being used in a run.
func Excused(p Permission) bool {
	return slices.ContainsFunc(excuses, func(e excuse) bool { return e.of(p) })
}
