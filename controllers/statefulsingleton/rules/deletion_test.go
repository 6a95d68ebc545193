package rules_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/rules"
)

func TestDeletion(t *testing.T) {
	freed := "patch statefulsingleton db: Release"
	fixture.Check(t, []fixture.Row{
		{"S25 the object is removed when no pod waits, and the running pod keeps running", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1)), []string{"patch pod a: LetGo", freed}},
		{"S25 the object remains while a pod waits", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S25 waiting pods are started one after another", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Ended(), fixture.Waiting("b"), fixture.Waiting("c")), []string{fixture.ReleaseA, fixture.GrantB}},
		{"S25 a grant is completed before the object is removed", fixture.WorldOf(fixture.Held().Goes(), fixture.Waiting("a")), []string{"patch pod a: Grant, epoch 1"}},
		{"W14 a pod without the gate that was created during the deletion blocks", fixture.WorldOf(fixture.Held().Goes(), fixture.Ungated("x").Age(0), fixture.Waiting("b")), []string{"patch pod x: Protect"}},
		{"W14 a pod that was created after the finalizer was removed does not block", fixture.WorldWith(fixture.WorldOf(fixture.Held().Goes(), fixture.Ungated("x").Age(0), fixture.Waiting("b")), func(w *facts.World) { w.Object.Finalizers = nil }), []string{fixture.GrantB}},
		{"W14 the object remains while a pod is stopping, which its owner recreates", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Deleted()), nil},
		{"W14 the finalizer of a stopped pod is removed before the object", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Deleted().Ended()), []string{fixture.ReleaseA}},
		{"W14 release-now does not wait for a pod that is stopping", fixture.WorldOf(fixture.Held().Goes().With(func(s *v1.StatefulSingleton) {
			s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True}
		}), fixture.Granted("a", 1).Deleted()), []string{"patch pod a: LetGo", freed}},
		{"W14 a rollout continues: the old pod is deleted for the new one", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Of("web").Old(), fixture.Waiting("b").Of("web")), []string{"delete pod a: Superseded, a pod of the newest revision waits for it"}},
		{"W14 a pod that its kubelet rejected does not block forever", fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1).Silent().Phase(corev1.PodFailed), fixture.Waiting("b")), []string{"delete pod a: Rejected, its kubelet rejected it and does not report whether it runs"}},
		{"release-now starts all pods and removes all finalizers", fixture.WorldOf(fixture.Held().Goes().With(func(s *v1.StatefulSingleton) {
			s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True}
		}), fixture.Granted("a", 1), fixture.Waiting("b")), []string{"patch pod a: LetGo", "patch pod b: LetGo > set a condition of pod b: Ready, True", freed}},
		{"the deletion of the namespace removes all finalizers", fixture.WorldWith(fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1)), func(w *facts.World) { w.NamespaceGoes = true }), []string{"patch pod a: LetGo", freed}},
		{"S25 pods of a deleted object are released one after another", fixture.WorldOf(nil, fixture.Waiting("a"), fixture.Waiting("b")),
			[]string{"patch pod a: LetGo > set a condition of pod a: Ready, True"}},
		{"pods of a deleted object are not released while one of them runs", fixture.WorldOf(nil, fixture.Granted("a", 1).Unprotected(), fixture.Waiting("b")), nil},
		{"pods of a deleted object lose their finalizers", fixture.WorldOf(nil, fixture.Granted("a", 1), fixture.Waiting("b")), []string{"patch pod a: LetGo"}},
	})
	elder := fixture.Singleton("elder").MadeAt(1)
	beside := func(selector map[string]string) func(*facts.World) {
		return func(w *facts.World) {
			elder := *elder
			elder.Spec.Selector = &metav1.LabelSelector{MatchLabels: selector}
			w.Rivals = []*v1.StatefulSingleton{&elder.StatefulSingleton}
		}
	}
	goesBeside := func() *fixture.SingletonFixture { return fixture.Singleton("db").MadeAt(2).Held("a", 1).Goes() }
	released := func() *fixture.SingletonFixture {
		return goesBeside().With(func(s *v1.StatefulSingleton) { s.Annotations = map[string]string{v1.AnnotationReleaseNow: v1.True} })
	}
	ours, others := map[string]string{"app": "db"}, map[string]string{"tier": "one"}
	fixture.Check(t, []fixture.Row{
		{"S25 S26 the deletion of the younger of two overlapping objects keeps the finalizers of their pods",
			fixture.WorldWith(fixture.WorldOf(goesBeside(), fixture.Granted("a", 1)), beside(ours)), []string{freed}},
		{"S25 S26 a pod that the older object does not select is released", fixture.WorldWith(fixture.WorldOf(goesBeside(), fixture.Granted("a", 1)), beside(others)), []string{"patch pod a: LetGo", freed}},
		{"S25 S26 release-now of the younger object starts no pod of the older one", fixture.WorldWith(fixture.WorldOf(released(), fixture.Granted("a", 1), fixture.Waiting("b")), beside(ours)), []string{freed}},
		{"S25 S26 the deletion of the namespace removes all finalizers", fixture.WorldWith(fixture.WorldWith(fixture.WorldOf(released(), fixture.Granted("a", 1)), beside(ours)), func(w *facts.World) { w.NamespaceGoes = true }),
			[]string{"patch pod a: LetGo", freed}},
	})
	unkept := fixture.WorldOf(fixture.Singleton("db"), fixture.Waiting("a"))
	unkept.Object.Finalizers = nil
	fixture.Check(t, []fixture.Row{{"the object gets its finalizer before a pod starts", unkept, []string{"patch statefulsingleton db: Keep"}}})
}

// TestWhatIsLetGoIsBoundToWhatWasRead checks that a late operator does not remove a
// finalizer that a recreated object of the same name has added again.
func TestWhatIsLetGoIsBoundToWhatWasRead(t *testing.T) {
	for name, w := range map[string]*facts.World{"goes": fixture.WorldOf(fixture.Held().Goes(), fixture.Granted("a", 1)), "is gone": fixture.WorldOf(nil, fixture.Granted("a", 1))} {
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

func TestDecideRelease(t *testing.T) {
	all := []string{"patch pod a: LetGo", "patch pod b: LetGo > set a condition of pod b: Ready, True", "patch statefulsingleton db: Release"}
	fixture.Check(t, []fixture.Row{
		{"S46 a release does nothing before the object is deleted", fixture.WorldOf(fixture.Released(3, 2), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S46 a release starts all pods at the same time when the object is deleted", fixture.WorldOf(fixture.Released(3, 2).Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), all},
		{"S46 a release that is already in the status starts all pods when the object is deleted", fixture.WorldOf(fixture.Released(4, 3, fixture.StatusOfOrder("a", v1.OrderWaiting)).Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), all},
		{"S47 an ignored release does not start all pods", fixture.WorldOf(fixture.Released(4, 3, fixture.StatusOfOrder("a", v1.OrderIgnored)).Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S47 a release that the object was created with does not start all pods before the first pass", fixture.WorldOf(fixture.Released(3, -1).Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S47 a release that is waiting in the status of a backup does not start all pods", fixture.WorldOf(fixture.Released(1, 9, fixture.StatusOfOrder("a", v1.OrderWaiting)).Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S47 a release of an object whose spec was not decoded before does not start all pods", fixture.WorldOf(fixture.Released(3, 1).Decoded().Goes(), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
		{"S46 a release with an invalid id is ignored", fixture.WorldOf(fixture.Released(3, 2).Goes().With(func(s *v1.StatefulSingleton) { s.Spec.Release.ID = "No ID" }), fixture.Granted("a", 1), fixture.Waiting("b")), nil},
	})
}
