package statefulsingleton

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/stranger"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

const samples = "../../config/samples/statefulsingleton"

// FuzzValidate decodes an object from an untrusted client. An accepted object is within the
// limits, and its selector requires the value of a label.
func FuzzValidate(f *testing.F) {
	for _, raw := range stranger.Samples(f, samples, "StatefulSingleton") {
		f.Add(raw)
	}
	f.Add([]byte(`{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]},"maxTransitionTime":-1}}`))
	f.Add([]byte(`{"metadata":{"annotations":{"statefulsingleton.com":"","x.statefulsingleton.com/y":"true"}},"spec":{"selector":{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["c"]}]}}}`))
	f.Add([]byte(`{"spec":{"selector":{"matchLabels":{"apps.statefulsingleton.com/singleton":"x"}},"containers":["","A","a","a","status-sidecar"]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object v1.StatefulSingleton
		if json.Unmarshal(raw, &object) != nil {
			return
		}
		s := spec.WithDefaults(&object)
		if !apiequality.Semantic.DeepEqual(s, spec.WithDefaults(s)) {
			t.Error("a second call changes the defaults")
		}
		spec.Warnings(s, "operator")
		spec.AnnotationWarnings(s)
		if spec.Problem(s) != "" {
			return
		}
		if most := *s.Spec.MaxTransitionTime; most < 1 || most > 3600 || len(s.Name) > 63 {
			t.Errorf("%d seconds and %q are accepted", most, s.Name)
		}
		if !spec.Usable(s.Spec.Selector) || !spec.RequiresValue(s.Spec.Selector) || spec.Selects(s, nil) {
			t.Errorf("selector %v is accepted", s.Spec.Selector)
		}
		if !spec.Overlap(s.Spec.Selector, s.Spec.Selector) {
			t.Error("a selector that matches no pod is accepted")
		}
	})
}

// FuzzWebhook sends arbitrary bodies to the webhook. It always responds, and only allows
// valid objects.
func FuzzWebhook(f *testing.F) {
	stranger.Webhook(f, v1.AddToScheme, &webhooks.Validator{Singletons: fixture.Known{Items: fixture.All(fixture.Singleton("db"))}, Namespace: "operator"}, stranger.Samples(f, samples, "StatefulSingleton"),
		func(object *v1.StatefulSingleton) string { return spec.Problem(spec.WithDefaults(object)) })
}

// FuzzPodWebhook sends arbitrary pods to the webhook. A pod that an object selects gets the
// gate by a patch that applies exactly once, or is rejected. All other pods are unchanged.
func FuzzPodWebhook(f *testing.F) {
	for mode := range fixture.Modes {
		f.Add([]byte(`{"metadata":{"name":"db-1","labels":{"app":"db"}},"spec":{"containers":[{"name":"app","image":"a","command":["serve"],"new":1}]}}`), uint8(mode))
		f.Add([]byte(`{"metadata":{"labels":{"app":"db"},"annotations":null},"spec":{"initContainers":[{"name":"gate-wait"}],"volumes":[{"name":"signal","persistentVolumeClaim":{"claimName":"x"}}],"containers":[{"name":"a"},{"name":"a"}]}}`), uint8(mode))
		f.Add([]byte(`{"metadata":{"labels":{"app":"db"}},"spec":{"containers":[null,{"name":"b","volumeMounts":[{"name":"v","mountPath":"/var/run"}],"livenessProbe":{}}],"affinity":{"podAntiAffinity":{}}}}`), uint8(mode))
	}
	f.Add([]byte(`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app"}]}}`), uint8(0))
	handlers := map[v1.GateMode]*webhooks.PodHandler{}
	for _, mode := range fixture.Modes {
		handlers[mode] = fixture.NewHandler(f, fixture.Known{Items: fixture.All(fixture.Singleton("db").Mode(mode))})
	}
	f.Fuzz(func(t *testing.T, pod []byte, number uint8) {
		s := fixture.Singleton("db").Mode(fixture.Modes[int(number)%len(fixture.Modes)])
		h := handlers[s.Spec.GateMode]
		hook := &admission.Webhook{Handler: h}
		body := stranger.Review(pod, nil)
		if bounds.Quantities(body) != nil || body == nil {
			return
		}
		answer := stranger.Ask(t, hook, body)
		var read corev1.Pod
		if err := h.Decoder.DecodeRaw(runtime.RawExtension{Raw: pod}, &read); err != nil {
			return // the API server never sends this
		}
		_, mirror := read.Annotations[corev1.MirrorPodAnnotationKey]
		if read.Labels["app"] != "db" || mirror {
			if !answer.Allowed || answer.Patch != nil {
				t.Errorf("a pod that is not selected gets %v", answer)
			}
			return
		}
		if !answer.Allowed {
			return
		}
		again := stranger.Patched(t, sent(t, &read), answer)
		var held corev1.Pod
		if err := json.Unmarshal(again, &held); err != nil {
			t.Fatal(err)
		}
		if !children.HasGate(&held, &s.StatefulSingleton) {
			t.Errorf("the pod is allowed without the gate: %s", again)
		}
		if second := stranger.Ask(t, hook, stranger.Review(again, nil)); !second.Allowed || second.Patch != nil {
			t.Errorf("a second admission returns %v %s", second, second.Patch)
		}
	})
}

// sent returns a pod as the API server sends it: each field once, and with the exact case.
func sent(t *testing.T, pod *corev1.Pod) []byte {
	t.Helper()
	raw, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// FuzzSelectors compares arbitrary selectors and labels. An object selects the same pods as
// in the API server, and two objects that select one pod overlap.
func FuzzSelectors(f *testing.F) {
	f.Add([]byte(`{"matchLabels":{"a":"b"}}`), []byte(`{"matchExpressions":[{"key":"a","operator":"In","values":["b","c"]}]}`), []byte(`{"a":"b"}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"NotIn","values":["b"]}]}`), []byte(`{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}`), []byte(`{}`))
	f.Add([]byte(`{"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}`), []byte(`{"matchExpressions":[{"key":"","operator":"In","values":[]}]}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, one, other, pod []byte) {
		var have map[string]string
		selectors := [2]*metav1.LabelSelector{{}, {}}
		if json.Unmarshal(one, selectors[0]) != nil || json.Unmarshal(other, selectors[1]) != nil || json.Unmarshal(pod, &have) != nil {
			return
		}
		both := true
		for _, selector := range selectors {
			s := &v1.StatefulSingleton{Spec: v1.StatefulSingletonSpec{Selector: selector}}
			selected := spec.Selects(s, have)
			// The API server may not be able to parse a selector that validation rejects.
			if len(spec.ValidateSelector(selector, nil)) == 0 && selected != spec.SelectorOf(s).Matches(labels.Set(have)) {
				t.Errorf("%v selects %v: %v", selector, have, selected)
			}
			both = both && selected
		}
		if there := spec.Overlap(selectors[0], selectors[1]); both && !there || there != spec.Overlap(selectors[1], selectors[0]) {
			t.Errorf("%s and %s overlap: %v; both select %v: %v", one, other, there, have, both)
		}
	})
}

// FuzzGrant parses the annotation that lets a program start, and that any client that may
// patch pods can write. It is a grant only for the pod with that UID, and a written grant
// is parsed.
func FuzzGrant(f *testing.F) {
	f.Add("uid-1 7", "uid-1", int64(7))
	f.Add("uid-1 -9223372036854775808", "uid-1", int64(-1))
	f.Add("uid-1", "uid-1", int64(0))
	f.Add(" 5", "", int64(5))
	f.Add("uid-1 5 6", "uid-1", int64(5))
	f.Fuzz(func(t *testing.T, text, uid string, epoch int64) {
		m := &facts.Member{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Annotations: map[string]string{v1.AnnotationGrant: text}}}}
		if m.Granted() != strings.HasPrefix(text, uid+" ") && !strings.Contains(uid, " ") {
			t.Errorf("%q is a grant for %q: %v", text, uid, m.Granted())
		}
		if m.Granted() && m.IsCopy() || !m.Granted() && m.Epoch() != 0 {
			t.Errorf("%q has epoch %d: granted %v, copied %v", text, m.Epoch(), m.Granted(), m.IsCopy())
		}
		if strings.Contains(uid, " ") {
			return // the API server never assigns such a UID
		}
		m.Pod.Annotations[v1.AnnotationGrant] = children.GrantOf(types.UID(uid), epoch)
		if !m.Granted() || m.Epoch() != epoch {
			t.Errorf("the grant of epoch %d is read as epoch %d", epoch, m.Epoch())
		}
	})
}
