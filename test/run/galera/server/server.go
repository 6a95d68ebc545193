// Package server builds an image of the distribution's MariaDB with Galera.
package server

import (
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/debian"
)

// programs are those of MariaDB, and those that its scripts for copies use.
var programs = []string{
	"mariadbd", "mariadb-install-db", "mariadb", "mariadb-backup", "mbstream", "my_print_defaults", "resolveip", "wsrep_sst_common", "wsrep_sst_mariabackup",
	"bash", "socat", "ss", "mawk", "sed", "grep", "find", "xargs", "ps", "sysctl", "hostname",
	"basename", "cat", "chmod", "chown", "cp", "cut", "date", "dirname", "du", "env", "expr", "head", "id", "ls", "mkdir", "mktemp", "mv",
	"printf", "readlink", "rm", "rmdir", "sleep", "sort", "stat", "tail", "timeout", "touch", "tr", "uname", "wc",
}

// Image is the distribution's MariaDB, with the tools that tests use.
var Image = debian.Image{
	Name: "localhost/mariadb",
	Packages: []string{"mariadb-server", "mariadb-backup", "galera-4", "socat", "bash", "iproute2", "mawk", "sed", "grep", "findutils", "procps",
		"hostname", "coreutils", "busybox-static"},
	Choose: func(root debian.Root) (v1.Config, []image.File, error) {
		paths := []string{root.Path("usr/lib/galera/libgalera_smm.so")}
		for _, name := range programs {
			path, err := find(root, name)
			if err != nil {
				return v1.Config{}, nil, err
			}
			paths = append(paths, path)
		}
		files := append(root.Programs(paths...), root.Shell("killall")...)
		files = append(files, image.File{Path: "/usr/bin/awk", Link: "mawk"}, debian.Temporary())
		files = append(files, debian.User("mysql", 999)...)
		shared, err := root.Tree("/usr/share/mysql")
		return v1.Config{Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, Entrypoint: []string{"docker-entrypoint.sh"}}, append(files, shared...), err
	},
}

// find returns the path of a program.
func find(root debian.Root, name string) (string, error) {
	for _, folder := range []string{"usr/sbin/", "usr/bin/", "sbin/", "bin/"} {
		if _, err := os.Stat(root.Path(folder + name)); err == nil {
			return root.Path(folder + name), nil
		}
	}
	return "", fmt.Errorf("no package has a program %s", name)
}
