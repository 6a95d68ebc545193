package controllers

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	clusterlabsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	statefulsingletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

// bounds.Quantities checks every field that Kubernetes decodes as a quantity, including fields that
// a later version of its API adds.
func TestEveryQuantityIsBounded(t *testing.T) {
	found := 0
	for _, object := range []any{
		corev1.Pod{}, corev1.PersistentVolumeClaim{}, appsv1.StatefulSet{}, batchv1.Job{}, corev1.Service{},
		clusterlabsv1alpha1.ReplicatedStatefulSet{}, engev1alpha1.StatefulCluster{},
		fissilev1alpha1.ExtendedStatefulSet{}, statefulsingletonv1.StatefulSingleton{},
	} {
		for _, path := range quantitiesOf(reflect.TypeOf(object), nil) {
			found++
			for _, text := range []string{`"1e9999"`, `"1\u00659999"`, `1e9999`} {
				if body := nested(path, text); bounds.Quantities([]byte(body)) == nil {
					t.Errorf("%T: %s is accepted", object, body)
				}
			}
			if body := nested(path, `"1e3"`); bounds.Quantities([]byte(body)) != nil {
				t.Errorf("%T: %s is refused", object, body)
			}
		}
	}
	if found < 50 {
		t.Errorf("found %d quantity fields, want more", found)
	}
}

// quantitiesOf returns the paths of JSON keys at which a type has quantities. "" is an element of a
// list.
func quantitiesOf(of reflect.Type, within []reflect.Type) (paths [][]string) {
	for _, outer := range within {
		if outer == of {
			return nil
		}
	}
	within = append(within[:len(within):len(within)], of)
	add := func(key string, inner reflect.Type) {
		for _, path := range quantitiesOf(inner, within) {
			paths = append(paths, append([]string{key}, path...))
		}
	}
	switch {
	case of == reflect.TypeFor[resource.Quantity]():
		return [][]string{nil}
	case of.Kind() == reflect.Pointer:
		return quantitiesOf(of.Elem(), within)
	case of.Kind() == reflect.Slice:
		add("", of.Elem())
	case of.Kind() == reflect.Map:
		add("any", of.Elem())
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			field := of.Field(i)
			key, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case key == "-" || !field.IsExported():
			case key == "" && (field.Anonymous || strings.Contains(options, "inline")):
				paths = append(paths, quantitiesOf(field.Type, within)...)
			default:
				add(key, field.Type)
			}
		}
	}
	return paths
}

// nested returns JSON with a value at a path.
func nested(path []string, value string) string {
	if len(path) == 0 {
		return value
	}
	if path[0] == "" {
		return "[" + nested(path[1:], value) + "]"
	}
	key, _ := json.Marshal(path[0])
	return "{" + string(key) + ":" + nested(path[1:], value) + "}"
}
