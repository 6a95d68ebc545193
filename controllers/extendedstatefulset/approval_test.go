package extendedstatefulset_test

import (
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// patchIn matches the merge patch of a command in a condition message.
var patchIn = regexp.MustCompile(`kubectl -n \S+ patch ests web --type=merge -p '(\{.*?\}\})'`)

var _ = Describe("Approval", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startFakeControlPlane(namespace)
	})

	It("E36 E38 holds a good canary until a user runs the command of the condition", func(ctx SpecContext) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace, `{"spec": {"approval": "Manual", "template": {"spec": {"minReadySeconds": 1}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		set := web(ctx, namespace)
		Expect(set.Status.CurrentRevision).To(MatchRegexp(`^v1-[0-9a-f]{16}$`))
		Expect(set.Status.UpdateRevision).To(Equal(set.Status.CurrentRevision))
		first := set.Status.CurrentRevision
		columns, cells := server.Table(ctx, "extendedstatefulsets", set)
		Expect(columns).To(Equal([]string{"Name", "Desired", "Ready", "Available", "Version", "Phase", "Stale", "Progress", "Image", "Revision", "Age"}))
		Expect(cells).To(And(HaveKeyWithValue("Ready", BeEquivalentTo(3)), HaveKeyWithValue("Available", "True"),
			HaveKeyWithValue("Image", "web"), HaveKeyWithValue("Revision", first)))

		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		said := condition(ctx, set, v1alpha1.ConditionProgressing)
		Eventually(said).Should(HavePrefix("True WaitingForApproval: the canaries of version 2 are good"))
		By("ignoring the approval of another revision")
		Expect(change(ctx, object(namespace), `{"spec": {"approvedRevision": "`+first+`"}}`)).To(Succeed())
		Expect(change(ctx, object(namespace), `{"spec": {"approvedRevision": "v2-0000000000000000"}}`)).To(Succeed())
		Eventually(said).Should(And(HavePrefix("True WaitingForApproval"), ContainSubstring(`; spec.approvedRevision "v2-0000000000000000" is ignored: it is the revision of neither`)))
		Expect(web(ctx, namespace).Status.CurrentVersion).To(Equal(int64(1)))
		Expect(statefulSets(ctx, namespace)["web-v2"].Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
		By("rolling back without approval")
		Expect(change(ctx, object(namespace), image("web"))).To(Succeed())
		stable(ctx, namespace, 1, 3)

		By("continuing after the command of the condition")
		Expect(change(ctx, object(namespace), image("three"))).To(Succeed())
		Eventually(said).Should(HavePrefix("True WaitingForApproval: the canaries of version 3 are good"))
		Expect(set.Status.UpdateRevision).To(MatchRegexp(`^v3-[0-9a-f]{16}$`))
		command := patchIn.FindStringSubmatch(said())
		Expect(command).To(HaveLen(2))
		Expect(change(ctx, object(namespace), command[1])).To(Succeed())
		stable(ctx, namespace, 3, 3)
		third := web(ctx, namespace)
		Expect(third.Status.CurrentRevision).To(Equal(third.Spec.ApprovedRevision))

		By("ignoring a repeated approval of the same revision")
		Expect(change(ctx, object(namespace), command[1])).To(Succeed())
		Expect(web(ctx, namespace).Generation).To(Equal(third.Generation))
		Expect(change(ctx, object(namespace), image("four"))).To(Succeed())
		Eventually(said).Should(HavePrefix("True WaitingForApproval: the canaries of version 4 are good"))
		Expect(change(ctx, object(namespace), `{"spec": {"approval": "Automatic"}}`)).To(Succeed())
		stable(ctx, namespace, 4, 3)
		told := []string{}
		Eventually(func(g Gomega) {
			var events corev1.EventList
			g.Expect(user.List(ctx, &events)).To(Succeed())
			told = told[:0]
			for _, e := range events.Items {
				if e.Namespace == namespace && e.InvolvedObject.UID == set.UID {
					told = append(told, e.Reason)
				}
			}
			g.Expect(told).To(ContainElements(v1alpha1.EventWaitingForApproval, v1alpha1.EventApproved))
		}).Should(Succeed())
	})

	It("E37 rolls back a canary that fails while it waits for approval", func(ctx SpecContext) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace,
			`{"spec": {"approval": "Manual", "updateStrategy": {"canaryWatchTime": "4s"}, "template": {"spec": {"minReadySeconds": 1}}}}`))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		set := web(ctx, namespace)
		Eventually(condition(ctx, set, v1alpha1.ConditionProgressing)).Should(HavePrefix("True WaitingForApproval"))
		var pod corev1.Pod
		Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "web-v2-0"}, &pod)).To(Succeed())
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}}
		Expect(user.Status().Update(ctx, &pod)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionStale)).Should(HavePrefix("True CanaryFailed: version 2 was marked stale"))
	})

	It("E39 runs a job for the canaries, and rolls back if the job fails", func(ctx SpecContext) {
		startOperator(namespace)
		asks := func(image string) string {
			return `{"spec": {"updateStrategy": {"postUpdateJob": {"when": "Canary", "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "` + image + `"}]}}}}}}}`
		}
		Expect(user.Create(ctx, object(namespace, `{"spec": {"template": {"spec": {"minReadySeconds": 1}}}}`, asks("fine")))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		stable(ctx, namespace, 2, 3)
		Expect(change(ctx, object(namespace), asks(badImage))).To(Succeed())
		Expect(change(ctx, object(namespace), image("three"))).To(Succeed())
		set := web(ctx, namespace)
		Eventually(condition(ctx, set, v1alpha1.ConditionStale)).Should(HavePrefix("True PostUpdateJobFailed: version 3 was marked stale (attempts: 1): Job web-canary-v3-1 failed"))
		Expect(set.Status.CurrentVersion).To(Equal(int64(2)))
	})

	DescribeTable("refuses", func(ctx SpecContext, patch, want string) {
		err := user.Create(ctx, object(namespace, patch))
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%v", err)
		Expect(said(err)).To(ContainSubstring(want))
	},
		Entry("an unknown value of approval", `{"spec": {"approval": "Later"}}`, `spec.approval: Unsupported value: "Later": supported values: "Automatic", "Manual"`),
		Entry("an approvedRevision without a valid format", `{"spec": {"approvedRevision": "web-v2"}}`,
			`spec.approvedRevision: Invalid value: "web-v2": must be a revision in the format of status.updateRevision, for example v2-0123456789abcdef`),
		Entry("a version number without a digest", `{"spec": {"approvedRevision": "v2"}}`, `spec.approvedRevision: Invalid value: "v2": must be a revision`),
		Entry("an approvedRevision that is too long", `{"spec": {"approvedRevision": "v20123456789012345678901-0123456789abcdef"}}`, `spec.approvedRevision: Too long: may not be more than 40 bytes`),
		Entry("an unknown value of when", `{"spec": {"updateStrategy": {"postUpdateJob": {"when": "Later", "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "fine"}]}}}}}}}`,
			`spec.updateStrategy.postUpdateJob.when: Unsupported value: "Later": supported values: "AllPods", "Canary", "Both"`),
		Entry("when in preUpdateJob", `{"spec": {"updateStrategy": {"preUpdateJob": {"when": "Canary", "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "fine"}]}}}}}}}`,
			`spec.updateStrategy.preUpdateJob.when: Invalid value: is only for postUpdateJob: this job runs before the canaries are created; remove it`),
	)
})
