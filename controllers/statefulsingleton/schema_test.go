package statefulsingleton

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// manifest returns a user's manifest with these lines below spec, and a selector.
func manifest(spec string) string {
	if !strings.Contains(spec, "selector:") {
		spec = "selector: {matchLabels: {app: db}}\n" + spec
	}
	return "metadata: {name: db, namespace: ns}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")
}

// TestS1TheSchemaRefuses checks the API server's validation without an operator.
func TestS1TheSchemaRefuses(t *testing.T) {
	crd := readCRD(t)
	many := func(count int, entry string) string {
		var all []string
		for i := range count {
			all = append(all, fmt.Sprintf(entry, i))
		}
		return strings.Join(all, ", ")
	}
	long := func(count int) string { return strings.Repeat("x", count) }
	const whichPods = "spec.selector: Invalid value: select pods by matchLabels or by an expression In, for example matchLabels: {app: my-app}; a selector with only NotIn, Exists or DoesNotExist would match unrelated pods"
	crd.refuses(t, []refusal{
		{"an object with only a selector", "", ""},
		{"S26 an empty selector", "selector: {}", `spec.selector: Invalid value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"S26 a selector that is empty inside", "selector: {matchLabels: {}, matchExpressions: []}", `spec.selector: Invalid value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"S26 a selector that is null", "selector: null", `spec.selector: Required value`},
		{"a selector by the operator's own label", "selector: {matchLabels: {apps.statefulsingleton.com/managed: 'true'}}",
			`spec.selector: Invalid value: labels with prefix apps.statefulsingleton.com/ are set by the operator; select by a label of the application`},
		{"an expression on the operator's own label", "selector: {matchLabels: {app: db}, matchExpressions: [{key: apps.statefulsingleton.com/managed, operator: DoesNotExist}]}",
			`spec.selector: Invalid value: labels with prefix apps.statefulsingleton.com/ are set by the operator; select by a label of the application`},
		{"expressions of all four kinds", "selector: {matchExpressions: [{key: a, operator: In, values: [x]}, {key: b, operator: NotIn, values: [x]}, {key: c, operator: Exists}, {key: d, operator: DoesNotExist}]}", ""},
		{"a selector without matchLabels or In", "selector: {matchExpressions: [{key: no-such-label, operator: DoesNotExist}, {key: a, operator: NotIn, values: [x]}, {key: b, operator: Exists}]}", whichPods},
		{"a selector with In and DoesNotExist", "selector: {matchExpressions: [{key: no-such-label, operator: DoesNotExist}, {key: app, operator: In, values: [x]}]}", ""},
		{"a selector with matchLabels and DoesNotExist", "selector: {matchLabels: {app: x}, matchExpressions: [{key: no-such-label, operator: DoesNotExist}]}", ""},
		{"an expression with an unknown operator", "selector: {matchLabels: {app: db}, matchExpressions: [{key: a, operator: Near, values: [x]}]}", `spec.selector: Invalid value: operators In and NotIn require values; Exists and DoesNotExist allow none`},
		{"operator In without values", "selector: {matchExpressions: [{key: a, operator: In}]}", `spec.selector: Invalid value: operators In and NotIn require values; Exists and DoesNotExist allow none`},
		{"operator Exists with values", "selector: {matchLabels: {app: db}, matchExpressions: [{key: a, operator: Exists, values: [x]}]}", `spec.selector: Invalid value: operators In and NotIn require values; Exists and DoesNotExist allow none`},
		{"32 labels", "selector: {matchLabels: {" + many(32, "k%d: v") + "}}", ""},
		{"33 labels", "selector: {matchLabels: {" + many(33, "k%d: v") + "}}", `spec.selector.matchLabels: Too many: 33: must have at most 32 items`},
		{"32 expressions", "selector: {matchLabels: {app: db}, matchExpressions: [" + many(32, "{key: k%d, operator: Exists}") + "]}", ""},
		{"33 expressions", "selector: {matchLabels: {app: db}, matchExpressions: [" + many(33, "{key: k%d, operator: Exists}") + "]}", `spec.selector.matchExpressions: Too many: 33: must have at most 32 items`},
		{"32 values", "selector: {matchExpressions: [{key: app, operator: In, values: [" + many(32, "v%d") + "]}]}", ""},
		{"33 values", "selector: {matchExpressions: [{key: app, operator: In, values: [" + many(33, "v%d") + "]}]}", `spec.selector.matchExpressions[0].values: Too many: 33: must have at most 32 items`},
		{"label values with the max length", "selector: {matchLabels: {app: " + long(63) + "}, matchExpressions: [{key: app, operator: In, values: [" + long(63) + "]}]}", ""},
		{"a longer label", "selector: {matchLabels: {app: " + long(64) + "}}", `spec.selector.matchLabels.app: Too long: may not be more than 63 bytes`},
		{"a longer value", "selector: {matchExpressions: [{key: app, operator: In, values: [" + long(64) + "]}]}", `spec.selector.matchExpressions[0].values[0]: Too long: may not be more than 63 bytes`},
		{"keys with the max length", "selector: {matchLabels: {" + long(317) + ": v}, matchExpressions: [{key: " + long(317) + ", operator: Exists}]}", ""},
		{"a label with a longer key", "selector: {matchLabels: {" + long(318) + ": v}}", `spec.selector: Invalid value: label keys have at most 317 characters, including the prefix`},
		{"an expression with a longer key", "selector: {matchLabels: {app: db}, matchExpressions: [{key: " + long(318) + ", operator: Exists}]}", `spec.selector.matchExpressions[0].key: Too long: may not be more than 317 bytes`},
		{"S1 a maxTransitionTime of 0", "maxTransitionTime: 0", `spec.maxTransitionTime: Invalid value: 0: spec.maxTransitionTime in body should be greater than or equal to 1`},
		{"S1 a maxTransitionTime of 1", "maxTransitionTime: 1", ""},
		{"S1 a maxTransitionTime of 3600", "maxTransitionTime: 3600", ""},
		{"S1 a maxTransitionTime of 3601", "maxTransitionTime: 3601", `spec.maxTransitionTime: Invalid value: 3601: spec.maxTransitionTime in body should be less than or equal to 3600`},
		{"a terminationGracePeriod below 0, which leaves pods alone", "terminationGracePeriod: -1", ""},
		{"V20 a terminationGracePeriod of a year", "terminationGracePeriod: 31536000", ""},
		{"V20 a terminationGracePeriod of centuries", "terminationGracePeriod: 9999999999",
			`spec.terminationGracePeriod: Invalid value: 9999999999: max 31536000 seconds (a year), because the next pod waits until the previous one has stopped; 0 keeps the value of the pods`},
		{"an unknown gate mode", "gateMode: Open", `spec.gateMode: Unsupported value: "Open": supported values: "Auto", "Binary", "Script", "Init"`},
		{"an unknown onTimeout", "onTimeout: Kill", `spec.onTimeout: Unsupported value: "Kill": supported values: "Wait", "DeleteOld"`},
		{"an invalid container name", "containers: [My App]", `spec.containers[0]: Invalid value: "My App": spec.containers[0] in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`},
		{"a container twice", "containers: [app, app]", `spec.containers[1]: Duplicate value: "app"`},
		{"the sidecar as the program", "containers: [status-sidecar]", `spec.containers: Invalid value: status-sidecar is a container of the operator; use the name of the program's container`},
	})
}

func TestS53TheSchemaRefuses(t *testing.T) {
	readCRD(t).refuses(t, []refusal{
		{"S52 fencing by a Lease with gate mode Init", "gateMode: Init\nfencing: {mode: Lease}", `spec: Invalid value: fencing.mode Lease requires gateMode Auto or Binary, because the agent waits in the container of the program`},
		{"S53 onCrashLoop Handover with fencing by a Lease", "onCrashLoop: Handover\nfencing: {mode: Lease}", ""},
		{"S53 onCrashLoop Handover without a Lease", "onCrashLoop: Handover", `spec: Invalid value: onCrashLoop Handover requires fencing.mode Lease, because the kubelet restarts the container at any time; set fencing.mode to Lease, or onCrashLoop to Restart`},
		{"S53 an unknown policy", "onCrashLoop: Sometimes", `spec.onCrashLoop: Unsupported value: "Sometimes": supported values: "Restart", "Handover"`},
	})
}

// refusal is a spec and its errors; "" if it is accepted.
type refusal struct{ name, spec, want string }

func (c crd) refuses(t *testing.T, rows []refusal) {
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			_, errs := c.take(t, manifest(r.spec), nil)
			var got []string
			for _, e := range errs {
				if e.Type == "FieldValueInvalid" && e.Origin == "" && strings.HasPrefix(e.Field, "spec.selector") {
					e.BadValue = nil
				}
				got = append(got, strings.Replace(e.Error(), "Invalid value: null: ", "Invalid value: ", 1))
			}
			if said := strings.Join(got, "\n"); said != r.want {
				t.Errorf("the response is\n  %s\nwant\n  %s", said, r.want)
			}
		})
	}
}

func TestS1TheNameFitsALabel(t *testing.T) {
	crd := readCRD(t)
	for length, want := range map[int]string{63: "", 64: "the name must have at most 63 characters, because it is a label value of pods"} {
		text := strings.Replace(manifest(""), "name: db", "name: "+strings.Repeat("x", length), 1)
		_, errs := crd.take(t, text, nil)
		if got := errs.ToAggregate(); want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%d characters: %v, want %q", length, got, want)
		}
	}
}

// TestTheSelectorIsImmutable checks that the selector, which defines the counted pods,
// cannot change under a running pod.
func TestTheSelectorIsImmutable(t *testing.T) {
	crd := readCRD(t)
	old, errs := crd.take(t, manifest("selector: {matchLabels: {app: db}}"), nil)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	const immutable = "selector is immutable; delete the StatefulSingleton (the running program is not stopped) and create another"
	for _, r := range []struct{ name, spec, want string }{
		{"another field is changed", "selector: {matchLabels: {app: db}}\nmaxTransitionTime: 5", ""},
		{"the selector has another value", "selector: {matchLabels: {app: web}}", immutable},
		{"the selector has an additional label", "selector: {matchLabels: {app: db, tier: one}}", immutable},
		{"the selector is replaced with an equivalent one", "selector: {matchExpressions: [{key: app, operator: In, values: [db]}]}", immutable},
	} {
		_, errs := crd.take(t, manifest(r.spec), old)
		if got := errs.ToAggregate(); r.want == "" && got != nil || r.want != "" && (got == nil || !strings.Contains(got.Error(), r.want)) {
			t.Errorf("%s: %v, want %q", r.name, got, r.want)
		}
	}
}

func TestS1Defaults(t *testing.T) {
	crd := readCRD(t)
	stored, errs := crd.take(t, manifest(""), nil)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	bare := &v1.StatefulSingleton{ObjectMeta: stored.ObjectMeta, Spec: v1.StatefulSingletonSpec{Selector: stored.Spec.Selector}}
	for who, spec := range map[string]v1.StatefulSingletonSpec{"the schema": stored.Spec, "withDefaults": spec.WithDefaults(bare).Spec} {
		for what, ok := range map[string]bool{
			"maxTransitionTime is 300":      *spec.MaxTransitionTime == 300,
			"terminationGracePeriod is 30":  *spec.TerminationGracePeriod == 30,
			"respectPodGracePeriod is true": *spec.RespectPodGracePeriod,
			"gateMode is Auto":              spec.GateMode == v1.GateAuto,
			"spec.containers is empty":      spec.Containers == nil,
			"statusSidecar is false":        !*spec.StatusSidecar,
			"onTimeout is Wait":             spec.OnTimeout == v1.TimeoutWaits,
			"selector is not changed":       spec.Selector.MatchLabels["app"] == "db",
		} {
			if !ok {
				t.Errorf("%s: wrong default, want: %s", who, what)
			}
		}
	}
	if bare.Spec.MaxTransitionTime != nil {
		t.Error("withDefaults changed its argument")
	}
}

// TestS1FalseAndZeroSurviveAGoClient checks that explicit values of a Go client are stored,
// not replaced by defaults.
func TestS1FalseAndZeroSurviveAGoClient(t *testing.T) {
	crd := readCRD(t)
	sent := fixture.Singleton("db").StatefulSingleton
	sent.Spec.RespectPodGracePeriod = ptr.To(false)
	sent.Spec.TerminationGracePeriod = ptr.To(int64(0))
	stored, errs := crd.take(t, asSent(t, &sent), nil)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	if *stored.Spec.RespectPodGracePeriod || *stored.Spec.TerminationGracePeriod != 0 {
		t.Errorf("stored as %v and %d", *stored.Spec.RespectPodGracePeriod, *stored.Spec.TerminationGracePeriod)
	}
	sent.Spec.MaxTransitionTime = ptr.To(int32(0))
	if _, errs := crd.take(t, asSent(t, &sent), nil); len(errs) == 0 {
		t.Error("a maxTransitionTime of 0 was replaced with the default")
	}
}

// TestS1Columns checks the columns of kubectl get.
func TestS1Columns(t *testing.T) {
	table, err := tableconvertor.New(readCRD(t).definition.Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	s := fixture.Singleton("db").StatefulSingleton
	s.CreationTimestamp = metav1.Now()
	s.Status = v1.StatefulSingletonStatus{Phase: v1.PhaseTransitioning, ActivePod: "db-1", Waiting: []string{"db-2", "db-3"}, WaitingCount: 2,
		Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionFalse}}}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := table.ConvertToTable(context.Background(), &unstructured.Unstructured{Object: tree}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names, cells []string
	for i, column := range rows.ColumnDefinitions {
		names = append(names, column.Name)
		cells = append(cells, fmt.Sprint(rows.Rows[0].Cells[i]))
	}
	if got := strings.Join(names, "|"); got != "Name|Status|Active Pod|Waiting|Ready|Available|Node|Age" {
		t.Errorf("the columns are %s", got)
	}
	if got := strings.Join(cells[:5], "|"); got != "db|Transitioning|db-1|2|False" {
		t.Errorf("the cells are %s", got)
	}
}
