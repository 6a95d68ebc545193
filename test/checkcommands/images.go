package main

import (
	"context"
	"fmt"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
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

// bringImages replaces the images of a sample's containers by images that the local cluster has.
func bringImages(ctx context.Context, where place.Place, set *v1alpha1.ReplicatedStatefulSet) error {
	for i := range set.Spec.Pod.Containers {
		c := &set.Spec.Pod.Containers[i]
		bring, known := samples[c.Image]
		if !known || where.Local == nil {
			continue
		}
		ref, err := bring(ctx, where)
		if err != nil {
			return fmt.Errorf("build an image to replace %s: %w", c.Image, err)
		}
		c.Image = ref
	}
	return nil
}
