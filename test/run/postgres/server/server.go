// Package server builds images of the distribution's PostgreSQL.
package server

import (
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

// Packages has the packages of Files.
var Packages = []string{"postgresql", "tzdata"}

// Image has the programs of PostgreSQL that spec.application requires, and psql.
var Image = debian.Image{
	Name: "localhost/postgresql", Packages: append([]string{"busybox-static"}, Packages...),
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		home, files, err := Files(root, "pg_ctl", "pg_controldata", "pg_waldump", "pg_rewind", "pg_basebackup")
		files = append(files, root.Shell("killall")...) // initdb and pg_ctl use /bin/sh, and tests kill the server
		// As in the upstream image, PGDATA and the entry point are not what the agent uses.
		return v1.Config{Env: []string{"PATH=" + home + "/bin", "LANG=C", "PGDATA=/var/lib/postgresql/data"}, Entrypoint: []string{"docker-entrypoint.sh"}}, files, err
	},
}

// extensions that every new database has, and that of replication.
var extensions = []string{"plpgsql.so", "dict_snowball.so", "libpqwalreceiver.so"}

// Files returns PostgreSQL with psql and the named programs, and its folder in the image. It keeps the
// path of the package, because the server finds its other files relative to it.
func Files(root debian.Root, programs ...string) (home string, files []image.File, err error) {
	found, err := filepath.Glob(root.Path("usr/lib/postgresql/*/bin/postgres"))
	if err != nil || len(found) != 1 {
		return "", nil, fmt.Errorf("want one server in the packages, found %v (%w)", found, err)
	}
	folder := filepath.Dir(filepath.Dir(found[0]))
	var binaries []string
	for _, name := range append([]string{"postgres", "initdb", "psql"}, programs...) {
		binaries = append(binaries, filepath.Join(folder, "bin", name))
	}
	for _, name := range extensions {
		binaries = append(binaries, filepath.Join(folder, "lib", name))
	}
	encodings, err := filepath.Glob(filepath.Join(folder, "lib", "*_and_*.so"))
	if err != nil {
		return "", nil, err
	}
	files = append(root.Programs(append(binaries, encodings...)...), debian.Temporary())
	files = append(files, debian.User("postgres", 999)...)
	for _, tree := range []string{"/usr/share/postgresql/" + filepath.Base(folder), "/usr/share/zoneinfo"} {
		more, err := root.Tree(tree)
		if err != nil {
			return "", nil, err
		}
		files = append(files, more...)
	}
	return root.InImage(folder), files, nil
}
