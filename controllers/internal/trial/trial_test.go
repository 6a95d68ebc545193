package trial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// asking returns the context of an admission request.
func asking(who, namespace string) context.Context {
	return admission.NewContextWithRequest(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, UserInfo: authenticationv1.UserInfo{Username: who, Groups: []string{"people"},
			Extra: map[string]authenticationv1.ExtraValue{"scope": {"all"}}}}})
}

// court returns a Court in which only user maker may create pods, and only in namespace ns.
func court(reviews *[]authorizationv1.SubjectAccessReviewSpec) *Court {
	return NewCourt(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
			review := obj.(*authorizationv1.SubjectAccessReview)
			*reviews = append(*reviews, review.Spec)
			if review.Spec.User == "down" {
				review.Status.Allowed = true
				return errors.New("no response")
			}
			review.Status.Allowed = review.Spec.User == "maker" && review.Spec.ResourceAttributes.Namespace == "ns"
			return nil
		}}))
}

func TestForWhomATrialIsHeld(t *testing.T) {
	for _, r := range []struct {
		name, who, of, namespace string
		asked                    int
		want                     string
	}{
		{"a user who can create pods", "maker", "ns", "ns", 1, ""},
		{"a user who cannot create pods", "peer", "ns", "ns", 1, "only a user who can create pods in this namespace sees whether they would be accepted"},
		{"a user who can create pods in another namespace", "maker", "else", "else", 1, "only a user who can create pods"},
		{"an object in another namespace than the request", "maker", "ns", "else", 0, "the requester is unknown"},
		{"an object without a namespace", "maker", "", "", 0, "the requester is unknown"},
		{"the access review fails", "down", "ns", "ns", 1, "only a user who can create pods"},
	} {
		var reviews []authorizationv1.SubjectAccessReviewSpec
		c := court(&reviews)
		end, why := c.Open(asking(r.who, r.of), r.namespace)
		if !strings.HasPrefix(why, r.want) || (why == "") != (r.want == "") || (end != nil) != (why == "") || len(reviews) != r.asked {
			t.Errorf("%s: %q, want %q; %d reviews", r.name, why, r.want, len(reviews))
		}
		if end != nil {
			if got := fmt.Sprint(reviews[0].User, reviews[0].Groups, reviews[0].Extra, *reviews[0].ResourceAttributes); got != "maker[people] map[scope:[all]] {ns create  v1 pods   nil nil}" {
				t.Errorf("%s: reviewed %s", r.name, got)
			}
			end()
		}
		if c.inAll != 0 || len(c.running) != 0 {
			t.Errorf("%s: %d dry runs are not released", r.name, c.inAll)
		}
	}
	if _, why := court(nil).Open(context.Background(), "ns"); why == "" {
		t.Error("a dry run was sent for an unknown requester")
	}
}

func TestTrialsAtOneTimeAreBounded(t *testing.T) {
	var reviews []authorizationv1.SubjectAccessReviewSpec
	c := court(&reviews)
	var ends []func()
	for range maxOfNamespace {
		end, why := c.Open(asking("maker", "ns"), "ns")
		if why != "" {
			t.Fatal(why)
		}
		ends = append(ends, end)
	}
	if _, why := c.Open(asking("maker", "ns"), "ns"); why != "too many concurrent dry runs" || len(reviews) != maxOfNamespace {
		t.Errorf("one more dry run: %q, %d reviews", why, len(reviews))
	}
	if !c.enter("another") {
		t.Error("another namespace is blocked by this one")
	}
	c.leave("another")
	ends[0]()
	if end, why := c.Open(asking("maker", "ns"), "ns"); why != "" {
		t.Errorf("after a dry run ended: %s", why)
	} else {
		ends[0] = end
	}
	for i := c.inAll; i < maxInAll; i++ {
		if !c.enter(fmt.Sprint("ns", i)) {
			t.Fatalf("dry run %d has no slot", i)
		}
	}
	if c.enter("another") {
		t.Errorf("more than %d concurrent dry runs", maxInAll)
	}
}

func TestWhyNot(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-secret-name", errors.New(text))
	}
	for _, r := range []struct {
		err  error
		want string
	}{
		{forbidden("exceeded quota: secret-name, requested: pods=1"), "a quota of the namespace is exceeded"},
		{forbidden(`violates PodSecurity "restricted:latest": secret-name`), "the Pod Security level of the namespace forbids it"},
		{forbidden("error looking up service account ns/secret-name"), "a policy forbids it, or a referenced object"},
		{apierrors.NewInternalError(errors.New("secret-name")), "the API server cannot answer"},
		{errors.New("dial tcp secret-name"), "the API server cannot answer"},
	} {
		if got := WhyNot(r.err); !strings.HasPrefix(got, r.want) || strings.Contains(got, "secret-name") {
			t.Errorf("%v: %s", r.err, got)
		}
	}
}
