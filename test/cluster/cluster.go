// Package cluster boots a real Kubernetes on this machine from Go modules:
// etcd, API server, controller manager, scheduler, CoreDNS, and nodes with
// containerd, kubelet and kube-proxy, each node in its own namespaces.
//
//	Up             a cluster with nodes; needs Linux and root
//	UpControlPlane the same without nodes; needs neither (StartKwok plays nodes)
//	Open           a running cluster, from another program
//	Down           nothing is left, also after a crash of up
package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// DefaultName is the cluster that make cluster-up and make run use.
const DefaultName = "local"

// Options is the shape of a cluster.
type Options struct {
	Name             string          // DefaultName when empty
	Nodes            int             // 3 when zero
	Log              io.Writer       // progress, one line a step; none when nil
	AdmissionPlugins []string        // besides the default ones
	FeatureGates     map[string]bool // of every Kubernetes program
	Version          string          // of Kubernetes; the newest that is known when empty, or 1.30 or 1.33
}

// programsOf is the set of the programs of a version of Kubernetes, as in Options.
func programsOf(version string) Set {
	if version == "" {
		return Kubernetes
	}
	return Kubernetes + Set("-"+version)
}

// Cluster is a running cluster.
type Cluster struct {
	dir   string
	log   io.Writer
	mu    sync.Mutex // guards state
	state state
}

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o
}

// Up boots a cluster, or opens the one that already runs.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	o = o.withDefaults()
	if o.Nodes == 0 {
		o.Nodes = 3
	}
	if o.Nodes < 1 || o.Nodes > maxNodes {
		return nil, fmt.Errorf("a cluster of %d nodes: want 1 to %d", o.Nodes, maxNodes)
	}
	if err := NodesPossible(); err != nil {
		return nil, err
	}
	return up(ctx, o, programsOf(o.Version), Containerd, CoreDNS)
}

// UpControlPlane boots etcd, API server, controller manager and scheduler on
// the loopback address. It needs no root and runs on every system Go runs on.
func UpControlPlane(ctx context.Context, o Options) (*Cluster, error) {
	o = o.withDefaults()
	o.Nodes = 0
	return up(ctx, o, programsOf(o.Version))
}

func up(ctx context.Context, o Options, sets ...Set) (*Cluster, error) {
	began := time.Now()
	dir, err := clusterDir(o.Name)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if c, err := reopen(ctx, dir, o); c != nil || err != nil {
		return c, err
	}
	if o.Nodes > 0 {
		if err := InstallPackages(ctx, o.Log); err != nil {
			return nil, err
		}
	}
	folders, err := Build(ctx, o.Log, sets...)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, log: o.Log, state: state{
		Name: o.Name, Nodes: o.Nodes, Sets: folders,
		AdmissionPlugins: o.AdmissionPlugins, FeatureGates: o.FeatureGates, Version: o.Version,
		Processes: map[string]process{}, Ports: map[string]int{},
	}}
	if err := c.boot(ctx); err != nil {
		return nil, fmt.Errorf("booting cluster %s (logs are in %s): %w", o.Name, c.path("logs"), err)
	}
	c.state.Ready = true
	fmt.Fprintf(o.Log, "cluster %s is up after %s; kubeconfig: %s\n",
		o.Name, time.Since(began).Round(100*time.Millisecond), c.Kubeconfig())
	return c, c.save()
}

// reopen gives the cluster if it already runs, and clears what is left of one
// that does not. Both results are nil when there is a new cluster to boot.
func reopen(ctx context.Context, dir string, o Options) (*Cluster, error) {
	if !isDir(dir) {
		return nil, nil
	}
	c, err := open(dir, o.Log)
	if err == nil && c.healthy(ctx) {
		if !c.hasShape(o) {
			return nil, fmt.Errorf("cluster %s already runs with another shape (%d nodes, admission plugins %v, feature gates %v, version %q of Kubernetes): take it down first",
				o.Name, c.state.Nodes, c.state.AdmissionPlugins, c.state.FeatureGates, c.state.Version)
		}
		for _, n := range c.nodes() {
			if !c.process(n.name).alive() {
				if err := c.StartNode(n.name); err != nil {
					return nil, err
				}
			}
		}
		fmt.Fprintf(o.Log, "cluster %s already runs; kubeconfig: %s\n", o.Name, c.Kubeconfig())
		return c, nil
	}
	fmt.Fprintf(o.Log, "clearing what is left of an earlier cluster %s …\n", o.Name)
	return nil, clear(ctx, o.Name, dir)
}

func (c *Cluster) hasShape(o Options) bool {
	return c.state.Nodes == o.Nodes && c.state.Version == o.Version &&
		slices.Equal(c.state.AdmissionPlugins, o.AdmissionPlugins) &&
		maps.Equal(c.state.FeatureGates, o.FeatureGates)
}

// healthy reports whether all of the control plane runs and answers.
func (c *Cluster) healthy(ctx context.Context) bool {
	for _, name := range c.controlPlane() {
		if !c.process(name).alive() {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return c.state.Ready && c.answers(ctx)
}

// Open attaches to a running cluster.
func Open(name string) (*Cluster, error) {
	if name == "" {
		name = DefaultName
	}
	dir, err := clusterDir(name)
	if err != nil {
		return nil, err
	}
	c, err := open(dir, io.Discard)
	if errors.Is(err, os.ErrNotExist) || (err == nil && !c.state.Ready) {
		return nil, fmt.Errorf("cluster %s does not run; start it with: go run ./test/cluster/cmd/cluster up --name %s", name, name)
	}
	return c, err
}

func open(dir string, log io.Writer) (*Cluster, error) {
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, log: log, state: s}, nil
}

// Name of the cluster.
func (c *Cluster) Name() string { return c.state.Name }

// Dir is the folder with the cluster's logs, certificates and data.
func (c *Cluster) Dir() string { return c.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// AuditLog is the path of the API server's audit log, one JSON event a line.
func (c *Cluster) AuditLog() string { return c.path("logs", "audit.log") }

// Programs is the folder of the Kubernetes programs (kubectl among them).
func (c *Cluster) Programs() string { return c.state.Sets[programsOf(c.state.Version)] }

// Config is the administrator's, without client-side rate limits.
func (c *Cluster) Config() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		// The file was written by up; it can only be missing after down, and
		// then every request says so.
		config = &rest.Config{Host: c.endpoint()}
	}
	config.QPS = -1
	return config
}

func (c *Cluster) client() (*kubernetes.Clientset, error) { return kubernetes.NewForConfig(c.Config()) }

func (c *Cluster) path(elements ...string) string {
	return filepath.Join(append([]string{c.dir}, elements...)...)
}

func (c *Cluster) say(format string, args ...any) { fmt.Fprintf(c.log, format+"\n", args...) }

func (c *Cluster) process(name string) process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.Processes[name]
}

// start runs a program of this machine's side and records it.
func (c *Cluster) start(name string, args ...string) error {
	p, err := startProcess(c.dir, name, args, nil)
	if err != nil {
		return err
	}
	return c.record(name, p)
}

// Run runs a program of this machine's side until the cluster is taken down. One of that
// name which runs already ends first.
func (c *Cluster) Run(ctx context.Context, name string, env []string, args ...string) error {
	if err := c.process(name).stop(ctx, 20*time.Second); err != nil {
		return err
	}
	p, err := startProcess(c.dir, name, args, nil, env...)
	if err != nil {
		return err
	}
	return c.record(name, p)
}

// Shell is a command line for bash, which ends at the first command that fails. It has the
// cluster's kubectl, and the rights of its administrator.
func (c *Cluster) Shell(ctx context.Context, line string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "PATH="+c.Programs()+":"+os.Getenv("PATH"))
	return command
}

// Alive reports whether a program of that name runs.
func (c *Cluster) Alive(name string) bool { return c.process(name).alive() }

// startForGood is start of a program that ends by itself when it does not trust its
// own memory any more, as the scheduler does, and that clusters start again.
func (c *Cluster) startForGood(name string, args ...string) error {
	const again = `while :; do "$@"; echo "it ended by itself, and is started again" >&2; sleep 1; done`
	return c.start(name, append([]string{"/bin/sh", "-c", again, name}, args...)...)
}

func (c *Cluster) record(name string, p process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Processes[name] = p
	return c.save()
}

// parallel runs all steps at once and gives their errors.
func parallel(steps ...func() error) error {
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { errs[i] = step() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Address is this machine's, as nodes and pods reach it.
func (c *Cluster) Address() string { return c.state.Address }

// Authority is the path of the certificate that signs the cluster's own.
func (c *Cluster) Authority() string { return c.path("certs", "ca.crt") }

// ServingPair is the paths of a certificate and key of this machine, for a
// server on its Address that nodes and clients of the Authority trust.
func (c *Cluster) ServingPair() (cert, key string) {
	return c.path("certs", "apiserver.crt"), c.path("certs", "apiserver.key")
}
