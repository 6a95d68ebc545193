package controllers

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// unknown is the default of values that were not set at build time.
const unknown = "unknown"

// Build identifies this program.
type Build struct {
	// Version is the version of the release, and Commit its source.
	Version, Commit string
}

// NewBuild returns the values set by the linker. The default is Go's build info, which has no
// version for a build from a checkout, and the commit only if VCS stamping was enabled.
func NewBuild(version, commit string) Build {
	build := Build{Version: version, Commit: commit}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" && build.Commit == "" {
				build.Commit = setting.Value
			}
		}
	}
	if build.Version == "" {
		build.Version = unknown
	}
	if build.Commit == "" {
		build.Commit = unknown
	}
	return build
}

func (b Build) String() string {
	return fmt.Sprintf("stateful-operator %s, commit %s, %s, %s/%s", b.Version, b.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

var buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "stateful_operator_build_info",
	Help: "Build of this program: always 1.",
}, []string{"version", "commit", "goversion"})

func init() { metrics.Registry.MustRegister(buildInfo) }

// measure sets the build info metric.
func (b Build) measure() {
	buildInfo.WithLabelValues(b.Version, b.Commit, runtime.Version()).Set(1)
}
