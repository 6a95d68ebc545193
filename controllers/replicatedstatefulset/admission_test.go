package replicatedstatefulset_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// refusal is a patch of the seed's manifest and the expected error message.
type refusal struct {
	patch string // YAML, merged into the manifest
	want  string
}

const prefix = `ReplicatedStatefulSet.clusterlabs.org "example" is invalid: `

// patched returns the seed's manifest with a patch. It is unstructured, so that unknown fields are
// sent too, which a typed Go client would drop.
func patched(namespace, patch string) *unstructured.Unstructured {
	GinkgoHelper()
	tree := map[string]any{}
	text, err := yaml.Marshal(newSet(namespace))
	Expect(err).NotTo(HaveOccurred())
	Expect(yaml.Unmarshal(text, &tree)).To(Succeed())
	delete(tree, "status")
	change := map[string]any{}
	Expect(yaml.Unmarshal([]byte(patch), &change)).To(Succeed())
	merge(tree, change)
	return &unstructured.Unstructured{Object: tree}
}

// merge applies a JSON merge patch.
func merge(tree, change map[string]any) {
	for key, value := range change {
		below, isMap := value.(map[string]any)
		child, hasMap := tree[key].(map[string]any)
		switch {
		case value == nil:
			delete(tree, key)
		case isMap && hasMap:
			merge(child, below)
		default:
			tree[key] = value
		}
	}
}

func badCreates() []TableEntry {
	const (
		duration = ` is not a duration; use a format like 30s, 15m, 1h30m, 1D2h or 500ms, or a number of seconds like 8`
		argv     = `has no program; set it and its arguments, for example ["/status.sh"]`
		volume   = `podinfo, tls-peer and tls-server are volumes of the operator; rename yours`
	)
	return []TableEntry{
		Entry("RS-5 negative replicas", refusal{"spec: {replicas: -1}", `spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`}),
		Entry("RS-5 primaries above replicas", refusal{"spec: {primaries: 4}", `spec.primaries: Invalid value: may not be more than replicas; lower it, or remove it to use replicas`}),
		Entry("RS-5 primaries of 0", refusal{"spec: {primaries: 0}", `spec.primaries: Invalid value: may be 0 only with replicas 0; to stop the set, set replicas to 0 and keep primaries`}),
		Entry("RS-5 negative primaries", refusal{"spec: {primaries: -1}", `spec.primaries: Invalid value: -1: spec.primaries in body should be greater than or equal to 0`}),
		Entry("RS-6 sequence missing", refusal{"spec: {pod: {commands: {sequence: null}}}", `spec.pod.commands: Invalid value: sequence is missing; add the command that prints the data version of a member`}),
		Entry("RS-6 status missing", refusal{"spec: {pod: {commands: {status: null}}}", `spec.pod.commands: Invalid value: status is missing; add the command that reports with its exit code whether a member runs`}),
		Entry("RS-6 stop missing", refusal{"spec: {pod: {commands: {stop: null}}}", `spec.pod.commands: Invalid value: stop is missing; add the command that stops a member`}),
		Entry("RS-6 primary missing", refusal{"spec: {pod: {commands: {primary: null}}}", `spec.pod.commands: Invalid value: primary is missing; add the command that starts a member as primary`}),
		Entry("RS-6 no commands at all", refusal{"spec: {pod: {commands: null}}", `spec.pod.commands: Invalid value: sequence is missing`}),
		Entry("RS-6 an unknown command", refusal{"spec: {pod: {commands: {start: {command: [/x]}}}}", `spec.pod.commands: Invalid value: supports only sequence, status, stop, primary, seed, secondary, promote, demote, leave and preStop; remove or rename the others`}),
		Entry("RS-6 an empty command", refusal{"spec: {pod: {commands: {stop: {command: []}}}}", `spec.pod.commands[stop].command: Invalid value: ` + argv}),
		Entry("RS-6 a command with an empty program", refusal{"spec: {pod: {commands: {stop: {command: ['']}}}}", `spec.pod.commands[stop].command: Invalid value: ` + argv}),
		Entry("RS-6 no container", refusal{"spec: {pod: {containers: []}}", `spec.pod.containers: Invalid value: a pod must have at least one container, in which commands run`}),
		Entry("RS-6 no image", refusal{"spec: {pod: {containers: [{name: dummy}]}}", `spec.pod.containers: Invalid value: each container needs an image`}),
		Entry("RS-6 no image for an init container", refusal{"spec: {pod: {initContainers: [{name: init}]}}", `spec.pod.initContainers: Invalid value: each container needs an image`}),
		Entry("RS-6 label app", refusal{"metadata: {labels: {app: x}}", prefix + `metadata.labels[app]: Forbidden: label app and labels that begin with rss or clusterlabs.org/ are reserved for the operator; remove or rename it`}),
		Entry("RS-6 a label that begins with rss", refusal{"metadata: {labels: {rss-x: x}}", prefix + `metadata.labels[rss-x]: Forbidden: label app and labels that begin with rss or clusterlabs.org/ are reserved for the operator; remove or rename it`}),
		Entry("RS-6 a reserved label on the pods", refusal{"spec: {pod: {labels: {clusterlabs.org/role: primary}}}", `spec.pod.labels: Invalid value: label app and labels that start with rss or clusterlabs.org/ are reserved for the operator; remove or rename them`}),
		Entry("a reserved annotation on the pods", refusal{"spec: {pod: {annotations: {clusterlabs.org/rules: x}}}", `spec.pod.annotations: Invalid value: annotations that start with clusterlabs.org/ are reserved for the operator; remove them`}),
		Entry("RS-31 a reconcileInterval of abc", refusal{"spec: {reconcileInterval: abc}", `spec.reconcileInterval: Invalid value: "abc":` + duration}),
		Entry("RS-31 an empty reconcileInterval", refusal{"spec: {reconcileInterval: ''}", `spec.reconcileInterval: Invalid value: "":` + duration}),
		Entry("RS-31 a failureWindow of abc", refusal{"spec: {failureWindow: abc}", `spec.failureWindow: Invalid value: "abc":` + duration}),
		Entry("RS-31 a timeout of abc", refusal{"spec: {pod: {commands: {stop: {timeout: abc}}}}", `spec.pod.commands[stop].timeout: Invalid value: "abc":` + duration}),
		Entry("RS-31 an empty timeout", refusal{"spec: {pod: {commands: {stop: {timeout: ''}}}}", `spec.pod.commands[stop].timeout: Invalid value: "":` + duration}),
		Entry("RS-31 a duration that overflows", refusal{"spec: {reconcileInterval: 999Y}", prefix + `spec.reconcileInterval: Invalid value: "999Y": is too long; the max is 292 years`}),
		Entry("RS-66 an unknown evictionPolicy", refusal{"spec: {evictionPolicy: Forbid}", `spec.evictionPolicy: Unsupported value: "Forbid": supported values: "Handover", "Allow"`}),
		Entry("W9 a recreateUnresponsiveAfter of abc", refusal{"spec: {failover: {recreateUnresponsiveAfter: abc}}", `spec.failover.recreateUnresponsiveAfter: Invalid value: "abc":` + duration}),
		Entry("W12 a restartPrimary of Always", refusal{"spec: {failover: {restartPrimary: Always}}", `spec.failover.restartPrimary: Unsupported value: "Always": supported values: "Never", "IfNewest"`}),
		Entry("RS-70 an evictionTimeout of abc", refusal{"spec: {evictionTimeout: abc}", `spec.evictionTimeout: Invalid value: "abc":` + duration}),
		Entry("RS-69 a budget with minAvailable and maxUnavailable", refusal{"spec: {podDisruptionBudget: {minAvailable: 1, maxUnavailable: 1}}", `spec.podDisruptionBudget.minAvailable: Invalid value: may not be set together with maxUnavailable; remove one of them`}),
		Entry("RS-69 a disabled budget with a number", refusal{"spec: {podDisruptionBudget: {disabled: true, maxUnavailable: 1}}", `spec.podDisruptionBudget.disabled: Invalid value: disables the budget; remove minAvailable and maxUnavailable, or disabled`}),
		Entry("RS-69 a negative budget", refusal{"spec: {podDisruptionBudget: {minAvailable: -1}}", `spec.podDisruptionBudget.minAvailable: Invalid value: -1: spec.podDisruptionBudget.minAvailable in body should be greater than or equal to 0`}),
		Entry("RS-69 a budget in percent", refusal{"spec: {podDisruptionBudget: {maxUnavailable: 50%}}", `spec.podDisruptionBudget.maxUnavailable: Invalid value: "string": spec.podDisruptionBudget.maxUnavailable in body must be of type integer: "string"`}),
		Entry("RS-119 a minReadySeconds of -1", refusal{"spec: {minReadySeconds: -1}", `spec.minReadySeconds: Invalid value: -1: spec.minReadySeconds in body should be greater than or equal to 0`}),
		Entry("RS-119 a minReadySeconds of more than a day", refusal{"spec: {minReadySeconds: 86401}", `spec.minReadySeconds: Invalid value: 86401: spec.minReadySeconds in body should be less than or equal to 86400`}),
		Entry("RS-93 an unknown retention policy", refusal{"spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Recycle}}", `spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Recycle": supported values: "Retain", "Delete"`}),
		Entry("RS-92 a member of another set", refusal{"spec: {maintenance: [rss-example-1-0]}", prefix + `spec.maintenance[0]: Invalid value: "rss-example-1-0": the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; remove or correct it`}),
		Entry("RS-92 an ordinal with a leading zero", refusal{"spec: {maintenance: [rss-example-01]}", `spec.maintenance: Invalid value: the members of a set are named`}),
		Entry("RS-92 an ordinal above the maximum", refusal{"spec: {maintenance: [rss-example-1000]}", `spec.maintenance: Invalid value: the members of a set are named`}),
		Entry("RS-92 an empty name", refusal{"spec: {maintenance: ['']}", `spec.maintenance: Invalid value: the members of a set are named rss-<name of the set>-<ordinal from 0 to 999>; remove or correct the others`}),
		Entry("RS-92 a duplicate member", refusal{"spec: {maintenance: [rss-example-1, rss-example-1]}", `spec.maintenance[1]: Duplicate value: "rss-example-1"`}),
		Entry("RS-61 an unknown container", refusal{"spec: {pod: {container: db}}", `spec.pod.container: Invalid value: is not in pod.containers; use the name of a container, or remove it to use the first`}),
		Entry("volume podinfo", refusal{"spec: {pod: {volumes: [{name: podinfo, emptyDir: {}}]}}", `spec.pod.volumes: Invalid value: ` + volume}),
		Entry("a volume with the name of a secret's volume", refusal{"spec: {secrets: [a], pod: {volumes: [{name: secret-a, emptyDir: {}}]}}", `spec.pod.volumes: Invalid value: a volume has the name secret-<name> of a volume for spec.secrets; rename it`}),
		Entry("a duplicate volume", refusal{"spec: {pod: {volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}}", `spec.pod.volumes[1]: Duplicate value: `}),
		Entry("a duplicate secret", refusal{"spec: {secrets: [a, a]}", `spec.secrets[1]: Duplicate value: "a"`}),
		Entry("a secret whose name is invalid for a volume", refusal{"spec: {secrets: [a.b]}", `spec.secrets: Invalid value: a volume secret-<name> is named after each: at most 56 lower-case letters, digits and hyphens, with no hyphen at either end`}),
		Entry("a node port", refusal{"spec: {servicePorts: [{port: 1, nodePort: 30000}]}", `spec.servicePorts: Invalid value: these Services have no node ports; create a separate Service that selects app: <name> and rss-active-member: "true"`}),
		Entry("RS-85 an unknown field of the template", refusal{"spec: {pod: {template: {spec: {prioritiClassName: high}}}}", prefix + `spec.pod.template.spec.prioritiClassName: Forbidden: unknown field of a pod template; correct its spelling (see kubectl explain pod.spec), or remove it`}),
		Entry("RS-85 a template that is a list", refusal{"spec: {pod: {template: []}}", `spec.pod.template: Invalid value: "array": spec.pod.template in body must be of type object: "array"`}),
		Entry("RS-85 a host name", refusal{"spec: {pod: {template: {spec: {hostname: a}}}}", prefix + `spec.pod.template.spec.hostname: Forbidden: the StatefulSet sets the hostname of each pod, and members find each other by it; remove it`}),
		Entry("RS-85 a field of the template that the API server refuses", refusal{"spec: {pod: {template: {spec: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}}}}", prefix + `spec.pod.template.spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero`}),
		Entry("RS-85 a container of the template that the API server refuses", refusal{"spec: {pod: {template: {spec: {containers: [{name: a, image: x, imagePullPolicy: Sometimes}]}}}}", prefix + `spec.pod.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes"`}),
		Entry("RS-87 RSS_EPOCH in preStop", refusal{"spec: {pod: {commands: {preStop: {command: [a, $(RSS_EPOCH)]}}}}", prefix + `spec.pod.commands[preStop].command[1]: Invalid value: the kubelet runs preStop, and does not substitute the epoch; remove $(RSS_EPOCH) and $(RSS_CREATED)`}),
		Entry("RS-60 a name of 49 characters", refusal{"metadata: {name: " + strings.Repeat("x", 49) + "}", `the name may have at most 48 characters, because rss-<name>-<hash> is the value of a label of pods, with at most 63`}),
		Entry("RS-60 a name that is invalid for a Service", refusal{"metadata: {name: 1a.b}", `the name must start with a letter and contain only lower-case letters, digits and hyphens, because Services are named after it`}),
		Entry("an order of a missing member", refusal{"metadata: {annotations: {clusterlabs.org/seed-from: rss-example-3}}", prefix + `metadata.annotations[clusterlabs.org/seed-from]: Invalid value: "rss-example-3": is not the name of a member; the members are rss-example-0 to rss-example-2`}),
		Entry("RS-8 a pod that the API server refuses", refusal{"spec: {pod: {containers: [{name: dummy, image: x, imagePullPolicy: Sometimes}]}}", prefix + `spec.pod.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`}),
		Entry("RS-8 a toleration that the API server refuses", refusal{"spec: {tolerations: [{key: a, operator: Near}]}", prefix + `spec.tolerations[0].operator: Unsupported value: "Near"`}),
		Entry("two ports without names", refusal{"spec: {servicePorts: [{port: 1}, {port: 2}]}", prefix + `[spec.servicePorts[0].name: Required value, spec.servicePorts[1].name: Required value]`}),
		Entry("a claim that the API server refuses", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: data}, spec: {resources: {requests: {storage: 1Gi}}}}]}}", prefix + `spec.pod.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required`}),
	}
}

var _ = Describe("admission", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("refuses", func(ctx SpecContext, r refusal) {
		err := user.Create(ctx, patched(ns, r.patch))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(clean(err)).To(server.Mentions(r.want))
	}, badCreates())

	DescribeTable("accepts", func(ctx SpecContext, patch string) {
		Expect(user.Create(ctx, patched(ns, patch), client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
	},
		Entry("RS-5 RS-37 a stopped set with primaries", "spec: {replicas: 0, primaries: 2}"),
		Entry("RS-5 0 primaries of 0 replicas", "spec: {replicas: 0, primaries: 0}"),
		Entry("RS-31 a reconcileInterval of 15m", "spec: {reconcileInterval: 15m}"),
		Entry("RS-31 a reconcileInterval of 15m10s", "spec: {reconcileInterval: 15m10s}"),
		Entry("RS-31 a reconcileInterval of 10s", "spec: {reconcileInterval: 10s}"),
		Entry("RS-31 a reconcileInterval of 8", "spec: {reconcileInterval: '8'}"),
		Entry("RS-31 a reconcileInterval of 1D2h", "spec: {reconcileInterval: 1D2h}"),
		Entry("RS-31 a reconcileInterval of 500ms", "spec: {reconcileInterval: 500ms}"),
		Entry("RS-66 RS-70 an evictionTimeout of an hour", "spec: {evictionPolicy: Handover, evictionTimeout: 1h}"),
		Entry("W9 W12 a failover policy", "spec: {failover: {recreateUnresponsiveAfter: 2m, restartPrimary: IfNewest}}"),
		Entry("RS-69 a disabled budget", "spec: {podDisruptionBudget: {disabled: true}}"),
		Entry("RS-69 a budget with maxUnavailable", "spec: {podDisruptionBudget: {maxUnavailable: 2}}"),
		Entry("RS-93 claims with the policy Delete", "spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}}"),
		Entry("RS-92 an existing member and a future one in maintenance", "spec: {maintenance: [rss-example-0, rss-example-999]}"),
		Entry("RS-60 a name of 48 characters", "metadata: {name: "+strings.Repeat("x", 48)+"}"),
		Entry("every command", "spec: {pod: {commands: {secondary: {command: [/a]}, promote: {command: [/a]}, demote: {command: [/a]}, preStop: {command: [/a]}}}}"),
		Entry("all other fields of a set", `spec:
  seeding: Quorum
  failureThreshold: 5
  failureWindow: 1h
  paused: true
  chaosLevel: 3
  servicePorts: [{name: a, port: 1}, {name: a-udp, port: 1, protocol: UDP}]
  serviceAccountName: x
  secrets: [a, b]
  imagePullSecrets: [{name: c}]
  resources: {limits: {memory: 1Gi}}
  nodeSelector: {a: b}
  tolerations: [{operator: Exists}]
  affinity: {nodeAffinity: {}}
  TLS: {static: {member: {peerSecret: a, serverSecret: b}, operatorSecret: c}}
  ruleSelector: {matchLabels: {a: b}}
  pod:
    container: dummy
    labels: {a: b}
    annotations: {a: b}
    nodeSelector: {a: b}
    automountServiceAccountToken: false
    securityContext: {runAsUser: 1}
    terminationGracePeriodSeconds: 5
    template:
      metadata: {labels: {c: d}}
      spec: {priorityClassName: high, hostAliases: [{ip: 10.0.0.1, hostnames: [a]}], containers: [{name: more, image: x}]}
    initContainers: [{name: init, image: x}]
    volumes: [{name: x, emptyDir: {}}]
    volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`),
	)

	DescribeTable("RS-5 warns of", func(ctx SpecContext, patch, want string) {
		heard := &apiserver.Warned{}
		Expect(heard.Client(server).Create(ctx, patched(ns, patch))).To(Succeed())
		Expect(heard.Texts).To(ConsistOf(want))
	},
		Entry("one member", "spec: {replicas: 1}", "spec.replicas is 1: if this member is lost, no other member can take over"),
		Entry("two members", "spec: {replicas: 2}", "spec.replicas is 2: if one member is lost, no majority is left; the min to survive a loss is 3"),
		Entry("a preStop command that is not used", "spec: {pod: {commands: {preStop: {command: [/a]}}, containers: [{name: dummy, image: x, lifecycle: {preStop: {sleep: {seconds: 1}}}}]}}",
			"spec.pod.commands[preStop] is ignored: the container has its own preStop hook"),
		Entry("V20 a reconcileInterval below the minimum", "spec: {reconcileInterval: 10ms}", "spec.reconcileInterval is 10ms, which is replaced by 100ms, the min; set 100ms or more"),
		Entry("V20 an annotation with a typo", "metadata: {annotations: {clusterlabs.org/seedfrom: rss-example-0}}",
			"metadata.annotations[clusterlabs.org/seedfrom] is unknown and ignored; the operator supports clusterlabs.org/seed-from and clusterlabs.org/switchover-to"),
	)

	// A feature gate that is off in all tested versions of Kubernetes stands for a field that is
	// newer than the API server: the API server drops both.
	It("K1 warns of a field that the API server drops", func(ctx SpecContext) {
		heard := &apiserver.Warned{}
		Expect(heard.Client(server).Create(ctx, patched(ns, "spec: {pod: {containers: [{name: dummy, image: x, lifecycle: {stopSignal: SIGUSR1, preStop: {exec: {command: [stop]}}}}]}}"))).To(Succeed())
		Expect(heard.Texts).To(ConsistOf(HavePrefix("spec.pod.containers[0].lifecycle.stopSignal: the API server dropped this field")))
	})

	It("V20 warns of an order with a typo in an update", func(ctx SpecContext) {
		set, heard := newSet(ns), &apiserver.Warned{}
		Expect(user.Create(ctx, set)).To(Succeed())
		set.Annotations = map[string]string{"clusterlabs.org/switchover": "rss-example-0"}
		Expect(heard.Client(server).Update(ctx, set)).To(Succeed())
		Expect(heard.Texts).To(ConsistOf(HavePrefix("metadata.annotations[clusterlabs.org/switchover] is unknown and ignored")))
	})

	It("warns of a StatefulSet that is refused temporarily", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: ns},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/statefulsets.apps": resource.MustParse("0")}}}
		Expect(user.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
		Expect(user.Status().Update(ctx, quota)).To(Succeed())
		Eventually(func() []string {
			heard := &apiserver.Warned{}
			Expect(heard.Client(server).Create(ctx, newSet(ns), client.DryRunAll)).To(Succeed())
			return heard.Texts
		}).Should(ContainElement("StatefulSet rss-example could not be tested by a dry run, and cannot be created until this is resolved: a quota of the namespace is exceeded; raise it or free some of it"))
	})
})

var _ = Describe("a change", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	const immutable = `spec.pod.volumeClaimTemplates: Invalid value: only the requested storage and the volumeAttributesClassName may change, and the storage may only grow; for anything else delete the ReplicatedStatefulSet (its claims stay) and create another`

	DescribeTable("is refused", func(ctx SpecContext, r refusal) {
		set := newSet(ns, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(clean(apply(ctx, set, r.patch))).To(server.Mentions(r.want))
	},
		Entry("RS-88 of a claim to a smaller one", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 512Mi}}}}]}}",
			`spec.pod.volumeClaimTemplates[0].spec.resources.requests.storage: Forbidden: 512Mi is less than the present 1Gi; volumes cannot shrink`}),
		Entry("RS-88 of a claim's name", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: logs}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}", immutable}),
		Entry("RS-88 of a claim's access mode", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}]}}", immutable}),
		Entry("RS-88 of a claim's class", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}}]}}", immutable}),
		Entry("RS-88 of a claim's labels", refusal{"spec: {pod: {volumeClaimTemplates: [{metadata: {name: data, labels: {a: b}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}",
			`spec.pod.volumeClaimTemplates[0]: Forbidden: only the requested storage and the volumeAttributesClassName of claim template "data" may change, and the storage may only grow`}),
		Entry("of the claims to none", refusal{"spec: {pod: {volumeClaimTemplates: null}}", immutable}),
		Entry("RS-85 of the template to an unknown field", refusal{"spec: {pod: {template: {spec: {containers: [{name: a, image: b, comand: [x]}]}}}}",
			`spec.pod.template.spec.containers[0].comand: Forbidden: unknown field of a pod template`}),
		Entry("of the image to none", refusal{"spec: {pod: {containers: [{name: dummy, image: ''}]}}", `spec.pod.containers: Invalid value: each container needs an image`}),
		Entry("of imagePullPolicy to a value that the API server refuses", refusal{"spec: {pod: {containers: [{name: dummy, image: x, imagePullPolicy: Sometimes}]}}", `spec.pod.containers[0].imagePullPolicy: Unsupported value: "Sometimes"`}),
		Entry("of an order to a missing member", refusal{"metadata: {annotations: {clusterlabs.org/switchover-to: rss-example-7}}",
			`metadata.annotations[clusterlabs.org/switchover-to]: Invalid value: "rss-example-7": is not the name of a member; the members are rss-example-0 to rss-example-2`}),
		Entry("of a label to a reserved one", refusal{"metadata: {labels: {rss: x}}", `metadata.labels[rss]: Forbidden: label app and labels that begin with rss`}),
	)

	It("of other fields is accepted while a StatefulSet exists", func(ctx SpecContext) {
		set := newSet(ns)
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(user.Create(ctx, statefulSet(ns, set))).To(Succeed())
		Expect(apply(ctx, set, "spec: {pod: {containers: [{name: dummy, image: other}]}, replicas: 5}")).To(Succeed())
		Expect(apply(ctx, set, "metadata: {annotations: {clusterlabs.org/switchover-to: rss-example-4}}")).To(Succeed())
		Expect(apply(ctx, set, "spec: {replicas: 3}")).To(Succeed(), "an expired order must not block the update")
		Expect(apply(ctx, set, "spec: {pod: {template: {spec: {priorityClassName: high}}}}")).To(Succeed())
		Expect(apply(ctx, set, "metadata: {finalizers: [example.com/x]}")).To(Succeed())
		Expect(user.Delete(ctx, set)).To(Succeed())
		Expect(apply(ctx, set, "metadata: {finalizers: null}")).To(Succeed())
	})
})

// apply sends a merge patch, in YAML.
func apply(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, patch string) error {
	GinkgoHelper()
	text, err := yaml.YAMLToJSON([]byte(patch))
	Expect(err).NotTo(HaveOccurred())
	return user.Patch(ctx, set, client.RawPatch(types.MergePatchType, text))
}

// statefulSet returns a StatefulSet with the name that a set needs. It belongs to owner, or to no
// object.
func statefulSet(namespace string, owner *v1alpha1.ReplicatedStatefulSet) *appsv1.StatefulSet {
	labels := map[string]string{"app": "x"}
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "rss-example", Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}},
	}
	if owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("ReplicatedStatefulSet"))}
	}
	return s
}

var _ = Describe("RS-60 a name", func() {
	It("is refused while objects of another owner have it", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "example-primary", Namespace: ns}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "rss-example", Namespace: ns}}
		for kind, taken := range map[string]client.Object{"Service example-primary": service, "StatefulSet rss-example": statefulSet(ns, nil), "PodDisruptionBudget rss-example": budget} {
			Expect(user.Create(ctx, taken)).To(Succeed())
			Expect(clean(user.Create(ctx, newSet(ns)))).To(Equal(prefix + `metadata.name: Invalid value: "example": ` + kind + ` already exists and belongs to another object; choose another name, or delete it`))
			Expect(user.Delete(ctx, taken)).To(Succeed())
		}
		Expect(user.Create(ctx, newSet(ns))).To(Succeed())
	})

	It("RS-46 is accepted again while children of the deleted set still exist", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		set := newSet(ns)
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(user.Create(ctx, statefulSet(ns, set))).To(Succeed())
		Expect(user.Delete(ctx, set)).To(Succeed())
		Expect(user.Create(ctx, newSet(ns))).To(Succeed())
	})
})

var _ = Describe("RS-5 defaults", func() {
	It("are the API server's", func(ctx SpecContext) {
		set := newSet(newNamespace(ctx), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas, s.Spec.ReconcileInterval = nil, "" })
		Expect(user.Create(ctx, set)).To(Succeed())
		Expect(set.Spec).To(And(
			HaveField("Replicas", ptr.To(int32(3))), HaveField("Primaries", BeNil()), HaveField("ReconcileInterval", v1alpha1.Duration("1m")),
			HaveField("Seeding", v1alpha1.SeedingAll), HaveField("FailureThreshold", ptr.To(int32(2))), HaveField("FailureWindow", v1alpha1.Duration("10m")),
			HaveField("EvictionPolicy", v1alpha1.EvictionHandover), HaveField("EvictionTimeout", BeEmpty()), HaveField("PodDisruptionBudget", BeNil()),
			HaveField("Paused", false), HaveField("Pod.TerminationGracePeriodSeconds", ptr.To(int64(600)))))
		Expect(set.Spec.Pod.Commands["stop"].Timeout).To(Equal(v1alpha1.Duration("10m")))
		Expect(set.Spec.Pod.Commands["status"].Timeout).To(Equal(v1alpha1.Duration("60s")))
	})
})
