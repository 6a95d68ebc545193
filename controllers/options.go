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
	// GateImage is the image with the gate; the default is the image of this operator. OLM sets it
	// in a variable, so that tools that mirror a catalog find and replace it.
	GateImage string

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
	flags.StringVar(&options.Namespace, "namespace", "", "`namespace` this operator runs in (default $POD_NAMESPACE, then the service account's)")
	flags.StringVar(&kindNames, "kinds", strings.Join(Kinds(), ","), "comma-separated `kinds` to serve (default $KINDS, then all)")
	flags.StringVar(&components, "components", strings.Join(allComponents, ","), "comma-separated `parts` of the operator that this process is: "+
		"controllers act on objects, webhooks answer the API server, the installer keeps admission policies and the webhooks' certificate")
	flags.StringVar(&namespaces, "watch-namespaces", "", "comma-separated `namespaces` to act in; empty is all (default $WATCH_NAMESPACE)")
	flags.BoolVar(&options.LeaderElect, "leader-elect", true, "act only while holding the Lease; needed with more than one replica")
	flags.DurationVar(&options.Timing.LeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"`time` after the leader's last renewal of the Lease, in whole seconds, before another replica takes it: how long nothing is done when the leader's node dies")
	flags.DurationVar(&options.Timing.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"`time` after its last renewal in which the leader may write; then it ends, and is started again. Set this and the lease duration higher (say 107s and 137s) where the API server is away for longer at times")
	flags.DurationVar(&options.Timing.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "`time` between two renewals of the Lease, or two tries to take it")
	flags.StringVar(&options.HealthAddress, "health-probe-bind-address", ":8081", "`address` of /healthz and /readyz; 0 is none")
	flags.StringVar(&options.MetricsAddress, "metrics-bind-address", ":8443", "`address` of /metrics, over TLS; 0 is none")
	flags.IntVar(&options.WebhookPort, "webhook-port", 9443, "`port` of the webhook server")
	flags.StringVar(&options.WebhookCertDir, "webhook-cert-dir", filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"),
		"`folder` of a mounted tls.crt and tls.key; if it holds none, the certificate is the one that the installer makes")
	flags.BoolVar(&options.MakeCertificates, "make-certificates", true, "have the installer make the certificate of the servers, publish it for them in a Secret, and write its authority into the webhook configurations; false where it is mounted in --webhook-cert-dir")
	flags.StringVar(&options.WebhookClientCA, "webhook-client-ca-file", "",
		"`file` with the authority of the certificate that your API server shows to webhooks (its --admission-control-config-file says so); then nobody else is answered. Empty asks for none")
	flags.StringVar(&options.GateImage, "gate-image", "", "`image` with /gate, which is put into the pods of StatefulSingletons (default $RELATED_IMAGE_GATE, then the image of the operator's own pod)")
	flags.IntVar(&options.ConfigRestarts, "max-concurrent-restarts", 10, "`number` of ExtendedStatefulSets, and as many ReplicatedStatefulSets, that restart their pods at one time after an edit of a ConfigMap or Secret; a namespace gets another place only while more are free than it has; 0 is no bound")
	flags.TextVar(&options.LogLevel, "log-level", slog.LevelInfo, "`level`: debug, info, warn or error")
	flags.StringVar(&options.LogFormat, "log-format", "json", "`format`: json or console")
	flags.BoolVar(&showVersion, "version", false, "print which version this is, and end")

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
	options.Namespace = ownNamespace(options.Namespace, getenv)
	options.pod = ownPod(getenv)
	if fromEnvironment := getenv("KINDS"); fromEnvironment != "" && !given["kinds"] {
		kindNames = fromEnvironment
	}
	options.Kinds = list(kindNames)
	options.Components = list(components)
	options.WatchNamespaces = list(namespaces)
	if extra := flags.Args(); len(extra) > 0 {
		return Options{}, fmt.Errorf("unexpected argument %q: everything is set by flags", extra[0])
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
		return fmt.Errorf("unknown --log-format %q: it is json or console", o.LogFormat)
	}
	if err := o.checkKinds(); err != nil {
		return err
	}
	for _, namespace := range append([]string{o.Namespace}, o.WatchNamespaces...) {
		if namespace == "" {
			continue
		}
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return fmt.Errorf("%q cannot be a namespace: %s", namespace, problems[0])
		}
	}
	if o.Namespace != "" && slices.Contains(o.WatchNamespaces, o.Namespace) {
		return fmt.Errorf("namespace %s is both the operator's own and in --watch-namespaces (or $WATCH_NAMESPACE, which OLM sets from the OperatorGroup): "+
			"who may edit it has the operator's account. Install the operator into another namespace", o.Namespace)
	}
	if err := o.checkComponents(given); err != nil {
		return err
	}
	if o.Namespace == "" && (o.LeaderElect || o.runs(Webhooks) || o.runs(Installer) || o.serves(statefulSingleton) || o.serves(extendedStatefulSet)) {
		return errors.New("--leader-elect, webhooks and installer in --components, and " + statefulSingleton + " and " + extendedStatefulSet +
			" in --kinds need to know the operator's own namespace: set --namespace or POD_NAMESPACE")
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
		return fmt.Errorf("--leader-elect-retry-period %s is too short: 100ms is the least", t.RetryPeriod)
	case float64(t.RenewDeadline) <= leaderelection.JitterFactor*float64(t.RetryPeriod):
		return fmt.Errorf("--leader-elect-renew-deadline %s must be longer than %g times --leader-elect-retry-period %s",
			t.RenewDeadline, leaderelection.JitterFactor, t.RetryPeriod)
	case t.LeaseDuration <= t.RenewDeadline:
		return fmt.Errorf("--leader-elect-lease-duration %s must be longer than --leader-elect-renew-deadline %s", t.LeaseDuration, t.RenewDeadline)
	case t.LeaseDuration%time.Second != 0:
		return fmt.Errorf("--leader-elect-lease-duration %s must be in whole seconds, as a Lease has it", t.LeaseDuration)
	}
	return nil
}

// checkComponents returns an error for unknown components, and for flags of components that do not
// run.
func (o *Options) checkComponents(given map[string]bool) error {
	if len(o.Components) == 0 {
		return fmt.Errorf("--components names no part: choose from %s", strings.Join(allComponents, ", "))
	}
	for _, name := range o.Components {
		if !slices.Contains(allComponents, name) {
			return fmt.Errorf("unknown part %q in --components: choose from %s", name, strings.Join(allComponents, ", "))
		}
	}
	for _, needs := range []struct {
		component string
		flags     []string
	}{
		{Webhooks, []string{"webhook-port", "webhook-client-ca-file", "gate-image"}},
		{Controllers, []string{"max-concurrent-restarts"}},
	} {
		for _, name := range needs.flags {
			if given[name] && !o.runs(needs.component) {
				return fmt.Errorf("--%s needs %s in --components", name, needs.component)
			}
		}
	}
	return nil
}

func (o *Options) checkKinds() error {
	known := Kinds()
	if len(o.Kinds) == 0 {
		return fmt.Errorf("--kinds names no kind: choose from %s", strings.Join(known, ", "))
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
			return fmt.Errorf("--webhook-port %d is not a port: it is a number from 1 to 65535", o.WebhookPort)
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
			return fmt.Errorf("%s %q is not an address: write [host]:port, or 0 for none", server.flag, server.address)
		}
		if user, taken := users[port]; taken && port != "0" {
			return fmt.Errorf("%s and %s both want port %s", user, server.flag, port)
		}
		users[port] = server.flag
	}
	return nil
}
