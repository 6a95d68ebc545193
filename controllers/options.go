package controllers

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
)

// namespaceFile contains the namespace of the pod in every pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// Options are the options of the command line.
type Options struct {
	// Name is the prefix of the names in config/ and the name of the Lease.
	Name string
	// Namespace is the namespace in which the operator runs.
	Namespace string
	// Kinds are the served kinds.
	Kinds []string
	// Components are the components of this process: Controllers, Webhooks, Installer. In
	// config/default they have their own Deployments and accounts.
	Components []string
	// WatchNamespaces are the only namespaces that the operator acts in; empty means all.
	WatchNamespaces []string

	LeaderElect bool
	// Timing is the timing of the leader election.
	Timing         leadership.Timing
	HealthAddress  string
	MetricsAddress string

	WebhookPort    int
	WebhookCertDir string
	// MakeCertificates is false if another program, such as OLM or cert-manager, creates the
	// serving certificate of the webhooks and sets their CA bundle.
	MakeCertificates bool
	// WebhookClientCA is a file with the CA of the API server's client certificate for webhooks. If
	// empty, no client certificate is required.
	WebhookClientCA string
	// GateImage is the image with the gate and the agent; the default is the image of this operator. OLM sets it
	// in a variable, so that tools that mirror a catalog find and replace it.
	GateImage string
	// ImageVolumes is false if pods must not mount that image; then an init container copies the programs.
	ImageVolumes bool

	// ConfigRestarts is the max number of ExtendedStatefulSets that restart their pods at the same
	// time for a change of configuration; 0 means no limit.
	ConfigRestarts int

	LogLevel  slog.Level
	LogFormat string

	// ShowVersion requests only the version. All other options are empty then.
	ShowVersion bool
	// Build identifies this program. main sets it.
	Build Build

	certificate *servingcert.Source
	authority   *servingcert.Authority
	paths       *pathKeeper
	// lease is created by Manager.
	lease *leadership.Lease
	// pod is the name of the operator's own pod.
	pod string
}

// ParseOptions parses the command line and the environment. Its errors are one line for the user.
// flag.ErrHelp means that help was requested and printed.
func ParseOptions(args []string, getenv func(string) string, help io.Writer) (Options, error) {
	options := Options{certificate: &servingcert.Source{}, authority: servingcert.NewAuthority(), paths: &pathKeeper{}}
	var kindNames, namespaces, components string
	var showVersion bool
	flags := flag.NewFlagSet("stateful-operator", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&options.Name, "name", "stateful-operator", "`prefix` of the names of this installation's Lease, webhook Service, Secret and configuration")
	flags.StringVar(&options.Namespace, "namespace", "", "`namespace` this operator runs in (default $POD_NAMESPACE, then the namespace of its service account)")
	flags.StringVar(&kindNames, "kinds", strings.Join(Kinds(), ","), "comma-separated `kinds` to manage (default $KINDS, then all)")
	flags.StringVar(&components, "components", strings.Join(allComponents, ","), "comma-separated `parts` of the operator that this process runs: "+
		"controllers reconcile objects, webhooks serve admission requests, the installer maintains admission policies and the certificate of the webhooks")
	flags.StringVar(&namespaces, "watch-namespaces", "", "comma-separated `namespaces` to watch; empty means all (default $WATCH_NAMESPACE)")
	flags.BoolVar(&options.LeaderElect, "leader-elect", true, "reconcile only while holding the Lease; required with more than one replica")
	flags.DurationVar(&options.Timing.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"`time` after the leader's last renewal of the Lease, in whole seconds, before another replica acquires it: the max time without a leader when its node fails")
	flags.DurationVar(&options.Timing.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"`time` after its last renewal in which the leader may write; then it exits and is restarted. Increase this and the lease duration (for example to 107s and 137s) if the API server can be unreachable for longer")
	flags.DurationVar(&options.Timing.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "`time` between two renewals of the Lease, or two attempts to acquire it")
	flags.StringVar(&options.HealthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 disables it")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8443", "`address` of /metrics, over TLS; 0 disables it")
	flags.IntVar(&options.WebhookPort, "webhook-port", 9443, "`port` of the webhook server")
	flags.StringVar(&options.WebhookCertDir, "webhook-cert-dir", filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"),
		"`folder` of a mounted tls.crt and tls.key; if it has none, the certificate of the installer is used")
	flags.BoolVar(&options.MakeCertificates, "make-certificates", true, "let the installer create the certificate of the servers, publish it in a Secret, and write its CA to the webhook configurations; set to false if it is mounted in --webhook-cert-dir")
	flags.StringVar(&options.WebhookClientCA, "webhook-client-ca-file", "",
		"`file` with the CA of the client certificate that your API server uses for webhooks (configured in its --admission-control-config-file); other clients are rejected. Empty disables the check")
	flags.StringVar(&options.GateImage, "gate-image", "", "`image` with /gate and /agent, which are added to the pods of StatefulSingletons and of ReplicatedStatefulSets with spec.application (default $RELATED_IMAGE_GATE, then the image of the operator's own pod)")
	flags.BoolVar(&options.ImageVolumes, "image-volumes", true, "mount that image in pods if all Nodes support image volumes (Kubernetes 1.35 with containerd 2.1 or CRI-O 1.33); set to false if the feature gate ImageVolume is off, or if a policy of the cluster refuses such volumes. An init container then copies the programs into an emptyDir (default $IMAGE_VOLUMES, then true)")
	flags.IntVar(&options.ConfigRestarts, "max-concurrent-restarts", 10, "max `number` of ExtendedStatefulSets, and of ReplicatedStatefulSets, that restart their pods at the same time after an edit of a ConfigMap or Secret; a namespace gets another slot only while more slots are free than it uses; 0 means no limit")
	flags.TextVar(&options.LogLevel, "log-level", slog.LevelInfo, "`level`: debug, info, warn or error")
	flags.StringVar(&options.LogFormat, "log-format", "json", "`format`: json or console")
	flags.BoolVar(&showVersion, "version", false, "print the version and exit")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(help)
			flags.PrintDefaults()
		}
		return Options{}, err
	}
	if showVersion {
		return Options{ShowVersion: true}, nil
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["watch-namespaces"] {
		namespaces = getenv("WATCH_NAMESPACE")
	}
	if !given["gate-image"] {
		options.GateImage = getenv("RELATED_IMAGE_GATE")
	}
	if fromEnvironment := getenv("IMAGE_VOLUMES"); fromEnvironment != "" && !given["image-volumes"] {
		var err error
		if options.ImageVolumes, err = strconv.ParseBool(fromEnvironment); err != nil {
			return Options{}, fmt.Errorf("invalid $IMAGE_VOLUMES %q: must be true or false", fromEnvironment)
		}
	}
	options.Namespace = ownNamespace(options.Namespace, getenv)
	options.pod = ownPod(getenv)
	if fromEnvironment := getenv("KINDS"); fromEnvironment != "" && !given["kinds"] {
		kindNames = fromEnvironment
	}
	options.Kinds = list(kindNames)
	options.Components = list(components)
	options.WatchNamespaces = list(namespaces)
	if extra := flags.Args(); len(extra) > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q: use flags only", extra[0])
	}
	return options, options.check(given)
}

func ownNamespace(given string, getenv func(string) string) string {
	if given != "" {
		return given
	}
	if fromPod := getenv("POD_NAMESPACE"); fromPod != "" {
		return fromPod
	}
	// The file does not exist outside a pod. check then returns an error with instructions.
	content, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

func ownPod(getenv func(string) string) string {
	if fromPod := getenv("POD_NAME"); fromPod != "" {
		return fromPod
	}
	// A pod's hostname is its name by default. If it is unknown, the pod is not found, and
	// gateImage returns an error.
	name, _ := os.Hostname()
	return name
}

// list splits at commas, and drops blanks and duplicates.
func list(text string) []string {
	var entries []string
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry != "" && !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	return entries
}

// check returns an error for options that cannot work, and replaces kinds by their exact names.
func (o *Options) check(given map[string]bool) error {
	if o.LogFormat != "json" && o.LogFormat != "console" {
		return fmt.Errorf("unknown --log-format %q: must be json or console", o.LogFormat)
	}
	if err := o.checkKinds(); err != nil {
		return err
	}
	for _, namespace := range append([]string{o.Namespace}, o.WatchNamespaces...) {
		if namespace == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("%q is not a valid namespace: %s", namespace, problems[0])
		}
	}
	if o.Namespace != "" && slices.Contains(o.WatchNamespaces, o.Namespace) {
		return fmt.Errorf("namespace %s is both the operator's own and in --watch-namespaces (or $WATCH_NAMESPACE, which OLM sets from the OperatorGroup): "+
			"a user who can edit it can use the operator's service account. Install the operator in another namespace", o.Namespace)
	}
	if err := o.checkComponents(given); err != nil {
		return err
	}
	if o.Namespace == "" && (o.LeaderElect || o.runs(Webhooks) || o.runs(Installer) || o.serves(statefulSingleton) || o.serves(extendedStatefulSet)) {
		return errors.New("--leader-elect, webhooks and installer in --components, and " + statefulSingleton + " and " + extendedStatefulSet +
			" in --kinds require the operator's own namespace: set --namespace or POD_NAMESPACE")
	}
	if err := o.checkTiming(); err != nil {
		return err
	}
	return o.checkPorts()
}

// checkTiming checks client-go's conditions for the timing, with errors for the command line.
func (o *Options) checkTiming() error {
	t := o.Timing
	switch {
	case t.RetryPeriod < 100*time.Millisecond:
		return fmt.Errorf("--leader-elect-retry-period %s is too short: the min is 100ms", t.RetryPeriod)
	case float64(t.RenewDeadline) <= leaderelection.JitterFactor*float64(t.RetryPeriod):
		return fmt.Errorf("--leader-elect-renew-deadline %s must be longer than %g times --leader-elect-retry-period %s",
			t.RenewDeadline, leaderelection.JitterFactor, t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		return fmt.Errorf("--leader-elect-lease-duration %s must be longer than --leader-elect-renew-deadline %s", t.LeaseDuration, t.RenewDeadline)
	case t.LeaseDuration%time.Second != 0:
		return fmt.Errorf("--leader-elect-lease-duration %s must be in whole seconds, as in a Lease", t.LeaseDuration)
	}
	return nil
}

// checkComponents returns an error for unknown components, and for flags of components that do not
// run.
func (o *Options) checkComponents(given map[string]bool) error {
	if len(o.Components) == 0 {
		return fmt.Errorf("--components is empty: choose from %s", strings.Join(allComponents, ", "))
	}
	for _, name := range o.Components {
		if !slices.Contains(allComponents, name) {
			return fmt.Errorf("unknown part %q in --components: choose from %s", name, strings.Join(allComponents, ", "))
		}
	}
	for _, needs := range []struct {
		components []string
		flags      []string
	}{
		{[]string{Webhooks}, []string{"webhook-port", "webhook-client-ca-file"}},
		{[]string{Controllers}, []string{"max-concurrent-restarts"}},
		{[]string{Controllers, Webhooks}, []string{"gate-image", "image-volumes"}},
	} {
		for _, name := range needs.flags {
			if given[name] && !slices.ContainsFunc(needs.components, o.runs) {
				return fmt.Errorf("--%s requires %s in --components", name, strings.Join(needs.components, " or "))
			}
		}
	}
	return nil
}

func (o *Options) checkKinds() error {
	known := Kinds()
	if len(o.Kinds) == 0 {
		return fmt.Errorf("--kinds is empty: choose from %s", strings.Join(known, ", "))
	}
	for i, name := range o.Kinds {
		at := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		if at < 0 {
			return fmt.Errorf("unknown kind %q in --kinds: choose from %s", name, strings.Join(known, ", "))
		}
		o.Kinds[i] = known[at]
	}
	return nil
}

// checkPorts returns an error for invalid addresses, and for two servers on one port.
func (o *Options) checkPorts() error {
	users := map[string]string{}
	if o.runs(Webhooks) {
		if o.WebhookPort < 1 || o.WebhookPort > 65535 {
			return fmt.Errorf("--webhook-port %d is not a valid port: must be a number from 1 to 65535", o.WebhookPort)
		}
		users[fmt.Sprint(o.WebhookPort)] = "--webhook-port"
	}
	for _, server := range []struct{ flag, address string }{
		{"--health-probe-bind-address", o.HealthAddress},
		{"--metrics-bind-address", o.MetricsAddress},
	} {
		if server.address == "0" {
			continue
		}
		_, port, err := net.SplitHostPort(server.address)
		if err != nil || port == "" {
			return fmt.Errorf("%s %q is not a valid address: use [host]:port, or 0 to disable it", server.flag, server.address)
		}
		if user, taken := users[port]; taken && port != "0" {
			return fmt.Errorf("%s and %s both use port %s", user, server.flag, port)
		}
		users[port] = server.flag
	}
	return nil
}
