package monitoring

import (
	"fmt"
	"maps"
	"strings"
	"time"
)

// situation is a test case of an alert. Series use the notation of promtool, with one value per minute.
type situation struct {
	alert string
	// labels are the alert's labels without its severity. value is the value in its annotations.
	labels map[string]string
	value  string
	// fault are series for which the alert fires, rest are those of the same object without a fault,
	// and flap are those of a fault that never lasts.
	fault, rest, flap series
	// patience is the alert's "for" duration. delay is the time until the expression is true.
	patience, delay time.Duration
	// loud are further faults for which the alert fires, and quiet those for which it does not, by
	// description.
	loud, quiet map[string]series
}

// long is longer than any alert's delay, in minutes.
const long = 3000

var situations = []situation{
	whileTrue("StatefulNodeUnreachable", "StatefulCluster", "Degraded", "NodeUnreachable", 2).
		not("another reason", series{degraded("StatefulCluster", "WriteRefused"): lasting(1)}),
	whileFalse("StatefulObjectUnavailable", "ReplicatedStatefulSet", "Available", "NoPrimary", 10).
		not("stopped on purpose", series{is("ReplicatedStatefulSet", "Available", "Stopped"): lasting(0)}).
		not("no pods are desired", series{is("StatefulSingleton", "Available", "NoPods"): lasting(0)}).
		also("another object of the same name is healthy, both in the operator's namespace", series{
			is("ReplicatedStatefulSet", "Available", "NoPrimary"): lasting(0),
			of("stateful_operator_condition", `exported_namespace="other",kind="ReplicatedStatefulSet",type="Available",reason="PrimariesServe"`): lasting(1),
		}),
	whileTrue("StatefulObjectDegraded", "ExtendedStatefulSet", "Degraded", "WriteRefused", 10).
		not("an unreachable Node, which has its own alert", series{degraded("ExtendedStatefulSet", "NodeUnreachable"): lasting(1)}).
		also("the reason changes", series{
			degraded("ExtendedStatefulSet", "WriteRefused"): "1x4 stale",
			degraded("ExtendedStatefulSet", "Other"):        fmt.Sprintf("_x4 1x%d", long),
		}),
	whileTrue("StatefulObjectStuck", "StatefulCluster", "Progressing", "Replacing", 60).
		also("the condition changes its reason while it waits", series{
			is("StatefulCluster", "Progressing", "Replacing"): "1x30 stale",
			is("StatefulCluster", "Progressing", "Waiting"):   fmt.Sprintf("_x30 1x%d", long),
		}).
		also(byAnother, handedOver(of("stateful_operator_condition", `kind="StatefulCluster",%s,type="Progressing",reason="Replacing"`), 1, 30)),
	whileTrue("ReplicatedStatefulSetDataLossRisk", "ReplicatedStatefulSet", "DataLossRisk", "NewestMissing", 5),
	whileFalse("ReplicatedStatefulSetNotSeeded", "ReplicatedStatefulSet", "Seeded", "NotSeeded", 10).
		not("stopped", series{
			is("ReplicatedStatefulSet", "Seeded", "NotSeeded"):  lasting(0),
			is("ReplicatedStatefulSet", "Available", "Stopped"): lasting(0),
		}).
		not("the spec is refused, which has its own alert", series{
			is("ReplicatedStatefulSet", "Seeded", "NotSeeded"):      lasting(0),
			is("ReplicatedStatefulSet", "Available", "InvalidSpec"): lasting(0),
		}),
	whileTrue("ReplicatedStatefulSetDrainBlocked", "ReplicatedStatefulSet", "Draining", "NoSuccessor", 10).
		also("a primary is missing", series{is("ReplicatedStatefulSet", "Draining", "PrimaryMissing"): lasting(1)}).
		not("a handover is in progress", series{is("ReplicatedStatefulSet", "Draining", "HandingOver"): lasting(1)}),
	whileTrue("ReplicatedStatefulSetPaused", "ReplicatedStatefulSet", "Paused", "PausedBySpec", 12*60),
	whileTrue("ReplicatedStatefulSetInMaintenance", "ReplicatedStatefulSet", "Maintenance", "Parked", 12*60),
	whileTrue("ExtendedStatefulSetStale", "ExtendedStatefulSet", "Stale", "CanaryFailed", 1),
	whileTrue("ExtendedStatefulSetAborted", "ExtendedStatefulSet", "Aborted", "JobFailed", 1),
	whileTrue("ExtendedStatefulSetConfigMissing", "ExtendedStatefulSet", "ConfigMissing", "NotFound", 5),
	whileTrue("StatefulSingletonUnmanagedPod", "StatefulSingleton", "UnmanagedPod", "PodWithoutGate", 10),
	whileTrue("StatefulSingletonSelectorConflict", "StatefulSingleton", "SelectorConflict", "SelectorsOverlap", 5),
	whileTrue("StatefulSingletonRolloutHeld", "StatefulSingleton", "RolloutHeld", "RolloutCannotEnd", 5),
	whileTrue("StatefulSingletonGuardMissing", "StatefulSingleton", "GuardMissing", "PolicyNotInstalled", 15),
	gauge("StatefulObjectsUncounted", `stateful_operator_condition_objects_left_out{kind="StatefulCluster"}`, 7, 0, 15).
		labelled("kind", "StatefulCluster").
		also(byAnother, handedOver(`stateful_operator_condition_objects_left_out{kind="StatefulCluster",%s}`, 7, 5)),

	gauge("StatefulOperatorDown", `leader_election_master_status{name="stateful-operator"}`, 0, 1, 5).
		also("nothing is scraped", series{`leader_election_master_status{name="another"}`: lasting(1)}),
	{
		alert:    "StatefulOperatorReconcileErrors",
		labels:   map[string]string{"controller": "statefulcluster", "namespace": "stateful-operator-system"},
		fault:    series{errors: growing(1)},
		rest:     series{errors: lasting(3)},
		flap:     series{errors: "0x9 1x14 2x14 3x14 4x14 5x14 6x14 7x14"}, // one in 15 minutes
		patience: 15 * time.Minute,
		delay:    time.Minute, // a rate needs two values
		quiet:    map[string]series{"of another operator": {`controller_runtime_reconcile_errors_total{job="another",namespace="stateful-operator-system",controller="x"}`: growing(1)}},
	},
	{
		alert:    "StatefulOperatorSlow",
		labels:   map[string]string{"name": "statefulcluster", "namespace": "stateful-operator-system"},
		fault:    waits(lasting(0), growing(10), growing(10)),
		rest:     waits(growing(10), growing(10), growing(10)),
		flap:     waits("0+10x9 90x2 90+10x1000", "0+10x1011", "0+10x1011"), // once, for a few minutes
		patience: 15 * time.Minute,
		delay:    time.Minute,
	},
	gauge("StatefulOperatorPoliciesMissing", `stateful_operator_requester_policies_missing{kind="StatefulCluster"}`, 2, 0, 5).
		labelled("kind", "StatefulCluster"),
	gauge("StatefulSingletonDown", of("statefulsingleton_available", ""), 0, 1, 10).object().
		with(of("statefulsingleton_waiting_pods", ""), lasting(2)).
		not("no pod is desired", series{of("statefulsingleton_available", ""): lasting(0), of("statefulsingleton_waiting_pods", ""): lasting(0)}).
		also(byAnother, both(handedOver(of("statefulsingleton_available", "%s"), 0, 5), handedOver(of("statefulsingleton_waiting_pods", "%s"), 2, 5))),
	gauge("StatefulSingletonRunsTwice", of("statefulsingleton_running_pods", ""), 2, 1, 1).object().
		also(byAnother, handedOver(of("statefulsingleton_running_pods", "%s"), 2, 1)),
	{
		alert: "StatefulSingletonTimeouts",
		fault: series{"statefulsingleton_timeouts_total": fmt.Sprintf("0x2 1x%d", long)},
		rest:  series{"statefulsingleton_timeouts_total": lasting(4)},
		delay: 3 * time.Minute,
	},
}

// series are values by the name of their series.
type series = map[string]string

const errors = `controller_runtime_reconcile_errors_total{job="stateful-operator-metrics-service",namespace="stateful-operator-system",controller="statefulcluster"}`

// waits returns the buckets of the time in the queue: up to 1 s, up to 100 s, all.
func waits(short, middling, all string) series {
	bucket := func(le string) string {
		return fmt.Sprintf(`workqueue_queue_duration_seconds_bucket{job="stateful-operator-metrics-service",namespace="stateful-operator-system",name="statefulcluster",le=%q}`, le)
	}
	return series{bucket("1"): short, bucket("100"): middling, bucket("+Inf"): all}
}

func lasting(value int) string { return fmt.Sprintf("%dx%d", value, long) }

// byAnother is a fault that two replicas of the operator report one after another.
const byAnother = "another replica of the operator reports it"

// handedOver returns the series of both replicas. The second one becomes leader after some minutes. %s
// in metric is replaced by the label that differs.
func handedOver(metric string, fault, minutes int) series {
	return series{
		fmt.Sprintf(metric, `pod="a"`): fmt.Sprintf("%dx%d stale", fault, minutes-1),
		fmt.Sprintf(metric, `pod="b"`): fmt.Sprintf("_x%d %dx%d", minutes, fault, long),
	}
}

// both merges two sets of series.
func both(one, other series) series {
	all := maps.Clone(one)
	maps.Copy(all, other)
	return all
}

func growing(each int) string { return fmt.Sprintf("0+%dx%d", each, long) }

// flapping returns a fault that repeatedly ends a minute before its alert would fire.
func flapping(fault, rest, minutes int) string {
	return strings.Repeat(fmt.Sprintf("%dx%d %d ", fault, minutes-1, rest), long/(minutes+1))
}

// of returns a metric of the object of all situations.
func of(metric, labels string) string {
	if labels != "" {
		labels += ","
	}
	return fmt.Sprintf(`%s{%snamespace="shop",name="db"}`, metric, labels)
}

func is(kind, condition, reason string) string {
	return of("stateful_operator_condition", fmt.Sprintf("kind=%q,type=%q,reason=%q", kind, condition, reason))
}

func degraded(kind, reason string) string { return is(kind, "Degraded", reason) }

// gauge returns a situation for an alert on one value that fires after some minutes.
func gauge(alert, metric string, fault, rest, minutes int) situation {
	return situation{
		alert: alert, labels: map[string]string{}, value: fmt.Sprint(fault),
		fault:    series{metric: lasting(fault)},
		rest:     series{metric: lasting(rest)},
		flap:     series{metric: flapping(fault, rest, minutes)},
		patience: time.Duration(minutes) * time.Minute,
	}
}

// whileTrue returns a situation for an alert on a condition that is True.
func whileTrue(alert, kind, condition, reason string, minutes int) situation {
	return gauge(alert, is(kind, condition, reason), 1, 0, minutes).object().labelled("kind", kind)
}

// whileFalse returns a situation for an alert on a condition that is not True.
func whileFalse(alert, kind, condition, reason string, minutes int) situation {
	return gauge(alert, is(kind, condition, reason), 0, 1, minutes).object().labelled("kind", kind)
}

func (s situation) object() situation {
	return s.labelled("namespace", "shop").labelled("name", "db")
}

func (s situation) labelled(name, value string) situation {
	s.labels[name] = value
	return s
}

// with adds another series, which does not change.
func (s situation) with(name, values string) situation {
	for _, of := range []series{s.fault, s.rest, s.flap} {
		of[name] = values
	}
	return s
}

func (s situation) also(what string, fault series) situation {
	s.loud = added(s.loud, what, fault)
	return s
}

func (s situation) not(what string, fault series) situation {
	s.quiet = added(s.quiet, what, fault)
	return s
}

func added(to map[string]series, what string, one series) map[string]series {
	if to == nil {
		to = map[string]series{}
	}
	to[what] = one
	return to
}
