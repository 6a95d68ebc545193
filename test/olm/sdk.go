package olm

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// sdk runs operator-sdk in a cluster, and prints and returns its output.
func (m *Manager) sdk(ctx context.Context, args ...string) (said string) {
	folders, err := cluster.Build(ctx, m.log, cluster.SDK)
	m.Expect(err).To(gomega.Succeed())
	m.Say("operator-sdk %s", strings.Join(args[:3], " "))
	said = m.program(ctx, filepath.Join(folders[cluster.SDK], "operator-sdk"), args...)
	m.Say("%s", said)
	return said
}

// RunBundle installs a bundle's image with operator-sdk, which creates a catalog from it and an index
// image, and subscribes to it.
func (m *Manager) RunBundle(ctx context.Context, namespace, bundle, index string) (said string) {
	return m.sdk(ctx, "run", "bundle", bundle, "--namespace="+namespace, "--index-image="+index,
		"--decompression-image="+cluster.BusyboxImage, "--security-context-config=restricted", "--timeout=5m")
}

// Decompressor is the image in which `operator-sdk run bundle-upgrade` unpacks its catalog with cat and
// gzip. Unlike `run bundle`, it has no option for another image.
const Decompressor = "registry.access.redhat.com/ubi9/ubi:9.8"

// UpgradeBundle upgrades the installation of RunBundle to another bundle's image. The nodes must have
// the Decompressor, or reach its registry.
func (m *Manager) UpgradeBundle(ctx context.Context, namespace, bundle string) {
	m.sdk(ctx, "run", "bundle-upgrade", bundle, "--namespace="+namespace, "--security-context-config=restricted",
		"--image-pull-policy=IfNotPresent", "--timeout=5m")
}

// CleanUp removes the installation of RunBundle with operator-sdk, except CRDs and the OperatorGroup,
// which operator-sdk deletes by default.
func (m *Manager) CleanUp(ctx context.Context, namespace string) {
	m.plansComplete(ctx, namespace)
	m.sdk(ctx, "cleanup", Package, "--namespace="+namespace, "--delete-all=false", "--timeout=5m")
}
