// Package unread handles objects whose spec or status the operator could not read: the part cannot be
// decoded, or is too large for the cache.
//
// The operator changes only the conditions of such an object. It does not change its children.
package unread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/kstatus"
	"github.com/stateful-operator/stateful-operator/controllers/internal/report"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
)

// reasonInvalidSpec is the reason of condition Degraded in all kinds.
const reasonInvalidSpec = "InvalidSpec"

// Parts contains the reasons why the spec and the status of an object were not read; "" for a part that
// was read.
type Parts struct{ Spec, Status string }

// Any reports whether the spec or the status was not read.
func (p Parts) Any() bool { return p.Spec != "" || p.Status != "" }

// Report writes to the object's conditions why its spec was not read. next is a copy of the object, and
// conditions are those of next. Report writes nothing if the status was not read, because the status
// contains data that must not be lost.
func (p Parts) Report(ctx context.Context, runner action.Writer, object, next client.Object, conditions *[]metav1.Condition) report.Outcome {
	if p.Status != "" {
		log.FromContext(ctx).Error(errors.New(p.Status), "The object is not managed: its status is not read")
		return report.Stop()
	}
	set(conditions, message(p.Spec), object.GetGeneration())
	if apiequality.Semantic.DeepEqual(object, next) {
		return report.Stop()
	}
	for _, o := range runner.Run(ctx, client.ObjectKeyFromObject(object), action.Steps{{{
		{Verb: action.PatchStatus, Object: next, From: object, Reason: "Unread"}}}}) {
		if report.Judge(o.Err) == report.Failed {
			return report.Retry(o.Err)
		}
	}
	return report.Stop()
}

// message returns the message of the conditions for a problem.
func message(problem string) string {
	return fmt.Sprintf("cannot decode the stored object: %s. The operator does not change anything until this is fixed; existing pods keep running. "+
		"Fix it with kubectl edit", problem)
}

// set sets the conditions Degraded, Ready, Reconciling and Stalled.
func set(conditions *[]metav1.Condition, message string, generation int64) {
	blocker := engine.Notice{Reason: reasonInvalidSpec, Message: message}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue,
		Reason: blocker.Reason, Message: blocker.Message, ObservedGeneration: generation})
	for _, c := range kstatus.With(nil, kstatus.Verdict{Blocker: blocker}) {
		c.ObservedGeneration = generation
		meta.SetStatusCondition(conditions, c)
	}
}

// Validate returns an error for an object whose spec was not read.
func Validate(problem string) field.ErrorList {
	if problem == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "cannot be decoded: "+problem)}
}

// maxLabels is the max number of bytes of an object's labels, keys and values together. It is derived
// from the number of labels that the requester policies allow, each of max length: 253 bytes of domain,
// a slash, and 63 bytes each of name and value. So every object that the policies allow is read.
const maxLabels = requester.MaxLabels * (253 + 1 + 63 + 63)

// Bound removes unused metadata from an object of one of the operator's kinds: managed fields, and the
// copy that kubectl apply keeps. It returns why the rest is too large for the cache, or "". If it is
// too large, Bound removes labels and annotations, and the caller removes the spec. Requester policies
// reject such labels and annotations, and admission rejects such a spec. So this affects only objects
// that were stored while the policies or the webhook were missing.
func Bound(m *metav1.ObjectMeta, spec any) (problem string) {
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	all, labels, annotations := m.Labels, size(m.Labels), size(m.Annotations)
	slim.Bounded(m, slices.Collect(maps.Keys(m.Annotations))...)
	m.Labels = all // restored, because labels of other objects have a lower limit
	at := field.NewPath("metadata")
	switch errs := bounds.Spec(spec, field.NewPath("spec")); {
	case labels > maxLabels:
		problem = fmt.Sprintf("%s has %d bytes, and may have at most %d", at.Child("labels"), labels, maxLabels)
	case annotations > requester.MaxAnnotationBytes:
		problem = fmt.Sprintf("%s has %d bytes, and may have at most %d", at.Child("annotations"), annotations, requester.MaxAnnotationBytes)
	case len(errs) > 0:
		problem = errs.ToAggregate().Error()
	default:
		return ""
	}
	m.Labels, m.Annotations = nil, nil
	return problem
}

// size returns the number of bytes of labels or annotations, keys and values together.
func size(words map[string]string) (bytes int) {
	for key, value := range words {
		bytes += len(key) + len(value)
	}
	return bytes
}
