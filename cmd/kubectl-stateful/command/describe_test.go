package command

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
)

// ofPostgreSQL makes the recorded set one of PostgreSQL.
func ofPostgreSQL(o *rssv1alpha1.ReplicatedStatefulSet) {
	o.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "orders"}
	o.Spec = rssv1alpha1.ReplicatedStatefulSetSpec{
		Application: &rssv1alpha1.ApplicationPolicy{Type: rssv1alpha1.ApplicationPostgreSQL, CredentialsSecret: "passwords"},
		Pod: rssv1alpha1.PodPolicy{
			Containers:           []corev1.Container{{Name: "postgresql", Image: "docker.io/library/postgres:17"}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}},
		},
	}
	o.Status.Agent = &rssv1alpha1.AgentStatus{Image: "registry/operator:1", Mount: rssv1alpha1.AgentImageVolume}
}

func TestRS144DescribeFilledPrintsAManifest(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	x.set(ofPostgreSQL)
	code, out, fault := x.run("describe", "--filled", "rss/db")
	g.Expect(code).To(BeZero(), fault)
	var printed rssv1alpha1.ReplicatedStatefulSet
	g.Expect(yaml.UnmarshalStrict([]byte(out), &printed)).To(Succeed())
	stored := now(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db")
	g.Expect(printed.Spec).To(Equal(application.Filled(stored).Spec))
	g.Expect(printed.Spec.Application).To(BeNil())
	g.Expect(printed.Kind).To(Equal("ReplicatedStatefulSet"))
	g.Expect(printed.APIVersion).To(Equal("clusterlabs.org/v1alpha1"))
	g.Expect(printed.Name).To(Equal("db"))
	g.Expect(printed.Annotations).To(Equal(map[string]string{"team": "orders"}))
	g.Expect(printed.UID).To(BeEmpty())
	g.Expect(printed.Status).To(BeZero())
}

func TestDescribeFilledIsRefused(t *testing.T) {
	for _, row := range []struct {
		name, want string
		args       []string
		change     func(*rssv1alpha1.ReplicatedStatefulSet)
	}{
		{"without the flag", "set --filled, or use kubectl describe rss db", []string{"describe", "rss/db"}, ofPostgreSQL},
		{"another kind", "only a ReplicatedStatefulSet can have spec.application", []string{"describe", "--filled", "stc/db"}, ofPostgreSQL},
		{"before the agent is recorded", "has not recorded the agent of db yet", []string{"describe", "--filled", "rss/db"}, func(o *rssv1alpha1.ReplicatedStatefulSet) {
			ofPostgreSQL(o)
			o.Status.Agent = nil
		}},
		{"a missing set", `"other" not found`, []string{"describe", "--filled", "rss/other"}, ofPostgreSQL},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := NewWithT(t)
			x := at(t, "rss.yaml")
			x.set(row.change)
			code, _, fault := x.run(row.args...)
			g.Expect(code).To(Equal(1))
			g.Expect(fault).To(ContainSubstring(row.want))
		})
	}
}
