package promises_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	. "github.com/onsi/ginkgo/v2"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
	"github.com/stateful-operator/stateful-operator/test/run/dummy"
	etcd "github.com/stateful-operator/stateful-operator/test/run/etcd/server"
	galera "github.com/stateful-operator/stateful-operator/test/run/galera/server"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
	"github.com/stateful-operator/stateful-operator/test/run/program"
	rabbitmq "github.com/stateful-operator/stateful-operator/test/run/rabbitmq/server"
	"github.com/stateful-operator/stateful-operator/test/run/redis/server"
)

// writeImages writes the images of the operator and of the promises: an image with a shell that
// differs from the cluster's own, two with a witness, and one with a ledger. The core needs no others,
// and building and loading them takes more than a minute.
func (w *workshop) writeImages(ctx context.Context) error {
	shell := []image.File{{Path: "/bin/busybox", Source: "/bin/busybox"}}
	for _, applet := range []string{"sh", "cat", "date", "sleep"} {
		shell = append(shell, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	var links []image.File
	for _, name := range []string{"note", "alive"} {
		links = append(links, image.File{Path: "/" + name, Link: "witness"})
	}
	path := []string{"PATH=/bin"}
	i := &w.Images
	programs := []program.Program{
		program.Operator(w.tar()),
		{Package: "./test/faults/witness", Ref: "localhost/witness", Files: links, Env: path, Tar: w.tar()},
		{Package: "./test/faults/witness", Ref: "localhost/witness-shell", Files: append(shell, links...), Env: path, Tar: w.tar()},
		{Package: "./test/faults/ledger", Ref: "localhost/ledger", Tar: w.tar()},
	}
	fields := []*string{&w.Operator, &i.Witness, &i.WitnessShell, &i.Ledger}
	if !onlyCore {
		more, names := w.morePrograms()
		programs, fields = append(programs, more...), append(fields, names...)
	}
	refs, err := program.WriteFrom(ctx, GinkgoWriter, w.Folder, programs...)
	if err != nil {
		return err
	}
	for n, ref := range refs {
		*fields[n] = ref
	}
	i.Image, i.OtherImage = cluster.BusyboxImage, "localhost/busybox-other:1"
	if err := image.Write(w.tar(), i.OtherImage, v1.Config{Env: path}, shell...); err != nil || onlyCore {
		return err
	}
	return w.writeApplications(ctx)
}

// morePrograms returns a second image of the operator and the clients of the applications, and the fields for
// their names.
func (w *workshop) morePrograms() (programs []program.Program, fields []*string) {
	next := program.Operator(w.tar())
	next.Ref += "-next"
	client := func(folder, ref, link string) program.Program {
		p := program.Program{Package: folder, Ref: ref, User: "65532:65532", Tar: w.tar()}
		if link != "" {
			p.Files = []image.File{{Path: "/client", Link: link}}
		}
		return p
	}
	i := &w.Images
	return []program.Program{
		next,
		client("./test/run/redis/client", "localhost/redis-client", ""),
		client("./test/run/postgres/pgclient", "localhost/postgresql-client", "pgclient"),
		client("./test/run/etcd/etcdclient", "localhost/etcd-client", "etcdclient"),
		client("./test/run/galera/galeraclient", "localhost/mariadb-client", "galeraclient"),
		client("./test/run/rabbitmq/rabbitclient", "localhost/rabbitmq-client", "rabbitclient"),
	}, []*string{&i.OperatorNext, &i.RedisClient, &i.PostgreSQLClient, &i.EtcdClient, &i.MariaDBClient, &i.RabbitMQClient}
}

// writeApplications writes the images of five applications, and of the original's sample application.
func (w *workshop) writeApplications(ctx context.Context) (err error) {
	i := &w.Images
	for _, s := range []struct {
		name      string // in the names of all promises that use it, or ""
		image     debian.Image
		ref, next *string
	}{
		{"", server.Image, &i.Redis, &i.RedisNext}, {"", postgres.Image, &i.PostgreSQL, &i.PostgreSQLNext}, {"etcd", etcd.Image, &i.Etcd, &i.EtcdNext},
		{"Galera", galera.Image, &i.MariaDB, &i.MariaDBNext}, {"RabbitMQ", rabbitmq.Image, &i.RabbitMQ, &i.RabbitMQNext},
	} {
		if !slices.ContainsFunc(titles, func(n string) bool { return strings.Contains(n, s.name) }) {
			continue
		}
		if *s.ref, err = s.image.Write(ctx, w.tar()); err != nil {
			return err
		}
		s.image.Name += "-next"
		if *s.next, err = s.image.Write(ctx, w.tar()); err != nil {
			return err
		}
	}
	i.Dummy, err = dummy.Image.Write(ctx, w.tar())
	i.PostgreSQLSample = "config/samples/applications/postgresql.yaml"
	i.EtcdSample = "config/samples/applications/etcd.yaml"
	i.MariaDBSample = "config/samples/applications/mariadb-galera.yaml"
	i.RabbitMQSample = "config/samples/applications/rabbitmq.yaml"
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
