// Package server builds an image of RabbitMQ. That of the stable distribution is older than all supported
// versions, so the packages come from the next one.
package server

import (
	"errors"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

// tools are programs that the scripts of RabbitMQ and Erlang use.
var tools = []string{"dirname", "readlink", "basename", "expr", "cat", "date", "mkdir", "env", "df", "grep", "sed", "killall", "tr", "cut", "head"}

// Image is RabbitMQ, with the tools that tests use.
var Image = debian.Image{
	Name: "localhost/rabbitmq", Suite: "forky", Packages: []string{"rabbitmq-server", "busybox-static", "dash", "coreutils", "sed", "grep"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		files := append(root.Shell(tools...), debian.Temporary(), image.File{Path: "/usr/bin/env", Link: "/bin/busybox"})
		files = append(files, debian.User("rabbitmq", 999)...)
		var programs []string
		for _, folder := range []string{"/usr/lib/erlang", "/usr/lib/rabbitmq/lib"} {
			tree, err := root.Tree(folder)
			if err != nil {
				return v1.Config{}, nil, err
			}
			for i := range tree {
				if filepath.Ext(tree[i].Path) != ".beam" {
					tree[i].Mode = 0o755 // it can be a program
					programs = append(programs, tree[i].Source)
				}
			}
			files = append(files, tree...)
		}
		scripts, err := filepath.Glob(root.Path("/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin"))
		if err != nil || len(scripts) != 1 {
			return v1.Config{}, nil, errors.Join(errors.New("the package has no folder with scripts"), err)
		}
		return v1.Config{Env: []string{"PATH=" + root.InImage(scripts[0]) + ":/usr/lib/erlang/bin:/bin"}, Entrypoint: []string{"docker-entrypoint.sh"}},
			append(files, libraries(root, programs)...), nil
	},
}

// libraries returns what programs link, without the programs.
func libraries(root debian.Root, programs []string) []image.File {
	all := root.Programs(programs...)
	has := map[string]bool{}
	for _, p := range programs {
		has[root.InImage(p)] = true
	}
	var files []image.File
	for _, f := range all {
		if !has[f.Path] {
			files = append(files, f)
		}
	}
	return files
}
