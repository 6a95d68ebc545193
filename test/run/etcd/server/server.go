// Package server builds an image of the distribution's etcd.
package server

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

// Image is the distribution's etcd, with the tools that tests use.
var Image = debian.Image{
	Name: "localhost/etcd", Packages: []string{"etcd-server", "etcd-client", "busybox-static"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		files := root.Programs(root.Path("usr/bin/etcd"), root.Path("usr/bin/etcdctl"))
		files = append(files, root.Shell("grep", "killall")...)
		return v1.Config{Env: []string{"PATH=/usr/bin:/bin"}, Entrypoint: []string{"etcd"}}, append(files, debian.Temporary()), nil
	},
}
