// Package rejection reads what the API server says of an object that it does not
// take, so that it can be said of the object from which that one was made.
package rejection

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// ErrChanged is the error of a write that the API server took, but not as it was sent.
var ErrChanged = errors.New("an admission webhook or policy of the cluster changed what was written")

// mostCauses is how many causes are listed, and mostDetail how many bytes of each.
const mostCauses, mostDetail = 10, 500

// Explain lists the first causes in an answer of the API server, each at the path that
// it has in another object. at is given the path of a cause, "" for the whole object.
// An answer without causes may be about anything, and is not passed on. Neither is a
// cause without a field, or one of a policy or webhook of the cluster: a review can be
// forged, and the texts of policies are for those whom they refuse.
func Explain(err error, at func(path string) string) field.ErrorList {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return field.ErrorList{refused(at(""))}
	}
	var errs field.ErrorList
	causes := status.Status().Details.Causes
	for _, cause := range causes[:min(len(causes), mostCauses)] {
		kind := errorType(cause.Type)
		// The message of a cause begins with the words for its type.
		detail := strings.TrimPrefix(strings.TrimPrefix(cause.Message, kind.String()), ": ")
		if isOfObject(cause) || isOfPolicy(detail) {
			errs = append(errs, refused(at("")))
			continue
		}
		errs = append(errs, &field.Error{Type: kind, Field: at(cause.Field), BadValue: field.OmitValueType{}, Detail: excerpt.Of(detail, mostDetail)})
	}
	return errs
}

// refused is what is said of an answer that is not passed on.
func refused(at string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{},
		Detail: "the API server does not take what is made of it; try to create one by `kubectl create --dry-run=server`"}
}

// isOfObject reports whether a cause names no field.
func isOfObject(cause metav1.StatusCause) bool {
	return cause.Field == "" || cause.Field == (*field.Path)(nil).String()
}

// isOfPolicy reports whether a text is that of a policy or a webhook of the cluster.
func isOfPolicy(text string) bool {
	return strings.HasPrefix(text, "ValidatingAdmissionPolicy ") || strings.HasPrefix(text, "admission webhook ")
}

// errorType is the type of a cause, or Invalid for one that this version does
// not know: it would have no words for it.
func errorType(cause metav1.CauseType) field.ErrorType {
	switch kind := field.ErrorType(cause); kind {
	case field.ErrorTypeNotFound, field.ErrorTypeRequired, field.ErrorTypeDuplicate, field.ErrorTypeNotSupported,
		field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooShort, field.ErrorTypeTooMany,
		field.ErrorTypeTooFew, field.ErrorTypeInternal, field.ErrorTypeTypeInvalid:
		return kind
	}
	return field.ErrorTypeInvalid
}

// IsFullQuota reports whether the API server refuses an object because a quota of its
// namespace has no room: it may take the same one when another is gone.
func IsFullQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// IsUntried reports whether the API server gives no answer to a dry run, because a
// webhook of the cluster takes none.
func IsUntried(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
