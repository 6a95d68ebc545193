package command

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

func TestWhyShowsWhatTheOperatorDid(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	_, out, _ := x.run("why", "rss/db")
	golden(t, "rss.why.txt", out)
	_, out, _ = x.run("why", "rss/db", "--last=1")
	g.Expect(out).To(ContainSubstring("MemberFailed"))
	g.Expect(out).NotTo(ContainSubstring("Promoted"), "an older event comes first")
	_, out, _ = x.run("why", "rss/db", "--output=json")
	var found struct{ Decisions, Conditions []map[string]any }
	g.Expect(json.Unmarshal([]byte(out), &found)).To(Succeed())
	g.Expect(found.Decisions).To(HaveLen(4), "decisions that are also events are merged")
	g.Expect(found.Decisions[3]).To(HaveKeyWithValue("count", float64(3)), "equal events of two sources are merged")
	g.Expect(found.Conditions).To(HaveLen(6))
}

func TestWhyShowsDecisionsWhoseEventsAreGone(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	g.Expect(x.c.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace("default"))).To(Succeed())
	_, out, _ := x.run("why", "rss/db")
	golden(t, "rss.why-recorded.txt", out)
	x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Decisions[0].Message = "\x1b[31mFAKE" })
	_, out, _ = x.run("why", "rss/db")
	g.Expect(out).To(ContainSubstring("FAKE"))
	g.Expect(out).NotTo(ContainSubstring("\x1b"))
	x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Decisions = nil })
	_, out, _ = x.run("why", "rss/db")
	g.Expect(out).To(ContainSubstring("Decisions, the newest last:\n  none\n"))
}
