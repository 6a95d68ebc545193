package extendedstatefulset_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// refusal is a patch of the plain object, and the expected error message.
type refusal struct{ patch, want string }

func badCreates() []TableEntry {
	const (
		own    = "keys with prefix fissile.cloudfoundry.org/ are reserved for the operator; remove it"
		job    = "{spec: {template: {spec: {restartPolicy: %s, containers: [{name: a, image: a}]}}}}"
		pod    = "spec.template.spec.template."
		update = "spec.updateStrategy."
		notPos = "must be more than 0, for example 5m"
	)
	jobOf := func(policy string) string { return strings.ReplaceAll(job, "%s", policy) }
	return []TableEntry{
		Entry("a template that the API server refuses", refusal{"spec: {template: {spec: {template: {spec: {containers: [{name: web, imagePullPolicy: Sometimes}]}}}}}",
			pod + `spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`}),
		Entry("a variable that the API server rejects, after a variable of the operator", refusal{"spec: {template: {spec: {template: {spec: {containers: [{name: web, env: [{name: REPLICAS, value: x}, {name: A=B}]}]}}}}}",
			pod + `spec.containers[0].env[1].name: Invalid value`}),
		Entry("a mount of a missing volume", refusal{"spec: {template: {spec: {template: {spec: {containers: [{name: web, volumeMounts: [{name: a, mountPath: /a}]}]}}}}}",
			pod + `spec.containers[0].volumeMounts[0].name: Not found`}),
		Entry("no containers", refusal{"spec: {template: {spec: {template: {spec: {containers: [{name: web, $patch: delete}]}}}}}", pod + `spec.containers: Required value`}),
		Entry("no selector", refusal{"spec: {template: {spec: {selector: null}}}", `spec.template.spec.selector: Required value`}),
		Entry("an empty selector", refusal{"spec: {template: {spec: {selector: {matchLabels: null}}}}",
			`spec.template.spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`}),
		Entry("a selector that the pods do not match", refusal{"spec: {template: {spec: {selector: {matchLabels: {app: other}}}}}",
			pod + `metadata.labels: Invalid value: "app=web": does not match template.spec.selector, which is app=other; add its labels to the pods`}),
		Entry("a selector with a label of the operator", refusal{"spec: {template: {spec: {selector: {matchLabels: {fissile.cloudfoundry.org/version: '1'}}}}}",
			`spec.template.spec.selector.matchLabels[fissile.cloudfoundry.org/version]: Forbidden: ` + own}),
		Entry("a label of the operator on the pods", refusal{"spec: {template: {spec: {template: {metadata: {labels: {fissile.cloudfoundry.org/pod-active: active}}}}}}",
			pod + `metadata.labels[fissile.cloudfoundry.org/pod-active]: Forbidden: ` + own}),
		Entry("an annotation of the operator on the StatefulSets", refusal{"spec: {template: {metadata: {annotations: {fissile.cloudfoundry.org/version: '7'}}}}",
			`spec.template.metadata.annotations[fissile.cloudfoundry.org/version]: Forbidden: ` + own}),
		Entry("an invalid serviceName", refusal{"spec: {template: {spec: {serviceName: My_App}}}",
			`spec.template.spec.serviceName: Invalid value: "My_App": is not a valid Service name; use a letter, followed by at most 62 lower-case letters, digits and hyphens`}),
		Entry("spec.ordinals", refusal{"spec: {template: {spec: {ordinals: {start: 5}}}}",
			`spec.template.spec.ordinals.start: Forbidden: the operator uses it to move ordinals between versions; remove it`}),
		Entry("canaries of 0", refusal{"spec: {updateStrategy: {canaries: 0}}", update + `canaries: Invalid value: 0: spec.updateStrategy.canaries in body should be greater than or equal to 1`}),
		Entry("a canaryWatchTime of 0", refusal{"spec: {updateStrategy: {canaryWatchTime: 0s}}", update + `canaryWatchTime: Invalid value: "0s": ` + notPos}),
		Entry("a negative watch time", refusal{"spec: {updateStrategy: {updateWatchTime: -5m}}", update + `updateWatchTime: Invalid value: "-5m": spec.updateStrategy.updateWatchTime in body should match`}),
		Entry("a watch time without a unit", refusal{"spec: {updateStrategy: {canaryWatchTime: '60'}}", update + `canaryWatchTime: Invalid value: "60": spec.updateStrategy.canaryWatchTime in body should match`}),
		Entry("a watch time that overflows", refusal{"spec: {updateStrategy: {updateWatchTime: 9999999999h}}", update + `updateWatchTime: Invalid value: "9999999999h": spec.updateStrategy.updateWatchTime in body should match`}),
		Entry("a canaryWatchTime above updateWatchTime", refusal{"spec: {updateStrategy: {canaryWatchTime: 20m}}",
			update + `canaryWatchTime: Invalid value: may not be longer than updateWatchTime, which includes the canaries; shorten it, or lengthen updateWatchTime`}),
		Entry("Coexist with ReadWriteOnce claims", refusal{"spec: {updateStrategy: {handover: Coexist}, " + strings.TrimPrefix(stored, "spec: {"),
			update + `handover: Invalid value: "Coexist": two pods would share each claim of template "data", which is not ReadWriteMany; use PerOrdinal, or make it ReadWriteMany if the application allows two pods to share its data`}),
		Entry("an unknown handover", refusal{"spec: {updateStrategy: {handover: Sideways}}", update + `handover: Unsupported value: "Sideways": supported values: "Auto", "Coexist", "PerOrdinal"`}),
		Entry("a job with restartPolicy Always", refusal{"spec: {updateStrategy: {preUpdateJob: " + jobOf("Always") + "}}",
			update + `preUpdateJob.spec.template.spec.restartPolicy: Invalid value: "Always": must be Never or OnFailure: a Job whose pods are always restarted never ends`}),
		Entry("a job without restartPolicy", refusal{"spec: {updateStrategy: {postUpdateJob: " + jobOf("null") + "}}",
			update + `postUpdateJob.spec.template.spec.restartPolicy: Required value: set Never or OnFailure: by default pods are always restarted, so the Job would never end`}),
		Entry("a job with parallelism 0", refusal{"spec: {updateStrategy: {preUpdateJob: {spec: {parallelism: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}",
			update + `preUpdateJob.spec.parallelism: Invalid value: 0: must be 1 or more: a Job without pods never ends`}),
		Entry("a job that the API server refuses", refusal{"spec: {updateStrategy: {postUpdateJob: {spec: {backoffLimit: -1, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}",
			update + `postUpdateJob.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0`}),
		Entry("a duplicate zone", refusal{"spec: {zones: [a, b, a]}", `spec.zones[2]: Duplicate value: "a"`}),
		Entry("a zone without a name", refusal{"spec: {zones: [a, '']}", `spec.zones[1]: Invalid value: "": spec.zones[1] in body should be at least 1 chars long`}),
		Entry("a zone that is not a label value", refusal{"spec: {zones: [a b]}", `spec.zones[0]: Invalid value: "a b": is not a valid label value: `}),
		Entry("an invalid zoneNodeLabel", refusal{"spec: {zoneNodeLabel: a b}", `spec.zoneNodeLabel: Invalid value: "a b": is not a valid label key: `}),
		Entry("a probe of a missing container", refusal{"spec: {activePassiveProbes: {db: {exec: {command: [/x]}}}}",
			`spec.activePassiveProbes[db]: Invalid value: "db": is not the name of a container in template.spec.template.spec.containers; use the name of one of them`}),
		Entry("a probe without exec", refusal{"spec: {activePassiveProbes: {web: {}}}", `spec.activePassiveProbes.web.exec: Required value`}),
		Entry("a probe without a command", refusal{"spec: {activePassiveProbes: {web: {exec: {}}}}",
			`spec.activePassiveProbes[web].exec.command: Required value: set the program and its arguments, for example ["/active.sh"]`}),
		Entry("claims without a size", refusal{strings.Replace(stored, "resources: {requests: {storage: 1Gi}}", "", 1),
			`spec.template.spec.volumeClaimTemplates[0].spec.resources.requests.storage: Invalid value: "0": must be more than 0, for example 1Gi`}),
		Entry("claims that the API server refuses", refusal{strings.Replace(stored, "accessModes: [ReadWriteOnce], ", "", 1),
			`spec.template.spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required`}),
		Entry("a volume with the name of a claim template", refusal{strings.Replace(stored, "{template: {spec: {", "{template: {spec: {template: {spec: {volumes: [{name: data, emptyDir: {}}]}}, ", 1),
			pod + `spec.volumes[0].name: Invalid value: "data": a volume claim template has the same name; rename one of them`}),
		Entry("a volume that the API server rejects, after a claim template", refusal{strings.Replace(stored, "{template: {spec: {", "{template: {spec: {template: {spec: {volumes: [{name: B_C, emptyDir: {}}]}}, ", 1),
			pod + `spec.volumes[0].name: Invalid value`}),
	}
}

// v11Creates are rejected with an error for the invalid field only (V11).
func v11Creates() []TableEntry {
	const pod, update = "spec.template.spec.template.", "spec.updateStrategy."
	return []TableEntry{
		Entry("V11 a watch time in words, as the only error", refusal{"spec: {updateStrategy: {canaryWatchTime: five minutes}}", "only: " +
			update + `canaryWatchTime: Invalid value: "five minutes": spec.updateStrategy.canaryWatchTime in body should match '^([0-9]{1,6}([.][0-9]+)?(ns|us|ms|s|m|h))+$'`}),
		Entry("V11 restartPolicy Never in the pods", refusal{"spec: {template: {spec: {template: {spec: {restartPolicy: Never}}}}}",
			pod + `spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}),
		Entry("V11 activeDeadlineSeconds in the pods", refusal{"spec: {template: {spec: {template: {spec: {activeDeadlineSeconds: 60}}}}}",
			pod + `spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported`}),
	}
}

var _ = Describe("admission", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("rejects", func(ctx SpecContext, r refusal) {
		text := said(user.Create(ctx, object(ns, r.patch)))
		if want, only := strings.CutPrefix(r.want, "only: "); only {
			Expect(text).To(server.Says(invalid + want))
			return
		}
		Expect(strings.TrimPrefix(text, invalid)).To(Or(HavePrefix(r.want), HavePrefix("["+r.want), HavePrefix(server.Words(r.want)), HavePrefix(server.Words("["+r.want))))
		Expect(text).To(HavePrefix(invalid))
	}, badCreates(), v11Creates())

	It("rejects watch times of 0", func(ctx SpecContext) {
		const (
			canary = `spec.updateStrategy.canaryWatchTime: Invalid value: "0s": must be more than 0, for example 5m`
			update = `spec.updateStrategy.updateWatchTime: Invalid value: "0h0m": must be more than 0, for example 5m`
		)
		text := said(user.Create(ctx, object(ns, "spec: {updateStrategy: {canaryWatchTime: 0s, updateWatchTime: 0h0m}}")))
		// The API server reports the errors in either order.
		Expect(strings.TrimPrefix(text, invalid)).To(Or(HavePrefix(server.Words("["+canary+", "+update)), HavePrefix(server.Words("["+update+", "+canary))))
		Expect(text).To(HavePrefix(invalid))
	})

	DescribeTable("accepts with a warning", func(ctx SpecContext, patch string, want ...string) {
		Expect(create(ctx, object(ns, patch))).To(ConsistOf(want))
	},
		Entry("no warning for fields with an effect", `spec:
  scaling: {min: 1, max: 9, oddOnly: true}
  updateOnEnvChange: true
  configTracking: OwnerReference
  zones: [a, b]
  zoneNodeLabel: example.com/zone
  injectReplicasEnv: false
  activePassiveProbes: {web: {exec: {command: [/active]}, singleActive: true}}
  updateStrategy: {canaries: 3, retryCount: 2, updateNotReady: true, canaryWatchTime: 1h, updateWatchTime: 1h30m, handover: PerOrdinal}
  template:
    metadata: {labels: {a: b}, annotations: {a: b}}
    spec: {podManagementPolicy: Parallel, serviceName: web, minReadySeconds: 5, revisionHistoryLimit: 3, updateStrategy: {type: RollingUpdate}, ordinals: {start: 0}}`),
		Entry("no warning for Coexist without claims", "spec: {updateStrategy: {handover: Coexist}}"),
		Entry("no warning for Coexist with ReadWriteMany claims", "spec: {updateStrategy: {handover: Coexist}, "+strings.Replace(strings.TrimPrefix(stored, "spec: {"), "ReadWriteOnce", "ReadWriteMany", 1)),
		Entry("spec.az", "spec: {az: here}", "spec.az is ignored; list the zones in spec.zones"),
		Entry("a name in the template", "spec: {template: {metadata: {name: db}}}",
			"spec.template.metadata.name is ignored: the StatefulSets are named after the ExtendedStatefulSet and the version"),
		Entry("a namespace in the template", "spec: {template: {metadata: {namespace: other}}}",
			"spec.template.metadata.namespace is ignored: the StatefulSets are in the namespace of the ExtendedStatefulSet"),
		Entry("fields that only a StatefulSet supports", "spec: {template: {spec: {podManagementPolicy: OrderedReady, updateStrategy: {type: OnDelete}, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}}",
			"spec.template.spec.podManagementPolicy is ignored: pods are started and stopped in parallel",
			"spec.template.spec.updateStrategy applies only to restarts after configuration changes; a template change creates a new version, which follows spec.updateStrategy",
			"spec.template.spec.persistentVolumeClaimRetentionPolicy is ignored: claims are kept until you delete them"),
		Entry("V11 hostname and subdomain of the pods", "spec: {template: {spec: {template: {spec: {hostname: a, subdomain: b}}}}}",
			"spec.template.spec.template.spec: hostname and subdomain are ignored: the host name is the pod name or the name of the ordinal, and the subdomain is serviceName"),
		Entry("V11 nodeName of the pods", "spec: {template: {spec: {template: {spec: {nodeName: node-1}}}}}",
			"spec.template.spec.template.spec.nodeName assigns all pods to Node node-1 without the scheduler, so taints, resources and zones are not checked; use nodeSelector instead"),
		Entry("V6 pods that a policy rejects", "spec: {template: {spec: {template: {spec: {runtimeClassName: none}}}}}",
			"pods such as web-v1-0 cannot be created at present: a policy forbids it, or a referenced object such as a service account, "+
				"a priority class or a runtime class is missing; see the conditions of the object once it is created"),
		// A feature gate that is off in all tested Kubernetes versions simulates a field that is newer
		// than the API server. The API server drops the field in both cases.
		Entry("K1 a field that the API server drops", "spec: {template: {spec: {template: {spec: {containers: [{name: web, lifecycle: {stopSignal: SIGUSR1, preStop: {exec: {command: [stop]}}}}]}}}}}",
			"spec.template.spec.template.spec.containers[0].lifecycle.stopSignal: the API server dropped this field from the object created from it, because its Kubernetes "+
				"is too old or has the feature disabled. Remove the field, or upgrade the cluster"),
		Entry("fields of a job that the operator sets", "spec: {updateStrategy: {preUpdateJob: {spec: {suspend: true, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}",
			"spec.updateStrategy.preUpdateJob.spec: suspend and ttlSecondsAfterFinished are ignored: the operator sets them"),
	)

	It("accepts with a warning if a quota rejects the dry run", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: ns},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/statefulsets.apps": resource.MustParse("0")}}}
		Expect(user.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard}
		Expect(user.Status().Update(ctx, quota)).To(Succeed())
		Expect(create(ctx, object(ns))).To(ConsistOf("dry run of StatefulSet web-v1 failed, so it cannot be created at present: a quota of the namespace is exceeded; raise it or free some of it"))
	})

	It("creates no objects", func(ctx SpecContext) {
		jobs := "spec: {updateStrategy: {preUpdateJob: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}"
		Expect(create(ctx, object(ns, stored, jobs))).To(BeEmpty())
		for _, list := range []client.ObjectList{&appsv1.StatefulSetList{}, &batchv1.JobList{}, &corev1.PersistentVolumeClaimList{}} {
			Expect(user.List(ctx, list, client.InNamespace(ns))).To(Succeed())
			Expect(list).To(HaveField("Items", BeEmpty()))
		}
	})
})

var _ = Describe("a name", func() {
	const digits = "-v<version>"
	long := func(n int) string { return strings.Repeat("x", n) }
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("is rejected", func(ctx SpecContext, name, patch, want string) {
		err := user.Create(ctx, object(ns, "metadata: {name: "+name+"}", patch))
		Expect(said(err)).To(Equal(`ExtendedStatefulSet.fissile.cloudfoundry.org "` + name + `" is invalid: metadata.name: Invalid value: "` + name + `": ` + want))
	},
		Entry("that is too long", long(46), "{}", "may have at most 45 characters: its StatefulSets are named <name>"+digits+" and may have 52; choose a shorter name"),
		Entry("that is too long with zones", long(42), "spec: {zones: [a]}", "may have at most 41 characters: its StatefulSets are named <name>-z<index>"+digits+" and may have 52; choose a shorter name"),
		Entry("that is not a Service name", "a.b", "{}", "must start with a letter, contain only lower-case letters, digits and hyphens, and not end with a hyphen, because a Service has this name"),
		Entry("with the suffix of a zone", "web-z0", "{}", "may not end with -z and a number, because it would share claims with a zone of another object; choose another name"),
	)

	It("of the max length is accepted", func(ctx SpecContext) {
		Expect(create(ctx, object(ns, "metadata: {name: "+long(45)+"}"))).To(BeEmpty())
		Expect(create(ctx, object(ns, "metadata: {name: "+long(41)+"}", "spec: {zones: [a]}"))).To(BeEmpty())
		Expect(create(ctx, object(ns, "metadata: {name: shop-v2}"))).To(BeEmpty())
	})

	It("is rejected while a StatefulSet of another owner has it, and accepted while a StatefulSet of a deleted object of that name is terminating", func(ctx SpecContext) {
		other := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web-v1", Namespace: ns}, Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
		strangers := other.DeepCopy()
		Expect(user.Create(ctx, strangers)).To(Succeed())
		Expect(said(user.Create(ctx, object(ns)))).To(Equal(invalid + `metadata.name: Invalid value: "web": StatefulSet web-v1 exists and belongs to another owner; choose another name, or delete it`))
		By("rejecting the name of an orphaned StatefulSet of any version")
		orphan := other.DeepCopy()
		orphan.Name, orphan.Labels = "left-v3", map[string]string{v1alpha1.LabelSet: "left"}
		Expect(user.Create(ctx, orphan)).To(Succeed())
		Expect(said(user.Create(ctx, object(ns, "metadata: {name: left}")))).To(ContainSubstring(`metadata.name: Invalid value: "left": StatefulSet left-v3 exists and belongs to another owner; choose another name, or delete it`))
		Expect(user.Delete(ctx, strangers)).To(Succeed())
		other.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "web", UID: "gone"}, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))}
		Expect(user.Create(ctx, other)).To(Succeed())
		Expect(user.Create(ctx, object(ns))).To(Succeed())
	})

	It("is rejected while a StatefulSet has claims of the same names", func(ctx SpecContext) {
		claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
		const said1, said2 = invalid + `metadata.name: Invalid value: "web": the claims of template `,
			`; choose another name, or delete the StatefulSet first: its claims are kept, and you can assign each of them: kubectl -n `
		other := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns}, Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, VolumeClaimTemplates: []corev1.PersistentVolumeClaim{claim},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}}}
		Expect(user.Create(ctx, other)).To(Succeed())
		Expect(said(user.Create(ctx, object(ns, stored)))).To(Equal(said1 + `"data" have the same names as those of StatefulSet web` + said2 + ns + ` annotate pvc <claim> fissile.cloudfoundry.org/adopt=web`))
		By("rejecting the claims of a StatefulSet with another name and claim template")
		longer := other.DeepCopy()
		longer.ObjectMeta = metav1.ObjectMeta{Name: "my-web", Namespace: ns}
		Expect(user.Delete(ctx, other)).To(Succeed())
		Expect(user.Create(ctx, longer)).To(Succeed())
		Expect(said(user.Create(ctx, object(ns, strings.Replace(stored, "name: data", "name: data-my", 1))))).To(HavePrefix(said1 + `"data-my" have the same names as those of StatefulSet my-web` + said2))
		Expect(user.Create(ctx, object(ns))).To(Succeed(), "a set without claims is accepted")
	})
})

var _ = Describe("a claim of another owner", func() {
	var ns string
	var theirs *corev1.PersistentVolumeClaim
	BeforeEach(func(ctx SpecContext) {
		ns = newNamespace(ctx)
		theirs = &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-1", Namespace: ns}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	})
	ask := func() string {
		return `claim data-web-1 belongs to another owner, and is used only with the owner's consent: kubectl -n ` + ns + ` annotate pvc data-web-1 fissile.cloudfoundry.org/adopt=web`
	}

	It("causes a rejection of a set that would use it, until its owner consents", func(ctx SpecContext) {
		Expect(user.Create(ctx, theirs)).To(Succeed())
		Expect(said(user.Create(ctx, object(ns, stored)))).To(Equal(invalid + `metadata.name: Invalid value: "web": ` + ask() + `; or choose another name`))
		Expect(user.Create(ctx, object(ns, "metadata: {name: other}", stored))).To(Succeed())
		Expect(change(ctx, theirs, "metadata: {annotations: {fissile.cloudfoundry.org/adopt: web}}")).To(Succeed())
		Expect(user.Create(ctx, object(ns, stored))).To(Succeed())
	})

	It("cannot be assigned by the template of another set", func(ctx SpecContext) {
		Expect(said(user.Create(ctx, object(ns, strings.Replace(stored, "{name: data}", "{name: data, annotations: {fissile.cloudfoundry.org/adopt: x}}", 1))))).
			To(Equal(invalid + `spec.template.spec.volumeClaimTemplates[0].metadata.annotations[fissile.cloudfoundry.org/adopt]: Forbidden: keys with prefix fissile.cloudfoundry.org/ are reserved for the operator; remove it`))
	})

	It("is not written or mounted before its owner consents", func(ctx SpecContext) {
		startFakeControlPlane(ns)
		startOperator(ns)
		one := strings.Replace(stored, "spec: {volume", "spec: {replicas: 1, volume", 1)
		Expect(user.Create(ctx, object(ns, one))).To(Succeed())
		stable(ctx, ns, 1, 1)
		Expect(user.Create(ctx, theirs)).To(Succeed())
		Expect(scale(ctx, object(ns), 3)).To(Succeed())
		Eventually(condition(ctx, web(ctx, ns), v1alpha1.ConditionProgressing)).Should(HavePrefix("True ClaimTaken: " + ask()))
		now := theirs.DeepCopy()
		Expect(user.Get(ctx, client.ObjectKeyFromObject(theirs), now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(theirs.ResourceVersion))
		By("rejecting a pod of another client that would use it")
		child := statefulSets(ctx, ns)["web-v1"]
		child.Spec.Replicas = ptr.To[int32](3)
		Expect(user.Update(ctx, &child)).To(Succeed())
		Expect(said(user.Create(ctx, born(ns, func(pod *corev1.Pod) {
			pod.Name, pod.Labels[appsv1.PodIndexLabel], pod.Labels[v1alpha1.LabelVersion], pod.OwnerReferences[0].Name = "web-v9-1", "1", "9", "web-v9"
		})))).To(HaveSuffix(ask()))
		Expect(change(ctx, now, "metadata: {annotations: {fissile.cloudfoundry.org/adopt: web}}")).To(Succeed())
		stable(ctx, ns, 1, 3)
		Expect(user.Get(ctx, client.ObjectKeyFromObject(theirs), now)).To(Succeed())
		Expect(now.Labels).To(HaveKeyWithValue(v1alpha1.LabelSet, "web"))
		Expect(now.UID).To(Equal(theirs.UID))
	})
})

var _ = Describe("a change", func() {
	const claims = "spec.template.spec.volumeClaimTemplates"
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("E33 of claim templates is rejected", func(ctx SpecContext, patch, want string) {
		o := object(ns, stored)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(said(change(ctx, o, patch))).To(Equal(invalid + want))
	},
		Entry("to less storage", strings.Replace(stored, "1Gi", "512Mi", 1), claims+`[0].spec.resources.requests.storage: Forbidden: 512Mi is less than the present 1Gi; volumes cannot shrink`),
		Entry("of the access mode", strings.Replace(stored, "ReadWriteOnce", "ReadWriteMany", 1), claims+`[0]: Forbidden: only the requested storage and the volumeAttributesClassName of claim template "data" may change, and the storage may only grow`),
		Entry("that adds a template", "spec: {template: {spec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}, {metadata: {name: log}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}}",
			claims+`[1]: Forbidden: claim template "log" is new; claim templates cannot be added or renamed after creation`),
		Entry("that removes a template", "spec: {template: {spec: {volumeClaimTemplates: null}}}", claims+`: Forbidden: claim template "data" is missing; claim templates cannot be removed or renamed after creation`),
	)

	It("E33 to more storage is accepted", func(ctx SpecContext) {
		o := object(ns, stored)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(change(ctx, o, strings.Replace(stored, "1Gi", "2Gi", 1))).To(Succeed())
	})

	It("that the API server rejects in a dry run is rejected while the StatefulSet exists", func(ctx SpecContext) {
		o := object(ns)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(said(change(ctx, o, "spec: {template: {spec: {template: {spec: {dnsPolicy: Sometimes}}}}}"))).To(HavePrefix(invalid + `spec.template.spec.template.spec.dnsPolicy: Unsupported value: "Sometimes"`))
	})

	DescribeTable("of the handover", func(ctx SpecContext, phase v1alpha1.Phase, want string) {
		o := object(ns)
		Expect(user.Create(ctx, o)).To(Succeed())
		set := &v1alpha1.ExtendedStatefulSet{}
		Expect(user.Get(ctx, client.ObjectKeyFromObject(o), set)).To(Succeed())
		set.Status.Phase = phase
		Expect(user.Status().Update(ctx, set)).To(Succeed())
		Expect(said(change(ctx, o, "spec: {updateStrategy: {handover: PerOrdinal}}"))).To(Equal(want))
		Expect(change(ctx, o, "spec: {updateStrategy: {handover: Coexist}}")).To(Succeed(), "Auto means Coexist")
	},
		Entry("is accepted in phase Stable", v1alpha1.PhaseStable, ""),
		Entry("is accepted in phase Stale", v1alpha1.PhaseStale, ""),
		Entry("is rejected during an upgrade", v1alpha1.PhaseCanary,
			invalid+`spec.updateStrategy.handover: Forbidden: handover cannot be changed during an upgrade (phase Canary); wait until status.phase is Stable, Stale or Aborted`),
	)

	It("of other fields is accepted for an object that is already invalid", func(ctx SpecContext) {
		o := object(ns)
		Expect(user.Create(ctx, o)).To(Succeed())
		Expect(change(ctx, o, "metadata: {finalizers: [example.com/x], labels: {a: b}}")).To(Succeed())
		Expect(user.Delete(ctx, o)).To(Succeed())
		Expect(change(ctx, o, "metadata: {finalizers: null}")).To(Succeed())
	})
})
