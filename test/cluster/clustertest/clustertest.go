// Package clustertest gives a test a local cluster with nodes of its own.
package clustertest

import (
	"cmp"
	"context"
	"flag"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Root is the project's folder, seen from a package two folders below: a test with a local
// cluster runs there, as a user's shell does.
const Root = "../.."

var keep = flag.String("keep", "", "`name` of a local cluster that is used again and not taken down")

// Boot boots the cluster of those options, and takes it down when the test ends. With flag
// -keep it takes the cluster of that name, and leaves it there. The test goes on in Root. It
// is skipped where it does not run as root.
func Boot(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes needs root")
	}
	g, ctx := NewWithT(t), t.Context()
	options.Name, options.Log = cmp.Or(*keep, options.Name), os.Stdout
	release, err := cluster.Hold(ctx, options.Name, os.Stdout)
	g.Expect(err).To(Succeed())
	t.Cleanup(release)
	local, err := cluster.Up(ctx, options)
	g.Expect(err).To(Succeed())
	t.Cleanup(func() {
		if *keep == "" {
			g.Expect(cluster.Down(context.WithoutCancel(ctx), options.Name, os.Stdout)).To(Succeed())
		}
	})
	t.Chdir(Root)
	return local
}
