// Package nodeinit is the first process of a node of the local cluster. The
// node's network, mounts and process ids are its namespaces, so its end is the
// node's power going off: the kernel kills every process and drops every mount
// and link, whatever state the node was in.
//
// The programs it runs are written down in a file; SIGHUP makes it read the
// file again. A program that ends by itself is started again, as systemd does.
package nodeinit

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Program is one daemon of a node.
type Program struct {
	Name string
	Args []string
	Log  string
}

// Wanted is what a node shall run.
type Wanted struct {
	Generation int64
	Programs   []Program
}

// Running is what a node runs, by name, with process ids as the node sees
// them; it is the answer to the Wanted of the same generation.
type Running struct {
	Generation int64
	PIDs       map[string]int
}

// Setup is what the first process does before anything else runs.
type Setup struct {
	Hostname string
	// Binds are folders of this machine mounted over the node's, so that two
	// nodes with the same fixed paths never meet: target to source.
	Binds map[string]string
	// ReadOnly are files that nothing on the node can change.
	ReadOnly []string
	// Sysctls are set in the node's own network namespace.
	Sysctls map[string]string
}

// The files in a node's folder.
func SetupFile(dir string) string   { return filepath.Join(dir, "setup.json") }
func WantedFile(dir string) string  { return filepath.Join(dir, "wanted.json") }
func RunningFile(dir string) string { return filepath.Join(dir, "running.json") }

// WriteJSON replaces path in one step: a reader sees the old or the new.
func WriteJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	part := path + ".part"
	if err := os.WriteFile(part, content, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// ReadJSON fills value from path.
func ReadJSON(path string, value any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, value)
}
