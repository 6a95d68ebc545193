// Package scorecard runs operator-sdk's scorecard, with images that are built here without a container
// engine.
package scorecard

import (
	"context"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// BuiltIn is the image of the built-in tests, for the version of operator-sdk in tools/operator-sdk.
const BuiltIn = "quay.io/operator-framework/scorecard-test:v1.42.3"

const user = "65532:65532"

// WriteImage writes the image of the custom tests, equivalent to scorecard/Dockerfile. The image other
// is for promises that need a second one.
func WriteImage(ctx context.Context, tar, ref, other string) (string, error) {
	files, err := cluster.BusyboxFiles(ctx)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"note", "alive"} {
		files = append(files, image.File{Path: "/" + name, Link: "witness"})
	}
	p := program.Program{
		Package: "./scorecard", Tests: "./scorecard/promises", With: []string{"./test/faults/witness", "./test/faults/ledger"},
		Files: files, Env: []string{cluster.BusyboxPath, "PROMISES_OTHER_IMAGE=" + other},
		Ref: ref, User: user, Tar: tar,
	}
	return p.Write(ctx)
}

// WriteBuiltIn writes the image of the built-in tests. It contains tar, so it also unpacks bundles for
// all tests (--untar-image).
func WriteBuiltIn(ctx context.Context, tar string) error {
	folder, err := programs(ctx)
	if err != nil {
		return err
	}
	files, err := cluster.BusyboxFiles(ctx)
	if err != nil {
		return err
	}
	files = append(files, image.File{Path: "/bin/scorecard-test", Source: filepath.Join(folder, "scorecard-test")})
	return image.Write(tar, BuiltIn, v1.Config{User: user, Env: []string{cluster.BusyboxPath}}, files...)
}

// programs returns the folder of operator-sdk and its tests.
func programs(ctx context.Context) (string, error) {
	folders, err := cluster.Build(ctx, os.Stderr, cluster.SDK)
	return folders[cluster.SDK], err
}
