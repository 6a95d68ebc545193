package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// operator is a running process of the real program.
type operator struct {
	command *exec.Cmd
	ended   chan error
	stopped sync.Once
	metrics string
	token   string
}

// startOperator starts the program with the flags of a Deployment except for these: it runs alone
// without a Lease, with only the measured kind, and without webhooks, which the other contestants lack
// too. It returns when the program is ready.
func (s *site) startOperator(ctx context.Context, kind string, env ...string) *operator {
	ports := must(cluster.FreePorts("127.0.0.1", 2))
	metrics, health := fmt.Sprint("127.0.0.1:", ports[0]), fmt.Sprint("127.0.0.1:", ports[1])
	log := must(os.OpenFile(filepath.Join(s.folder, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644))
	defer log.Close()
	command := exec.Command(s.operator.path, "--kinds="+kind, "--namespace="+metav1.NamespaceSystem, "--leader-elect=false", "--components=controllers,installer", "--make-certificates=false",
		"--metrics-bind-address="+metrics, "--health-probe-bind-address="+health)
	// With the marker of the cluster's own programs, Down also finds this process if the benchmark was
	// killed.
	command.Env = append(append(os.Environ(), "KUBECONFIG="+s.operator.kubeconfig, "WATCH_NAMESPACE=", "POD_NAMESPACE="+metav1.NamespaceSystem,
		"STATEFUL_OPERATOR_CLUSTER="+s.cluster.Dir()), env...)
	command.Stdout, command.Stderr = log, log
	// The benchmark handles an interrupt at the terminal and stops the operator.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check(command.Start())
	o := &operator{command: command, ended: make(chan error, 1), metrics: metrics, token: s.operator.token}
	go func() { o.ended <- command.Wait() }()
	if err := attempt(func() { o.awaitReady(ctx, health) }); err != nil {
		o.stop()
		check(err)
	}
	return o
}

func (o *operator) awaitReady(ctx context.Context, health string) {
	waitFor(ctx, time.Minute, "the operator", func() (bool, string) {
		select {
		case err := <-o.ended:
			o.ended <- err
			fail("the operator exited: %w; see -keep-logs", err)
		default:
		}
		answer, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status
	})
	pause(ctx, 2*time.Second) // until its caches are filled
}

// stop stops the process, and kills it after a timeout. It can be called more than once.
func (o *operator) stop() {
	o.stopped.Do(func() {
		_ = o.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-o.ended:
		case <-time.After(15 * time.Second):
			_ = o.command.Process.Kill()
			<-o.ended
		}
	})
}

// liveHeap returns the live heap of the operator after garbage collections that began after the call.
// Requests for metrics allocate garbage, and enough of it triggers a collection. The program itself is
// unchanged.
func (o *operator) liveHeap(ctx context.Context) (live, rss float64) {
	pause(ctx, 3*time.Second)
	first := -1.0
	waitFor(ctx, 5*time.Minute, "the garbage collector", func() (bool, string) {
		now := o.scrape(ctx)
		cycles := now.value(metricCycles)
		if first < 0 {
			first = cycles
		}
		live, rss = now.value(metricLive), now.value(metricRSS)
		return cycles >= first+4, "" // sync.Pools are empty after two
	})
	return live, rss
}

func (o *operator) scrape(ctx context.Context) metrics {
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.metrics+"/metrics", nil))
	request.Header.Set("Authorization", "Bearer "+o.token)
	// Without a webhook the program's certificate is self-signed.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	check(err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		fail("read the metrics: %s", answer.Status)
	}
	return parseMetrics(answer.Body)
}
