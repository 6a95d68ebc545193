package replicatedstatefulset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/stranger"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
)

const samples = "../../config/samples/replicatedstatefulset"

// FuzzValidate tests that any object that passes validation is within bounds and can be built,
// always with the same result.
func FuzzValidate(f *testing.F) {
	for _, raw := range stranger.Samples(f, samples, "ReplicatedStatefulSet") {
		f.Add(raw)
	}
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":{"replicas":-2147483648,"primaries":2147483647,"pod":{"commands":{"":{"command":[""]},"stop":{}},"container":"none"},"secrets":["","a","a"]}}`))
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"rss":""}},"spec":{"servicePorts":[{"nodePort":-1}],"pod":{"volumes":[{"name":"podinfo"}],"volumeClaimTemplates":[null]},"tls":{"static":{}}}}`))
	const served = `{"metadata":{"name":"%s"},"spec":{"replicas":%d,"pod":{"commands":{"sequence":{"command":["a"]},"status":{"command":["a"]},"stop":{"command":["a"]},"primary":{"command":["a"]}},"containers":[{"name":"a","image":"a"}%s]}}}`
	template := func(text string) string {
		return strings.Replace(fmt.Sprintf(served, "a", 3, ""), `"pod":{`, `"pod":{"template":`+text+`,`, 1)
	}
	f.Add([]byte(template(`{"spec":{"containers":[{"name":"b","image":"b"}],"volumes":[{"name":"v"}],"affinity":{},"nodeSelector":{"a":"b"}}}`)))
	f.Add([]byte(template(`{"metadata":{"labels":{"rss":"","a":"b"}},"spec":{"hostname":"a","unknown":[null],"containers":[{"name":"a"}]}}`)))
	f.Add([]byte(template(`"text"`)))
	for _, text := range []string{
		fmt.Sprintf(served, "a", 3, ""), fmt.Sprintf(served, "a", 1001, ""),
		fmt.Sprintf(served, "a", 3, strings.Repeat(`,{"name":"b","image":"b"}`, 32)), fmt.Sprintf(served, strings.Repeat("a", 60), 3, ""),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object v1alpha1.ReplicatedStatefulSet
		if bounds.Quantities(raw) != nil || json.Unmarshal(raw, &object) != nil {
			return
		}
		set := spec.WithDefaults(&object)
		if !apiequality.Semantic.DeepEqual(set, spec.WithDefaults(set)) {
			t.Error("defaulting is not idempotent")
		}
		webhooks.Warnings(set)
		spec.ValidateOverrides(set)
		if len(spec.Validate(set)) == 0 {
			checkServed(t, set)
		}
	})
}

// checkServed checks a valid set and its children.
func checkServed(t *testing.T, set *v1alpha1.ReplicatedStatefulSet) {
	t.Helper()
	setSpec := &set.Spec
	replicas, primaries := *setSpec.Replicas, spec.PrimariesWanted(set)
	for name, within := range map[string]bool{
		"replicas":           0 <= replicas && replicas <= 1000,
		"primaries":          0 <= primaries && primaries <= replicas && (primaries > 0 || replicas == 0),
		"containers":         0 < len(setSpec.Pod.Containers) && len(setSpec.Pod.Containers) <= bounds.Containers,
		"volumes":            len(setSpec.Pod.Volumes) <= bounds.Volumes,
		"claims":             len(setSpec.Pod.VolumeClaimTemplates) <= bounds.Claims,
		"ports":              len(setSpec.ServicePorts) <= 100,
		"secrets":            len(setSpec.Secrets) <= 64,
		"commands":           len(setSpec.Pod.Commands) <= len(spec.NeededCommands)+len(spec.OptionalCommands),
		"length of the spec": len(bounds.Spec(setSpec, nil)) == 0,
	} {
		if !within {
			t.Errorf("%s exceeds its limits and is accepted", name)
		}
	}
	built := children.BuildStatefulSet(set, replicas, children.Hashes{})
	if hash := children.BuildTemplate(set, children.Hashes{}).Annotations[v1alpha1.AnnotationTemplate]; hash != built.Spec.Template.Annotations[v1alpha1.AnnotationTemplate] {
		t.Error("two builds of the template have different hashes")
	}
	for key, value := range spec.OwnLabels(set) {
		if built.Spec.Template.Labels[key] != value {
			t.Errorf("label %s of the pods is %q", key, built.Spec.Template.Labels[key])
		}
	}
	var volumes []string
	for _, v := range built.Spec.Template.Spec.Volumes {
		if slices.Contains(volumes, v.Name) {
			t.Errorf("two volumes are named %s", v.Name)
		}
		volumes = append(volumes, v.Name)
	}
	if !slices.ContainsFunc(built.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == spec.CommandsIn(&setSpec.Pod) }) {
		t.Error("commands run in no container")
	}
	for _, name := range []string{spec.MemberName(set, 999), spec.ServiceName(set), set.PrimaryServiceName(), spec.ActiveServiceName(set)} {
		if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
	for name, command := range setSpec.Pod.Commands {
		if d := spec.TimeoutOf(command); d < spec.MinTimeout || d > spec.MaxTime {
			t.Errorf("the timeout of %s is %s", name, d)
		}
	}
}

// noServer is an API server that never responds.
type noServer struct{ client.Client }

func (noServer) Create(context.Context, client.Object, ...client.CreateOption) error {
	return errors.New("no answer")
}

// FuzzWebhook tests that the webhook responds to any body, and that the objects it allows are
// valid.
func FuzzWebhook(f *testing.F) {
	stranger.Webhook(f, v1alpha1.AddToScheme, &webhooks.Validator{Live: noServer{}, Court: trial.NewCourt(noServer{}), Kinds: noServer{}}, stranger.Samples(f, samples, "ReplicatedStatefulSet"),
		func(object *v1alpha1.ReplicatedStatefulSet) string {
			if errs := spec.Validate(spec.WithDefaults(object)); len(errs) > 0 {
				return errs.ToAggregate().Error()
			}
			return ""
		})
}

// FuzzOrders tests the order annotations: an order is accepted only for an existing member, and a
// name belongs to one ordinal only.
func FuzzOrders(f *testing.F) {
	f.Add("db", "rss-db-0", "rss-db-2", int32(3))
	f.Add("db", "rss-db-01", "rss-db-+1", int32(3))
	f.Add("db-1", "rss-db-1-0", "rss-db-9223372036854775808", int32(1))
	f.Add("", "rss--0", "rss-", int32(0))
	f.Fuzz(func(t *testing.T, name, seed, switchover string, replicas int32) {
		set := spec.WithDefaults(&v1alpha1.ReplicatedStatefulSet{})
		set.Name, set.Spec.Replicas = name, &replicas
		set.Annotations = map[string]string{v1alpha1.AnnotationSeedFrom: seed, v1alpha1.AnnotationSwitchoverTo: switchover}
		webhooks.StrangeAnnotations(map[string]string{seed: "", switchover: ""})
		for _, pod := range []string{seed, switchover} {
			if n, ok := spec.OrdinalOf(set, pod); ok && (n < 0 || spec.MemberName(set, n) != pod) {
				t.Errorf("%s is read as number %d, which is %s", pod, n, spec.MemberName(set, n))
			}
		}
		if n, ok := spec.OrdinalOf(set, spec.MemberName(set, int(max(0, replicas)))); !ok || n != int(max(0, replicas)) {
			t.Errorf("member %d is read as %d, %v", replicas, n, ok)
		}
		if len(spec.ValidateOverrides(set)) > 0 {
			return
		}
		for _, pod := range []string{seed, switchover} {
			if n, ok := spec.OrdinalOf(set, pod); !ok || n >= int(replicas) {
				t.Errorf("the order of %s is accepted with %d members", pod, replicas)
			}
		}
	})
}

// FuzzDuration tests durations: none is negative, Go's durations are parsed as Go does, and
// effective values are within bounds.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"30s", "1D2h", "500ms", "8", "1Y2M3DT4h", "9223372036", "292Y", "106751D23h47m", "9999999999999999999", "", "1.5h", ".s", "１s"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := spec.ParseDuration(text)
		if d < 0 || err != nil && d != 0 {
			t.Errorf("%q is %s, %v", text, d, err)
		}
		if seconds, parseErr := strconv.ParseUint(text, 10, 64); parseErr == nil && err == nil && d/time.Second != time.Duration(seconds) {
			t.Errorf("%q is %s", text, d)
		}
		if same, goErr := time.ParseDuration(text); err == nil && goErr == nil && text != "0" && same != d {
			t.Errorf("%q is %s, and Go reads %s", text, d, same)
		}
		if again, err := spec.ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%s is read as %s, %v", d, again, err)
		}
		if got := spec.DurationOr(v1alpha1.Duration(text), spec.DefaultTimeout, spec.MinTimeout, spec.MaxTime); got < spec.MinTimeout || got > spec.MaxTime {
			t.Errorf("%q counts as %s", text, got)
		}
	})
}

// FuzzSequence tests the output of a user's sequence command: it is valid only if it is exactly one
// number.
func FuzzSequence(f *testing.F) {
	for _, text := range []string{"42\n", "  007", "-1", "+5", "18446744073709551615", "18446744073709551616", "1 2", "0x10", "1_000", "", "٤"} {
		f.Add(text, uint64(len(text)), false)
	}
	f.Fuzz(func(t *testing.T, printed string, number uint64, cut bool) {
		n, known := record.SequenceOf(podexec.Result{Outcome: podexec.Succeeded, Stdout: printed, Cut: cut})
		digits := strings.TrimSpace(printed)
		if known && (cut || strings.Trim(digits, "0123456789") != "" || strings.TrimLeft(digits, "0") != strings.TrimLeft(strconv.FormatUint(n, 10), "0")) {
			t.Errorf("%q is read as %d", printed, n)
		}
		for _, one := range []uint64{number, math.MaxUint64 - number} {
			if got, known := record.SequenceOf(podexec.Result{Outcome: podexec.Succeeded, Stdout: fmt.Sprintf(" %d\n", one)}); !known || got != one {
				t.Errorf("%d is read as %d, %v", one, got, known)
			}
		}
		if _, known := record.SequenceOf(podexec.Result{Outcome: podexec.Failed, Stdout: "1"}); known {
			t.Error("the output of a failed command is used as a sequence")
		}
	})
}
