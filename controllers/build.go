package controllers

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// unknown stands for what was not said when the program was built.
const unknown = "unknown"

// Build says which program this is.
type Build struct {
	// Version of the release, and the commit that it was made of.
	Version, Commit string
}

// NewBuild is what the linker was told, or else what Go knows by itself. Go knows no
// version of a program that was built from a checkout, and its commit only where it
// was let look at it.
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
	Help: "Which program this is: always 1.",
}, []string{"version", "commit", "goversion"})

func init() { metrics.Registry.MustRegister(buildInfo) }

// measure has the metrics say which program this is.
func (b Build) measure() {
	buildInfo.WithLabelValues(b.Version, b.Commit, runtime.Version()).Set(1)
}
