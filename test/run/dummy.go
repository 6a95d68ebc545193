package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/run/dummy"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const (
	dummyFile = "config/samples/replicatedstatefulset/dummy.yaml"
	dummyTar  = "build/run/dummy.tar"
)

var dummyKey = types.NamespacedName{Namespace: place.Namespace, Name: "example"}

// applyDummy applies the first sample of ReplicatedStatefulSet with another image, and prints the
// output that the original's documentation shows.
func (s shown) applyDummy(ctx context.Context) error {
	ref := dummy.Image.Name + ":simulated"
	if s.Kind != place.Simulated {
		made, err := dummy.Image.Write(ctx, dummyTar)
		if err != nil {
			return err
		}
		if ref, err = s.Load(ctx, made, dummyTar); err != nil {
			return err
		}
	}
	if err := s.Apply(ctx, dummyFile, func(sample *unstructured.Unstructured) error { return place.MemberImage(sample, ref) }); err != nil {
		return err
	}
	if _, err := s.Set(ctx, dummyKey, anyPrimary); err != nil {
		return err
	}
	out, err := s.Run(ctx, "get", "rss/example", `-o=jsonpath={"example: Primaries: "}{.status.members.primary}{"\n"}{"example: Members:   "}{.status.members.ready}{"\n"}`)
	if err == nil {
		fmt.Println(out)
	}
	return err
}

// anyPrimary is for a set in which every member may be primary.
func anyPrimary(*v1alpha1.ReplicatedStatefulSet) string { return "" }
