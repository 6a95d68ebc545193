package children_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

func claimWith(name, label, adopt string) metav1.Object {
	c := &metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}
	if label != "" {
		c.Labels[v1alpha1.LabelSet] = label
	}
	if adopt != "" {
		c.Annotations[v1alpha1.AnnotationAdopt] = adopt
	}
	return c
}

func TestWhichClaimsASetMayUse(t *testing.T) {
	for _, r := range []struct {
		name  string
		claim metav1.Object
		want  bool
	}{
		{"a claim with the label of the set", claimWith("c", "db", ""), true},
		{"a claim with consent", claimWith("c", "", "db"), true},
		{"a claim without consent", claimWith("c", "", ""), false},
		{"a claim with consent for another set", claimWith("c", "", "web"), false},
		{"a claim of another set, even with consent", claimWith("c", "web", "db"), false},
	} {
		if got := children.MayHave("db", r.claim); got != r.want {
			t.Errorf("%s: %t", r.name, got)
		}
	}
}

func TestHowOwnersAreAsked(t *testing.T) {
	a, b := claimWith("a", "", ""), claimWith("b", "", "")
	for _, r := range []struct {
		claims []metav1.Object
		want   string
	}{
		{[]metav1.Object{a}, "claim a belongs to another owner, and is used only with the owner's consent: kubectl -n ns annotate pvc a " + v1alpha1.AnnotationAdopt + "=db"},
		{[]metav1.Object{a, b}, "claims a, b belong to other owners, and are used only with their consent: kubectl -n ns annotate pvc a b " + v1alpha1.AnnotationAdopt + "=db"},
		{[]metav1.Object{a, claimWith("c", "web", "")}, "claim c belongs to ExtendedStatefulSet web, and two pods would share it"},
	} {
		if got := children.AskOwner("ns", "db", r.claims...); !strings.HasPrefix(got, r.want) {
			t.Errorf("%s\nwant\n%s", got, r.want)
		}
	}
}

func TestWhoseClaimsHaveTheSameNames(t *testing.T) {
	var got []string
	for name, template := range children.Claimants("data", "my-web") {
		got = append(got, template+" of "+name)
	}
	if text := strings.Join(got, ", "); text != "data of my-web, data-my of web" {
		t.Errorf("%s", text)
	}
}
