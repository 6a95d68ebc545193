// Package unread is about objects whose spec or status the operator does not have: the part does
// not decode, or it is larger than the cache may hold.
//
// Of such an object the operator changes nothing but the conditions. Its children are left as they
// are.
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

// Parts are why the operator does not have the spec and the status of an object; "" of a part that
// it has.
type Parts struct{ Spec, Status string }

// Runner is what writes.
type Runner interface {
	Run(context.Context, types.NamespacedName, action.Steps) []action.Outcome
}

// Any reports whether the operator does not have one of the parts.
func (p Parts) Any() bool { return p.Spec != "" || p.Status != "" }

// Report writes into the conditions of an object why the operator does not have its spec. next is a
// copy of the object, and conditions are those of next. Nothing is written if the operator does not
// have the status: it holds what must not be lost.
func (p Parts) Report(ctx context.Context, runner Runner, object, next client.Object, conditions *[]metav1.Condition) report.Outcome {
	if p.Status != "" {
		ctrl.LoggerFrom(ctx).Error(errors.New(p.Status), "The object is not served: its status is not read")
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

func message(problem string) string {
	return fmt.Sprintf("the object that is stored cannot be read: %s. The operator changes nothing while this lasts, and what runs, runs on. "+
		"Correct it with kubectl edit", problem)
}

// set sets Degraded, and Ready, Reconciling and Stalled with it.
func set(conditions *[]metav1.Condition, message string, generation int64) {
	blocker := engine.Notice{Reason: reasonInvalidSpec, Message: message}
	meta.SetStatusCondition(conditions, metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue,
		Reason: blocker.Reason, Message: blocker.Message, ObservedGeneration: generation})
	for _, c := range kstatus.With(nil, kstatus.Verdict{Blocker: blocker}) {
		c.ObservedGeneration = generation
		meta.SetStatusCondition(conditions, c)
	}
}

// Validate refuses an object whose spec the operator does not have.
func Validate(problem string) field.ErrorList {
	if problem == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "cannot be read: "+problem)}
}

// mostLabels is the max bytes of the labels of an object, keys and values together. It holds as many
// labels as the policies of requesters allow, each as long as may be: 253 bytes of a domain, a slash, and 63 bytes
// of a name and of a value. So no object that the policies take is left out.
const mostLabels = requester.MaxLabels * (253 + 1 + 63 + 63)

// Bound drops from an object of one of the operator's kinds what it does not use: managed fields,
// and the copy that kubectl apply keeps. It returns why the rest is too large to be kept in memory;
// "" if it is not. Then the labels and annotations are dropped, and the caller drops the spec. The
// policies of requesters refuse such labels and annotations, and admission such a spec, so that only an
// object is left out that was stored while these were missing.
func Bound(m *metav1.ObjectMeta, spec any) (problem string) {
	delete(m.Annotations, corev1.LastAppliedConfigAnnotation)
	all, labels, annotations := m.Labels, size(m.Labels), size(m.Annotations)
	slim.Bounded(m, slices.Collect(maps.Keys(m.Annotations))...)
	m.Labels = all // its bound is that of other objects
	at := field.NewPath("metadata")
	switch errs := bounds.Spec(spec, field.NewPath("spec")); {
	case labels > mostLabels:
		problem = fmt.Sprintf("%s has %d bytes, and may have at most %d", at.Child("labels"), labels, mostLabels)
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

func size(words map[string]string) (bytes int) {
	for key, value := range words {
		bytes += len(key) + len(value)
	}
	return bytes
}
