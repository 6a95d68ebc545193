// Package server builds an image of the distribution's Redis.
package server

import (
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

// Image is the distribution's Redis, with the tools that the sample's commands use.
var Image = debian.Image{
	Name: "localhost/redis", Packages: []string{"redis-server", "busybox-static"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		files := root.Programs(root.Path("usr/bin/redis-server"), root.Path("usr/bin/redis-cli"))
		files = append(files, root.Shell("cat", "date", "grep", "kill", "killall", "ls", "rm", "sed", "seq", "setsid", "sleep", "timeout", "tr")...)
		files = append(files, debian.User("redis", 999)...)
		return v1.Config{
			Env: []string{"PATH=/usr/bin:/bin"}, Entrypoint: []string{"redis-server"}, User: "999:999",
		}, append(files, debian.Temporary()), nil
	},
}
