package main

import (
	"fmt"
	"slices"
	"strings"
)

// dashboards are all of them. Each has a line in kustomization.yaml.
var dashboards = []dashboard{overview, extended, replicated, clusters, singletons}

// one asks one thing.
func one(expr, legend string) []query { return []query{{expr, legend}} }

// quantiles are of the buckets of a histogram. What is rare is taken an hour at a time, or
// its lines would be a few points.
func quantiles(buckets, by, over string) []query {
	var all []query
	for _, q := range []string{"0.50", "0.99"} {
		labels, legend := "le", "p"+strings.TrimPrefix(q, "0.")
		if by != "" {
			labels, legend = "le, "+by, fmt.Sprintf("{{%s}} %s", by, legend)
		}
		all = append(all, query{fmt.Sprintf("histogram_quantile(%s, sum by (%s) (rate(%s[%s])))", q, labels, buckets, over), legend})
	}
	return all
}

// asShown is the shortest time that is exact for what a panel shows.
const asShown = "$__rate_interval"

var overview = dashboard{
	name: "overview", title: "Stateful operator / Overview",
	panels: []panel{
		{title: "Objects", shape: number, about: "How many objects of each kind there are.",
			queries: one(`count by (kind) (stateful_operator_condition{type="Available"})`, "{{kind}}")},
		{title: "Not available", shape: number, bad: true, about: "Objects whose condition Available is not True, but for those that were stopped.",
			queries: one(`count(stateful_operator_condition{type="Available", reason!~"Stopped|NoPods"} == 0) or vector(0)`, "")},
		{title: "Degraded", shape: number, bad: true, about: "Objects with a problem that a person has to look at.",
			queries: one(`count(stateful_operator_condition{type="Degraded"} == 1) or vector(0)`, "")},
		{title: "Leaders", shape: number, about: "Replicas of the operator that act. More or less than 1 is not for long.",
			queries: one(`sum(leader_election_master_status{name="stateful-operator"}) or vector(0)`, "")},
		{title: "Alerts that fire", shape: table, about: "Those of config/prometheus. The name of each leads to its runbook.",
			queries: one(`max by (alertname, severity, kind, namespace, name) (ALERTS{alertstate="firing", alertname=~"Stateful.+|ReplicatedStatefulSet.+|ExtendedStatefulSet.+"})`, "")},
		{title: "What is not as it should be", shape: table, about: "Conditions and their reasons. `kubectl stateful why KIND/NAME` says more.",
			queries: one(unwell(), "")},
		{title: "Passes", shape: lines, unit: "ops", about: "Looks at objects, by controller and how they ended.",
			queries: one(`sum by (controller, result) (rate(controller_runtime_reconcile_total{`+operators+`}[$__rate_interval]))`, "{{controller}} {{result}}")},
		{title: "Time of a pass", shape: lines, unit: "s", about: "Seconds of one look at an object.",
			queries: quantiles(`controller_runtime_reconcile_time_seconds_bucket{`+operators+`}`, "controller", asShown)},
		{title: "Time in the queue", shape: lines, unit: "s", about: "Seconds from an event to the look at its object. More than 10 s is an alert.",
			queries: quantiles(`workqueue_queue_duration_seconds_bucket{`+operators+`}`, "name", asShown)},
		{title: "Objects that wait", shape: lines, about: "Objects in the queues of the controllers.",
			queries: one(`sum by (name) (workqueue_depth{`+operators+`})`, "{{name}}")},
		{title: "Requests to the API server", shape: lines, unit: "reqps", about: "By the code of the answer. 409 is another one's write, 429 is the API server short of time.",
			queries: one(`sum by (code) (rate(rest_client_requests_total{`+operators+`}[$__rate_interval]))`, "{{code}}")},
		{title: "Failed passes", shape: lines, unit: "ops", about: "Passes that are tried again because the API failed.",
			queries: one(`sum by (controller) (rate(controller_runtime_reconcile_errors_total{`+operators+`}[$__rate_interval]))`, "{{controller}}")},
		{title: "Memory", shape: lines, unit: "bytes", about: "Of each pod of the operator. The limit is 512 MiB.",
			queries: one(`max by (pod) (process_resident_memory_bytes{`+operators+`})`, "{{pod}}")},
		{title: "CPU", shape: lines, about: "Cores that each pod of the operator uses. The limit is 1.",
			queries: one(`max by (pod) (rate(process_cpu_seconds_total{`+operators+`}[$__rate_interval]))`, "{{pod}}")},
		{title: "Versions", shape: table, about: "Which program each pod of the operator runs.",
			queries: one(`max by (pod, version, commit, goversion) (stateful_operator_build_info)`, "")},
		{title: "Not checked, not counted", shape: table, about: "Policies that are missing, and objects that are too many to have alerts, by kind. Empty is good.",
			queries: one(`max by (kind) (stateful_operator_requester_policies_missing > 0) or max by (kind) (stateful_operator_condition_objects_left_out > 0)`, "")},
	},
}

// operators selects the operator among all programs that have metrics of these names: by the
// Service that they are scraped by.
const operators = `job="stateful-operator-metrics-service"`

const (
	// harmless are conditions that want nobody while they are True.
	harmless = "Available|Progressing|Ready|Reconciling|Seeded"
	// needed are conditions that want somebody while they are not True, but for some reasons.
	needed  = "Available|Seeded"
	atPeace = "Stopped|NoPods"
)

// unwell are the conditions that are not as they should be, of the objects that matchers
// select.
func unwell(matchers ...string) string {
	metric := func(more ...string) string {
		return fmt.Sprintf("stateful_operator_condition{%s}", strings.Join(slices.Concat(matchers, more), ", "))
	}
	return fmt.Sprintf("max by (kind, namespace, name, type, reason) (%s == 1 or %s == 0)",
		metric(fmt.Sprintf("type!~%q", harmless)), metric(fmt.Sprintf("type=~%q", needed), fmt.Sprintf("reason!~%q", atPeace)))
}

// chosen selects the objects that are chosen in the dashboard of a kind.
const chosen = `namespace=~"$namespace", name=~"$name"`

// ofKind is the dashboard of a kind: what each kind has, and then what this one has.
func ofKind(kind string, own ...panel) dashboard {
	selector := fmt.Sprintf("kind=%q, %s", kind, chosen)
	condition := func(more string) string { return fmt.Sprintf("stateful_operator_condition{%s, %s}", selector, more) }
	ready := condition(`type="Ready"`)
	panels := []panel{
		{title: "Objects", shape: number, about: "How many are chosen above.",
			queries: one(fmt.Sprintf("count(%s) or vector(0)", condition(`type="Available"`)), "")},
		{title: "Not available", shape: number, bad: true, about: "Those whose condition Available is not True, but for those that were stopped.",
			queries: one(fmt.Sprintf("count(%s == 0) or vector(0)", condition(`type="Available", reason!~"Stopped|NoPods"`)), "")},
		{title: "Degraded", shape: number, bad: true, about: "Those with a problem that a person has to look at.",
			queries: one(fmt.Sprintf("count(%s == 1) or vector(0)", condition(`type="Degraded"`)), "")},
		{title: "In progress", shape: number, about: "Those for which something is brought about: an upgrade, a scaling, a handover.",
			queries: one(fmt.Sprintf("count(%s == 1) or vector(0)", condition(`type="Progressing"`)), "")},
		{title: "What is not as it should be", shape: table, about: "Conditions and their reasons. `kubectl stateful why KIND/NAME` says more.",
			queries: one(unwell(selector), "")},
		{title: "Ready", shape: bands, about: "Those that were not Ready at some time of what is shown.",
			queries: one(fmt.Sprintf("max by (namespace, name) (%s) and on (namespace, name) (min_over_time(%s[$__range]) == 0)", ready, ready), "{{namespace}}/{{name}}")},
	}
	return dashboard{name: strings.ToLower(kind), title: "Stateful operator / " + kind, kind: kind, panels: append(panels, own...)}
}

// selected is a metric of the chosen objects.
func selected(metric string) string { return fmt.Sprintf("%s{%s}", metric, chosen) }

// writes are a kind's, of all objects: reasons are few, and objects are many.
func writes(kind, about string) panel {
	return panel{title: "Writes", shape: lines, unit: "ops", about: "Of all objects, by verb and reason." + about,
		queries: one(fmt.Sprintf("sum by (verb, reason) (rate(%s_actions_total[$__rate_interval]))", kind), "{{verb}} {{reason}}")}
}

var clusters = ofKind("StatefulCluster",
	panel{title: "Members", shape: areas, about: "Of the chosen sets, by state. Lost ones are not replaced yet.",
		queries: one(fmt.Sprintf("sum by (state) (%s)", selected("statefulcluster_members")), "{{state}}")},
	panel{title: "Sets with lost members", shape: lines, about: "How many members of a set are lost and not replaced yet.",
		queries: one(`statefulcluster_members{state="lost", `+chosen+`} > 0`, "{{namespace}}/{{name}}")},
	writes("statefulcluster", " Creates with reason Replacement are for lost members."),
	panel{title: "Time to a replacement", shape: lines, unit: "s", about: "Of all sets, an hour at a time: seconds from the evidence of a loss to the create of the replacement.",
		queries: quantiles("statefulcluster_replacement_seconds_bucket", "", "1h")},
)

var replicated = ofKind("ReplicatedStatefulSet",
	panel{title: "Members", shape: areas, about: "Of the chosen sets, by state.",
		queries: one(fmt.Sprintf("sum by (state) (%s)", selected("replicatedstatefulset_members")), "{{state}}")},
	panel{title: "Primaries", shape: lines, about: "Of each set. None is a failover, or a set that is stopped.",
		queries: one(`replicatedstatefulset_members{state="primary", `+chosen+`}`, "{{namespace}}/{{name}}")},
	panel{title: "Sets by phase", shape: areas, about: "Of the chosen sets.",
		queries: one(fmt.Sprintf("sum by (phase) (%s)", selected("rss_operator_controller_clusters")), "{{phase}}")},
	panel{title: "Commands", shape: lines, about: "Commands that were sent in an hour, of all sets. Promote is a secondary that becomes primary.",
		queries: one(`sum by (reason) (increase(replicatedstatefulset_actions_total{verb="exec"}[1h]))`, "{{reason}}")},
	panel{title: "Commands whose outcome is not known", shape: lines, about: "In an hour, of all sets. The operator's log says why.",
		queries: one("sum by (command) (increase(replicatedstatefulset_commands_unknown_total[1h]))", "{{command}}")},
	panel{title: "Failed writes", shape: lines, about: "In an hour, of all sets, by the reason of the write.",
		queries: one("sum by (Reason) (increase(rss_operator_cluster_reconcile_failed[1h]))", "{{Reason}}")},
	writes("replicatedstatefulset", " Verb exec is a command."),
	panel{title: "Time of a pass", shape: lines, unit: "s", about: "Seconds of one look at a set. Commands run beside it.",
		queries: quantiles("rss_operator_cluster_reconcile_duration_bucket", "", asShown)},
)

var extended = ofKind("ExtendedStatefulSet",
	panel{title: "Versions", shape: lines, about: "Which version serves, and which one is to, of each set. Two different numbers are an upgrade.",
		queries: one(selected("extendedstatefulset_version"), "{{namespace}}/{{name}} {{role}}")},
	panel{title: "Sets by phase", shape: areas, about: "Of the chosen sets.",
		queries: one(fmt.Sprintf("sum by (phase) (%s)", selected("extendedstatefulset_phase")), "{{phase}}")},
	panel{title: "Upgrades", shape: lines, about: "Steps of upgrades in an hour, of all sets. Stale and aborted ones were given up.",
		queries: one("sum by (step) (increase(extendedstatefulset_upgrades_total[1h]))", "{{step}}")},
	writes("extendedstatefulset", ""),
	panel{title: "Failed writes", shape: lines, about: "In an hour, of all sets, by the reason of the write.",
		queries: one("sum by (reason) (increase(extendedstatefulset_refused_total[1h]))", "{{reason}}")},
)

var singletons = ofKind("StatefulSingleton",
	panel{title: "Pods that may run the program", shape: lines, about: "Of each object. More than 1 breaks its promise, and is an alert.",
		queries: one(selected("statefulsingleton_running_pods"), "{{namespace}}/{{name}}")},
	panel{title: "Pods that wait", shape: lines, about: "Of each object: standbys, and successors in a handover.",
		queries: one(selected("statefulsingleton_waiting_pods"), "{{namespace}}/{{name}}")},
	panel{title: "Active pod not Ready", shape: lines, about: "Objects whose active pod is not Ready.",
		queries: one(selected("statefulsingleton_available")+" == 0", "{{namespace}}/{{name}}")},
	panel{title: "Handovers", shape: lines, about: "In an hour, of all objects, and how many of them took longer than maxTransitionTime.",
		queries: []query{
			{`sum(increase(statefulsingleton_actions_total{reason="Grant"}[1h]))`, "all"},
			{"sum(increase(statefulsingleton_timeouts_total[1h]))", "too long"},
		}},
	panel{title: "Time of a handover", shape: lines, unit: "s", about: "Of all objects, an hour at a time: seconds from its begin to the grant, the old program's own shutdown included.",
		queries: quantiles("statefulsingleton_transition_seconds_bucket", "", "1h")},
	writes("statefulsingleton", ""),
)
