package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// operator is a running process of the real program.
type operator struct {
	command *exec.Cmd
	ended   chan error
	stopped sync.Once
	metrics string
	token   string
}

// startOperator starts the program as a Deployment would, but alone, so
// without a Lease, without webhooks, which the other contestants have not
// either, and with the one kind that is measured. It returns when the program is ready.
func (s *site) startOperator(ctx context.Context, kind string, env ...string) (*operator, error) {
	metrics, health, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(s.folder, "operator.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	command := exec.Command(s.operator.path, "--kinds="+kind, "--namespace="+metav1.NamespaceSystem, "--leader-elect=false", "--webhooks=false",
		"--metrics-bind-address="+metrics, "--health-probe-bind-address="+health)
	// The mark of the cluster's own programs lets its Down find this one too,
	// when we were killed.
	command.Env = append(append(os.Environ(), "KUBECONFIG="+s.operator.kubeconfig, "WATCH_NAMESPACE=", "POD_NAMESPACE="+metav1.NamespaceSystem,
		"STATEFUL_OPERATOR_CLUSTER="+s.cluster.Dir()), env...)
	command.Stdout, command.Stderr = log, log
	// An interrupt at the terminal is for us, who stop it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return nil, err
	}
	o := &operator{command: command, ended: make(chan error, 1), metrics: metrics, token: s.operator.token}
	go func() { o.ended <- command.Wait() }()
	err = waitFor(ctx, time.Minute, "the operator", func() (bool, string, error) {
		select {
		case err := <-o.ended:
			o.ended <- err
			return false, "", fmt.Errorf("the operator ended: %w; see -keep-logs", err)
		default:
		}
		answer, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false, err.Error(), nil
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, answer.Status, nil
	})
	if err == nil {
		err = pause(ctx, 2*time.Second) // its caches fill
	}
	if err != nil {
		o.stop()
		return nil, err
	}
	return o, nil
}

// stop ends the process, and kills it if it does not end by itself. It may be
// called again.
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

func freeAddresses() (first, second string, err error) {
	var addresses [2]string
	for i := range addresses {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer listener.Close() // both are held until both are chosen, so they differ
		addresses[i] = listener.Addr().String()
	}
	return addresses[0], addresses[1], nil
}

// The metrics of the Go runtime that are read.
const (
	metricLive   = "go_gc_heap_live_bytes"
	metricCycles = "go_gc_cycles_total_gc_cycles_total"
	metricRSS    = "process_resident_memory_bytes"
	metricCPU    = "process_cpu_seconds_total"
)

// liveHeap is what the operator's heap holds after garbage collections that
// began after the call. Asking for metrics makes garbage; enough of it makes
// the process collect. Nothing of the program is changed for the measurement.
func (o *operator) liveHeap(ctx context.Context) (live, rss float64, err error) {
	if err := pause(ctx, 3*time.Second); err != nil {
		return 0, 0, err
	}
	first := -1.0
	err = waitFor(ctx, 5*time.Minute, "the garbage collector", func() (bool, string, error) {
		values, err := o.scrape(ctx)
		if err != nil {
			return false, "", err
		}
		cycles, ok := values[metricCycles]
		if !ok {
			return false, "", errors.New("the operator has no metric " + metricCycles)
		}
		if first < 0 {
			first = cycles
		}
		live, rss = values[metricLive], values[metricRSS]
		return cycles >= first+4, "", nil // sync.Pools are empty after two
	})
	return live, rss, err
}

func (o *operator) scrape(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.metrics+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+o.token)
	// Without a webhook the program's certificate is one that nobody can check.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking for metrics: %s", answer.Status)
	}
	return parseMetrics(answer.Body)
}

// parseMetrics reads the values without labels, and the buckets of histograms
// without others than theirs.
func parseMetrics(text io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || strings.HasPrefix(name, "#") || strings.Contains(name, "{") && !strings.Contains(name, bucket) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		values[name] = number
	}
	return values, lines.Err()
}

// bucket is what comes between the name of a histogram and the bound of one of
// its buckets.
const bucket = `_bucket{le="`

// observed are the values that a histogram took in between two scrapes.
type observed struct {
	count, mean float64
	p99         float64 // at most: the bound of a bucket
}

func observedBetween(before, after map[string]float64, name string) observed {
	grown := func(what string) float64 { return after[name+what] - before[name+what] }
	o := observed{count: grown("_count"), p99: math.Inf(1)}
	o.mean = grown("_sum") / o.count
	for key := range after {
		text, found := strings.CutPrefix(key, name+bucket)
		bound, err := strconv.ParseFloat(strings.TrimSuffix(text, `"}`), 64)
		if found && err == nil && after[key]-before[key] >= 0.99*o.count {
			o.p99 = min(o.p99, bound)
		}
	}
	return o
}
