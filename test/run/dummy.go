package main

import (
	"context"
	"embed"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const (
	dummyFile = "config/samples/replicatedstatefulset/dummy.yaml"
	dummyTar  = "build/run/dummy.tar"
)

var dummyKey = types.NamespacedName{Namespace: place.Namespace, Name: "example"}

//go:embed dummy/*.sh
var dummyScripts embed.FS

// dummyImage is an application of shell scripts, as the original's sample had it.
var dummyImage = debian.Image{
	Name: "localhost/dummy", Packages: []string{"busybox-static"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		files := root.Shell("sleep", "od", "touch", "rm", "ls", "cat")
		scripts, err := dummyScripts.ReadDir("dummy")
		if err != nil {
			return v1.Config{}, nil, err
		}
		for _, script := range scripts {
			body, err := dummyScripts.ReadFile("dummy/" + script.Name())
			if err != nil {
				return v1.Config{}, nil, err
			}
			files = append(files, image.File{Path: "/" + script.Name(), Body: body})
		}
		return v1.Config{Env: []string{"PATH=/bin"}, Entrypoint: []string{"/idle.sh"}}, files, nil
	},
}

// applyDummy applies the first sample of ReplicatedStatefulSet as it is, but for
// its image, and prints what the original's documents print.
func (s shown) applyDummy(ctx context.Context) error {
	ref, err := dummyImage.Write(ctx, dummyTar)
	if err != nil {
		return err
	}
	if err := s.Load(ctx, ref, dummyTar); err != nil {
		return err
	}
	if err := s.Apply(ctx, dummyFile, func(sample *unstructured.Unstructured) error { return place.MemberImage(sample, ref) }); err != nil {
		return err
	}
	if _, err := s.Set(ctx, dummyKey, anyPrimary); err != nil {
		return err
	}
	out, err := s.Run(ctx, "get", "rss/example", `-o=jsonpath={"Primaries: "}{.status.members.primary}{"\n"}{"Members:   "}{.status.members.ready}{"\n"}`)
	if err == nil {
		fmt.Println(out)
	}
	return err
}

// anyPrimary is for a set in which anybody may be primary.
func anyPrimary(*v1alpha1.ReplicatedStatefulSet) string { return "" }
