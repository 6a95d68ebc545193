package spec_test

import (
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// templated sets spec.pod.template from YAML.
func templated(text string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			panic(err)
		}
		s.Spec.Pod.Template = &runtime.RawExtension{Raw: raw}
	}
}

// everything is a template with fields that spec and spec.pod lack, and some that they have.
const everything = `
metadata:
  labels: {tier: data}
  annotations: {note: here}
spec:
  priorityClassName: high
  runtimeClassName: gvisor
  schedulerName: mine
  enableServiceLinks: false
  shareProcessNamespace: true
  hostAliases: [{ip: 10.0.0.1, hostnames: [old]}]
  dnsConfig: {options: [{name: ndots, value: "2"}]}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  readinessGates: [{conditionType: example.com/known}]
  affinity: {nodeAffinity: {}}
  nodeSelector: {disk: fast}
  tolerations: [{key: db, operator: Exists}]
  securityContext: {fsGroup: 5}
  containers:
  - {name: exporter, image: "exporter:1", volumeMounts: [{name: extra, mountPath: /extra}]}
  initContainers:
  - {name: prepare, image: "prepare:1"}
  volumes:
  - {name: extra, emptyDir: {}}
`

// TestTemplate tests RS-84: every field of a pod template reaches the pods, together with those of
// spec and spec.pod. The golden files of TestChildren show that a set without a template has the
// same pods, and so the same hash, as before the field existed.
func TestTemplate(t *testing.T) {
	set := fixture.Read(t, "seed.yaml")
	templated(everything)(set)
	if errs := spec.Validate(set); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	made := children.BuildStatefulSet(set, 3, children.Hashes{})
	golden.Check(t, filepath.Join("..", "testdata", "template-children.yaml"), fixture.Manifest(t, made))
	if again := children.BuildStatefulSet(set, 3, children.Hashes{}); fixture.Manifest(t, again) != fixture.Manifest(t, made) {
		t.Error("two builds of the same set differ")
	}
}

// TestWhatOfATemplateRestartsAMember tests RS-84: a template that is only written differently
// restarts no member; a changed one does.
func TestWhatOfATemplateRestartsAMember(t *testing.T) {
	hash := func(text string) string {
		return fixture.Template(t, "seed.yaml", templated(text)).Annotations[v1alpha1.AnnotationTemplate]
	}
	none := fixture.Template(t, "seed.yaml", func(*v1alpha1.ReplicatedStatefulSet) {}).Annotations[v1alpha1.AnnotationTemplate]
	for _, r := range []struct {
		name, one, other string
		same             bool
	}{
		{"another order of fields", "spec: {priorityClassName: a, schedulerName: b}", "spec: {schedulerName: b, priorityClassName: a}", true},
		{"null values", "spec: {priorityClassName: a}", "{metadata: {creationTimestamp: null}, spec: {priorityClassName: a, affinity: null}}", true},
		{"a priority", "spec: {priorityClassName: a}", "spec: {priorityClassName: b}", false},
		{"a label", "metadata: {labels: {a: b}}", "metadata: {labels: {a: c}}", false},
		{"an annotation", "metadata: {annotations: {a: b}}", "metadata: {annotations: {a: c}}", false},
		{"a container", "spec: {containers: [{name: x, image: a}]}", "spec: {containers: [{name: x, image: b}]}", false},
	} {
		if same := hash(r.one) == hash(r.other); same != r.same {
			t.Errorf("%s: the hashes are equal: %v", r.name, same)
		}
	}
	for _, empty := range []string{"{}", "spec: {}", "spec: {containers: []}", "{metadata: {}, spec: {affinity: null}}"} {
		if hash(empty) != none {
			t.Errorf("the empty template %q changes the hash", empty)
		}
	}
}

// TestValidateTemplate tests RS-85: a field that is unknown, reserved, or set in two places is
// rejected at the path that the user wrote.
func TestValidateTemplate(t *testing.T) {
	said := func(with ...change) change {
		return func(s *v1alpha1.ReplicatedStatefulSet) {
			for _, c := range with {
				c(s)
			}
		}
	}
	const at = "spec.pod.template"
	const twice = " also sets it; set it in only one place"
	for _, f := range []faulty{
		{"every field", templated(everything), ""},
		{"an empty template", templated("{}"), ""},
		{"an unknown field", templated("spec: {prioritiClassName: high}"), at + `.spec.prioritiClassName: Forbidden: unknown field of a pod template; correct its spelling (see kubectl explain pod.spec), or remove it`},
		{"an unknown field of a container", templated("spec: {containers: [{name: a, image: b, comand: [x]}]}"), at + `.spec.containers[0].comand: Forbidden: unknown field of a pod template; correct its spelling (see kubectl explain pod.spec), or remove it`},
		{"a patch directive", templated("spec: {containers: [{$patch: delete, name: dummy}]}"), at + `.spec.containers[0].$patch: Forbidden: unknown field of a pod template; correct its spelling (see kubectl explain pod.spec), or remove it`},
		{"a field of another type", templated("spec: {priorityClassName: 7}"), at + `: Invalid value: must be a pod template with metadata and spec, like that of a StatefulSet: json: cannot unmarshal number into Go struct field PodSpec.spec.priorityClassName of type string`},
		{"a list", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte("[]")}
		}, at + `: Invalid value: must be a pod template with metadata and spec, like that of a StatefulSet: json: cannot unmarshal array into Go value of type v1.PodTemplateSpec`},
		{"a quantity with a huge exponent", templated("spec: {containers: [{name: a, image: b, resources: {limits: {memory: 1e999999999}}}]}"), at + `: Invalid value: has a quantity that is too large: it may have at most 64 characters, and an exponent of at most two digits`},
		{"a duplicate field", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{"schedulerName":"a","schedulerName":"b"}}`)}
		}, at + `.spec.schedulerName: Duplicate value`},
		{"a name", templated("metadata: {name: a}"), at + `.metadata: Forbidden: may have only labels and annotations: names, owners and finalizers of pods are set by the StatefulSet and the operator; remove the other fields`},
		{"a finalizer", templated("metadata: {finalizers: [a/b]}"), at + `.metadata: Forbidden: may have only labels and annotations: names, owners and finalizers of pods are set by the StatefulSet and the operator; remove the other fields`},
		{"a reserved label", templated("metadata: {labels: {rss-x: yes it is}}"), at + `.metadata.labels[rss-x]: ` + ofOurs},
		{"a reserved annotation", templated("metadata: {annotations: {clusterlabs.org/rules: yes it is}}"), at + `.metadata.annotations[clusterlabs.org/rules]: Forbidden: annotations that begin with clusterlabs.org/ are reserved for the operator; remove it`},
		{"a host name", templated("spec: {hostname: a}"), at + `.spec.hostname: Forbidden: the StatefulSet sets the hostname of each pod, and members find each other by it; remove it`},
		{"another host name", templated("spec: {hostnameOverride: a}"), at + `.spec.hostnameOverride: Forbidden: the StatefulSet sets the hostname of each pod, and members find each other by it; remove it`},
		{"a subdomain", templated("spec: {subdomain: a}"), at + `.spec.subdomain: Forbidden: the operator sets it to the Service of all members; remove it`},
		{"the deprecated serviceAccount", templated("spec: {serviceAccount: a}"), at + `.spec.serviceAccount: Forbidden: is deprecated; use serviceAccountName`},
		{"a grace period", templated("spec: {terminationGracePeriodSeconds: 0}"), at + `.spec.terminationGracePeriodSeconds: Forbidden: use spec.pod.terminationGracePeriodSeconds, which has a default`},
		{"serviceAccountName in two places", said(templated("spec: {serviceAccountName: a}"), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.ServiceAccountName = "b" }), at + `.spec.serviceAccountName: Forbidden: spec.serviceAccountName` + twice},
		{"affinity in two places", said(templated("spec: {affinity: {}}"), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Affinity = &corev1.Affinity{} }), at + `.spec.affinity: Forbidden: spec.affinity` + twice},
		{"securityContext in two places", said(templated("spec: {securityContext: {}}"), func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.SecurityContext = &corev1.PodSecurityContext{}
		}), at + `.spec.securityContext: Forbidden: spec.pod.securityContext` + twice},
		{"automountServiceAccountToken in two places", said(templated("spec: {automountServiceAccountToken: true}"), func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.AutomountServiceAccountToken = new(false)
		}), at + `.spec.automountServiceAccountToken: Forbidden: spec.pod.automountServiceAccountToken` + twice},
		{"a label in two places", said(templated("metadata: {labels: {a: b}}"), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Labels = map[string]string{"a": "b"} }), at + `.metadata.labels[a]: Forbidden: spec.pod.labels` + twice},
		{"a nodeSelector label in two places", said(templated("spec: {nodeSelector: {a: b}}"), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.NodeSelector = map[string]string{"a": "b"} }), at + `.spec.nodeSelector[a]: Forbidden: spec.nodeSelector or spec.pod.nodeSelector` + twice},
		{"the container of the commands in two places", templated("spec: {containers: [{name: dummy, image: other}]}"), at + `.spec.containers[0].name: Duplicate value: "dummy; define a container in only one place: in spec.pod, where commands run, or here"`},
		{"a container without an image", templated("spec: {containers: [{name: a, image: b}, {name: c}]}"), at + `.spec.containers[1].image: Required value: each container needs an image`},
		{"a reserved volume", templated("spec: {volumes: [{name: podinfo, emptyDir: {}}]}"), at + `.spec.volumes[0].name: Invalid value: "podinfo": this name is reserved for a volume of the operator; rename it`},
		{"a volume in two places", said(withVolumes("a"), templated("spec: {volumes: [{name: b, emptyDir: {}}, {name: a, emptyDir: {}}]}")), at + `.spec.volumes[1].name: Duplicate value: "a"`},
		{"a volume with the name of a claim", said(withClaims("a"), templated("spec: {volumes: [{name: a, emptyDir: {}}]}")), `spec.pod.volumeClaimTemplates[0].metadata.name: Invalid value: "a": a volume has the same name; rename one of them`},
		{"a mount at a reserved path", templated("spec: {containers: [{name: a, image: b, volumeMounts: [{name: a, mountPath: /etc/podinfo}]}]}"), at + `.spec.containers[0].volumeMounts[0].mountPath: Invalid value: "/etc/podinfo": the operator mounts its own volume there; use another path`},
	} {
		t.Run(f.name, f.check)
	}
}

// TestBoundsOfATemplate tests RS-85: items of a template count for the bounds and do not raise
// them.
func TestBoundsOfATemplate(t *testing.T) {
	many := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, "{name: c"+strings.Repeat("x", i)+", image: b}")
		}
		return "spec: {containers: [" + strings.Join(names, ", ") + "]}"
	}
	set := fixture.Read(t, "seed.yaml")
	templated(many(31))(set)
	if got := said(spec.Validate(set)); got != "" {
		t.Error(got)
	}
	templated(many(32))(set)
	if got := said(spec.Validate(set)); got != "spec.pod.containers: Invalid value: 33: there may be at most 32; remove the others" {
		t.Error(got)
	}
	templated("spec: {schedulerName: " + strings.Repeat("x", 256<<10) + "}")(set)
	if got := said(spec.Validate(set)); !strings.Contains(got, "as JSON, and may have at most 262144") {
		t.Error(got)
	}
	var unknown []string
	for i := range 100 {
		unknown = append(unknown, "x"+strings.Repeat("y", i)+": z")
	}
	templated("{" + strings.Join(unknown, ", ") + "}")(set)
	if got := strings.Count(said(spec.Validate(set)), "unknown field of a pod template"); got != spec.MaxUnknown {
		t.Errorf("%d unknown fields are listed", got)
	}
}

// TestPlacesOfATemplate tests RS-85: the API server's errors about the pod refer to the paths that
// the user wrote.
func TestPlacesOfATemplate(t *testing.T) {
	set := fixture.Read(t, "seed.yaml")
	templated(everything)(set)
	for path, want := range map[string]string{
		"spec.template.spec.priorityClassName":                    "spec.pod.template.spec.priorityClassName",
		"spec.template.spec.topologySpreadConstraints[0].maxSkew": "spec.pod.template.spec.topologySpreadConstraints[0].maxSkew",
		"spec.template.spec.containers[0].image":                  "spec.pod.containers[0].image",
		"spec.template.spec.containers[1].image":                  "spec.pod.template.spec.containers[0].image",
		"spec.template.spec.tolerations[0].key":                   "spec.pod.template.spec.tolerations[0].key",
		"spec.template.spec.volumes[0].name":                      "spec.pod.template.spec.volumes[0].name",
		"spec.template.spec.securityContext.fsGroup":              "spec.pod.securityContext.fsGroup",
		"spec.template.metadata.labels":                           "spec.pod.labels",
		"spec.ports[0].port":                                      "spec.servicePorts[0].port",
	} {
		if got := (spec.Places{Set: set}).OfChild(path); got != want {
			t.Errorf("%s is mapped to %s, want %s", path, got, want)
		}
	}
	set.Spec.Pod.Template = nil
	if got := (spec.Places{Set: set}).OfChild("spec.template.spec.containers[1].image"); got != "spec.pod.containers[1].image" {
		t.Error(got)
	}
}
