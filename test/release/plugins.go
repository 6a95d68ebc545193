package release

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Desks are the platforms of kubectl's users.
var Desks = []cluster.Target{
	{System: "linux", Architecture: "amd64"}, {System: "linux", Architecture: "arm64"},
	{System: "darwin", Architecture: "amd64"}, {System: "darwin", Architecture: "arm64"},
	{System: "windows", Architecture: "amd64"}, {System: "windows", Architecture: "arm64"},
}

// writePlugins writes an archive of the kubectl plugin for each platform, with the license.
func (r *Release) writePlugins(ctx context.Context, _ images) error {
	if r.Plugin == "" {
		r.say("there is none")
		return nil
	}
	license, err := os.ReadFile(r.License)
	if err != nil {
		return err
	}
	for _, target := range r.Desks {
		target.Version, target.Commit = r.Version, r.Commit
		name := fmt.Sprintf("%s-%s-%s-%s", path.Base(r.Plugin), r.Version, target.System, target.Architecture)
		r.say("building %s", name)
		folder := filepath.Join(r.work, name)
		if err := cluster.Released(ctx, r.Log, folder, target, r.Plugin); err != nil {
			return err
		}
		program := path.Base(r.Plugin)
		if target.System == "windows" {
			program += ".exe"
		}
		r.programs = append(r.programs, filepath.Join(folder, program))
		if err := os.WriteFile(filepath.Join(folder, "LICENSE"), license, 0o644); err != nil {
			return err
		}
		if err := r.archive(name+".tar.gz", folder, ""); err != nil {
			return err
		}
	}
	return nil
}
