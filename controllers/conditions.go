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

// What a scrape is given at most. A tenant can make many objects, and who may write a
// status can write many conditions.
const (
	// mostObjects is how many objects of a kind have figures: the first ones by name.
	mostObjects = 10000
	// mostLetters is how long a reason may be.
	mostLetters = 64
	// scrapeWithin is how long a cache that is not filled yet is waited for.
	scrapeWithin = 2 * time.Second
)

var (
	conditionDesc = prometheus.NewDesc("stateful_operator_condition",
		"Conditions of objects: 1 while a condition is True, else 0.", []string{"kind", "namespace", "name", "type", "reason"}, nil)
	leftOutDesc = prometheus.NewDesc("stateful_operator_condition_objects_left_out",
		"Objects of a kind whose conditions have no figures, since there are too many.", []string{"kind"}, nil)
)

// conditionMetrics tells the conditions of all objects, as the cache has them at a scrape: so
// the figures go with their object. It does so while this process leads, because of two
// that tell each would be counted twice.
type conditionMetrics struct {
	reader   client.Reader
	registry prometheus.Registerer
	kinds    []kind
}

// Start tells until ctx ends.
func (m *conditionMetrics) Start(ctx context.Context) error {
	err := m.registry.Register(m)
	if registered := (prometheus.AlreadyRegisteredError{}); errors.As(err, &registered) {
		return nil // by another manager of this process
	}
	if err != nil {
		return fmt.Errorf("registering the metrics of conditions: %w", err)
	}
	<-ctx.Done()
	m.registry.Unregister(m)
	return nil
}

// Describe names the metrics.
func (m *conditionMetrics) Describe(found chan<- *prometheus.Desc) {
	found <- conditionDesc
	found <- leftOutDesc
}

// Collect reads the cache. What it cannot say it leaves out: a scrape has other figures.
func (m *conditionMetrics) Collect(found chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeWithin)
	defer cancel()
	for _, k := range m.kinds {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok || m.reader.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			continue
		}
		objects := k.conditioned(list)
		left := max(len(objects)-mostObjects, 0)
		for _, o := range objects[:len(objects)-left] {
			o.tell(k.name, found)
		}
		found <- prometheus.MustNewConstMetric(leftOutDesc, prometheus.GaugeValue, float64(left), k.name)
	}
}

// withConditions is an object as the metrics see it.
type withConditions struct {
	namespace, name string
	conditions      []metav1.Condition
}

// conditioned are the objects of a list, by name: which ones are left out must not change
// from scrape to scrape.
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

// of reads the conditions of an object of one type.
func of[T client.Object](conditions func(T) []metav1.Condition) func(client.Object) []metav1.Condition {
	return func(object client.Object) []metav1.Condition {
		if typed, ok := object.(T); ok {
			return conditions(typed)
		}
		return nil
	}
}

// tell tells the conditions of an object. One with a name or a reason that no condition of
// ours has is not told: it is somebody's who may write the status.
func (o withConditions) tell(kind string, found chan<- prometheus.Metric) {
	told := map[string]bool{}
	for _, c := range o.conditions {
		tooLong := max(len(c.Type), len(c.Reason)) > mostLetters
		if tooLong || told[c.Type] || len(told) == slim.MostConditions {
			continue
		}
		told[c.Type] = true
		value := 0.0
		if c.Status == metav1.ConditionTrue {
			value = 1
		}
		metric, err := prometheus.NewConstMetric(conditionDesc, prometheus.GaugeValue, value, kind, o.namespace, o.name, c.Type, c.Reason)
		if err == nil { // else it is no text
			found <- metric
		}
	}
}
