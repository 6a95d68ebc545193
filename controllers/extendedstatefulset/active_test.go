package extendedstatefulset_test

import (
	"context"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// application is a fake application whose probes succeed in the pods named in yes.
type application struct {
	mu  sync.Mutex
	yes map[string]bool
}

func (a *application) says(yes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.yes = map[string]bool{}
	for _, name := range yes {
		a.yes[name] = true
	}
}

func (a *application) run(_ context.Context, c podexec.Command) podexec.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	r := podexec.Result{Command: c, Outcome: podexec.Failed, Code: 1, Sent: true, Began: now, Ended: now}
	if a.yes[c.Pod.Name] && len(c.Argv) == 1 && c.Argv[0] == "/active" {
		r.Outcome, r.Code = podexec.Succeeded, 0
	}
	return r
}

// activePods returns the names of the pods that have the label.
func activePods(ctx context.Context, namespace string) func() []string {
	return func() []string {
		var list corev1.PodList
		if err := user.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.LabelPodActive: v1alpha1.PodActive}); err != nil {
			return []string{err.Error()}
		}
		names := []string{}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
}

// maxActive watches the pods until the test ends. stop then returns the max number of pods that had
// the label at the same time.
func maxActive(ctx context.Context, namespace string) (stop func() int) {
	GinkgoHelper()
	w, err := user.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	most := make(chan int, 1)
	go func() {
		labelled, n := map[string]bool{}, 0
		for event := range w.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			delete(labelled, pod.Name)
			if event.Type != watch.Deleted && pod.Labels[v1alpha1.LabelPodActive] == v1alpha1.PodActive {
				labelled[pod.Name] = true
			}
			n = max(n, len(labelled))
		}
		most <- n
	}()
	return func() int {
		w.Stop()
		return <-most
	}
}

var _ = Describe("E34 active and passive pods", func() {
	const probes = "spec: {activePassiveProbes: {web: {exec: {command: [/active]}, periodSeconds: 1, singleActive: %}}}"
	var ns string
	var app *application
	BeforeEach(func(ctx SpecContext) {
		ns, app = newNamespace(ctx), &application{}
		startFakeControlPlane(ns)
		startOperatorWith(func(mgr ctrl.Manager) error { return extendedstatefulset.SetupWith(mgr, settings(ns), app.run) })
	})

	It("sets the label by the probe results, and removes it with the probes", func(ctx SpecContext) {
		o := object(ns, strings.Replace(probes, "%", "false", 1))
		Expect(user.Create(ctx, o)).To(Succeed())
		app.says("web-v1-0", "web-v1-2")
		Eventually(activePods(ctx, ns)).Should(ConsistOf("web-v1-0", "web-v1-2"))
		app.says("web-v1-1")
		Eventually(activePods(ctx, ns)).Should(ConsistOf("web-v1-1"))
		stable(ctx, ns, 1, 3) // running probes does not block status writes
		Expect(change(ctx, o, "spec: {activePassiveProbes: null}")).To(Succeed())
		Eventually(activePods(ctx, ns)).Should(BeEmpty())
	})

	It("sets the label on at most one pod with singleActive", func(ctx SpecContext) {
		most := maxActive(ctx, ns)
		Expect(user.Create(ctx, object(ns, strings.Replace(probes, "%", "true", 1)))).To(Succeed())
		app.says("web-v1-1", "web-v1-2")
		Eventually(activePods(ctx, ns)).Should(ConsistOf("web-v1-1"))
		app.says("web-v1-0", "web-v1-2")
		Eventually(activePods(ctx, ns)).Should(ConsistOf("web-v1-0"))
		app.says()
		Eventually(activePods(ctx, ns)).Should(BeEmpty())
		app.says("web-v1-0", "web-v1-1", "web-v1-2")
		Eventually(activePods(ctx, ns)).Should(HaveLen(1))
		Expect(most()).To(Equal(1))
	})
})
