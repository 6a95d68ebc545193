// Package cluster boots a real Kubernetes on this machine from Go modules: etcd, API server, controller
// manager, scheduler, CoreDNS, and nodes with containerd, kubelet and kube-proxy. Each node has its own
// namespaces.
//
//	Up             boots a cluster with nodes; needs Linux and root
//	UpControlPlane boots a cluster without nodes; needs neither (StartKwok simulates nodes)
//	Open           opens a running cluster from another program
//	Down           removes a cluster completely, also after a crash of Up
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

// DefaultName is the name of the cluster of make cluster-up and make run.
const DefaultName = "local"

// Options are the options of a cluster.
type Options struct {
	Name             string          // default: DefaultName
	Nodes            int             // default: 3
	Log              io.Writer       // progress, one line per step; no output when nil
	AdmissionPlugins []string        // in addition to the default ones
	FeatureGates     map[string]bool // of every Kubernetes program
	Version          string          // of Kubernetes: 1.30, 1.33, or empty for the newest supported one
}

// programsOf returns the set of programs for a version of Kubernetes, as in Options.
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

// Up boots a cluster, or opens it if it already runs.
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

// UpControlPlane boots etcd, API server, controller manager and scheduler on the loopback address. It
// needs no root and works on every system that Go supports.
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
		return nil, fmt.Errorf("boot cluster %s (logs are in %s): %w", o.Name, c.path("logs"), err)
	}
	c.state.Ready = true
	fmt.Fprintf(o.Log, "cluster %s is up after %s; kubeconfig: %s\n",
		o.Name, time.Since(began).Round(100*time.Millisecond), c.Kubeconfig())
	return c, c.save()
}

// reopen returns the cluster if it already runs, and otherwise removes its remains. Both results are
// nil if a new cluster must be booted.
func reopen(ctx context.Context, dir string, o Options) (*Cluster, error) {
	if !isDir(dir) {
		return nil, nil
	}
	c, err := open(dir, o.Log)
	if err == nil && c.healthy(ctx) {
		if !c.hasShape(o) {
			return nil, fmt.Errorf("cluster %s is already running with another configuration (%d nodes, admission plugins %v, feature gates %v, version %q of Kubernetes): delete it first",
				o.Name, c.state.Nodes, c.state.AdmissionPlugins, c.state.FeatureGates, c.state.Version)
		}
		for _, n := range c.nodes() {
			if !c.process(n.name).alive() {
				if err := c.StartNode(n.name); err != nil {
					return nil, err
				}
			}
		}
		fmt.Fprintf(o.Log, "cluster %s is already running; kubeconfig: %s\n", o.Name, c.Kubeconfig())
		return c, nil
	}
	fmt.Fprintf(o.Log, "removing the rest of an earlier cluster %s …\n", o.Name)
	return nil, clear(ctx, o.Name, dir)
}

func (c *Cluster) hasShape(o Options) bool {
	return c.state.Nodes == o.Nodes && c.state.Version == o.Version &&
		slices.Equal(c.state.AdmissionPlugins, o.AdmissionPlugins) &&
		maps.Equal(c.state.FeatureGates, o.FeatureGates)
}

// healthy reports whether the control plane's programs run and the API server is ready.
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

// Open opens a running cluster.
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
		return nil, fmt.Errorf("cluster %s is not running; start it with: go run ./test/cluster/cmd/cluster up --name %s", name, name)
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

// Name returns the name of the cluster.
func (c *Cluster) Name() string { return c.state.Name }

// Dir returns the folder with the cluster's logs, certificates and data.
func (c *Cluster) Dir() string { return c.dir }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// AuditLog returns the path of the API server's audit log, with one JSON event per line.
func (c *Cluster) AuditLog() string { return c.path("logs", "audit.log") }

// Programs returns the folder of the Kubernetes programs, including kubectl.
func (c *Cluster) Programs() string { return c.state.Sets[programsOf(c.state.Version)] }

// Config returns the administrator's configuration, without client-side rate limits.
func (c *Cluster) Config() *rest.Config {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		// The file is only missing after Down. Then every request fails.
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

// start starts a program on the host and records it.
func (c *Cluster) start(name string, args ...string) error {
	p, err := startProcess(c.dir, name, args, nil)
	if err != nil {
		return err
	}
	return c.record(name, p)
}

// Run runs a program on the host until the cluster is taken down. A running program of the same name is
// stopped first.
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

// Shell returns a command that runs line in bash and stops at the first failing command. It uses the
// cluster's kubectl with an administrator's rights.
func (c *Cluster) Shell(ctx context.Context, line string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", line)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(), "PATH="+c.Programs()+":"+os.Getenv("PATH"))
	return command
}

// Alive reports whether a program of that name runs.
func (c *Cluster) Alive(name string) bool { return c.process(name).alive() }

// startForGood starts a program and restarts it whenever it ends. The scheduler, for example, ends
// itself when it detects that its cache is corrupted.
func (c *Cluster) startForGood(name string, args ...string) error {
	const again = `while :; do "$@"; echo "the process exited and is restarted" >&2; sleep 1; done`
	return c.start(name, append([]string{"/bin/sh", "-c", again, name}, args...)...)
}

func (c *Cluster) record(name string, p process) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Processes[name] = p
	return c.save()
}

// parallel runs all steps in parallel and returns their errors.
func parallel(steps ...func() error) error {
	errs := make([]error, len(steps))
	var wg sync.WaitGroup
	for i, step := range steps {
		wg.Go(func() { errs[i] = step() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Address returns the address of this machine for nodes and pods.
func (c *Cluster) Address() string { return c.state.Address }

// Authority returns the path of the CA certificate of the cluster.
func (c *Cluster) Authority() string { return c.path("certs", "ca.crt") }

// ServingPair returns the paths of a certificate and key for a server on Address, signed by Authority.
func (c *Cluster) ServingPair() (cert, key string) {
	return c.path("certs", "apiserver.crt"), c.path("certs", "apiserver.key")
}
