package main

import (
	"io"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stateful-operator/stateful-operator/test/manifest"
)

func TestEverySampleHasAnImageForTheLocalCluster(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/samples/replicatedstatefulset/*.yaml")
	g.Expect(err).To(Succeed())
	g.Expect(len(files)).To(BeNumerically(">=", 3))
	for _, file := range files {
		objects, err := manifest.ReadFile[*unstructured.Unstructured](file)
		g.Expect(err).To(Succeed())
		images := 0
		g.Expect(replaceImages(objects, func(image string) (string, error) {
			images++
			g.Expect(samples).To(HaveKey(image), file)
			return "replaced", nil
		})).To(Succeed())
		g.Expect(images).To(BeNumerically(">=", 1), file)
		changed, err := text(objects)
		g.Expect(err).To(Succeed())
		written, err := io.ReadAll(changed)
		g.Expect(err).To(Succeed())
		g.Expect(string(written)).To(And(ContainSubstring(`"image":"replaced"`), ContainSubstring(`"kind":"List"`)))
	}
}
