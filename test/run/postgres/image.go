package main

import (
	_ "embed" // entrypoint.sh
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

//go:embed entrypoint.sh
var entrypoint []byte

// programs of PostgreSQL that are in the image.
var programs = []string{"postgres", "initdb", "psql", "pg_isready"}

// extensions that every new database has.
var extensions = []string{"plpgsql.so", "dict_snowball.so"}

// databaseImage is the distribution's PostgreSQL.
var databaseImage = debian.Image{
	Name: "localhost/postgres", Packages: []string{"postgresql", "tzdata", "busybox-static"}, Choose: choose,
}

// choose returns the files of the packages that the sample's programs need. PostgreSQL keeps its path
// in the package, because the server finds its other files relative to it.
func choose(root debian.Root) (v1.Config, []image.File, error) {
	found, err := filepath.Glob(root.Path("usr/lib/postgresql/*/bin/postgres"))
	if err != nil || len(found) != 1 {
		return v1.Config{}, nil, fmt.Errorf("want one server in the packages, found %v (%w)", found, err)
	}
	home := filepath.Dir(filepath.Dir(found[0]))
	var binaries []string
	for _, name := range programs {
		binaries = append(binaries, filepath.Join(home, "bin", name))
	}
	for _, name := range extensions {
		binaries = append(binaries, filepath.Join(home, "lib", name))
	}
	encodings, err := filepath.Glob(filepath.Join(home, "lib", "*_and_*.so"))
	if err != nil {
		return v1.Config{}, nil, err
	}
	files := append(root.Programs(append(binaries, encodings...)...), debian.Temporary(),
		image.File{Path: "/usr/local/bin/docker-entrypoint.sh", Body: entrypoint})
	files = append(files, root.Shell("mkdir", "chmod", "rm", "ls", "cat", "kill")...)
	files = append(files, debian.User("postgres", 999)...)
	for _, tree := range []string{"/usr/share/postgresql/" + filepath.Base(home), "/usr/share/zoneinfo"} {
		more, err := root.Tree(tree)
		if err != nil {
			return v1.Config{}, nil, err
		}
		files = append(files, more...)
	}
	return v1.Config{
		Env:        []string{"PATH=" + root.InImage(home) + "/bin:/usr/local/bin:/bin", "LANG=C"},
		Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"postgres"}, StopSignal: "SIGINT", User: "999:999",
	}, files, nil
}
