package controllers_test

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/stateful-operator/stateful-operator/controllers"
)

func inPod(extra map[string]string) func(string) string {
	return func(name string) string {
		if name == "POD_NAMESPACE" {
			return "operators"
		}
		return extra[name]
	}
}

func parseOptions(t *testing.T, getenv func(string) string, args ...string) controllers.Options {
	t.Helper()
	options, err := controllers.ParseOptions(args, getenv, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return options
}

func TestDefaultsServeEverything(t *testing.T) {
	options := parseOptions(t, inPod(nil))
	if !slices.Equal(options.Kinds, controllers.Kinds()) {
		t.Errorf("kinds are %q, want all of %q", options.Kinds, controllers.Kinds())
	}
	if len(options.WatchNamespaces) != 0 {
		t.Errorf("watches %q, want all namespaces", options.WatchNamespaces)
	}
	if parts := []string{controllers.Controllers, controllers.Webhooks, controllers.Installer}; !options.LeaderElect || !slices.Equal(options.Components, parts) {
		t.Errorf("leader election %v and parts %q, want it and all parts", options.LeaderElect, options.Components)
	}
	if options.Namespace != "operators" {
		t.Errorf("namespace is %q, want the pod's", options.Namespace)
	}
}

func TestWatchedNamespaces(t *testing.T) {
	for _, row := range []struct {
		sentence string
		env      string
		args     []string
		want     []string
	}{
		{"nothing said is all", "", nil, nil},
		{"the environment names one", "a", nil, []string{"a"}},
		{"the environment names several", "a, b,,a", nil, []string{"a", "b"}},
		{"the flag wins", "a", []string{"--watch-namespaces=c,d"}, []string{"c", "d"}},
		{"an empty flag wins too, and means all", "a", []string{"--watch-namespaces="}, nil},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			options := parseOptions(t, inPod(map[string]string{"WATCH_NAMESPACE": row.env}), row.args...)
			if !slices.Equal(options.WatchNamespaces, row.want) {
				t.Errorf("watches %q, want %q", options.WatchNamespaces, row.want)
			}
			manager, err := options.Manager(&rest.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if got := len(manager.Cache.DefaultNamespaces); got != len(row.want) {
				t.Errorf("the cache is bound to %d namespaces, want %d", got, len(row.want))
			}
		})
	}
}

// The manager uses any of two entries for one type, so there must be only one. It must contain what
// each kind configures when it is served alone.
func TestATypeIsCachedOnceAndForEveryKind(t *testing.T) {
	together := cached(t, controllers.Kinds()...)
	for _, kind := range controllers.Kinds() {
		for gvk, want := range cached(t, kind) {
			if got := together[gvk]; got != want {
				t.Errorf("with all kinds %s is cached as %s, and %s needs %s", gvk, got, kind, want)
			}
		}
	}
}

// cached returns how the manager caches types for these kinds.
func cached(t *testing.T, kinds ...string) map[schema.GroupVersionKind]string {
	t.Helper()
	options := parseOptions(t, inPod(nil), "--kinds="+strings.Join(kinds, ","))
	manager, err := options.Manager(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[schema.GroupVersionKind]string{}
	for object, how := range manager.Cache.ByObject {
		gvk, err := apiutil.GVKForObject(object, manager.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		if found[gvk] != "" {
			t.Errorf("%s is cached twice", gvk)
		}
		transform := runtime.FuncForPC(reflect.ValueOf(how.Transform).Pointer())
		found[gvk] = fmt.Sprintf("%T with labels %v and fields %v through %s", object, how.Label, how.Field, transform.Name())
	}
	return found
}

func TestKindsAreFoundWithoutRegardToCase(t *testing.T) {
	options := parseOptions(t, inPod(nil), "--kinds=statefulcluster")
	if want := []string{"StatefulCluster"}; !slices.Equal(options.Kinds, want) {
		t.Errorf("kinds are %q, want %q", options.Kinds, want)
	}
}

func TestLogLevelIsRead(t *testing.T) {
	if options := parseOptions(t, inPod(nil), "--log-level=debug"); options.LogLevel != slog.LevelDebug {
		t.Errorf("level is %v, want debug", options.LogLevel)
	}
}

func TestTheLeaseIsGivenBack(t *testing.T) {
	options := parseOptions(t, inPod(map[string]string{"POD_NAME": "operator-0"}))
	manager, err := options.Manager(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if lock := manager.LeaderElectionResourceLockInterface; lock == nil || lock.Describe() != "operators/stateful-operator" || !strings.HasPrefix(lock.Identity(), "operator-0_") {
		t.Errorf("the lock is %v", lock)
	}
	if !manager.LeaderElection || !manager.LeaderElectionReleaseOnCancel || manager.LeaderElectionID != "stateful-operator" {
		t.Errorf("leader election is %v, release %v, lease %q", manager.LeaderElection, manager.LeaderElectionReleaseOnCancel, manager.LeaderElectionID)
	}
}

func TestHelpIsPrintedWhenAskedFor(t *testing.T) {
	var out strings.Builder
	_, err := controllers.ParseOptions([]string{"--help"}, inPod(nil), &out)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-watch-namespaces") {
		t.Errorf("got error %v and help:\n%s", err, &out)
	}
}

func TestWhatCannotWorkIsRefusedInOneLine(t *testing.T) {
	for _, row := range []struct {
		sentence string
		args     []string
		want     string
	}{
		{"an unknown flag", []string{"--fast"}, `flag provided but not defined: -fast`},
		{"an argument that is no flag", []string{"run"}, `unexpected argument "run": everything is set by flags`},
		{"an unknown kind", []string{"--kinds=DaemonSet"}, `unknown kind "DaemonSet" in --kinds: choose from StatefulCluster`},
		{"no kind", []string{"--kinds="}, `--kinds names no kind: choose from StatefulCluster`},
		{"an unknown log format", []string{"--log-format=xml"}, `unknown --log-format "xml": it is json or console`},
		{"an unknown log level", []string{"--log-level=loud"}, `invalid value "loud" for flag -log-level: slog: level string "loud": unknown name`},
		{"a port that is none", []string{"--webhook-port=0"}, `--webhook-port 0 is not a port: it is a number from 1 to 65535`},
		{"an address that is none", []string{"--metrics-bind-address=8443"}, `--metrics-bind-address "8443" is not an address: write [host]:port, or 0 for none`},
		{"two servers on one port", []string{"--health-probe-bind-address=:8443"}, `--health-probe-bind-address and --metrics-bind-address both want port 8443`},
		{"the webhook on the metrics' port", []string{"--webhook-port=8443"}, `--webhook-port and --metrics-bind-address both want port 8443`},
		{"no part", []string{"--components="}, `--components names no part: choose from controllers, webhooks, installer`},
		{"an unknown part", []string{"--components=webhook"}, `unknown part "webhook" in --components: choose from controllers, webhooks, installer`},
		{"a port for no webhook", []string{"--components=controllers", "--webhook-port=9443"}, `--webhook-port needs webhooks in --components`},
		{"a gate for no webhook", []string{"--components=controllers,installer", "--gate-image=gate"}, `--gate-image needs webhooks in --components`},
		{"restarts by no controller", []string{"--components=webhooks", "--max-concurrent-restarts=3"}, `--max-concurrent-restarts needs controllers in --components`},
		{"a lease that is not renewed in time", []string{"--leader-elect-renew-deadline=15s"}, `--leader-elect-lease-duration 15s must be longer than --leader-elect-renew-deadline 15s`},
		{"a lease that is renewed too seldom", []string{"--leader-elect-retry-period=9s"}, `--leader-elect-renew-deadline 10s must be longer than 1.2 times --leader-elect-retry-period 9s`},
		{"a lease that is renewed all the time", []string{"--leader-elect-retry-period=1ms"}, `--leader-elect-retry-period 1ms is too short: 100ms is the least`},
		{"a lease of half seconds", []string{"--leader-elect-lease-duration=15500ms"}, `--leader-elect-lease-duration 15.5s must be in whole seconds, as a Lease has it`},
		{"its own namespace", []string{"--namespace=operators", "--watch-namespaces=tenant,operators"}, "namespace operators is both the operator's own and in --watch-namespaces"},
		{"a namespace that cannot be", []string{"--watch-namespaces=A_b"}, `"A_b" cannot be a namespace: `},
	} {
		t.Run(row.sentence, func(t *testing.T) {
			_, err := controllers.ParseOptions(row.args, inPod(nil), io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line %q", err, row.want)
			}
		})
	}
}

func TestTheOwnNamespaceIsAskedForOnlyWhereItIsNeeded(t *testing.T) {
	nowhere := func(string) string { return "" }
	if _, err := controllers.ParseOptions(nil, nowhere, io.Discard); err == nil || !strings.Contains(err.Error(), "set --namespace or POD_NAMESPACE") {
		t.Errorf("got %v, want to be told to set the namespace", err)
	}
	if _, err := controllers.ParseOptions([]string{"--leader-elect=false", "--components=controllers"}, nowhere, io.Discard); err == nil {
		t.Error("StatefulSingleton is served and its guard has no name")
	}
	if _, err := controllers.ParseOptions([]string{"--leader-elect=false", "--components=controllers", "--kinds=ExtendedStatefulSet"}, nowhere, io.Discard); err == nil {
		t.Error("ExtendedStatefulSet is served and its key has no place")
	}
	parseOptions(t, nowhere, "--leader-elect=false", "--components=controllers", "--kinds=StatefulCluster")
	parseOptions(t, nowhere, "--namespace=operators")
}
