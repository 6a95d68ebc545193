package webhooks_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
)

// evicted is an eviction of rss-db-0, a primary whose budget blocks it, and the API server that the
// webhook reads.
type evicted struct {
	*simulation.Cluster
	pod    *corev1.Pod
	set    *v1alpha1.ReplicatedStatefulSet
	budget *policyv1.PodDisruptionBudget
	req    admission.Request
	inside string // delete options of the Eviction
	writes int
	fails  error
}

// Apply stores the book.
func (e *evicted) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	e.writes++
	if e.fails == nil {
		e.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "book"}, Data: obj.(*corev1apply.ConfigMapApplyConfiguration).Data})
	}
	return e.fails
}

func (e *evicted) book() map[string]string {
	var book corev1.ConfigMap
	if e.Get(context.Background(), client.ObjectKey{Namespace: "operators", Name: "book"}, &book) != nil {
		return nil
	}
	return book.Data
}

// asked returns the webhook's response at that time.
func (e *evicted) asked(now time.Time) admission.Response {
	e.req.Object.Raw = []byte(`{"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {` + e.inside + `}}`)
	h := &webhooks.EvictionHandler{Live: e, Writer: e, Book: types.NamespacedName{Namespace: "operators", Name: "book"}, Now: func() time.Time { return now }}
	return h.Handle(context.Background(), e.req)
}

func evictionOf(changes ...func(*evicted)) *evicted {
	set := spec.WithDefaults(fixture.SetOf(3, 1))
	set.Status.Members = v1alpha1.Members{Primary: []string{"rss-db-0"}, Secondary: []string{"rss-db-1", "rss-db-2"}}
	e := &evicted{Cluster: simulation.New(fixture.Noon), pod: fixture.Pod(0).Pod, set: set, budget: children.BuildPrimaryBudget(set, 1)}
	e.pod.Labels = spec.Merged(e.pod.Labels, map[string]string{v1alpha1.LabelManaged: v1alpha1.True, v1alpha1.LabelRole: v1alpha1.RolePrimary})
	e.req.AdmissionRequest = admissionv1.AdmissionRequest{Namespace: "ns", Name: "rss-db-0", UserInfo: authenticationv1.UserInfo{Username: "descheduler"}}
	for _, change := range changes {
		change(e)
	}
	for _, object := range []client.Object{e.pod, e.set, e.budget} {
		e.Put(object)
	}
	return e
}

// TestEvictionsOfPrimariesAreAnswered tests RS-82: evictions that the budget blocks are refused
// with a helpful message and recorded; others are not.
func TestEvictionsOfPrimariesAreAnswered(t *testing.T) {
	const refused, told = "refused", "recorded"
	for _, r := range []struct {
		name   string
		change func(*evicted)
		want   string
	}{
		{"a primary", func(*evicted) {}, refused + " " + told},
		{"a primary by its UID", func(e *evicted) { e.inside = `"preconditions": {"uid": "u0"}` }, refused + " " + told},
		{"a former pod of the same name, by its UID", func(e *evicted) { e.inside = `"preconditions": {"uid": "old"}` }, ""},
		{"a dry run of the request", func(e *evicted) { e.req.DryRun = ptr.To(true) }, refused},
		{"a dry run in deleteOptions", func(e *evicted) { e.inside = `"dryRun": ["All"]` }, refused},
		{"a request that cannot be recorded", func(e *evicted) { e.fails = errors.New("no") }, refused},
		{"a secondary", func(e *evicted) { e.pod.Labels[v1alpha1.LabelRole] = v1alpha1.RoleSecondary }, ""},
		{"a foreign pod", func(e *evicted) { delete(e.pod.Labels, v1alpha1.LabelManaged) }, ""},
		{"a pod with the labels of a primary that is not primary", func(e *evicted) { e.set.Status.Members.Primary = []string{"rss-db-1"} }, ""},
		{"a terminating pod", func(e *evicted) { e.pod.DeletionTimestamp = ptr.To(metav1.NewTime(fixture.Noon)) }, ""},
		{"a failed pod", func(e *evicted) { e.pod.Status.Phase = corev1.PodFailed }, ""},
		{"an unready pod, which its budget may allow", func(e *evicted) { e.pod.Status.Conditions = nil }, told},
		{"a pod whose budget allows a disruption", func(e *evicted) { e.budget.Status.DisruptionsAllowed = 1 }, ""},
		{"a pod without a budget", func(e *evicted) { e.budget.Name = "other" }, ""},
		{"a pod without a set", func(e *evicted) { e.set.Name = "other" }, ""},
		{"a missing pod", func(e *evicted) { e.req.Name = "rss-db-7" }, ""},
	} {
		t.Run(r.name, func(t *testing.T) {
			g, e := NewWithT(t), evictionOf(r.change)
			var got []string
			answer := e.asked(fixture.Noon)
			if !answer.Allowed {
				got = append(got, refused)
				g.Expect(answer.Result.Code).To(BeEquivalentTo(429))
				g.Expect(answer.Result.Message).To(HavePrefix("rss-db-0 is a primary of ReplicatedStatefulSet db: handing over to rss-db-1 or rss-db-2 first."))
			}
			if book := e.book(); len(book) > 0 {
				got = append(got, told)
				g.Expect(book).To(Equal(map[string]string{"u0": `{"namespace":"ns","pod":"rss-db-0","set":"db","at":"2026-03-01T12:00:00Z","by":"descheduler"}`}))
				g.Expect(e.writes).To(Equal(1))
			}
			g.Expect(strings.Join(got, " ")).To(Equal(r.want))
		})
	}
}

// TestTheBookOfEvictionsIsBounded tests RS-83: repeated evictions cause few writes, and old entries
// are removed.
func TestTheBookOfEvictionsIsBounded(t *testing.T) {
	g, e := NewWithT(t), evictionOf()
	for range 10 {
		g.Expect(e.asked(fixture.Noon).Allowed).To(BeFalse())
	}
	g.Expect(e.writes).To(Equal(1))
	e.asked(fixture.Noon.Add(spec.EvictionNoted - 1))
	g.Expect(e.writes).To(Equal(1))
	e.asked(fixture.Noon.Add(spec.EvictionNoted))
	g.Expect(e.writes).To(Equal(2))
	e.req.UserInfo.Username = strings.Repeat("x", 1000)
	e.asked(fixture.Noon.Add(2 * spec.EvictionNoted))
	g.Expect(len(e.book()["u0"])).To(BeNumerically("<", 300))

	entries := map[types.UID]facts.Entry{}
	of := func(namespace string, i int) bool {
		return webhooks.AddEntry(entries, types.UID(fmt.Sprint(namespace, i)), facts.Entry{Namespace: namespace, At: fixture.Noon.Add(time.Duration(i) * time.Millisecond)})
	}
	for i := range 1000 {
		g.Expect(of("flood", i)).To(Equal(i < webhooks.MaxEntries), "a namespace has at most maxEntries entries")
	}
	g.Expect(of("quiet", 0)).To(BeTrue())
	g.Expect(entries).To(HaveLen(webhooks.MaxEntries))
	g.Expect(entries).To(And(HaveKey(types.UID("quiet0")), Not(HaveKey(types.UID("flood0"))), HaveKey(types.UID("flood1"))), "the oldest entry of the namespace with the most entries is not replaced")
	for i := range 1000 {
		of("second", i)
		of("flood", 1000+i)
	}
	g.Expect(entries).To(And(HaveLen(webhooks.MaxEntries), HaveKey(types.UID("quiet0"))), "an entry of a namespace with few entries is replaced")

	late := facts.Entry{Namespace: "quiet", At: fixture.Noon.Add(spec.EvictionEvery + 2*time.Second)}
	g.Expect(webhooks.AddEntry(entries, "late", late)).To(BeTrue())
	g.Expect(entries).To(Equal(map[types.UID]facts.Entry{"late": late}))
}

// TestN11EvictionsMoveARoleSeldom tests N11: a requester who may evict pods, but not delete them,
// can move the role of a set once in five minutes.
func TestN11EvictionsMoveARoleSeldom(t *testing.T) {
	g, e := NewWithT(t), evictionOf()
	e.asked(fixture.Noon)
	next := evictionOf(func(e *evicted) { e.pod.UID = "u1" })
	next.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "book"}, Data: e.book()})
	for _, after := range []time.Duration{time.Second, spec.EvictionFor, spec.EvictionEvery - time.Second} {
		answer := next.asked(fixture.Noon.Add(after))
		g.Expect(answer.Allowed).To(BeFalse())
		g.Expect(answer.Result.Message).To(HaveSuffix("evictions cause at most one handover in 5m0s, next at 12:05:00"), after)
		g.Expect(next.book()).To(HaveLen(1), "the request is recorded")
	}
	g.Expect(next.asked(fixture.Noon.Add(spec.EvictionEvery)).Result.Message).To(ContainSubstring("handing over"))
	g.Expect(next.book()).To(And(HaveLen(1), HaveKey("u1")))
	other := facts.Entry{Namespace: "ns", Set: "other", At: fixture.Noon}
	g.Expect(webhooks.WaitsUntil(map[types.UID]facts.Entry{"u0": {Namespace: "ns", Set: "db", At: fixture.Noon}}, "u9", other)).To(BeZero(), "a request for another set delays the handover")
	other = facts.Entry{Namespace: "else", Set: "db", At: fixture.Noon}
	g.Expect(webhooks.WaitsUntil(map[types.UID]facts.Entry{"u0": {Namespace: "ns", Set: "db", At: fixture.Noon}}, "u9", other)).To(BeZero(), "a request in another namespace delays the handover")
}

// TestNoTokenNoEvictions tests RS-83: without a token, which identifies the API server, the
// eviction endpoint serves no request.
func TestNoTokenNoEvictions(t *testing.T) {
	for token, want := range map[string]int{"secret": http.StatusOK, "": http.StatusNotFound} {
		answer := httptest.NewRecorder()
		next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		webhooks.OnlyWith(func() string { return token }, next).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, webhooks.EvictionPath, nil))
		if answer.Code != want {
			t.Errorf("token %q: %d, want %d", token, answer.Code, want)
		}
	}
}
