// Package clustertest provides a test with its own local cluster with nodes.
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

// Root is the project's folder, relative to a package two folders below. A test with a local cluster
// changes to it, as a user's shell would.
const Root = "../.."

var keep = flag.String("keep", "", "`name` of a local cluster that is reused and not deleted")

// Boot boots a cluster with these options and removes it when the test ends. With flag -keep it uses
// the cluster of that name and does not remove it. Boot changes the working directory to Root. The test
// is skipped without root.
func Boot(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes requires root")
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
