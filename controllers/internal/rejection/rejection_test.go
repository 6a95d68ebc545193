package rejection

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestExplain checks that an error about a pod is reported for the template of the pod.
func TestExplain(t *testing.T) {
	policy := field.NewPath("spec", "containers").Index(0).Child("imagePullPolicy")
	cause := func(kind, text string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(kind), Message: text, Field: "spec.nodeName"}}}}}
	}
	under := func(path string) string {
		if path == "" {
			return "spec.template"
		}
		return "spec.template." + path
	}
	invalid := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "db-a", errs)
	}
	for _, r := range []struct {
		name string
		err  error
		want string
	}{
		{"a value that is not supported", invalid(field.NotSupported(policy, "Sometimes", []string{"Always", "Never"})),
			`spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never"`},
		{"a value that is missing", invalid(field.Required(policy, "specify a value")), `spec.template.spec.containers[0].imagePullPolicy: Required value: specify a value`},
		{"a missing value without a message", invalid(field.Required(policy, "")), `spec.template.spec.containers[0].imagePullPolicy: Required value`},
		{"a value that is invalid", invalid(field.Invalid(policy, 5, "not a number")), `spec.template.spec.containers[0].imagePullPolicy: Invalid value: 5: not a number`},
		{"a duplicate value", invalid(field.Duplicate(policy, "x")), `spec.template.spec.containers[0].imagePullPolicy: Duplicate value: "x"`},
		{"a forbidden value", invalid(field.Forbidden(policy, "not allowed here")), `spec.template.spec.containers[0].imagePullPolicy: Forbidden: not allowed here`},
		{"a value that is too long", invalid(field.TooLong(policy, "", 3)), `spec.template.spec.containers[0].imagePullPolicy: Too long: may not be more than 3 bytes`},
		{"too many values", invalid(field.TooMany(policy, 5, 3)), `spec.template.spec.containers[0].imagePullPolicy: Too many: 5: must have at most 3 items`},
		{"two causes", invalid(field.Required(policy, ""), field.Forbidden(field.NewPath("metadata", "name"), "no")),
			`[spec.template.spec.containers[0].imagePullPolicy: Required value, spec.template.metadata.name: Forbidden: no]`},
		{"an unknown cause type", cause("FieldValueTooOdd", "Too odd: 3"), `spec.template.spec.nodeName: Invalid value: Too odd: 3`},
		{"a cause without a type", cause("", "wrong value"), `spec.template.spec.nodeName: Invalid value: wrong value`},
		{"N16 a cause without a field", invalid(field.Forbidden(nil, "not in this namespace")), "spec.template: Invalid value: the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"},
		{"N16 a policy of the cluster", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Message: "ValidatingAdmissionPolicy 'engine' with binding 'engine' denied request: denied by the platform"}}}}},
			"spec.template: Invalid value: the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"},
		{"N16 a policy with a field", cause("FieldValueInvalid", "Invalid value: ValidatingAdmissionPolicy 'engine' with binding 'engine' denied request: secret"),
			"spec.template: Invalid value: the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"},
		{"no causes", apierrors.NewBadRequest("unexpected error"), "spec.template: Invalid value: the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"},
		{"an error that is not a status", errors.New("unexpected error"), "spec.template: Invalid value: the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"},
	} {
		if got := Explain(r.err, under).ToAggregate().Error(); got != r.want {
			t.Errorf("%s:\n  %s\nwant\n  %s", r.name, got, r.want)
		}
	}
}

func TestWhatIsPassedOnIsBounded(t *testing.T) {
	var many field.ErrorList
	for i := range maxCauses + 1 {
		many = append(many, field.Invalid(field.NewPath("spec").Index(i), "x", strings.Repeat("ö", maxDetail)))
	}
	got := Explain(apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "db-a", many), func(path string) string { return path })
	if len(got) != maxCauses {
		t.Errorf("%d causes are listed, want %d", len(got), maxCauses)
	}
	for _, e := range got {
		if len(e.Detail) > maxDetail {
			t.Errorf("the reason has %d bytes", len(e.Detail))
		}
	}
}

// Errors from quotas and webhooks that depend on the current state are not errors of the object.
func TestWhatSaysNothingOfTheObject(t *testing.T) {
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "db-a", errors.New(text))
	}
	for _, r := range []struct {
		name        string
		err         error
		full, never bool
	}{
		{"taken", nil, false, false},
		{"a full quota", forbidden("exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"), true, false},
		{"a quota that requires limits", forbidden("failed quota: q: must specify limits.cpu for: main"), false, false},
		{"an unknown message", errors.New("exceeded quota"), false, false},
		{"a webhook that does not support dry run", apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), false, true},
		{"a webhook that denies the request", apierrors.NewBadRequest("no"), false, false},
	} {
		if full, never := IsFullQuota(r.err), IsUntried(r.err); full != r.full || never != r.never {
			t.Errorf("%s: full quota %v, untried %v", r.name, full, never)
		}
	}
}
