package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/cluster/nodeinit"
)

// state is the persisted state of a cluster, in its folder.
type state struct {
	Name             string             `json:"name"`
	Slot             int                `json:"slot"`
	Nodes            int                `json:"nodes"`
	AdmissionPlugins []string           `json:"admissionPlugins,omitempty"`
	FeatureGates     map[string]bool    `json:"featureGates,omitempty"`
	Version          string             `json:"version,omitempty"` // as in Options
	Address          string             `json:"address"`           // of API server and DNS
	Ports            map[string]int     `json:"ports"`
	Sets             map[Set]string     `json:"sets"`
	Processes        map[string]process `json:"processes"`
	// Ready is set last. A cluster without it was never complete.
	Ready bool `json:"ready"`
	// Simulated is the number of nodes that kwok simulates.
	Simulated int `json:"simulated,omitempty"`
}

const stateFile = "state.json"

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?$`)

// clusterDir returns the folder of a cluster, which may not exist.
func clusterDir(name string) (string, error) {
	if !validName.MatchString(name) {
		return "", fmt.Errorf("cluster name %q: want at most 30 of a-z, 0-9 and -", name)
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "clusters", name), nil
}

func readState(dir string) (state, error) {
	var s state
	err := nodeinit.ReadJSON(filepath.Join(dir, stateFile), &s)
	return s, err
}

func (c *Cluster) save() error {
	if err := nodeinit.WriteJSON(filepath.Join(c.dir, stateFile), c.state); err != nil {
		return fmt.Errorf("record the cluster's state: %w", err)
	}
	return nil
}

// Hold reserves a cluster's name for the caller, and waits while another program holds it. Otherwise
// two runs of a test would share a cluster, and the first to finish would remove it. Up and Down do not
// check it. The kernel releases it when its owner ends for any reason.
func Hold(ctx context.Context, name string, log io.Writer) (release func(), err error) {
	dir, err := clusterDir(name)
	if err != nil {
		return nil, err
	}
	quick, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if release, err = lock(quick, dir+".held"); err == nil || quick.Err() == nil {
		return release, err
	}
	fmt.Fprintf(log, "waiting for cluster %s, which another program is using …\n", name)
	return lock(ctx, dir+".held")
}

// lock waits for the file's lock. The kernel releases it when its owner ends, so a killed Up never
// blocks the next one.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("wait for %s, which another program holds: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
