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
		{"no flag and no variable means all namespaces", "", nil, nil},
		{"the variable has one namespace", "a", nil, []string{"a"}},
		{"the variable has several namespaces", "a, b,,a", nil, []string{"a", "b"}},
		{"the flag takes precedence", "a", []string{"--watch-namespaces=c,d"}, []string{"c", "d"}},
		{"an empty flag takes precedence and means all", "a", []string{"--watch-namespaces="}, nil},
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
				t.Errorf("the cache is limited to %d namespaces, want %d", got, len(row.want))
			}
		})
	}
}

// The manager uses any of two entries for one type, so there must be only one. It must contain what
// each kind configures when it is served alone.
func TestImageVolumesCanBeDisabled(t *testing.T) {
	for _, row := range []struct {
		variable string
		args     []string
		want     bool
	}{
		{"", nil, true},
		{"false", nil, false},
		{"false", []string{"--image-volumes=true"}, true},
		{"", []string{"--image-volumes=false"}, false},
	} {
		if got := parseOptions(t, inPod(map[string]string{"IMAGE_VOLUMES": row.variable}), row.args...).ImageVolumes; got != row.want {
			t.Errorf("with variable %q and arguments %q: %t", row.variable, row.args, got)
		}
	}
	if _, err := controllers.ParseOptions(nil, inPod(map[string]string{"IMAGE_VOLUMES": "no"}), io.Discard); err == nil {
		t.Error("an invalid variable is accepted")
	}
}

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
		{"an argument that is not a flag", []string{"run"}, `unexpected argument "run": use flags only`},
		{"an unknown kind", []string{"--kinds=DaemonSet"}, `unknown kind "DaemonSet" in --kinds: choose from StatefulCluster`},
		{"an empty list of kinds", []string{"--kinds="}, `--kinds is empty: choose from StatefulCluster`},
		{"an unknown log format", []string{"--log-format=xml"}, `unknown --log-format "xml": must be json or console`},
		{"an unknown log level", []string{"--log-level=loud"}, `invalid value "loud" for flag -log-level: slog: level string "loud": unknown name`},
		{"an invalid port", []string{"--webhook-port=0"}, `--webhook-port 0 is not a valid port: must be a number from 1 to 65535`},
		{"an invalid address", []string{"--metrics-bind-address=8443"}, `--metrics-bind-address "8443" is not a valid address: use [host]:port, or 0 to disable it`},
		{"two servers on the same port", []string{"--health-probe-bind-address=:8443"}, `--health-probe-bind-address and --metrics-bind-address both use port 8443`},
		{"the webhook on the port of the metrics", []string{"--webhook-port=8443"}, `--webhook-port and --metrics-bind-address both use port 8443`},
		{"an empty list of components", []string{"--components="}, `--components is empty: choose from controllers, webhooks, installer`},
		{"an unknown component", []string{"--components=webhook"}, `unknown part "webhook" in --components: choose from controllers, webhooks, installer`},
		{"a webhook port without webhooks", []string{"--components=controllers", "--webhook-port=9443"}, `--webhook-port requires webhooks in --components`},
		{"a gate image without controllers and webhooks", []string{"--components=installer", "--gate-image=gate"}, `--gate-image requires controllers or webhooks in --components`},
		{"image volumes without controllers and webhooks", []string{"--components=installer", "--image-volumes=false"}, `--image-volumes requires controllers or webhooks in --components`},
		{"max restarts without controllers", []string{"--components=webhooks", "--max-concurrent-restarts=3"}, `--max-concurrent-restarts requires controllers in --components`},
		{"a renew deadline equal to the lease duration", []string{"--leader-elect-renew-deadline=15s"}, `--leader-elect-lease-duration 15s must be longer than --leader-elect-renew-deadline 15s`},
		{"a retry period too close to the renew deadline", []string{"--leader-elect-retry-period=9s"}, `--leader-elect-renew-deadline 10s must be longer than 1.2 times --leader-elect-retry-period 9s`},
		{"a very short retry period", []string{"--leader-elect-retry-period=1ms"}, `--leader-elect-retry-period 1ms is too short: the min is 100ms`},
		{"a fraction of a second in the lease duration", []string{"--leader-elect-lease-duration=15500ms"}, `--leader-elect-lease-duration 15.5s must be in whole seconds, as in a Lease`},
		{"the operator's own namespace is watched", []string{"--namespace=operators", "--watch-namespaces=tenant,operators"}, "namespace operators is both the operator's own and in --watch-namespaces"},
		{"an invalid namespace", []string{"--watch-namespaces=A_b"}, `"A_b" is not a valid namespace: `},
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
		t.Errorf("got %v, want a request to set the namespace", err)
	}
	if _, err := controllers.ParseOptions([]string{"--leader-elect=false", "--components=controllers"}, nowhere, io.Discard); err == nil {
		t.Error("StatefulSingleton is managed although its guard has no name")
	}
	if _, err := controllers.ParseOptions([]string{"--leader-elect=false", "--components=controllers", "--kinds=ExtendedStatefulSet"}, nowhere, io.Discard); err == nil {
		t.Error("ExtendedStatefulSet is managed although its key cannot be stored")
	}
	parseOptions(t, nowhere, "--leader-elect=false", "--components=controllers", "--kinds=StatefulCluster")
	parseOptions(t, nowhere, "--namespace=operators")
}
