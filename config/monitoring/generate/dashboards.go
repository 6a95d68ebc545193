package main

import (
	"fmt"
	"slices"
	"strings"
)

// dashboards are all dashboards. Each has a line in kustomization.yaml.
var dashboards = []dashboard{overview, extended, replicated, clusters, singletons}

// one returns a single query.
func one(expr, legend string) []query { return []query{{expr, legend}} }

// quantile returns the quantile of a histogram's buckets. Rare events have no value most of the
// time, which is not drawn.
func quantile(q, buckets, by, over string) string {
	labels := "le"
	if by != "" {
		labels += ", " + by
	}
	return fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s[%s]))) >= 0", q, labels, buckets, over)
}

// usualAndSlow returns the queries for p50 and p99.
func usualAndSlow(buckets, over string) []query {
	return []query{{quantile("0.50", buckets, "", over), "p50"}, {quantile("0.99", buckets, "", over), "p99"}}
}

// newly returns a query for the increase of a counter since the previous point.
func newly(by, counter string) string {
	return fmt.Sprintf("sum by (%s) (increase(%s[$__interval]))", by, counter)
}

// asShown is the shortest range that is exact for the resolution of a panel.
const asShown = "$__rate_interval"

// unknown is shown instead of a number if there is no metric: there is no object, or no operator
// that reports any.
const unknown = "none known"

var overview = dashboard{
	name: "overview", title: "Stateful operator / Overview",
	panels: []panel{
		{title: "Objects", shape: number.of(12), levels: calm, none: unknown, about: "Number of objects of each kind.",
			queries: one(`count by (kind) (stateful_operator_condition{type="Available"})`, "{{kind}}")},
		{title: "Not available", shape: number.of(4), levels: bad, none: unknown, about: "Objects whose condition Available is not True, except stopped ones.",
			queries: one(notAvailable(), "")},
		{title: "Degraded", shape: number.of(4), levels: bad, none: unknown, about: "Objects with a problem that requires manual intervention.",
			queries: one(areTrue("Degraded"), "")},
		{title: "Leaders", shape: number.of(4), levels: just1, about: "Replicas of the operator that hold the lease. The number differs from 1 only for a short time.",
			queries: one(`sum(leader_election_master_status{name="stateful-operator"}) or vector(0)`, "")},
		{title: "Firing alerts", shape: table, none: "No alert is firing", about: "Alerts of config/prometheus. The name of each alert links to its runbook.",
			columns: []string{"severity", "alertname", "kind", "namespace", "name"},
			queries: one(`max by (alertname, severity, kind, namespace, name) (ALERTS{alertstate="firing", alertname=~"Stateful.+|ReplicatedStatefulSet.+|ExtendedStatefulSet.+"})`, "")},
		{title: "Problems", shape: table, none: "No problems", about: "Conditions and their reasons. The name links to the dashboard of the kind. Details: `kubectl stateful why KIND/NAME`.",
			columns: []string{"kind", "namespace", "object", "type", "status", "reason"},
			queries: one(unwell(), "")},
		{title: "Failed reconciles", shape: lines, unit: "ops", about: "Reconciles that are retried because the API failed.",
			queries: one(`sum by (controller) (rate(controller_runtime_reconcile_errors_total{`+operators+`}[$__rate_interval]))`, "{{controller}}")},
		{title: "Time in the queue", shape: lines, unit: "s", limit: 10, none: "No object waited in this period", about: "Seconds from an event to the reconcile of its object, 99th percentile. More than 10 s triggers an alert.",
			queries: one(quantile("0.99", `workqueue_queue_duration_seconds_bucket{`+operators+`}`, "name", asShown), "{{name}}")},
		{title: "Queued objects", shape: lines, about: "Objects in the queues of the controllers.",
			queries: one(`sum by (name) (workqueue_depth{`+operators+`})`, "{{name}}")},
		{title: "Reconcile time", shape: lines, unit: "s", none: "No reconcile in this period", about: "Seconds of one reconcile, 99th percentile.",
			queries: one(quantile("0.99", `controller_runtime_reconcile_time_seconds_bucket{`+operators+`}`, "controller", asShown), "{{controller}}")},
		{title: "Passes", shape: lines, unit: "ops", about: "Reconciles, by controller.",
			queries: one(`sum by (controller) (rate(controller_runtime_reconcile_total{`+operators+`}[$__rate_interval]))`, "{{controller}}")},
		{title: "Requests to the API server", shape: lines, unit: "reqps", about: "Successful requests, by method.",
			queries: one(`sum by (method) (rate(rest_client_requests_total{`+operators+`, code=~"2.."}[$__rate_interval]))`, "{{method}}")},
		{title: "Failed requests", shape: lines, unit: "reqps", about: "By status code. 409 is a conflicting write, 404 is often harmless, 429 is an overloaded API server.",
			queries: one(`sum by (code) (rate(rest_client_requests_total{`+operators+`, code!~"2.."}[$__rate_interval]))`, "{{code}}")},
		{title: "Memory", shape: lines, unit: "bytes", limit: 512 << 20, about: "For each pod of the operator. The limit is 512 MiB.",
			queries: one(`max by (pod) (process_resident_memory_bytes{`+operators+`})`, "{{pod}}")},
		{title: "CPU", shape: lines, unit: "suffix: cores", limit: 1, about: "Cores used by each pod of the operator. The limit is 1.",
			queries: one(`max by (pod) (rate(process_cpu_seconds_total{`+operators+`}[$__rate_interval]))`, "{{pod}}")},
		{title: "Missing policies and metrics", shape: table.of(12), none: "Nothing is missing", about: "Missing policies of the operator, and the number of objects without alerts, by kind. Empty is good.",
			columns: []string{"what", "kind", "count"},
			queries: one(`label_replace(max by (kind) (stateful_operator_requester_policies_missing) > 0, "what", "policies missing", "", "")`+
				` or label_replace(max by (kind) (stateful_operator_condition_objects_left_out) > 0, "what", "objects without alerts", "", "")`, "")},
		{title: "Versions", shape: table, none: unknown, about: "Version of each pod of the operator.",
			columns: []string{"version", "pod", "commit", "goversion"},
			queries: one(`max by (pod, version, commit, goversion) (stateful_operator_build_info)`, "")},
	},
}

// operators selects the operator by its metrics Service, because other programs may have metrics
// with these names.
const operators = `job="stateful-operator-metrics-service"`

const (
	// harmless are conditions that need no attention while they are True.
	harmless = "Available|Progressing|Ready|Reconciling|Seeded"
	// needed are conditions that need attention while they are not True, except for the reasons in
	// atPeace.
	needed  = "Available|Seeded"
	atPeace = "Stopped|NoPods"
)

// unwell returns a query for the conditions that need attention, of the objects that matchers
// select.
func unwell(matchers ...string) string {
	with := func(more ...string) string { return condition(slices.Concat(matchers, more)...) }
	return fmt.Sprintf("max by (kind, namespace, name, type, reason) (%s == 1 or %s == 0)",
		with(fmt.Sprintf("type!~%q", harmless)), with(fmt.Sprintf("type=~%q", needed), fmt.Sprintf("reason!~%q", atPeace)))
}

// condition returns the metric of the conditions that matchers select: 1 if the condition is True,
// 0 otherwise.
func condition(matchers ...string) string {
	return "stateful_operator_condition{" + strings.Join(matchers, ", ") + "}"
}

// notAvailable returns a query for the number of objects that should be Available but are not.
func notAvailable(matchers ...string) string {
	of := slices.Concat(matchers, []string{`type="Available"`, fmt.Sprintf("reason!~%q", atPeace)})
	return fmt.Sprintf("sum(%s == bool 0)", condition(of...))
}

// areTrue returns a query for the number of objects for which a condition is True.
func areTrue(kind string, matchers ...string) string {
	of := slices.Concat(matchers, []string{fmt.Sprintf("type=%q", kind)})
	return fmt.Sprintf("sum(%s == bool 1)", condition(of...))
}

// chosen selects the objects that the user has chosen in the dashboard of a kind.
const chosen = `namespace=~"$namespace", name=~"$name"`

// ofKind returns the dashboard of a kind: the panels common to all kinds, followed by its own.
func ofKind(kind string, own ...panel) dashboard {
	selector := fmt.Sprintf("kind=%q, %s", kind, chosen)
	panels := []panel{
		{title: "Objects", shape: number, levels: calm, none: unknown, about: "Number of selected objects.",
			queries: one(fmt.Sprintf("count(%s)", condition(selector, `type="Available"`)), "")},
		{title: "Not available", shape: number, levels: bad, none: unknown, about: "Objects whose condition Available is not True, except stopped ones.",
			queries: one(notAvailable(selector), "")},
		{title: "Degraded", shape: number, levels: bad, none: unknown, about: "Objects with a problem that requires manual intervention.",
			queries: one(areTrue("Degraded", selector), "")},
		{title: "In progress", shape: number, levels: calm, none: unknown, about: "Objects with an operation in progress: an upgrade, a scaling, a handover.",
			queries: one(areTrue("Progressing", selector), "")},
		{title: "Problems", shape: table, none: "No problems", about: "Conditions and their reasons. Details: `kubectl stateful why KIND/NAME`.",
			columns: []string{"namespace", "name", "type", "status", "reason"},
			queries: one(unwell(selector), "")},
		{title: "Ready", shape: bands, none: "All were Ready in this period", about: "Objects that were not Ready at some time in this period.",
			queries: deviated(condition(selector, `type="Ready"`), "min_over_time", "== 0")},
	}
	return dashboard{name: strings.ToLower(kind), title: "Stateful operator / " + kind, kind: kind, panels: append(panels, own...)}
}

// deviated returns a query for the objects with a metric whose min or max in the shown time range
// is wrong.
func deviated(metric, over, wrong string) []query {
	return one(fmt.Sprintf("max by (namespace, name) (%s) and on (namespace, name) (%s(%s[$__range] @ end()) %s)", metric, over, metric, wrong), "{{namespace}}/{{name}}")
}

// selected returns a metric of the chosen objects.
func selected(metric string) string { return fmt.Sprintf("%s{%s}", metric, chosen) }

// writes returns a panel of a kind's writes, summed over all objects: there are few reasons, but
// many objects.
func writes(kind string, width int, about string) panel {
	return panel{title: "Writes", shape: events.of(width), about: "Of all objects, by verb and reason." + about,
		queries: one(newly("verb, reason", kind+"_actions_total"), "{{verb}} {{reason}}")}
}

var clusters = ofKind("StatefulCluster",
	panel{title: "Members", shape: areas, about: "Of the selected sets, by state. Lost members are in another panel.",
		queries: one(`sum by (state) (statefulcluster_members{state=~"ready|unready", `+chosen+`})`, "{{state}}")},
	panel{title: "Lost members", shape: lines, none: "None in this period", about: "Lost members of a set that are not replaced yet.",
		queries: one(`max by (namespace, name) (statefulcluster_members{state="lost", `+chosen+`}) > 0`, "{{namespace}}/{{name}}")},
	panel{title: "Replacement time", shape: lines, unit: "s", none: "None in this period", about: "Of all sets, in one hour: seconds from the evidence of a loss to the creation of the replacement.",
		queries: usualAndSlow("statefulcluster_replacement_seconds_bucket", "1h")},
	writes("statefulcluster", 12, " Creates with reason Replacement are for lost members."),
)

var replicated = ofKind("ReplicatedStatefulSet",
	panel{title: "Primary", shape: bands, none: "All had a primary in this period", about: "Sets without a primary at some time in this period: during a failover, or stopped sets.",
		queries: deviated(`replicatedstatefulset_members{state="primary", `+chosen+`}`, "min_over_time", "== 0")},
	panel{title: "Commands with unknown outcome", shape: events, about: "Of all sets. The operator's log has the reason.",
		queries: one(newly("command", "replicatedstatefulset_commands_unknown_total"), "{{command}}")},
	panel{title: "Failed writes", shape: events, about: "Of all sets, by the reason of the write.",
		queries: one(newly("Reason", "rss_operator_cluster_reconcile_failed"), "{{Reason}}")},
	panel{title: "Members", shape: areas, about: "Of the selected sets, by state.",
		queries: one(fmt.Sprintf("sum by (state) (%s)", selected("replicatedstatefulset_members")), "{{state}}")},
	panel{title: "Lagging members", shape: lines, none: "No sequence is known", about: "Difference between the data version of a member and the newest one of its set, in the unit of command sequence.",
		queries: one(fmt.Sprintf("max by (namespace, name) (%[1]s) - on (namespace, name) group_right max by (namespace, name, member) (%[1]s)", selected("replicatedstatefulset_member_sequence")), "{{namespace}}/{{member}}")},
	panel{title: "Sets by phase", shape: areas, about: "Of the selected sets.",
		queries: one(fmt.Sprintf("sum by (phase) (%s)", selected("rss_operator_controller_clusters")), "{{phase}}")},
	panel{title: "Commands", shape: events, about: "Sent commands of all sets. Promote makes a secondary primary.",
		queries: one(newly("reason", `replicatedstatefulset_actions_total{verb="exec"}`), "{{reason}}")},
	writes("replicatedstatefulset", 12, " Verb exec is a command."),
	panel{title: "Reconcile time", shape: lines.of(columns), unit: "s", none: "No reconcile in this period", about: "Seconds of one reconcile of a set. Commands run in parallel.",
		queries: usualAndSlow("rss_operator_cluster_reconcile_duration_bucket", asShown)},
)

var extended = ofKind("ExtendedStatefulSet",
	panel{title: "Versions in progress", shape: lines, none: "No upgrade in this period", about: "The target version of a set during an upgrade.",
		queries: one(`max by (namespace, name) (extendedstatefulset_version{role="update", `+chosen+`}) != max by (namespace, name) (extendedstatefulset_version{role="current", `+chosen+`})`, "{{namespace}}/{{name}}")},
	panel{title: "Upgrades", shape: events, about: "Steps of upgrades, of all sets. Stale and aborted ones were rolled back.",
		queries: one(newly("step", "extendedstatefulset_upgrades_total"), "{{step}}")},
	panel{title: "Failed writes", shape: events, about: "Of all sets, by the reason of the write.",
		queries: one(newly("reason", "extendedstatefulset_refused_total"), "{{reason}}")},
	panel{title: "Sets by phase", shape: areas, about: "Of the selected sets.",
		queries: one(fmt.Sprintf("sum by (phase) (%s)", selected("extendedstatefulset_phase")), "{{phase}}")},
	writes("extendedstatefulset", columns, ""),
)

// turns shows how many pods of a StatefulSingleton may run their program.
var turns = bands.of(12).standing(state{"none", "yellow"}, state{"one", "green"}, state{"more", "red"})

var singletons = ofKind("StatefulSingleton",
	panel{title: "More than one pod may run the program", shape: turns, none: "Never in this period", about: "Objects with more than one such pod at some time in this period. This violates the guarantee, and triggers an alert.",
		queries: deviated(selected("statefulsingleton_running_pods"), "max_over_time", "> 1")},
	panel{title: "No pod may run the program", shape: turns, none: "Never in this period", about: "Objects without such a pod at some time in this period: during a handover, or without pods.",
		queries: deviated(selected("statefulsingleton_running_pods"), "min_over_time", "== 0")},
	panel{title: "Active pod Ready", shape: bands, none: "All were Ready in this period", about: "Objects whose active pod was not Ready at some time in this period.",
		queries: deviated(selected("statefulsingleton_available"), "min_over_time", "== 0")},
	panel{title: "Handovers", shape: events, about: "Of all objects. Handovers that are too long exceeded maxTransitionTime.",
		queries: []query{
			{`clamp_min(sum(increase(statefulsingleton_actions_total{reason="Grant"}[$__interval])) - sum(increase(statefulsingleton_timeouts_total[$__interval])), 0)`, "in time"},
			{"sum(increase(statefulsingleton_timeouts_total[$__interval]))", "too long"},
		}},
	panel{title: "Handover time", shape: lines, unit: "s", none: "None in this period", about: "Of all objects, in one hour: seconds from the start to the grant, including the shutdown of the old program.",
		queries: usualAndSlow("statefulsingleton_transition_seconds_bucket", "1h")},
	panel{title: "Waiting pods", shape: lines, about: "Standbys, and successors in a handover: the ten objects with the most waiting pods.",
		queries: one(fmt.Sprintf("topk(10, max by (namespace, name) (%s))", selected("statefulsingleton_waiting_pods")), "{{namespace}}/{{name}}")},
	writes("statefulsingleton", 12, ""),
)
