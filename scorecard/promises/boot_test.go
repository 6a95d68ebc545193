package promises_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/dummy"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/redis/server"
)

// root is the project's folder.
const root = "../.."

// boot boots a local cluster of its own with four nodes, and deploys the
// operator from its image.
func boot(ctx context.Context, t *testing.T, c *promises.Cluster) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes needs root; set KUBECONFIG to use another one")
	}
	name := cmp.Or(*keep, "promises")
	release, err := cluster.Hold(ctx, name, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	local, err := cluster.Up(ctx, cluster.Options{Name: name, Nodes: 4, Log: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if *keep != "" {
			return
		}
		if err := cluster.Down(context.WithoutCancel(ctx), name, os.Stdout); err != nil {
			t.Error(err)
		}
	})
	c.Nodes, c.Image = local, cluster.BusyboxImage
	// Of the folders of this machine the nodes have a few for themselves, and
	// the cluster's is none of them.
	c.Shared = filepath.Join(local.Dir(), "witness")
	t.Chdir(root)
	t.Cleanup(func() { compareRights(t, c, local) })
	folder := t.TempDir()
	c.BuildOperator = func(ctx context.Context) (string, error) {

		return buildProgram(ctx, filepath.Join(folder, "operator"), ".")
	}
	operator := program.Operator(filepath.Join(folder, "operator.tar"))
	ref, err := operator.Write(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tars := append(writeImages(ctx, t, c, folder), operator.Tar)
	tars = append(tars, writeRedis(ctx, t, c, folder)...)
	for _, tar := range tars {
		if err := local.LoadImage(ctx, tar); err != nil {
			t.Fatal(err)
		}
	}
	deploy := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+ref)
	deploy.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig(), "PATH="+local.Programs()+":"+os.Getenv("PATH"))
	if out, err := deploy.CombinedOutput(); err != nil {
		t.Fatalf("make deploy: %v\n%s", err, out)
	}
	return local.Kubeconfig()
}

// writeImages writes the images that the promises run: one with a shell that
// differs from the cluster's own, two with a witness, and one with a ledger. It returns their tars.
func writeImages(ctx context.Context, t *testing.T, c *promises.Cluster, folder string) []string {
	t.Helper()
	shell := []image.File{{Path: "/bin/busybox", Source: "/bin/busybox"}}
	for _, applet := range []string{"sh", "cat", "date", "sleep"} {
		shell = append(shell, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	witness := []image.File{{Path: "/witness", Source: filepath.Join(folder, "witness")}}
	for _, name := range []string{"note", "alive"} {
		witness = append(witness, image.File{Path: "/" + name, Link: "witness"})
	}
	ledger := []image.File{{Path: "/ledger", Source: filepath.Join(folder, "ledger")}}
	for _, name := range []string{"witness", "ledger"} {
		if _, err := buildProgram(ctx, filepath.Join(folder, name), "./test/faults/"+name); err != nil {
			t.Fatal(err)
		}
	}
	tag := tagOf(t, witness[0].Source)
	c.OtherImage, c.Witness, c.WitnessShell = "localhost/busybox-other:1", "localhost/witness"+tag, "localhost/witness-shell"+tag
	c.Ledger = "localhost/ledger" + tagOf(t, ledger[0].Source)
	config := v1.Config{Env: []string{"PATH=/bin"}, Entrypoint: []string{"/witness"}}
	var tars []string
	for _, i := range []struct {
		ref    string
		config v1.Config
		files  []image.File
	}{
		{c.OtherImage, v1.Config{Env: []string{"PATH=/bin"}}, shell},
		{c.Witness, config, witness},
		{c.Ledger, v1.Config{}, ledger},
		{c.WitnessShell, config, append(shell, witness...)},
	} {
		tar := filepath.Join(folder, fmt.Sprint("image-", len(tars), ".tar"))
		if err := image.Write(tar, i.ref, i.config, i.files...); err != nil {
			t.Fatal(err)
		}
		tars = append(tars, tar)
	}
	return tars
}

// buildProgram builds a main package, and says where it is then.
func buildProgram(ctx context.Context, program, source string) (string, error) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", source, err, out)
	}
	return program, nil
}

// writeRedis writes the images of a server that people run, of its client, and of the
// original's sample application.
func writeRedis(ctx context.Context, t *testing.T, c *promises.Cluster, folder string) (tars []string) {
	t.Helper()
	client := program.Program{Package: "./test/run/redis/client", Ref: "localhost/redis-client", User: "65532:65532", Tar: filepath.Join(folder, "redis-client.tar")}
	tar := filepath.Join(folder, "redis.tar")
	var err error
	if c.Redis, err = server.Image.Write(ctx, tar); err != nil {
		t.Fatal(err)
	}
	if c.RedisClient, err = client.Write(ctx); err != nil {
		t.Fatal(err)
	}
	c.RedisSample = "config/samples/replicatedstatefulset/redis.yaml" // tests run in root
	dummyTar := filepath.Join(folder, "dummy.tar")
	if c.Dummy, err = dummy.Image.Write(ctx, dummyTar); err != nil {
		t.Fatal(err)
	}
	c.DummySample = "config/samples/replicatedstatefulset/dummy.yaml"
	return []string{tar, client.Tar, dummyTar}
}

// tagOf names a program by its content: nodes keep images.
func tagOf(t *testing.T, program string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(":%x", sha256.Sum256(content))[:12]
}
