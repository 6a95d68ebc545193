// Package dummy builds an image of the original's sample application.
package dummy

import (
	"embed"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

//go:embed *.sh
var scripts embed.FS

// Image is an application of shell scripts, as in the original's sample.
var Image = debian.Image{
	Name: "localhost/dummy", Packages: []string{"busybox-static"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		files := root.Shell("sleep", "od", "touch", "rm", "ls", "cat")
		all, err := scripts.ReadDir(".")
		if err != nil {
			return v1.Config{}, nil, err
		}
		for _, script := range all {
			body, err := scripts.ReadFile(script.Name())
			if err != nil {
				return v1.Config{}, nil, err
			}
			files = append(files, image.File{Path: "/" + script.Name(), Body: body})
		}
		return v1.Config{Env: []string{"PATH=/bin"}, Entrypoint: []string{"/idle.sh"}}, files, nil
	},
}
