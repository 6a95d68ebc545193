package statefulsingleton

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

func TestDeletion(t *testing.T) {
	freed := "patch statefulsingleton db: Release"
	check(t, []row{
		{"S25 the object is removed when no pod waits, and the running pod keeps running", worldOf(held().goes(), granted("a", 1)), []string{"patch pod a: LetGo", freed}},
		{"S25 the object remains while a pod waits", worldOf(held().goes(), granted("a", 1), waiting("b")), nil},
		{"S25 waiting pods are started one after another", worldOf(held().goes(), granted("a", 1).ended(), waiting("b"), waiting("c")), []string{releaseA, grantB}},
		{"S25 a grant is completed before the object is removed", worldOf(held().goes(), waiting("a")), []string{"patch pod a: Grant, epoch 1"}},
		{"W14 a pod without the gate that was created during the deletion blocks", worldOf(held().goes(), ungated("x").age(0), waiting("b")), []string{"patch pod x: Protect"}},
		{"W14 a pod that was created after the finalizer was removed does not block", worldWith(worldOf(held().goes(), ungated("x").age(0), waiting("b")), func(w *facts.World) { w.Object.Finalizers = nil }), []string{grantB}},
		{"W14 the object remains while a pod is stopping, which its owner recreates", worldOf(held().goes(), granted("a", 1).deleted()), nil},
		{"W14 the finalizer of a stopped pod is removed before the object", worldOf(held().goes(), granted("a", 1).deleted().ended()), []string{releaseA}},
		{"W14 release-now does not wait for a pod that is stopping", worldOf(held().goes().with(func(s *v1.StatefulSingleton) {
			s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True}
		}), granted("a", 1).deleted()), []string{"patch pod a: LetGo", freed}},
		{"W14 a rollout continues: the old pod is deleted for the new one", worldOf(held().goes(), granted("a", 1).of("web").old(), waiting("b").of("web")), []string{"delete pod a: Superseded, a pod of the newest revision waits for it"}},
		{"W14 a pod that its kubelet rejected does not block forever", worldOf(held().goes(), granted("a", 1).silent().phase(corev1.PodFailed), waiting("b")), []string{"delete pod a: Rejected, its kubelet rejected it and does not report whether it runs"}},
		{"release-now starts all pods and removes all finalizers", worldOf(held().goes().with(func(s *v1.StatefulSingleton) {
			s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True}
		}), granted("a", 1), waiting("b")), []string{"patch pod a: LetGo", "patch pod b: LetGo > set a condition of pod b: Ready, True", freed}},
		{"the deletion of the namespace removes all finalizers", worldWith(worldOf(held().goes(), granted("a", 1)), func(w *facts.World) { w.NamespaceGoes = true }), []string{"patch pod a: LetGo", freed}},
		{"S25 pods of a deleted object are released one after another", worldOf(nil, waiting("a"), waiting("b")),
			[]string{"patch pod a: LetGo > set a condition of pod a: Ready, True"}},
		{"pods of a deleted object are not released while one of them runs", worldOf(nil, granted("a", 1).unprotected(), waiting("b")), nil},
		{"pods of a deleted object lose their finalizers", worldOf(nil, granted("a", 1), waiting("b")), []string{"patch pod a: LetGo"}},
	})
	elder := singleton("elder").madeAt(1)
	beside := func(selector map[string]string) func(*facts.World) {
		return func(w *facts.World) {
			elder := *elder
			elder.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
			w.Rivals = []*v1.StatefulSingleton{&elder.StatefulSingleton}
		}
	}
	goesBeside := func() *singletonFixture { return singleton("db").madeAt(2).held("a", 1).goes() }
	released := func() *singletonFixture {
		return goesBeside().with(func(s *v1.StatefulSingleton) { s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True} })
	}
	ours, others := map[string]string{"app": "db"}, map[string]string{"tier": "one"}
	check(t, []row{
		{"S25 S26 the deletion of the younger of two overlapping objects keeps the finalizers of their pods",
			worldWith(worldOf(goesBeside(), granted("a", 1)), beside(ours)), []string{freed}},
		{"S25 S26 a pod that the older object does not select is released", worldWith(worldOf(goesBeside(), granted("a", 1)), beside(others)), []string{"patch pod a: LetGo", freed}},
		{"S25 S26 release-now of the younger object starts no pod of the older one", worldWith(worldOf(released(), granted("a", 1), waiting("b")), beside(ours)), []string{freed}},
		{"S25 S26 the deletion of the namespace removes all finalizers", worldWith(worldWith(worldOf(released(), granted("a", 1)), beside(ours)), func(w *facts.World) { w.NamespaceGoes = true }),
			[]string{"patch pod a: LetGo", freed}},
	})
	unkept := worldOf(singleton("db"), waiting("a"))
	unkept.Object.Finalizers = nil
	check(t, []row{{"the object gets its finalizer before a pod starts", unkept, []string{"patch statefulsingleton db: Keep"}}})
}

// TestWhatIsLetGoIsBoundToWhatWasRead checks that a late operator does not remove a
// finalizer that a recreated object of the same name has added again.
func TestWhatIsLetGoIsBoundToWhatWasRead(t *testing.T) {
	for name, w := range map[string]*facts.World{"goes": worldOf(held().goes(), granted("a", 1)), "is gone": worldOf(nil, granted("a", 1))} {
		for _, step := range rules.Decide(facts.Derive(w)).Steps {
			for _, chain := range step {
				for _, a := range chain {
					if !a.Unchanged {
						t.Errorf("when the object %s: %s is not bound to a version", name, a)
					}
				}
			}
		}
	}
}
