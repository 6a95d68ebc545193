package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
	"github.com/stateful-operator/stateful-operator/test/run/dummy"
	"github.com/stateful-operator/stateful-operator/test/run/place"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/redis/server"
)

// samples maps the images in the samples to functions that build them locally. The nodes of the local
// cluster pull no images.
var samples = map[string]func(context.Context, place.Place) (string, error){
	"localhost/ledger": func(ctx context.Context, where place.Place) (string, error) {
		return where.Program(ctx, program.Ledger("build/run/ledger.tar"))
	},
	"docker.io/library/redis:7.0.15": packaged(server.Image, "build/run/redis.tar"),
	"docker.io/library/postgres:17":  packaged(postgres.Image, "build/run/postgresql.tar"),
	"quay.io/beekhof/dummy:latest":   packaged(dummy.Image, "build/run/dummy.tar"),
	"registry.k8s.io/e2e-test-images/busybox:1.37.0-1": func(context.Context, place.Place) (string, error) {
		return cluster.BusyboxImage, nil // part of every local cluster
	},
}

func packaged(image debian.Image, tar string) func(context.Context, place.Place) (string, error) {
	return func(ctx context.Context, where place.Place) (string, error) {
		ref, err := image.Write(ctx, tar)
		if err != nil {
			return "", err
		}
		return where.Load(ctx, ref, tar)
	}
}

// bringImages replaces the images of the samples' containers by images that the local cluster has.
func bringImages(ctx context.Context, where place.Place, objects []*unstructured.Unstructured) error {
	if where.Local == nil {
		return nil
	}
	return replaceImages(objects, func(image string) (string, error) {
		bring, known := samples[image]
		if !known {
			return image, nil
		}
		ref, err := bring(ctx, where)
		if err != nil {
			return "", fmt.Errorf("build an image to replace %s: %w", image, err)
		}
		return ref, nil
	})
}

// replaceImages replaces the images of the containers of ReplicatedStatefulSets.
func replaceImages(objects []*unstructured.Unstructured, by func(image string) (string, error)) error {
	for _, object := range objects {
		if object.GetKind() != "ReplicatedStatefulSet" {
			continue
		}
		containers, found, err := unstructured.NestedSlice(object.Object, "spec", "pod", "containers")
		if err != nil || !found {
			continue // the plugin reports the error
		}
		for _, item := range containers {
			container, isObject := item.(map[string]any)
			image, isText := container["image"].(string)
			if !isObject || !isText {
				continue
			}
			if container["image"], err = by(image); err != nil {
				return err
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, containers, "spec", "pod", "containers"); err != nil {
			return fmt.Errorf("replace images of %s: %w", object.GetName(), err)
		}
	}
	return nil
}
