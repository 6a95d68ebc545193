// Package rejection interprets errors with which the API server rejects a generated object, such as a
// pod. It maps them to the object from which the rejected one was generated.
package rejection

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/stateful-operator/stateful-operator/controllers/internal/excerpt"
)

// ErrChanged is the error of a write that the API server accepted, but stored with changes.
var ErrChanged = errors.New("an admission webhook or policy of the cluster changed the written object")

// ErrUnstored is the error of a write of a status that the API server accepted, but without some fields.
var ErrUnstored = errors.New("the API server did not store")

// maxCauses is the max number of listed causes, and maxDetail the max number of bytes of each.
const maxCauses, maxDetail = 10, 500

// Explain returns the first causes of an API server error. The function at maps the path of a cause to
// a path in another object; "" is the path of the whole object.
//
// Explain replaces an error without causes by a general message, because such an error can be about
// anything. It also replaces causes without a field, and causes that come from a policy or webhook of
// the cluster. An admission review can be forged, and the messages of policies are only for the
// requesters that they reject.
func Explain(err error, at func(path string) string) field.ErrorList {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return field.ErrorList{refused(at(""))}
	}
	var errs field.ErrorList
	causes := status.Status().Details.Causes
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		kind := errorType(cause.Type)
		// The message of a cause begins with the text of its type.
		detail := strings.TrimPrefix(strings.TrimPrefix(cause.Message, kind.String()), ": ")
		if isOfObject(cause) || isOfPolicy(detail) {
			errs = append(errs, refused(at("")))
			continue
		}
		errs = append(errs, &field.Error{Type: kind, Field: at(cause.Field), BadValue: field.OmitValueType{}, Detail: excerpt.Of(detail, maxDetail)})
	}
	return errs
}

// refused returns the general message for an error or cause that Explain does not pass on.
func refused(at string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: at, BadValue: field.OmitValueType{},
		Detail: "the API server rejects the object created from it; to see why, create one with `kubectl create --dry-run=server`"}
}

// isOfObject reports whether a cause names no field, so that it is about the whole object.
func isOfObject(cause metav1.StatusCause) bool {
	return cause.Field == "" || cause.Field == (*field.Path)(nil).String()
}

// isOfPolicy reports whether a message comes from a policy or webhook of the cluster.
func isOfPolicy(text string) bool {
	return strings.HasPrefix(text, "ValidatingAdmissionPolicy ") || strings.HasPrefix(text, "admission webhook ")
}

// errorType returns the type of a cause. It returns Invalid for types that have no text in this version
// of the field package.
func errorType(cause metav1.CauseType) field.ErrorType {
	switch kind := field.ErrorType(cause); kind {
	case field.ErrorTypeNotFound, field.ErrorTypeRequired, field.ErrorTypeDuplicate, field.ErrorTypeNotSupported,
		field.ErrorTypeForbidden, field.ErrorTypeTooLong, field.ErrorTypeTooShort, field.ErrorTypeTooMany,
		field.ErrorTypeTooFew, field.ErrorTypeInternal, field.ErrorTypeTypeInvalid:
		return kind
	}
	return field.ErrorTypeInvalid
}

// IsFullQuota reports whether the API server rejected an object because a quota of its namespace is
// exceeded. The same object may be accepted after another one is deleted.
func IsFullQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// IsUntried reports whether a dry run was impossible because a webhook of the cluster does not support
// it.
func IsUntried(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}
