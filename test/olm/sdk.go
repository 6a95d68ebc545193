package olm

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// sdk runs operator-sdk in a cluster, and prints what it says.
func (m *Manager) sdk(ctx context.Context, args ...string) (said string) {
	folders, err := cluster.Build(ctx, m.log, cluster.SDK)
	m.Expect(err).To(gomega.Succeed())
	m.Say("operator-sdk %s", strings.Join(args[:3], " "))
	said = m.program(ctx, filepath.Join(folders[cluster.SDK], "operator-sdk"), args...)
	m.Say("%s", said)
	return said
}

// RunBundle installs a bundle's image with operator-sdk, which makes a catalog of
// it and an index image, and subscribes to it.
func (m *Manager) RunBundle(ctx context.Context, namespace, bundle, index string) (said string) {
	return m.sdk(ctx, "run", "bundle", bundle, "--namespace="+namespace, "--index-image="+index,
		"--decompression-image="+cluster.BusyboxImage, "--security-context-config=restricted", "--timeout=5m")
}

// Decompressor is the image in which `operator-sdk run bundle-upgrade` unpacks its
// catalog, by the names of cat and gzip. Unlike `run bundle` it takes no other one.
const Decompressor = "registry.access.redhat.com/ubi9/ubi:9.8"

// UpgradeBundle upgrades what RunBundle made to another bundle's image. The nodes
// must have the Decompressor, or reach its registry.
func (m *Manager) UpgradeBundle(ctx context.Context, namespace, bundle string) {
	m.sdk(ctx, "run", "bundle-upgrade", bundle, "--namespace="+namespace, "--security-context-config=restricted",
		"--image-pull-policy=IfNotPresent", "--timeout=5m")
}

// CleanUp removes with operator-sdk what RunBundle made, but for CRDs and the
// OperatorGroup: by default it deletes those too.
func (m *Manager) CleanUp(ctx context.Context, namespace string) {
	m.plansComplete(ctx, namespace)
	m.sdk(ctx, "cleanup", Package, "--namespace="+namespace, "--delete-all=false", "--timeout=5m")
}
