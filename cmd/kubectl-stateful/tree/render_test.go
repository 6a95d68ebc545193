package tree

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

func TestAParkedMemberIsShown(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	status := &rssv1alpha1.ReplicatedStatefulSetStatus{Maintenance: []rssv1alpha1.MemberMaintenance{
		{Pod: "rss-db-1", State: rssv1alpha1.MaintenanceParked, Since: metav1.NewTime(now.Add(-3 * time.Hour))},
		{Pod: "rss-db-2", State: rssv1alpha1.MaintenanceHandingOver, Since: metav1.NewTime(now)},
	}}
	notes := func(pod string) []string {
		return replicatedNotes(status, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}}, "secondary", now)
	}
	g := NewWithT(t)
	g.Expect(notes("rss-db-0")).To(BeEmpty())
	g.Expect(notes("rss-db-1")).To(Equal([]string{"is parked (spec.maintenance), for 3h"}))
	g.Expect(notes("rss-db-2")).To(Equal([]string{"hands over its role, then is parked (spec.maintenance), for 0s"}))
}

func TestAMessageIsShownOnce(t *testing.T) {
	g := NewWithT(t)
	var said []string
	for _, b := range conditionBranches([]Condition{
		{Type: "Degraded", Status: "True", Reason: "CanaryFailed", Message: "version 3 was marked stale", Matters: true},
		{Type: "Available", Status: "True", Reason: "Fine", Message: "all run"},
		{Type: "Ready", Status: "False", Reason: "CanaryFailed", Message: "version 3 was marked stale", Matters: true},
		{Type: "Stalled", Status: "True", Reason: "Other", Message: "all run", Matters: true},
	}) {
		said = append(said, b.cells[0].text+" "+b.cells[1].text)
	}
	g.Expect(said).To(Equal([]string{
		"Degraded=True CanaryFailed: version 3 was marked stale",
		"Ready=False CanaryFailed: see Degraded",
		"Stalled=True Other: all run",
	}))
}
