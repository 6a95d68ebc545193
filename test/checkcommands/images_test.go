package main

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEverySampleHasAnImageForTheLocalCluster(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/samples/replicatedstatefulset/*.yaml")
	g.Expect(err).To(Succeed())
	g.Expect(len(files)).To(BeNumerically(">=", 3))
	for _, file := range files {
		m, err := readManifest(file)
		g.Expect(err).To(Succeed())
		for _, set := range m.sets {
			for i := range set.Spec.Pod.Containers {
				g.Expect(samples).To(HaveKey(set.Spec.Pod.Containers[i].Image), file)
			}
		}
	}
}
