package promises_test

import (
	"context"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/ginkgo/v2"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/dummy"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	"github.com/stateful-operator/stateful-operator/test/run/redis/server"
)

// writeImages writes the images of the operator and of the promises: an image with a shell that
// differs from the cluster's own, two with a witness, one with a ledger, Redis and PostgreSQL with their clients, and
// the original's sample application.
func (w *workshop) writeImages(ctx context.Context) (err error) {
	shell := []image.File{{Path: "/bin/busybox", Source: "/bin/busybox"}}
	for _, applet := range []string{"sh", "cat", "date", "sleep"} {
		shell = append(shell, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	var links []image.File
	for _, name := range []string{"note", "alive"} {
		links = append(links, image.File{Path: "/" + name, Link: "witness"})
	}
	path := []string{"PATH=/bin"}
	programs := []program.Program{
		program.Operator(w.tar()),
		{Package: "./test/faults/witness", Ref: "localhost/witness", Files: links, Env: path, Tar: w.tar()},
		{Package: "./test/faults/witness", Ref: "localhost/witness-shell", Files: append(shell, links...), Env: path, Tar: w.tar()},
		{Package: "./test/faults/ledger", Ref: "localhost/ledger", Tar: w.tar()},
		{Package: "./test/run/redis/client", Ref: "localhost/redis-client", User: "65532:65532", Tar: w.tar()},
		{Package: "./test/run/postgres/pgclient", Ref: "localhost/postgresql-client", User: "65532:65532", Tar: w.tar(),
			Files: []image.File{{Path: "/client", Link: "pgclient"}}},
	}
	refs, err := program.WriteFrom(ctx, GinkgoWriter, w.Folder, programs...)
	if err != nil {
		return err
	}
	w.Operator = refs[0]
	i := &w.Images
	i.Witness, i.WitnessShell, i.Ledger, i.RedisClient, i.PostgreSQLClient = refs[1], refs[2], refs[3], refs[4], refs[5]
	i.Image, i.OtherImage = cluster.BusyboxImage, "localhost/busybox-other:1"
	if err := image.Write(w.tar(), i.OtherImage, v1.Config{Env: path}, shell...); err != nil {
		return err
	}
	if i.Redis, err = server.Image.Write(ctx, w.tar()); err != nil {
		return err
	}
	if i.PostgreSQL, err = postgres.Image.Write(ctx, w.tar()); err != nil {
		return err
	}
	next := server.Image
	next.Name += "-next"
	if i.RedisNext, err = next.Write(ctx, w.tar()); err != nil {
		return err
	}
	next = postgres.Image
	next.Name += "-next"
	if i.PostgreSQLNext, err = next.Write(ctx, w.tar()); err != nil {
		return err
	}
	i.Dummy, err = dummy.Image.Write(ctx, w.tar())
	i.PostgreSQLSample = "config/samples/applications/postgresql.yaml"
	i.RedisInLines = "config/samples/applications/redis.yaml"
	i.RedisSample = "config/samples/replicatedstatefulset/redis.yaml"
	i.DummySample = "config/samples/replicatedstatefulset/dummy.yaml"
	return err
}

// tar returns the path of a new image archive.
func (w *workshop) tar() string {
	w.Tars = append(w.Tars, filepath.Join(w.Folder, fmt.Sprint("image-", len(w.Tars), ".tar")))
	return w.Tars[len(w.Tars)-1]
}
