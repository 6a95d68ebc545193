package main

import (
	_ "embed" // entrypoint.sh

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
)

//go:embed entrypoint.sh
var entrypoint []byte

// databaseImage is the distribution's PostgreSQL with the entry point of the sample.
var databaseImage = debian.Image{
	Name: "localhost/postgres", Packages: append([]string{"busybox-static"}, postgres.Packages...), Choose: choose,
}

// choose returns the files of the packages that the sample's programs need.
func choose(root debian.Root) (v1.Config, []image.File, error) {
	home, files, err := postgres.Files(root, "pg_isready")
	if err != nil {
		return v1.Config{}, nil, err
	}
	files = append(files, image.File{Path: "/usr/local/bin/docker-entrypoint.sh", Body: entrypoint})
	files = append(files, root.Shell("mkdir", "chmod", "rm", "ls", "cat", "kill")...)
	return v1.Config{
		Env:        []string{"PATH=" + home + "/bin:/usr/local/bin:/bin", "LANG=C"},
		Entrypoint: []string{"docker-entrypoint.sh"}, Cmd: []string{"postgres"}, StopSignal: "SIGINT", User: "999:999",
	}, files, nil
}
