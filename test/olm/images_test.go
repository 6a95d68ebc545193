package olm_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// bundleImages installs the operator from a registry: the catalog is generated as by `make catalog`,
// OLM creates a pod with the catalog's image, and a job unpacks the bundle's image. Then operator-sdk
// installs the operator.
func bundleImages(t *testing.T, s *site) {
	registry := s.at(t).m.StartRegistry()
	defer registry.Close()
	s.try(t, "OLM-3 a catalog's image and bundles' images", func(s *site, ctx context.Context) { s.fromImages(ctx, registry) })
	s.try(t, "OLM-3 operator-sdk run bundle, and bundle-upgrade", func(s *site, ctx context.Context) { s.runsBundle(ctx, registry) })
}

func (s *site) fromImages(ctx context.Context, registry *olm.Registry) {
	const namespace, catalog = "from-images", "images"
	earlier, present := s.m.PushBundle(ctx, registry, s.earlier), s.m.PushBundle(ctx, registry, s.present)
	image := s.m.PushCatalog(ctx, registry, catalog, s.m.FromTemplate(ctx, catalog, earlier, present))
	s.m.ServeImage(ctx, catalog, image)
	s.m.Subscribe(ctx, olm.Subscription{Namespace: namespace, Catalog: catalog, Channel: "candidate", Start: earlier.Name})
	// Approval is automatic: the upgrade starts right after the installation.
	s.m.Succeeded(ctx, namespace, present.Name)
	s.operatorRuns(ctx, namespace, present)
	s.unpacked(ctx, earlier, present)
	s.servedByPod(ctx, catalog, image)
	s.leave(ctx, namespace)
	s.m.RemoveCatalog(ctx, catalog)
}

// unpacked checks that a job has unpacked each bundle's image.
func (s *site) unpacked(ctx context.Context, bundles ...olm.Bundle) {
	var jobs batchv1.JobList
	s.Expect(s.m.Client.List(ctx, &jobs, client.InNamespace(olm.Namespace))).To(Succeed())
	done := map[string]bool{}
	for i := range jobs.Items {
		for _, c := range jobs.Items[i].Spec.Template.Spec.InitContainers {
			done[c.Image] = done[c.Image] || jobs.Items[i].Status.Succeeded > 0
		}
	}
	for _, bundle := range bundles {
		s.Expect(done).To(HaveKeyWithValue(bundle.Image, true), "no job has unpacked it")
	}
}

// servedByPod checks that OLM created a pod with the catalog's image.
func (s *site) servedByPod(ctx context.Context, catalog, image string) {
	var pods corev1.PodList
	s.Expect(s.m.Client.List(ctx, &pods, client.InNamespace(olm.Namespace), client.MatchingLabels{"olm.catalogSource": catalog})).To(Succeed())
	runs := func(p corev1.Pod) bool {
		return p.Spec.Containers[0].Image == image && p.Status.Phase == corev1.PodRunning
	}
	s.Expect(slices.ContainsFunc(pods.Items, runs)).To(BeTrueBecause("none of %d pods of catalog %s runs %s", len(pods.Items), catalog, image))
}

func (s *site) runsBundle(ctx context.Context, registry *olm.Registry) {
	const namespace = "run-bundle"
	earlier, present := s.m.PushBundle(ctx, registry, s.earlier), s.m.PushBundle(ctx, registry, s.present)
	index := s.m.PushIndex(ctx, registry)
	s.m.MakeNamespace(ctx, namespace, nil)
	s.Expect(s.m.RunBundle(ctx, namespace, earlier.Image, index)).To(ContainSubstring("has successfully installed"))
	s.m.Succeeded(ctx, namespace, earlier.Name)
	tar := filepath.Join(s.t.TempDir(), "decompressor.tar")
	s.Expect(cluster.WriteBusybox(ctx, tar, olm.Decompressor)).To(Succeed())
	s.Expect(s.local.LoadImage(ctx, tar)).To(Succeed())
	s.m.UpgradeBundle(ctx, namespace, present.Image)
	s.m.Succeeded(ctx, namespace, present.Name)
	s.operatorRuns(ctx, namespace, present)
	s.m.CleanUp(ctx, namespace)
	s.leave(ctx, namespace)
}
