package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const coderFile = "config/samples/statefulcluster/coder.yaml"

var coderKey = types.NamespacedName{Namespace: place.Namespace, Name: "coder"}

// applyCoder applies the sample of StatefulCluster with another image, and waits until it is Ready.
func (s shown) applyCoder(ctx context.Context) error {
	image, err := s.Program(ctx, coder)
	if err != nil {
		return err
	}
	err = s.Apply(ctx, coderFile, func(sample *unstructured.Unstructured) error {
		// Keep a replica count that the user has changed.
		var before engev1alpha1.StatefulCluster
		if err := s.Client.Get(ctx, coderKey, &before); err == nil && before.Spec.Replicas != nil {
			// Omitting it in a server-side apply would remove it, and reset it to 1.
			if err := unstructured.SetNestedField(sample.Object, int64(*before.Spec.Replicas), "spec", "replicas"); err != nil {
				return err
			}
		}
		return place.Template(sample, func(pod *corev1.PodSpec) { pod.Containers[0].Image = image })
	})
	if err != nil {
		return err
	}
	return s.Until(ctx, func(ctx context.Context) (bool, string, error) {
		var set engev1alpha1.StatefulCluster
		err := s.Client.Get(ctx, coderKey, &set)
		status, want := set.Status, int32(1)
		if set.Spec.Replicas != nil {
			want = *set.Spec.Replicas
		}
		done := status.ObservedGeneration >= set.Generation && status.Replicas == want &&
			status.ReadyReplicas == want && status.UpdatedReplicas == want
		return done, fmt.Sprintf("coder: %d of %d members ready, %d of the current revision", status.ReadyReplicas, want, status.UpdatedReplicas), err
	})
}
