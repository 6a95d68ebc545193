package statefulcluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/stranger"
	"github.com/stateful-operator/stateful-operator/controllers/internal/trial"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/children"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/rules"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/webhooks"
)

const samples = "../../config/samples/statefulcluster"

var nastySpecs = []string{
	`{"metadata":{"name":"a"},"spec":{"replicas":2147483647,"selector":{"matchExpressions":[{"key":"a","operator":"Nor"}]}}}`,
	`{"metadata":{"name":"a"},"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":"","maxUnavailable":"0%","partition":-1}},"replacement":{"maxConcurrent":"99999999999%"}}}`,
	`{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":[{}],"volumes":[{"name":"d"}]}},"volumeClaimTemplates":[{"metadata":{"name":"d"}},{"metadata":{"name":"d"},"spec":{"resources":{"requests":{"storage":"-1e9"}}}}]}}`,
	`{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"annotations":null},"spec":null},"volumeClaimTemplates":[null]}}`,
	`{"metadata":{"name":"a"},"spec":{"replicas":20001,"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":[{"name":"a"}]}}}}`,
	`{"metadata":{"name":"a"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":[{"name":"a"}` + strings.Repeat(`,{"name":"b"}`, 32) + `]}}}}`,
	`{"metadata":{"name":"` + strings.Repeat("a", 53) + `"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"spec":{"containers":[{"name":"a"}]}}}}`,
}

// FuzzValidate validates untrusted objects: those that are accepted are within bounds and can be
// built.
func FuzzValidate(f *testing.F) {
	for _, raw := range stranger.Samples(f, samples, "StatefulCluster") {
		f.Add(raw)
	}
	for _, text := range nastySpecs {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var object v1alpha1.StatefulCluster
		if bounds.Quantities(raw) != nil || json.Unmarshal(raw, &object) != nil {
			return
		}
		set := spec.WithDefaults(&object)
		if !apiequality.Semantic.DeepEqual(set, spec.WithDefaults(set)) {
			t.Error("defaulting is not idempotent")
		}
		spec.Advise(set)
		faults := spec.Problem(set)
		if errs := spec.ValidateChange(set, set); len(errs) > 0 && len(faults) == 0 {
			t.Errorf("validation rejects an unchanged object: %v", errs)
		}
		if faults == "" {
			checkServed(t, set)
		}
	})
}

// checkServed checks a set that passed validation, and the objects built for it.
func checkServed(t *testing.T, set *v1alpha1.StatefulCluster) {
	t.Helper()
	s := &set.Spec
	for name, within := range map[string]bool{
		"replicas":         0 <= *s.Replicas && *s.Replicas <= 20000,
		"containers":       0 < len(s.Template.Spec.Containers) && len(s.Template.Spec.Containers) <= bounds.Containers,
		"volumes":          len(s.Template.Spec.Volumes) <= bounds.Volumes,
		"claims":           len(s.VolumeClaimTemplates) <= bounds.Claims,
		"labels":           len(s.Template.Labels) <= bounds.Words,
		"selector":         len(s.Selector.MatchLabels)+len(s.Selector.MatchExpressions) > 0,
		"terms":            len(s.Selector.MatchLabels) <= bounds.Terms && len(s.Selector.MatchExpressions) <= bounds.Terms,
		"size of the spec": len(bounds.Spec(s, nil)) == 0,
	} {
		if !within {
			t.Errorf("%s exceeds its limit and is accepted", name)
		}
	}
	w := &facts.World{Settings: spec.Settings{Set: set}}
	if n := w.MaxConcurrent(); n < 1 || n > 20000 {
		t.Errorf("maxConcurrent is %d", n)
	}
	if w.MaxUnavailable()+w.MaxSurge() < 1 {
		t.Error("maxUnavailable and maxSurge are 0, so no member could be updated")
	}
	rev := children.BuildRevision(w.Settings, w.Revisions)
	if data, ok := children.DataOf(rev); !ok || !apiequality.Semantic.DeepEqual(data, children.DataOfSpec(s)) {
		t.Error("the revision differs from the spec")
	}
	pod := children.BuildPod(w.Settings, rev, "aaaaaaaaaa")
	if faults := validation.IsDNS1123Label(pod.Name); len(faults) > 0 {
		t.Errorf("pod %s: %v", pod.Name, faults)
	}
	var names []string
	for i := range s.VolumeClaimTemplates {
		claim := children.BuildClaim(w.Settings, &s.VolumeClaimTemplates[i], "aaaaaaaaaa")
		if faults := validation.IsDNS1123Subdomain(claim.Name); len(faults) > 0 || slices.Contains(names, claim.Name) {
			t.Errorf("claim %s of %v: %v", claim.Name, names, faults)
		}
		names = append(names, claim.Name)
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.Name
		}) {
			t.Errorf("the pod does not mount claim %s", claim.Name)
		}
	}
}

// silent is a client for an unreachable API server.
type silent struct{ client.Client }

var errSilent = errors.New("no response")

func (silent) Create(context.Context, client.Object, ...client.CreateOption) error { return errSilent }

func (silent) List(context.Context, client.ObjectList, ...client.ListOption) error { return errSilent }

// FuzzWebhook sends arbitrary bodies to the webhook: it responds, and the objects that it allows
// are valid.
func FuzzWebhook(f *testing.F) {
	all := stranger.Samples(f, samples, "StatefulCluster")
	for _, raw := range all {
		f.Add(stranger.Review(raw, []byte(strings.Replace(nastySpecs[0], "{", `{"apiVersion":"enge.me/v1alpha1","kind":"StatefulCluster",`, 1))))
	}
	stranger.Webhook(f, v1alpha1.AddToScheme, &webhooks.Validator{Cache: silent{}, Court: trial.NewCourt(silent{})}, all,
		func(object *v1alpha1.StatefulCluster) string { return spec.Problem(spec.WithDefaults(object)) })
}

// FuzzNotesOnPods reads the operator's annotations on pods, which anyone who may patch pods can
// write: no count is negative, no delay is above its max, and a decoded annotation is encoded the
// same.
func FuzzNotesOnPods(f *testing.F) {
	f.Add("3", "2", `{"containers":{"main":{"restarts":1,"imageID":"a","image":"one"}},"resize":true}`, int32(5))
	f.Add("-1", "9223372036854775808", "null", int32(0))
	f.Add("999999999999", "2147483648", `{"containers":null}`, int32(-1))
	f.Fuzz(func(t *testing.T, replaced, restarted, note string, count int32) {
		w := fixture.Seen(fixture.Set("db"))
		pod := children.BuildPod(w.Settings, facts.SpecRevision(w), "aaaaaaaaaa")
		pod.Annotations = map[string]string{v1alpha1.AnnotationReplacements: replaced, v1alpha1.AnnotationRestarts: restarted, v1alpha1.AnnotationInPlace: note}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: max(0, count)}}
		m := &facts.Member{Pod: pod}
		if n := m.Restarts(); n < 0 || n > max(0, count) {
			t.Errorf("m.restarts() is %d with restart count %d", n, count)
		}
		if n, wait := m.Replacements(), facts.Backoff(w, m); n < 0 || wait < 0 || wait > time.Hour {
			t.Errorf("the backoff after %d replacements is %s", n, wait)
		}
		if n := rules.SuccessorOf(w, m).Replacements; n < 1 {
			t.Errorf("the number of the successor is %d", n)
		}
		data, _ := children.DataOf(facts.SpecRevision(w))
		todo := rules.ChangeImages(pod.DeepCopy(), data, data)
		text, err := json.Marshal(todo)
		if err != nil {
			t.Fatal(err)
		}
		pod.Annotations[v1alpha1.AnnotationInPlace] = string(text)
		if again := rules.ChangeImages(pod, data, data); !apiequality.Semantic.DeepEqual(todo, again) {
			t.Errorf("%s is decoded as %v, want %v", text, again, todo)
		}
	})
}
