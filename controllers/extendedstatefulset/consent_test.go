package extendedstatefulset

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
)

// theirs returns a claim of another owner.
func theirs(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "theirs"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}}},
	}
}

// give adds the consent of the claim's owner.
func (s *stage) give(name, to string) {
	c := s.object("PersistentVolumeClaim", name).DeepCopyObject().(*corev1.PersistentVolumeClaim)
	metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationAdopt, to)
	s.Say("# claim %s is given to %s", name, to)
	s.Put(c)
}

func (s *stage) strip(name string) {
	c := s.object("PersistentVolumeClaim", name).DeepCopyObject().(*corev1.PersistentVolumeClaim)
	c.Labels = nil
	s.Say("# another client removes the labels of claim %s", name)
	s.Put(c)
}

// progress returns the reason and the message of condition Progressing.
func (s *stage) progress() string {
	c := meta.FindStatusCondition(s.set().Status.Conditions, v1alpha1.ConditionProgressing)
	return c.Reason + ": " + c.Message
}

// untouched verifies that a claim was neither written nor mounted.
func (s *stage) untouched(name, version string) {
	s.t.Helper()
	if now := s.object("PersistentVolumeClaim", name); now.GetResourceVersion() != version {
		s.Fatal(s.t, "the operator wrote claim "+name)
	}
	for _, pod := range s.pods() {
		for _, c := range s.Claims(pod) {
			if c.Name == name {
				s.Fatal(s.t, pod.Name+" mounts claim "+name)
			}
		}
	}
}

func theirNames(pods []*corev1.Pod) string {
	all := make([]string, len(pods))
	for i := range pods {
		all[i] = pods[i].Name
	}
	return strings.Join(all, " ")
}

// TestAClaimOfAnotherOwnerIsTakenWithConsentOnly verifies that a claim of another owner is neither
// written nor mounted without consent on the claim itself.
func TestAClaimOfAnotherOwnerIsTakenWithConsentOnly(t *testing.T) {
	s := newStage(t, fixture.Volumes())
	s.Put(theirs("data-db-1"))
	version := s.object("PersistentVolumeClaim", "data-db-1").GetResourceVersion()
	s.steps(5)
	for range 200 {
		for _, move := range s.Moves() {
			move()
		}
		s.steps(1)
	}
	s.untouched("data-db-1", version)
	if got, want := s.progress(), "ClaimTaken: claim data-db-1 belongs to another owner, and is used only with the owner's consent: kubectl -n ns annotate pvc data-db-1 fissile.cloudfoundry.org/adopt=db"; !strings.HasPrefix(got, want) {
		s.Fatal(t, "progress: "+got)
	}
	if got := theirNames(s.pods()); got != "db-v1-0" {
		s.Fatal(t, "got pods "+got)
	}
	s.give("data-db-1", "another")
	s.steps(2)
	if !strings.HasPrefix(s.progress(), "ClaimTaken") {
		s.Fatal(t, "consent for another set was accepted")
	}
	s.give("data-db-1", "db")
	if set := s.rest(); set.Status.ReadyReplicas != 3 || set.Status.Phase != v1alpha1.PhaseStable {
		s.Fatal(t, "the pods are not Ready after consent")
	}
	taken := s.object("PersistentVolumeClaim", "data-db-1").(*corev1.PersistentVolumeClaim)
	if size := taken.Spec.Resources.Requests[corev1.ResourceStorage]; taken.Labels[v1alpha1.LabelSet] != "db" || taken.Labels["app"] != "theirs" || size.String() != "1Gi" {
		s.Fatal(t, "the claim was not adopted")
	}
}

// TestAClaimThatLostItsLabelIsKeptByItsPod verifies that running pods continue if the label of a claim
// is removed, and that nothing is started that would need the claim: no upgrade, and no pod that
// replaces a deleted one.
func TestAClaimThatLostItsLabelIsKeptByItsPod(t *testing.T) {
	for _, row := range []struct {
		name string
		then func(*stage)
	}{
		{"no other change", func(*stage) {}},
		{"a new template", func(s *stage) { s.image("two") }},
		{"a scale-up", func(s *stage) { s.scale(4) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, fixture.Volumes())
			s.rest()
			s.floor = 3
			s.strip("data-db-1")
			row.then(s)
			s.steps(4)
			for range 100 {
				for _, move := range s.Moves() {
					move()
				}
				s.steps(1)
			}
			if got := s.progress(); !strings.HasPrefix(got, "ClaimTaken: claim data-db-1 belongs to another owner") {
				s.Fatal(t, "progress: "+got)
			}
			s.floor = 2
			s.give("data-db-1", "db")
			if set := s.rest(); set.Status.Phase != v1alpha1.PhaseStable || set.Status.ReadyReplicas != *set.Spec.Template.Spec.Replicas {
				s.Fatal(t, "the set did not recover")
			}
		})
	}
}

// TestAClaimOfAnotherSet verifies that nothing is done with a claim of another set, even if its
// annotation gives consent: two pods would use it.
func TestAClaimOfAnotherSet(t *testing.T) {
	s := newStage(t, fixture.Volumes())
	c := theirs("data-db-1")
	c.Labels[v1alpha1.LabelSet] = "data-db"
	s.Put(c)
	s.give(c.Name, "db")
	s.steps(5)
	if got := s.progress(); len(s.children()) > 0 || len(s.claims) != 1 || !strings.HasPrefix(got, "InvalidSpec: claim data-db-1 belongs to ExtendedStatefulSet data-db, and two pods would share it") {
		s.Fatal(t, "progress: "+got)
	}
	s.strip(c.Name)
	if set := s.rest(); set.Status.ReadyReplicas != 3 {
		s.Fatal(t, "the pods are not Ready after the conflict was resolved")
	}
}

// TestNoClaimIsMadeThatAnotherStatefulSetWouldTake verifies that no claims are created whose names
// another StatefulSet could use later.
func TestNoClaimIsMadeThatAnotherStatefulSetWouldTake(t *testing.T) {
	set := fixture.Volumes()
	set.Spec.Template.Spec.VolumeClaimTemplates[0].Name = "data-my"
	s := newStage(t, set)
	s.Put(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "my-db"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*theirs("data")}}})
	s.steps(5)
	if len(s.claims) > 0 || !strings.HasPrefix(s.progress(), "ClaimTaken: the claims data-my-db-<ordinal> also belong to StatefulSet my-db") {
		s.Fatal(t, "progress: "+s.progress())
	}
	s.Remove(s.object("StatefulSet", "my-db"))
	if set := s.rest(); set.Status.ReadyReplicas != 3 {
		s.Fatal(t, "the pods are not Ready after the other StatefulSet was deleted")
	}
}

// TestNoPodMountsAClaimOfAnotherOwner verifies the last check, in the webhook: a pod may be created
// although the claim that it mounts belongs to another owner.
func TestNoPodMountsAClaimOfAnotherOwner(t *testing.T) {
	const refused = "claim data-db-2 belongs to another owner, and is used only with the owner's consent: kubectl -n ns annotate pvc data-db-2 fissile.cloudfoundry.org/adopt=db"
	of := func(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := theirs("data-db-2")
		change(c)
		return c
	}
	for _, row := range []struct {
		name  string
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		{"a claim that does not exist yet", nil, ""},
		{"a claim of this set", of(func(c *corev1.PersistentVolumeClaim) { c.Labels[v1alpha1.LabelSet] = "db" }), ""},
		{"a claim with consent for this set, before it is labeled", of(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationAdopt: "db"}
		}), ""},
		{"a claim of another owner", of(func(*corev1.PersistentVolumeClaim) {}), refused},
		{"a claim with consent for another set", of(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1alpha1.AnnotationAdopt: "other"}
		}), refused},
		{"a claim of another set with consent for this set", of(func(c *corev1.PersistentVolumeClaim) {
			c.Labels[v1alpha1.LabelSet], c.Annotations = "other", map[string]string{v1alpha1.AnnotationAdopt: "db"}
		}), "claim data-db-2 belongs to ExtendedStatefulSet other"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStage(t, fixture.Volumes())
			if row.claim != nil {
				s.Put(row.claim)
			}
			got := admit(t, s.Cluster, fixture.NewPod(fixture.Volumes(), children.Zone{Index: children.NoZone}, 2))
			if got.Allowed != (row.want == "") || !got.Allowed && !strings.HasPrefix(got.Result.Message, row.want) {
				t.Errorf("allowed: %t, %v", got.Allowed, got.Result)
			}
		})
	}
	if got := admit(t, unresponsive{newStage(t, fixture.Volumes()).Cluster}, fixture.NewPod(fixture.Volumes(), children.Zone{Index: children.NoZone}, 2)); got.Allowed {
		t.Error("the pod is allowed although the API server does not respond")
	}
}

// unresponsive is an API server that does not return single objects.
type unresponsive struct{ client.Reader }

func (unresponsive) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return context.DeadlineExceeded
}
