package main

import (
	"path/filepath"
	"testing"
)

func TestEverySampleHasAnImageForTheLocalCluster(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/replicatedstatefulset/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("found %q, %v", files, err)
	}
	for _, file := range files {
		m, err := readManifest(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range m.sets {
			for i := range set.Spec.Pod.Containers {
				if image := set.Spec.Pod.Containers[i].Image; samples[image] == nil {
					t.Errorf("%s: nobody makes %s", file, image)
				}
			}
		}
	}
}
