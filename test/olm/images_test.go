package olm_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
)

// bundleImages installs the operator as catalogs in registries have it: the catalog
// is the one of `make catalog`, OLM makes a pod of its image, and a job that unpacks
// the bundle's. Then operator-sdk does it by itself.
func bundleImages(t *testing.T, s *site) {
	registry, err := s.m.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	t.Run("OLM-3 a catalog's image and bundles' images", func(t *testing.T) { s.check(t, s.fromImages(t.Context(), registry)) })
	t.Run("OLM-3 operator-sdk run bundle, and bundle-upgrade", func(t *testing.T) { s.check(t, s.runsBundle(t.Context(), registry)) })
}

func (s *site) fromImages(ctx context.Context, registry *olm.Registry) error {
	const namespace, catalog = "from-images", "images"
	earlier, err := registry.PushBundle(ctx, s.earlier)
	if err != nil {
		return err
	}
	present, err := registry.PushBundle(ctx, s.present)
	if err != nil {
		return err
	}
	folder, err := s.m.Shipped(ctx, catalog, earlier, present)
	if err != nil {
		return err
	}
	image, err := registry.PushCatalog(ctx, s.m, catalog, folder)
	if err != nil {
		return err
	}
	if err := s.m.ServeImage(ctx, catalog, image); err != nil {
		return err
	}
	if err := s.m.Subscribe(ctx, olm.Subscription{Namespace: namespace, Catalog: catalog, Channel: "candidate", Start: earlier.Name}); err != nil {
		return err
	}
	// Approval is automatic: it is upgraded as soon as it is installed.
	if _, err := s.m.Succeeded(ctx, namespace, present.Name); err != nil {
		return err
	}
	if err := errors.Join(s.operatorRuns(ctx, namespace, s.presentImage), s.unpacked(ctx, earlier, present), s.servedByPod(ctx, catalog, image)); err != nil {
		return err
	}
	if err := s.leave(ctx, namespace); err != nil {
		return err
	}
	return s.m.RemoveCatalog(ctx, catalog)
}

// unpacked checks that a job has unpacked each of the bundles' images.
func (s *site) unpacked(ctx context.Context, bundles ...olm.Bundle) error {
	var jobs batchv1.JobList
	if err := s.m.Client.List(ctx, &jobs, client.InNamespace(olm.Namespace)); err != nil {
		return err
	}
	done := map[string]bool{}
	for i := range jobs.Items {
		for _, c := range jobs.Items[i].Spec.Template.Spec.InitContainers {
			done[c.Image] = done[c.Image] || jobs.Items[i].Status.Succeeded > 0
		}
	}
	for _, bundle := range bundles {
		if !done[bundle.Image] {
			return fmt.Errorf("no job has unpacked %s", bundle.Image)
		}
	}
	return nil
}

// servedByPod checks that OLM made a pod of the catalog's image.
func (s *site) servedByPod(ctx context.Context, catalog, image string) error {
	var pods corev1.PodList
	if err := s.m.Client.List(ctx, &pods, client.InNamespace(olm.Namespace), client.MatchingLabels{"olm.catalogSource": catalog}); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.Containers[0].Image == image && pods.Items[i].Status.Phase == corev1.PodRunning {
			return nil
		}
	}
	return fmt.Errorf("none of %d pods of catalog %s runs %s", len(pods.Items), catalog, image)
}

func (s *site) runsBundle(ctx context.Context, registry *olm.Registry) error {
	const namespace = "run-bundle"
	earlier, err := registry.PushBundle(ctx, s.earlier)
	if err != nil {
		return err
	}
	present, err := registry.PushBundle(ctx, s.present)
	if err != nil {
		return err
	}
	index, err := registry.PushIndex(ctx, s.m)
	if err != nil {
		return err
	}
	if err := s.m.MakeNamespace(ctx, namespace, nil); err != nil {
		return err
	}
	out, err := s.m.RunBundle(ctx, namespace, earlier.Image, index)
	s.m.Say("%s", out)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "has successfully installed") {
		return errors.New("operator-sdk does not say that it has installed the operator")
	}
	if _, err := s.m.Succeeded(ctx, namespace, earlier.Name); err != nil {
		return err
	}
	tar := filepath.Join(s.folder, "decompressor.tar")
	if err := cluster.WriteBusybox(ctx, tar, olm.Decompressor); err != nil {
		return err
	}
	if err := s.local.LoadImage(ctx, tar); err != nil {
		return err
	}
	out, err = s.m.UpgradeBundle(ctx, namespace, present.Image)
	s.m.Say("%s", out)
	if err != nil {
		return err
	}
	if _, err := s.m.Succeeded(ctx, namespace, present.Name); err != nil {
		return err
	}
	if err := s.operatorRuns(ctx, namespace, s.presentImage); err != nil {
		return err
	}
	if out, err = s.m.CleanUp(ctx, namespace); err != nil {
		return err
	}
	s.m.Say("%s", out)
	return s.leave(ctx, namespace)
}
