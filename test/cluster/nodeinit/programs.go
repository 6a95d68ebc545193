// Package nodeinit is the first process of a node of the local cluster. The node's network, mounts and
// PIDs are in its namespaces. So its end is like a power failure of the node: the kernel kills all
// processes and drops all mounts and links in any state of the node.
//
// The programs to run are listed in a file. SIGHUP makes nodeinit read the file again. A program that
// ends is restarted, as with systemd.
package nodeinit

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Program is a daemon of a node.
type Program struct {
	Name string
	Args []string
	Log  string
}

// Wanted lists the programs that a node should run.
type Wanted struct {
	Generation int64
	Programs   []Program
}

// Running lists the programs that a node runs, by name, with their PIDs on the node. It is the response
// to the Wanted of the same generation.
type Running struct {
	Generation int64
	PIDs       map[string]int
}

// Setup is applied by the first process before any program runs.
type Setup struct {
	Hostname string
	// Binds maps target folders of the node to folders of this machine that are mounted there. So nodes
	// with the same fixed paths do not conflict.
	Binds map[string]string
	// ReadOnly are files that are mounted read-only on the node.
	ReadOnly []string
	// Sysctls are set in the node's own network namespace.
	Sysctls map[string]string
}

// Paths of the files in a node's folder.
func SetupFile(dir string) string   { return filepath.Join(dir, "setup.json") }
func WantedFile(dir string) string  { return filepath.Join(dir, "wanted.json") }
func RunningFile(dir string) string { return filepath.Join(dir, "running.json") }

// WriteJSON replaces path atomically: a reader sees the old or the new content.
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

// ReadJSON decodes path into value.
func ReadJSON(path string, value any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, value)
}
