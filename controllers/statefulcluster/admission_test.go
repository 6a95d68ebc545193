package statefulcluster_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/apiserver"
)

// refusal is an invalid change and the message that its author gets.
type refusal struct {
	change  func(*v1alpha1.StatefulCluster)
	message string
}

const prefix = `StatefulCluster.enge.me "db" is invalid: `

func badCreates() []TableEntry {
	long := strings.Repeat("a", 53)
	return []TableEntry{
		Entry("SC-28 selector missing", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Selector = nil },
			prefix + `[spec.selector: Required value`}),
		Entry("SC-28 selector empty", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Selector = &metav1.LabelSelector{} },
			prefix + `spec.selector: Required value: set the labels of the pods, for example matchLabels: {app: my-app}; an empty selector would match every pod`}),
		Entry("SC-28 selector that does not match the template", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Selector.MatchLabels["app"] = "other" },
			prefix + `spec.template.metadata.labels: Invalid value: {"app":"db"}: must match spec.selector; add the selector's labels, or leave the labels out to get the selector's matchLabels`}),
		Entry("SC-28 negative replicas", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Replicas = new(int32(-1)) },
			prefix + `[spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0`}),
		Entry("SC-28 name too long", refusal{func(s *v1alpha1.StatefulCluster) { s.Name = long },
			`StatefulCluster.enge.me "` + long + `" is invalid: metadata.name: Invalid value: "` + long + `": must be no more than 52 characters: pods add 11 for their id, and a hostname has at most 63; choose a shorter name`}),
		Entry("SC-28 two claims with the same name", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claimTemplate("data", "1Gi"))
		}, prefix + `spec.volumeClaimTemplates[1].metadata.name: Duplicate value: "data"`}),
		Entry("SC-15 a claim and a volume with the same name", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		}, prefix + `spec.template.spec.volumes[0].name: Invalid value: "data": a volume claim template has this name too; rename one of them`}),
		Entry("an unknown policy", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.PodManagementPolicy = "Serial" },
			prefix + `[spec.podManagementPolicy: Unsupported value: "Serial": supported values: "Parallel", "OrderedReady"`}),
		Entry("nodeLostSeconds 0", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.NodeLostSeconds = new(int32(0)) },
			prefix + `spec.replacement.nodeLostSeconds: Invalid value: 0: spec.replacement.nodeLostSeconds in body should be greater than or equal to 1`}),
		Entry("negative unreadySeconds", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Replacement.UnreadySeconds = new(int32(-5)) },
			prefix + `spec.replacement.unreadySeconds: Invalid value: -5: spec.replacement.unreadySeconds in body should be greater than or equal to 0`}),
		Entry("maxConcurrent 0%", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.Replacement.MaxConcurrent = new(intstr.FromString("0%"))
		}, prefix + `spec.replacement.maxConcurrent: Invalid value: "0%": maxConcurrent must be a number of 1 or more, or a percentage from 1% to 100%`}),
		Entry("maxUnavailable 0 and maxSurge 0", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: new(intstr.FromInt32(0))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "0": must not be 0 unless maxSurge is 1 or more; with both 0, no member could be updated`}),
		Entry("V11 an invalid label key of the template", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels["bad key!"] = "x" },
			prefix + `spec.template.metadata.labels: Invalid value: "bad key!": name part must`}),
		Entry("V11 an invalid label key of a claim", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"bad key!": "x"}
		}, prefix + `spec.volumeClaimTemplates[0].metadata.labels: Invalid value: "bad key!": name part must`}),
		Entry("maxSurge that is not a number", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxSurge: new(intstr.FromString("many"))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "many": `}),
		Entry("negative maxSurge", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxSurge: new(intstr.FromInt32(-1))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: -1: `}),
		Entry("maxUnavailable that is not a number", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: new(intstr.FromString("many"))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "many": `}),
		Entry("negative maxUnavailable", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: new(intstr.FromInt32(-1))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: -1: `}),
		Entry("maxUnavailable above 100%", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.UpdateStrategy.RollingUpdate = &v1alpha1.RollingUpdate{MaxUnavailable: new(intstr.FromString("101%"))}
		}, prefix + `spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: "101%": `}),
		Entry("a label of the operator", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Labels[v1alpha1.LabelMember] = "x" },
			prefix + `spec.template.metadata.labels[enge.me/member]: Forbidden: the operator sets this label; remove it`}),
		Entry("a template that the API server refuses", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.Template.Spec.Containers[0].ImagePullPolicy = "Sometimes" },
			prefix + `spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`}),
		Entry("a claim that the API server refuses", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.VolumeClaimTemplates[0].Spec.AccessModes = nil },
			prefix + `spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access mode is required`}),
	}
}

var _ = Describe("admission", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	DescribeTable("refuses", func(ctx SpecContext, r refusal) {
		err := user.Create(ctx, newSet(ns, 1, r.change))
		Expect(apierrors.IsInvalid(err) || apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(clean(err)).To(server.Mentions(r.message))
	}, badCreates())

	DescribeTable("SC-29 refuses a change of", func(ctx SpecContext, r refusal) {
		set := newSet(ns, 0, func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claimTemplate("logs", "2Gi"))
		})
		Expect(user.Create(ctx, set)).To(Succeed())
		r.change(set)
		Expect(clean(user.Update(ctx, set))).To(server.Mentions(r.message))
	},
		Entry("the selector", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.Selector.MatchLabels["app"], s.Spec.Template.Labels["app"] = "x", "x"
		}, "selector is immutable; delete the StatefulCluster (its claims stay under the Retain policy) and create another"}),
		Entry("a smaller size of a claim", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates[1].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Gi")
		}, prefix + `spec.volumeClaimTemplates[1].spec.resources.requests.storage: Forbidden: 1Gi is less than the present 2Gi; volumes cannot shrink`}),
		Entry("the name of a claim", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.VolumeClaimTemplates[1].Name = "journal" },
			`spec.volumeClaimTemplates[1]: Forbidden: claim template "journal" is new; claim templates cannot be added or renamed after creation`}),
		Entry("the number of claims", refusal{func(s *v1alpha1.StatefulCluster) { s.Spec.VolumeClaimTemplates = s.Spec.VolumeClaimTemplates[:1] },
			prefix + `spec.volumeClaimTemplates: Forbidden: claim template "logs" is missing; claim templates cannot be removed or renamed after creation`}),
		Entry("the access modes of a claim", refusal{func(s *v1alpha1.StatefulCluster) {
			s.Spec.VolumeClaimTemplates[0].Spec.AccessModes[0] = corev1.ReadWriteMany
		}, prefix + `spec.volumeClaimTemplates[0]: Forbidden: only the requested storage and the volumeAttributesClassName of claim template "data" may change, and the storage may only grow`}),
	)

	It("SC-17 refuses a second set with the same selector", func(ctx SpecContext) {
		Expect(user.Create(ctx, newSet(ns, 0))).To(Succeed())
		Eventually(func() string {
			return clean(user.Create(ctx, newSet(ns, 0, func(s *v1alpha1.StatefulCluster) { s.Name = "second" }), client.DryRunAll))
		}).Should(ContainSubstring(`StatefulCluster.enge.me "second" is invalid: spec.selector: Invalid value: "app=db": StatefulCluster "db" in this namespace has the same selector; give each its own label, for example app: second`))
	})

	It("SC-1 accepts the manifest of the seed and adds the selector's labels to its template", func(ctx SpecContext) {
		startOperator(operatorOptions{namespaces: []string{ns}})
		text, err := os.ReadFile("testdata/seed.yaml")
		Expect(err).NotTo(HaveOccurred())
		set := &v1alpha1.StatefulCluster{}
		Expect(yaml.UnmarshalStrict(text, set)).To(Succeed())
		set.Namespace = ns
		Expect(user.Create(ctx, set, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
		for _, p := range settled(ctx, set, 3) {
			Expect(p.Labels).To(And(HaveKeyWithValue("app", "coder"), HaveKeyWithValue("enge.me/statefulcluster", "coder")))
			Expect(p.Spec.Containers[0].Args).To(Equal([]string{"--allow-http", "--no-auth", "--host", "0.0.0.0"}))
		}
		whole(ctx, set)
	})

	It("V11 warns about a template whose pods may end", func(ctx SpecContext) {
		warned := &apiserver.Warned{}
		Expect(warned.Client(server).Create(ctx, newSet(ns, 0, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		}))).To(Succeed())
		Expect(warned.Texts).To(ContainElement(HavePrefix("spec.template.spec.restartPolicy: with Never, the pod may end when a container ends")))
	})

	// A field behind a gate that is off in all tested versions of Kubernetes stands for a field
	// that is newer than the API server: the API server drops both.
	It("K1 warns about a field that the API server drops", func(ctx SpecContext) {
		warned := &apiserver.Warned{}
		Expect(warned.Client(server).Create(ctx, newSet(ns, 0, func(s *v1alpha1.StatefulCluster) {
			s.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{
				StopSignal: ptr.To(corev1.SIGUSR1), PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"stop"}}}}
		}))).To(Succeed())
		Expect(warned.Texts).To(ConsistOf(HavePrefix("spec.template.spec.containers[0].lifecycle.stopSignal: the API server dropped this field")))
	})

	It("admits a template with a warning if a quota refuses its pods", func(ctx SpecContext) {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none", Namespace: ns},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
		Expect(user.Create(ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
		Expect(user.Status().Update(ctx, quota)).To(Succeed())
		warned := &apiserver.Warned{}
		Expect(warned.Client(server).Create(ctx, newSet(ns, 1))).To(Succeed())
		Expect(warned.Texts).To(ContainElement(
			"dry-run create of spec.template failed; members cannot be created until this is resolved: a quota of the namespace is exceeded; raise it or free some of it"))
	})
})
