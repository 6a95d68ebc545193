package freeze

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Timings of an election. They are shorter than those of an installation, so that a test can include
// many freezes, and long enough for a busy machine.
const (
	LeaseDuration = 8 * time.Second
	RenewDeadline = 6 * time.Second
	RetryPeriod   = time.Second
)

// Options are the options of an operator process.
type Options struct {
	// Program is the path of the operator's binary.
	Program string
	// Config is the configuration for the API server.
	Config *rest.Config
	// Lease is the name of the lease, in Namespace, which is also used as the operator's own namespace.
	Lease, Namespace string
	// Kind is the kind whose controller runs, in namespace Watch. An empty Watch means all namespaces.
	Kind, Watch string
	// Log is the file for the operator's output.
	Log string
}

// Operator is an operator process on this machine.
type Operator struct {
	Proxy *Proxy

	process *os.Process
	ended   chan struct{}
}

// Start starts an operator without webhooks. They must be served by another one.
func Start(o Options) (_ *Operator, err error) {
	proxy, err := NewProxy(o.Config)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, proxy.Close())
		}
	}()
	kubeconfig := o.Log + ".kubeconfig"
	if err := writeKubeconfig(kubeconfig, proxy.URL()); err != nil {
		return nil, err
	}
	log, err := os.Create(o.Log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(o.Program,
		"--name="+o.Lease, "--namespace="+o.Namespace, "--kinds="+o.Kind, "--watch-namespaces="+o.Watch, "--components=controllers", "--make-certificates=false",
		"--health-probe-bind-address=0", "--metrics-bind-address=0", "--log-level=debug",
		"--leader-elect-lease-duration="+LeaseDuration.String(),
		"--leader-elect-renew-deadline="+RenewDeadline.String(),
		"--leader-elect-retry-period="+RetryPeriod.String())
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	endWithUs(command)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the operator: %w", err)
	}
	operator := &Operator{Proxy: proxy, process: command.Process, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // the log shows how it ended
		close(operator.ended)
	}()
	return operator, nil
}

func writeKubeconfig(path, server string) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server}
	config.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	config.CurrentContext = "proxy"
	return clientcmd.WriteToFile(*config, path)
}

// Freeze stops the process, and returns when all its threads are stopped.
func (o *Operator) Freeze() error {
	if err := o.process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the operator: %w", err)
	}
	for range 1000 {
		if stopped(o.process.Pid) {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return errors.New("the operator did not freeze after the signal")
}

// stopped reports whether a process exists and all its threads are stopped.
func stopped(pid int) bool {
	stats, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	for _, stat := range stats {
		content, err := os.ReadFile(stat)
		if err != nil {
			continue // the thread has ended
		}
		_, rest, _ := strings.Cut(string(content), ") ")
		if !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return len(stats) > 0
}

// Wake continues the process.
func (o *Operator) Wake() error { return o.process.Signal(syscall.SIGCONT) }

// Kill kills the process, frozen or not, and closes its proxy.
func (o *Operator) Kill() {
	_ = o.process.Kill() // the error means that it has ended
	<-o.ended
	_ = o.Proxy.Close()
}

// AwaitEnd waits until the process has ended.
func (o *Operator) AwaitEnd(ctx context.Context) error {
	select {
	case <-o.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the operator has not exited: %w", ctx.Err())
	}
}
