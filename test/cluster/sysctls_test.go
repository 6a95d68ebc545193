package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestClustersKeepTheSettingsAtTheSameTime tests that clusters which boot at the same time record the settings once.
func TestClustersKeepTheSettingsAtTheSameTime(t *testing.T) {
	const clusters, rounds = 8, 20
	for range rounds {
		parent := t.TempDir()
		var all sync.WaitGroup
		for i := range clusters {
			all.Go(func() {
				if err := keepSysctls(t.Context(), filepath.Join(parent, fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := os.Stat(filepath.Join(parent, "sysctls.json")); err != nil {
			t.Fatal(err)
		}
	}
}
