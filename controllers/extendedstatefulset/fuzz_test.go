package extendedstatefulset

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/stranger"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
)

const samples = "../../config/samples/extendedstatefulset"

var nastySets = []string{
	`{"metadata":{"name":"a"},"spec":{"scaling":{"min":2147483647,"max":-2147483648,"oddOnly":true},"template":{"spec":{"template":{}}},"zones":["","a","a"],"zoneNodeLabel":"/"}}`,
	`{"metadata":{"name":"a-z1"},"spec":{"updateStrategy":{"canaries":-1,"retryCount":-1,"canaryWatchTime":"1h","updateWatchTime":"-1s","preUpdateJob":{"spec":{"parallelism":0,"template":{}}}},"activePassiveProbes":{"":{}},"template":{"spec":{"ordinals":{"start":5},"template":{}}}}}`,
	`{"metadata":{"name":"a"},"spec":{"template":{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"x"}]},"volumeClaimTemplates":[null],"template":{"spec":{"volumes":[{"name":""}],"containers":[{"ports":[null,{}]}]}}}}}}`,
}

// FuzzValidate sends arbitrary objects to validation. An accepted object must be within the limits, and
// its children must be valid.
func FuzzValidate(f *testing.F) {
	for _, raw := range stranger.Samples(f, samples, v1alpha1.Kind) {
		f.Add(raw)
	}
	for _, text := range nastySets {
		f.Add([]byte(text))
	}
	const served = `{"metadata":{"name":"%s"},"spec":{"zones":[%s],"template":{"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"a"}]}}}}}}`
	for _, text := range []string{
		fmt.Sprintf(served, "a", "", 3), fmt.Sprintf(served, "a", "", 1001), fmt.Sprintf(served, "a", `"b","c","d"`, 700), fmt.Sprintf(served, strings.Repeat("a", 46), "", 3),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object v1alpha1.ExtendedStatefulSet
		if bounds.Quantities(raw) != nil || json.Unmarshal(raw, &object) != nil {
			return
		}
		set := spec.WithDefaults(&object)
		if !apiequality.Semantic.DeepEqual(set, spec.WithDefaults(set)) {
			t.Error("defaults are not idempotent")
		}
		webhooks.Warnings(set)
		if len(spec.Validate(set)) == 0 {
			checkServed(t, set)
		}
	})
}

// checkServed verifies a set that passed validation, and the children that are built for it.
func checkServed(t *testing.T, set *v1alpha1.ExtendedStatefulSet) {
	t.Helper()
	s := &set.Spec
	replicas, zones, claims := int(*s.Template.Spec.Replicas), max(1, len(s.Zones)), len(s.Template.Spec.VolumeClaimTemplates)
	for name, within := range map[string]bool{
		"replicas": 0 <= replicas && replicas <= 1000 && replicas == int(spec.ReplicasOf(set)),
		"zones":    zones <= 64 && replicas*zones <= 2000,
		"claims":   claims <= 16 && replicas*zones*claims <= 4000,
		"rules":    s.Scaling == nil || ptr.Deref(s.Scaling.Min, 0) <= *s.Template.Spec.Replicas && *s.Template.Spec.Replicas <= ptr.Deref(s.Scaling.Max, 1000),
		"canaries": 1 <= *s.UpdateStrategy.Canaries && *s.UpdateStrategy.Canaries <= 1000,
		"probes":   len(s.ActivePassiveProbes) <= 16,
		"times":    0 < s.UpdateStrategy.CanaryWatchTime.Duration && s.UpdateStrategy.CanaryWatchTime.Duration <= s.UpdateStrategy.UpdateWatchTime.Duration,
		"length":   len(spec.TooLarge(s, nil)) == 0,
	} {
		if !within {
			t.Errorf("%s above the limit was accepted", name)
		}
	}
	digest, err := children.DigestOf(set)
	if err != nil || len(digest) != 64 {
		t.Errorf("got digest %q: %v", digest, err)
	}
	z := children.Zone{Index: children.NoZone}
	if len(s.Zones) > 0 {
		z = children.Zone{Name: s.Zones[0], Index: 99}
	}
	child := children.BuildChild(set, z, children.Version{Number: 99999}, children.Span{Start: 0, Replicas: int32(replicas)})
	if faults := validation.IsDNS1123Label(child.Name); len(faults) > 0 || len(child.Name) > spec.MaxStatefulSetName {
		t.Errorf("StatefulSet %s: %v", child.Name, faults)
	}
	if index, number, ok := children.ParseChild(set.Name, child.Name); !ok || index != z.Index || number != 99999 {
		t.Errorf("StatefulSet %s is parsed as version %d of zone %d, %v", child.Name, number, index, ok)
	}
	selector, err := metav1.LabelSelectorAsSelector(child.Spec.Selector)
	if err != nil || !selector.Matches(labels.Set(child.Spec.Template.Labels)) {
		t.Errorf("%v does not select %v: %v", child.Spec.Selector, child.Spec.Template.Labels, err)
	}
	for _, trial := range webhooks.Trials(set) {
		if trial.Object.GetName() == "" || len(trial.Object.GetOwnerReferences()) > 0 {
			t.Errorf("unexpected dry run of %v", trial.Object)
		}
	}
	children.BuildServices(set, nil)
}

// FuzzWebhook sends arbitrary bodies to the webhook. It must respond, and an allowed object must be
// valid.
func FuzzWebhook(f *testing.F) {
	stranger.Webhook(f, v1alpha1.AddToScheme, &webhooks.Validator{Live: fixture.NoAnswer{}, Court: trial.NewCourt(fixture.NoAnswer{})}, stranger.Samples(f, samples, v1alpha1.Kind),
		func(object *v1alpha1.ExtendedStatefulSet) string {
			if errs := spec.Validate(spec.WithDefaults(object)); len(errs) > 0 {
				return errs.ToAggregate().Error()
			}
			return ""
		})
}

// FuzzDefaultReplicas sends arbitrary objects to the webhook that sets default replicas. It must allow
// all objects, and set a number that the rules allow, only once.
func FuzzDefaultReplicas(f *testing.F) {
	hook := &admission.Webhook{Handler: admission.HandlerFunc(webhooks.DefaultReplicas)}
	f.Add([]byte(`{"spec":{"scaling":{"min":2,"oddOnly":true},"template":{"spec":{"new":1}}}}`))
	f.Add([]byte(`{"spec":{"scaling":{"min":2147483647,"oddOnly":true},"template":{"spec":{}}}}`))
	f.Add([]byte(`{"spec":{"scaling":{"max":0},"template":{"spec":{"replicas":null}}}}`))
	f.Add([]byte(`{"Spec":{"template":{"SPEC":{}}},"spec":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		body := stranger.Review(raw, nil)
		if body == nil {
			return
		}
		answer := stranger.Ask(t, hook, body)
		if !answer.Allowed {
			t.Errorf("the webhook refuses %s", raw)
		}
		var object v1alpha1.ExtendedStatefulSet
		if json.Unmarshal(raw, &object) != nil || answer.Patch == nil {
			return
		}
		sent, err := json.Marshal(&object) // as the API server sends it: each field once, in its exact case
		if err != nil {
			t.Fatal(err)
		}
		if answer = stranger.Ask(t, hook, stranger.Review(sent, nil)); answer.Patch == nil {
			return
		}
		filled := stranger.Patched(t, sent, answer)
		var after v1alpha1.ExtendedStatefulSet
		if err := json.Unmarshal(filled, &after); err != nil {
			t.Fatal(err)
		}
		if errs := spec.ValidateReplicas(&after.Spec, nil); len(errs) > 0 {
			t.Errorf("the defaults are invalid: %v", errs)
		}
		if again := stranger.Ask(t, hook, stranger.Review(filled, nil)); again.Patch != nil {
			t.Errorf("a second call patches again: %s", again.Patch)
		}
	})
}

// FuzzPodWebhook sends arbitrary pods to the webhook. Its patch must apply, only once, and assign only
// the claims of the pod's ordinal.
func FuzzPodWebhook(f *testing.F) {
	hook := &admission.Webhook{Handler: &webhooks.PodHandler{Live: fixture.NoAnswer{}}}
	for _, pod := range []*corev1.Pod{fixture.NewPod(fixture.Volumes(), children.Zone{Index: children.NoZone}, 1), fixture.NewPod(fixture.Zoned(3, "a"), children.Zone{Name: "a", Index: 0}, 12), {}} {
		raw, err := json.Marshal(pod)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"spec":{"volumes":[null,{"persistentVolumeClaim":null}]},"metadata":{"labels":null}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var pod corev1.Pod
		body := stranger.Review(raw, nil)
		if body == nil || bounds.Quantities(body) != nil {
			return
		}
		stranger.Ask(t, hook, body)
		if json.Unmarshal(raw, &pod) != nil {
			return // the API server never sends such an object
		}
		sent, err := json.Marshal(&pod)
		if err != nil {
			t.Fatal(err)
		}
		incomingPod := fixture.ReadBorn(t, &pod)
		changes, _ := children.Inject(incomingPod)
		if len(changes) == 0 {
			return
		}
		m, _ := children.MemberOf(incomingPod)
		text, err := json.Marshal(changes)
		if err != nil {
			t.Fatal(err)
		}
		response := admission.Allowed("").AdmissionResponse
		response.Patch = text
		var after corev1.Pod
		if err := json.Unmarshal(stranger.Patched(t, sent, &response), &after); err != nil {
			t.Fatal(err)
		}
		for i, v := range after.Spec.Volumes {
			if is, was := v.PersistentVolumeClaim, pod.Spec.Volumes[i].PersistentVolumeClaim; is != nil && is.ClaimName != was.ClaimName &&
				(was.ClaimName != m.Set+v1alpha1.UnassignedClaim || is.ClaimName != m.Claim(v.Name)) {
				t.Errorf("volume %s has claim %s, was %s", v.Name, is.ClaimName, was.ClaimName)
			}
		}
		if again, _ := children.Inject(fixture.ReadBorn(t, &after)); len(again) > 0 {
			t.Errorf("a second call changes %v", again)
		}
	})
}

// FuzzNames parses arbitrary names of StatefulSets and pods. An accepted name must be the name of
// exactly one version in one zone.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"db-v1", "db-z0-v2", "db-z-1-v2", "db-zz1-v1", "db-v01", "db-v9223372036854775808", "db-z4294967296-v1", "db-+1-v1", "db-v", "-"} {
		f.Add("db", name, int32(1), int64(2))
	}
	f.Fuzz(func(t *testing.T, set, name string, index int32, number int64) {
		if i, n, ok := children.ParseChild(set, name); ok && (n <= 0 || i < children.NoZone || children.ChildName(set, children.Zone{Index: i}, n) != name) {
			t.Errorf("%s is parsed as version %d of zone %d of %s", name, n, i, set)
		}
		index, number = max(children.NoZone, index), max(1, number)
		made := children.ChildName(set, children.Zone{Index: index}, number)
		if i, n, ok := children.ParseChild(set, made); !ok || i != index || n != number {
			t.Errorf("%s is parsed as version %d of zone %d, %v", made, n, i, ok)
		}
		w := &facts.World{Set: &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: set}}}
		for _, pod := range []string{name, made + "-" + strconv.Itoa(math.MaxInt32)} {
			observe.AddPod(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}})
		}
		for _, podOfOrdinal := range w.Pods {
			if !strings.HasPrefix(podOfOrdinal.Pod.Name, children.ChildName(set, children.Zone{Index: podOfOrdinal.Zone}, podOfOrdinal.Version)+"-") {
				t.Errorf("pod %s is parsed as version %d of zone %d", podOfOrdinal.Pod.Name, podOfOrdinal.Version, podOfOrdinal.Zone)
			}
		}
	})
}

// FuzzRecords parses the operator's annotations of StatefulSets, which other clients can write. A
// parsed value must be written unchanged.
func FuzzRecords(f *testing.F) {
	f.Add(`{"key":"k","seen":"s","hash":"h","incomplete":true,"restarted":"2024-01-01T00:00:00Z"}`, "abc/7")
	f.Add(`{"key":""}`, "/")
	f.Add(`null`, "a/b/9223372036854775808")
	f.Fuzz(func(t *testing.T, record, written string) {
		child := &appsv1.StatefulSet{}
		child.Annotations = map[string]string{v1alpha1.AnnotationConfigRecord: record, v1alpha1.AnnotationApplied: written}
		if r := facts.RecordOf(child); r != nil {
			child.Annotations[v1alpha1.AnnotationConfigRecord] = r.String()
			if again := facts.RecordOf(child); !apiequality.Semantic.DeepEqual(again, r) {
				t.Errorf("%s is parsed as %v, was %v", r, again, r)
			}
		}
		a := children.AppliedOf(child)
		child.Annotations[v1alpha1.AnnotationApplied] = a.String()
		if again := children.AppliedOf(child); again != a {
			t.Errorf("%s is parsed as %v", a, again)
		}
	})
}

// FuzzZones parses labels of claims, which other clients can write. No two zones may get the same name
// or the same index.
func FuzzZones(f *testing.F) {
	f.Add("a", "0", "b", "0")
	f.Add("a", "0", "a", "1")
	f.Add("c", "2147483647", "", "-1")
	f.Add("x", "+1", "y", "01")
	f.Fuzz(func(t *testing.T, name, index, otherName, otherIndex string) {
		w := &facts.World{Set: fixture.Zoned(1, "a", "b", "c"), Claims: map[string]*corev1.PersistentVolumeClaim{}}
		for claim, said := range map[string][2]string{"one": {name, index}, "two": {otherName, otherIndex}} {
			w.Claims[claim] = &corev1.PersistentVolumeClaim{}
			w.Claims[claim].Labels = map[string]string{v1alpha1.LabelZoneName: said[0], v1alpha1.LabelZoneIndex: said[1]}
		}
		observe.RecoverZones(w, nil)
		var names []string
		var indexes []int32
		for _, z := range w.Zones {
			if slices.Contains(names, z.Name) || slices.Contains(indexes, z.Index) || z.Index < 0 {
				t.Fatalf("got zones %v", w.Zones)
			}
			names, indexes = append(names, z.Name), append(indexes, z.Index)
		}
		if !slices.Equal(names, w.Set.Spec.Zones) {
			t.Errorf("got zones %v, want %v", names, w.Set.Spec.Zones)
		}
	})
}
