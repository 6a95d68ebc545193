package extendedstatefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
)

// withPreJob returns a patch that sets a preUpdateJob with the given image.
func withPreJob(image string) string {
	return `{"spec": {"updateStrategy": {"preUpdateJob": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "job", "image": "` + image + `"}]}}}}}}}`
}

// jobOf returns a function that reads a Job.
func jobOf(ctx context.Context, namespace, name string) func(Gomega) *batchv1.Job {
	return func(g Gomega) *batchv1.Job {
		var job batchv1.Job
		g.Expect(user.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &job)).To(Succeed())
		return &job
	}
}

// suspends suspends or resumes a Job as the given field manager.
func suspends(ctx context.Context, job *batchv1.Job, manager string, suspended bool) error {
	was := job.DeepCopy()
	job.Spec.Suspend = &suspended
	return user.Patch(ctx, job, client.MergeFrom(was), client.FieldOwner(manager))
}

// complete updates a Job like the Job controller when the Job has succeeded.
func complete(ctx context.Context, job *batchv1.Job) error {
	job.Spec.Template.Spec.Containers[0].Image = "fine"
	return work(ctx, job)
}

var _ = Describe("The jobs of an upgrade", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		startFakeControlPlane(namespace)
	})

	It("W18 are started once, and a condition names the client that suspended one", func(ctx SpecContext) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace, withPreJob(hangingImage)))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		set := web(ctx, namespace)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		read := jobOf(ctx, namespace, "web-pre-v2-1")
		Eventually(read).Should(HaveField("Spec.Suspend", HaveValue(BeFalse())))
		job := read(NewWithT(GinkgoT()))
		Expect(suspends(ctx, job, "second-suspender", true)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionDegraded)).Should(And(
			HavePrefix("True JobSuspended: the upgrade waits until Job web-pre-v2-1 is resumed: field manager second-suspender suspended it"),
			ContainSubstring("kubectl -n "+namespace+" patch job web-pre-v2-1")))
		Expect(condition(ctx, set, v1alpha1.ConditionStalled)()).To(HavePrefix("True JobSuspended"))
		Expect(read(NewWithT(GinkgoT())).Generation).To(Equal(job.Generation), "the operator did not write the Job again")
		Expect(suspends(ctx, job, "second-suspender", false)).To(Succeed())
		Eventually(condition(ctx, set, v1alpha1.ConditionDegraded)).Should(HavePrefix("False "))
	})

	It("W19 have succeeded if they were complete when they were deleted", func(ctx SpecContext) {
		startOperator(namespace)
		Expect(user.Create(ctx, object(namespace, withPreJob(hangingImage)))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		read := jobOf(ctx, namespace, "web-pre-v2-1")
		Eventually(read).Should(HaveField("Spec.Suspend", HaveValue(BeFalse())))
		job := read(NewWithT(GinkgoT()))
		Expect(complete(ctx, job)).To(Succeed())
		Expect(user.Delete(ctx, job, client.PropagationPolicy("Background"))).To(Succeed()) // like the TTL controller
		stable(ctx, namespace, 2, 3)
	})

	It("W19 have an unknown result if they were deleted while the operator was down", func(ctx SpecContext) {
		begin := func() func() {
			return startOperatorWith(func(mgr ctrl.Manager) error { return extendedstatefulset.Setup(mgr, settings(namespace)) })
		}
		stop := begin()
		Expect(user.Create(ctx, object(namespace, withPreJob(hangingImage)))).To(Succeed())
		stable(ctx, namespace, 1, 3)
		set := web(ctx, namespace)
		Expect(change(ctx, object(namespace), image("two"))).To(Succeed())
		read := jobOf(ctx, namespace, "web-pre-v2-1")
		Eventually(read).Should(HaveField("Spec.Suspend", HaveValue(BeFalse())))
		stop()
		job := read(NewWithT(GinkgoT()))
		Expect(complete(ctx, job)).To(Succeed())
		Expect(user.Delete(ctx, job, client.PropagationPolicy("Background"))).To(Succeed())
		begin()
		Eventually(condition(ctx, set, v1alpha1.ConditionDegraded)).Should(HavePrefix("True JobResultUnknown: Job web-pre-v2-1 was deleted before the operator observed its result"))
		Expect(change(ctx, object(namespace), `{"spec": {"updateStrategy": {"preUpdateJob": {"onFailure": "Continue"}}}}`)).To(Succeed())
		stable(ctx, namespace, 2, 3)
	})
})
