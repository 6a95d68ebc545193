package spec_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/spec"
)

func texts(errs field.ErrorList) (out []string) {
	for _, e := range errs {
		out = append(out, e.Error())
	}
	return out
}

func TestV11Advice(t *testing.T) {
	at := "spec.template.spec."
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.StatefulClusterSpec)
		want   []string
	}{
		{"no warnings", func(*v1alpha1.StatefulClusterSpec) {}, nil},
		{"a hostname for all members", func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Hostname = "db" },
			[]string{at + "hostname: all members have the same hostname; remove it, and the hostname of each pod is its name"}},
		{"a hostname with a serviceName", func(s *v1alpha1.StatefulClusterSpec) { s.ServiceName, s.Template.Spec.Hostname = "peers", "db" },
			[]string{at + "hostname: has no effect: with serviceName set, the hostname of each pod is its name; remove it"}},
		{"a nodeName for all members", func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.NodeName = "n1" },
			[]string{at + "nodeName: bypasses the scheduler: all members run on node n1, and so do replacements when the node is lost; remove it, or use nodeSelector or affinity"}},
		{"pods that always restart", func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.RestartPolicy = corev1.RestartPolicyAlways }, nil},
		{"pods that may end", func(s *v1alpha1.StatefulClusterSpec) {
			s.Template.Spec.RestartPolicy, s.Template.Spec.ActiveDeadlineSeconds = corev1.RestartPolicyNever, new(int64(60))
		}, []string{
			at + "restartPolicy: with Never, the pod may end when a container ends; its member is then lost and replaced with empty claims; remove it, or set Always",
			at + "activeDeadlineSeconds: each pod is terminated after 60 seconds; its member is then lost and replaced with empty claims; remove it"}},
	} {
		if got := spec.Advise(&fixture.Set("db").Change(r.change).StatefulCluster); !slices.Equal(got, r.want) {
			t.Errorf("V11 %s: %q, want %q", r.name, got, r.want)
		}
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("a", 53)
	update := func(unavailable, surge string) func(*v1alpha1.StatefulCluster) {
		return func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: ptr.To(intstr.Parse(unavailable)), MaxSurge: ptr.To(intstr.Parse(surge))}
		}
	}
	claims := func(change func(*v1alpha1.StatefulClusterSpec)) func(*v1alpha1.StatefulCluster) {
		return func(s *v1alpha1.StatefulCluster) { change(&s.Spec) }
	}
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.StatefulCluster)
		want   string // "" if it is accepted
	}{
		{"a valid set", func(*v1alpha1.StatefulCluster) {}, ""},
		{"SC-1 a template without labels", func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels = nil }, ""},
		{"SC-28 a selector that is missing", func(s *v1alpha1.StatefulCluster) { s.Spec.Selector = nil },
			`spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"SC-28 a selector that is empty", func(s *v1alpha1.StatefulCluster) { s.Spec.Selector = &metav1.LabelSelector{} },
			`spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`},
		{"a selector of expressions", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{"db"}}}}
		}, ""},
		{"a selector with an unknown operator", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
		}, `spec.selector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`},
		{"SC-28 a selector that the template does not match", func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels["app"] = "x" },
			`spec.template.metadata.labels: Invalid value: {"app":"x"}: must match spec.selector; add the selector's labels, or leave the labels out to get the selector's matchLabels`},
		{"SC-28 negative replicas", func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = ptr.To(int32(-1)) }, `spec.replicas: Invalid value: -1: must be 0 or more`},
		{"a name with the max length", func(s *v1alpha1.StatefulCluster) { s.Name = long[:52] }, ""},
		{"SC-28 a name too long for its pods", func(s *v1alpha1.StatefulCluster) { s.Name = long },
			`metadata.name: Invalid value: "` + long + `": must be no more than 52 characters: pods add 11 for their id, and a hostname has at most 63; choose a shorter name`},
		{"a name with a dot", func(s *v1alpha1.StatefulCluster) { s.Name = "d.b" }, `metadata.name: Invalid value: "d.b": must not contain dots`},
		{"a label of the operator in the template", func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels[v1alpha1.LabelMember] = "x" },
			`spec.template.metadata.labels[enge.me/member]: Forbidden: the operator sets this label; remove it`},
		{"a label of the operator in the selector, for a template without labels", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Labels, s.Spec.Selector.MatchLabels[v1alpha1.LabelCluster] = nil, "x"
		}, `spec.template.metadata.labels[enge.me/cluster]: Forbidden: the operator sets this label; remove it`},
		{"SC-28 two claims with the same name", claims(func(s *v1alpha1.StatefulClusterSpec) {
			s.VolumeClaimTemplates = append(s.VolumeClaimTemplates, fixture.VolumeClaimTemplate("data", "1Gi"))
		}), `spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`},
		{"a claim without a name", claims(func(s *v1alpha1.StatefulClusterSpec) { s.VolumeClaimTemplates[0].Name = "" }),
			`spec.volumeClaimTemplates[0].metadata.name: Required value: the claim is mounted under this name`},
		{"a claim whose name is invalid for a volume", claims(func(s *v1alpha1.StatefulClusterSpec) { s.VolumeClaimTemplates[0].Name = "Data" }),
			`spec.volumeClaimTemplates[0].metadata.name: Invalid value: "Data": ` + notALabel},
		{"a claim with storage 0", claims(func(s *v1alpha1.StatefulClusterSpec) { s.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("0") }),
			`spec.volumeClaimTemplates[0].spec.resources.requests.storage: Invalid value: "0": must be more than 0, for example 1Gi`},
		{"SC-15 a claim and a volume with the same name", claims(func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Volumes = []corev1.Volume{{Name: "data"}} }),
			`spec.template.spec.volumes[0].name: Invalid value: "data": a volume claim template has this name too; rename one of them`},
		{"maxUnavailable 0 and maxSurge 0", update("0", "0"),
			`spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0": must not be 0 unless maxSurge is 1 or more; with both 0, no member could be updated`},
		{"maxUnavailable 0% and maxSurge 0%", update("0%", "0%"),
			`spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0%": must not be 0 unless maxSurge is 1 or more; with both 0, no member could be updated`},
		{"maxUnavailable 0 and maxSurge 1", update("0", "1"), ""},
		{"rollingUpdate with OnDelete", func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy = v1alpha1.UpdateStrategy{Type: v1alpha1.OnDeleteStrategy, RollingUpdate: &v1alpha1.RollingUpdate{}}
		}, `spec.updateStrategy.rollingUpdate: Forbidden: only allowed with type RollingUpdate; remove it or change the type`},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := fixture.Set("db")
			r.change(&s.StatefulCluster)
			if got := strings.Join(texts(spec.Validate(spec.WithDefaults(&s.StatefulCluster))), "\n"); got != r.want {
				t.Errorf("problem is\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
}

func TestValidateDrains(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.StatefulCluster)
		want   string // "" if it is accepted
	}{
		{"SC-47 ReplaceFirst with nodeName in the template", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.OnEviction, s.Spec.Template.Spec.NodeName = v1alpha1.EvictionReplacesFirst, "n1"
		}, `spec.template.spec.nodeName: Forbidden: with replacement.onEviction ReplaceFirst, new members must not start on a cordoned node; remove it, or use nodeSelector or affinity`},
		{"SC-47 ReplaceFirst with a toleration of cordons", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.OnEviction, s.Spec.Template.Spec.Tolerations = v1alpha1.EvictionReplacesFirst, []corev1.Toleration{{Key: "x"}, {Operator: corev1.TolerationOpExists}}
		}, `spec.template.spec.tolerations: Forbidden: with replacement.onEviction ReplaceFirst, new members must not start on a cordoned node, but one of these tolerations tolerates taint node.kubernetes.io/unschedulable; remove it, or list the taints to tolerate`},
		{"SC-47 ReplaceFirst with a toleration of Karpenter's taint", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.OnEviction = v1alpha1.EvictionReplacesFirst
			s.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "karpenter.sh/disrupted", Operator: corev1.TolerationOpExists}}
		}, `spec.template.spec.tolerations: Forbidden: with replacement.onEviction ReplaceFirst, new members must not start on a cordoned node, but one of these tolerations tolerates taint karpenter.sh/disrupted; remove it, or list the taints to tolerate`},
		{"SC-47 ReplaceFirst with a toleration of another taint", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.OnEviction, s.Spec.Template.Spec.Tolerations = v1alpha1.EvictionReplacesFirst, []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}, ""},
		{"a toleration of cordons without ReplaceFirst", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.NodeName, s.Spec.Template.Spec.Tolerations = "n1", []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}, ""},
	} {
		s := fixture.Set("db")
		r.change(&s.StatefulCluster)
		if got := strings.Join(texts(spec.Validate(spec.WithDefaults(&s.StatefulCluster))), "\n"); got != r.want {
			t.Errorf("%s: problem is\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestBounds(t *testing.T) {
	containers := func(n int) func(*v1alpha1.StatefulCluster) {
		return func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers = make([]corev1.Container, n) }
	}
	templates := func(n int) func(*v1alpha1.StatefulCluster) {
		return func(s *v1alpha1.StatefulCluster) {
			for i := range n {
				s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates[:i], fixture.VolumeClaimTemplate(fmt.Sprint("v", i), "1Gi"))
			}
		}
	}
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.StatefulCluster)
		want   string // "" if it is accepted
	}{
		{"the max number of replicas", func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = ptr.To(int32(20000)) }, ""},
		{"more than the max number of replicas, from an old object or /scale", func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = ptr.To(int32(20001)) },
			`spec.replicas: Invalid value: 20001: must be no more than 20000; lower it, and create another set for the rest`},
		{"the max number of containers", containers(32), ""},
		{"more than the max number of containers", containers(33), `spec.template.spec.containers: Invalid value: 33: there may be at most 32; remove the others`},
		{"the max number of claims", templates(32), ""},
		{"more than the max number of claims", templates(33), `spec.volumeClaimTemplates: Invalid value: 33: there may be at most 32; remove the others`},
		{"a selector with too many values", func(s *v1alpha1.StatefulCluster) {
			s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: append(make([]string, 32), "db")}}
		}, `spec.selector.matchExpressions[0].values: Invalid value: 33: there may be at most 32; remove the others`},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := fixture.Set("db")
			r.change(&s.StatefulCluster)
			if got := strings.Join(texts(spec.Validate(spec.WithDefaults(&s.StatefulCluster))), "\n"); got != r.want {
				t.Errorf("problem is\n  %s\nwant\n  %s", got, r.want)
			}
		})
	}
}

// A spec may be as large as kubectl can apply, and no larger.
func TestALongSpec(t *testing.T) {
	s := spec.WithDefaults(&fixture.Set("db").StatefulCluster)
	arg := func(n int) string {
		s.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("x", n)}
		return spec.Problem(s)
	}
	text, err := json.Marshal(s.Spec)
	if err != nil {
		t.Fatal(err)
	}
	room := bounds.Bytes - len(text) - len(`,"args":[""]`)
	if got := arg(room); got != "" {
		t.Error(got)
	}
	if got, want := arg(room+1), "spec: Invalid value: has 262145 bytes as JSON, and may have at most 262144; move scripts and configuration to the image or a ConfigMap"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

const notALabel = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
	"(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

func TestAllFaultsAreNamedAtOnce(t *testing.T) {
	s := fixture.Set("d.b").Replicas(-1)
	s.Spec.VolumeClaimTemplates[0].Name = ""
	want := `[metadata.name: Invalid value: "d.b": must not contain dots, spec.replicas: Invalid value: -1: must be 0 or more, ` +
		`spec.volumeClaimTemplates[0].metadata.name: Required value: the claim is mounted under this name]`
	if got := spec.Problem(spec.WithDefaults(&s.StatefulCluster)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestValidateChange(t *testing.T) {
	for _, r := range []struct {
		name   string
		change func(*v1alpha1.StatefulClusterSpec)
		want   []string
	}{
		{"no change", func(*v1alpha1.StatefulClusterSpec) {}, nil},
		{"a changed template", func(s *v1alpha1.StatefulClusterSpec) { s.Template.Spec.Containers[0].Image = "two" }, nil},
		{"SC-29 a claim with more storage", func(s *v1alpha1.StatefulClusterSpec) {
			s.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("2Gi")
		}, nil},
		{"SC-29 a changed selector", func(s *v1alpha1.StatefulClusterSpec) { s.Selector.MatchLabels["app"] = "x" },
			[]string{`spec.selector: Forbidden: is immutable; delete the StatefulCluster (its claims stay under the Retain policy) and create another`}},
		{"SC-29 a claim with less storage", func(s *v1alpha1.StatefulClusterSpec) {
			s.VolumeClaimTemplates[0].Spec.Resources = fixture.Storage("512Mi")
		},
			[]string{`spec.volumeClaimTemplates[0].spec.resources.requests.storage: Forbidden: 512Mi is less than the present 1Gi; volumes cannot shrink`}},
		{"SC-29 a renamed claim", func(s *v1alpha1.StatefulClusterSpec) { s.VolumeClaimTemplates[0].Name = "logs" },
			[]string{`spec.volumeClaimTemplates[0]: Forbidden: claim template "logs" is new; claim templates cannot be added or renamed after creation`,
				`spec.volumeClaimTemplates: Forbidden: claim template "data" is missing; claim templates cannot be removed or renamed after creation`}},
		{"SC-29 an added claim", func(s *v1alpha1.StatefulClusterSpec) {
			s.VolumeClaimTemplates = append(s.VolumeClaimTemplates, fixture.VolumeClaimTemplate("logs", "1Gi"))
		}, []string{`spec.volumeClaimTemplates[1]: Forbidden: claim template "logs" is new; claim templates cannot be added or renamed after creation`}},
		{"SC-29 a removed claim", func(s *v1alpha1.StatefulClusterSpec) { s.VolumeClaimTemplates = nil },
			[]string{`spec.volumeClaimTemplates: Forbidden: claim template "data" is missing; claim templates cannot be removed or renamed after creation`}},
		{"SC-29 a changed storage class of a claim", func(s *v1alpha1.StatefulClusterSpec) {
			s.VolumeClaimTemplates[0].Spec.StorageClassName = ptr.To("fast")
		},
			[]string{`spec.volumeClaimTemplates[0]: Forbidden: only the requested storage and the volumeAttributesClassName of claim template "data" may change, and the storage may only grow`}},
	} {
		now := fixture.Set("db")
		r.change(&now.Spec)
		if got := texts(spec.ValidateChange(&fixture.Set("db").StatefulCluster, &now.StatefulCluster)); !slices.Equal(got, r.want) {
			t.Errorf("%s:\n  %q\nwant\n  %q", r.name, got, r.want)
		}
	}
}
