package postgresql

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// required are the programs that the image must contain.
var required = []string{"postgres", "initdb", "pg_ctl", "pg_controldata", "pg_waldump", "pg_rewind", "pg_basebackup"}

// otherFolders are searched after PATH. They are those of Debian's and of PostgreSQL's own packages.
var otherFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"}

const (
	oldestMajor = 13
	maxOutput   = 2000
)

var versionLine = regexp.MustCompile(`^postgres \(PostgreSQL\) (\d+)`)

// installation is a folder with the programs of one version.
type installation struct {
	folder string
	major  string
}

// installed returns the programs for a version, or the first ones in PATH if the version is empty.
func (s *Server) installed(ctx context.Context, major string) (installation, error) {
	folders := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range otherFolders {
		more, _ := filepath.Glob(pattern) // the patterns are correct
		folders = append(folders, more...)
	}
	var others []string
	for _, folder := range folders {
		if !filepath.IsAbs(folder) || !hasPrograms(folder) {
			continue
		}
		found, err := s.versionOf(ctx, folder)
		if err != nil {
			return installation{}, err
		}
		if major == "" || found == major {
			return installation{folder, found}, nil
		}
		others = append(others, found)
	}
	if len(others) > 0 {
		return installation{}, driver.Errorf(driver.NotInstalled,
			"the data in %s is of PostgreSQL %s, and the image has %s: use an image of version %s, or upgrade the data",
			s.config.DataDir, major, strings.Join(slices.Compact(others), ", "), major)
	}
	return installation{}, driver.Errorf(driver.NotConfigured, "the image does not contain %s of one version in PATH or in %s",
		strings.Join(required, ", "), strings.Join(otherFolders, ", "))
}

func hasPrograms(folder string) bool {
	return !slices.ContainsFunc(required, func(name string) bool {
		info, err := os.Stat(filepath.Join(folder, name))
		return err != nil || !info.Mode().IsRegular()
	})
}

func (s *Server) versionOf(ctx context.Context, folder string) (string, error) {
	out, err := s.output(ctx, filepath.Join(folder, "postgres"), "--version")
	if err != nil {
		return "", err
	}
	match := versionLine.FindStringSubmatch(out)
	if match == nil {
		return "", driver.Errorf(driver.NotConfigured, "%s/postgres --version prints %q", folder, out)
	}
	var major int
	if _, err := fmt.Sscan(match[1], &major); err != nil || major < oldestMajor {
		return "", driver.Errorf(driver.NotConfigured, "the image has PostgreSQL %s, and the min version is %d", match[1], oldestMajor)
	}
	return match[1], nil
}

// tool returns a program that ends with this process.
func (s *Server) tool(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := processes.Tool(ctx, path, args...)
	cmd.Env = append(cmd.Env, "HOME="+string(s.Private), "PGPASSFILE="+s.Private.Path(passfile))
	return cmd
}

// output returns the standard output of a program.
func (s *Server) output(ctx context.Context, path string, args ...string) (string, error) {
	return processes.Output(s.tool(ctx, path, args...))
}
