package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
)

// Limits of a scrape. A tenant can create many objects, and a user with rights on the status can
// write many conditions.
const (
	// maxObjects is the max number of objects of a kind with metrics: the first ones by name.
	maxObjects = 10000
	// maxLetters is the max length of a condition type or reason.
	maxLetters = 64
	// scrapeWithin is the max time to wait for a cache that is not synced yet.
	scrapeWithin = 2 * time.Second
)

var (
	conditionDesc = prometheus.NewDesc("stateful_operator_condition",
		"Conditions of objects: 1 while a condition is True, else 0.", []string{"kind", "namespace", "name", "type", "reason"}, nil)
	leftOutDesc = prometheus.NewDesc("stateful_operator_condition_objects_left_out",
		"Objects of a kind whose conditions have no metrics, because there are too many objects.", []string{"kind"}, nil)
)

// conditionMetrics reports the conditions of all objects in the cache at each scrape, so the
// metrics are removed with their object. It is registered only while this process leads: with two
// reporters each condition would be counted twice.
type conditionMetrics struct {
	reader   client.Reader
	registry prometheus.Registerer
	kinds    []kind
}

// Start reports conditions until ctx ends.
func (m *conditionMetrics) Start(ctx context.Context) error {
	err := m.registry.Register(m)
	if registered := (prometheus.AlreadyRegisteredError{}); errors.As(err, &registered) {
		return nil // registered by another manager of this process
	}
	if err != nil {
		return fmt.Errorf("register the metrics of conditions: %w", err)
	}
	<-ctx.Done()
	m.registry.Unregister(m)
	return nil
}

// Describe sends the descriptions of the metrics.
func (m *conditionMetrics) Describe(found chan<- *prometheus.Desc) {
	found <- conditionDesc
	found <- leftOutDesc
}

// Collect reads the cache. On errors it omits the kind, so that the scrape returns the other
// metrics.
func (m *conditionMetrics) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	for _, k := range m.kinds {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok || m.reader.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			continue
		}
		objects := k.conditioned(list)
		left := max(len(objects)-maxObjects, 0)
		for _, o := range objects[:len(objects)-left] {
			o.tell(k.name, found)
		}
		found <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.GaugeValue, float64(left), k.name)
	}
}

// withConditions is the part of an object that the metrics use.
type withConditions struct {
	namespace, name string
	conditions      []metav1.Condition
}

// conditioned returns the objects of a list, sorted by name: the omitted ones must not change from
// scrape to scrape.
func (k kind) conditioned(list client.ObjectList) []withConditions {
	var all []withConditions
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
		if object, ok := item.(client.Object); ok {
			all = append(all, withConditions{object.GetNamespace(), object.GetName(), k.conditions(object)})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b withConditions) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return all
}

// of adapts a typed getter of conditions to any object.
func of[T client.Object](conditions func(T) []metav1.Condition) func(client.Object) []metav1.Condition {
	return func(object client.Object) []metav1.Condition {
		if typed, ok := object.(T); ok {
			return conditions(typed)
		}
		return nil
	}
}

// tell sends the conditions of an object, at most slim.MaxConditions. It skips types and reasons
// that are longer than the operator's: another user with rights on the status has written them.
func (o withConditions) tell(kind string, found chan<- prometheus.Metric) {
	told := map[string]bool{}
	for _, c := range o.conditions {
		tooLong := max(len(c.Type), len(c.Reason)) > maxLetters
		if tooLong || told[c.Type] || len(told) == slim.MaxConditions {
			continue
		}
		told[c.Type] = true
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		metric, err := prometheus.NewConstMetric(conditionDesc, prometheus.GaugeValue, value, kind, o.namespace, o.name, c.Type, c.Reason)
		if err == nil { // otherwise the value is not valid UTF-8
			found <- metric
		}
	}
}
