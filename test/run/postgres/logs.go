package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serverLogs are the logs of the servers. Each is followed until its end, because a deleted pod has no
// log.
type serverLogs struct{ servers []*server }

type server struct {
	pod     string
	process *exec.Cmd
	log     lockedBuffer
}

// lockedBuffer is a buffer that a process writes while it is read.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// follow starts to read the logs of the existing pods.
func (l *serverLogs) follow(ctx context.Context, d database) error {
	var pods corev1.PodList
	if err := d.Client.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{"app": name}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := pods.Items[i].Name
		if slices.ContainsFunc(l.servers, func(s *server) bool { return s.pod == pod }) {
			continue
		}
		s := &server{pod: pod, process: d.kubectl(ctx, "logs", "--follow", pod, "-c", "postgres")}
		s.process.Stdout = &s.log
		if err := s.process.Start(); err != nil {
			return fmt.Errorf("read the log of %s: %w", pod, err)
		}
		l.servers = append(l.servers, s)
	}
	return nil
}

func (l *serverLogs) end() {
	for _, s := range l.servers {
		_ = s.process.Process.Kill() // it may have ended
		_ = s.process.Wait()
	}
}

// Relevant lines of a server's log. saysState is the state of the data at the start after a clean
// shutdown.
const (
	saysStart = "starting PostgreSQL"
	saysState = "database system was shut down at"
	saysStop  = "database system is shut down"
)

// tell prints when each server stopped and the next one started. Pods that never started a server are
// skipped: an old ReplicaSet may create some until its Deployment scales it down. At least want servers
// must have started.
func (l *serverLogs) tell(want int) error {
	servers := l.started()
	if len(servers) < want {
		return fmt.Errorf("%d servers have logged their start, want %d", len(servers), want)
	}
	var stopped time.Time
	for i, s := range servers {
		started, _ := s.first(saysStart)
		if i > 0 {
			fmt.Printf("old server stopped at %s, new server started at %s: gap %d ms\n",
				stopped.Format("15:04:05.000"), started.Format("15:04:05.000"), started.Sub(stopped).Milliseconds())
			if !started.After(stopped) {
				return fmt.Errorf("two servers ran at the same time")
			}
			_, state := s.first(saysState)
			if state == "" {
				return fmt.Errorf("the server in %s did not find its data as after a clean stop:\n%s", s.pod, s.log.String())
			}
			fmt.Printf("  but: %s\n", state)
		}
		stopped = s.last(saysStop)
		if stopped.IsZero() && i < len(servers)-1 {
			return fmt.Errorf("the server in %s has not logged its stop:\n%s", s.pod, s.log.String())
		}
	}
	fmt.Printf("%d servers, one after another, and never two at the same time\n", len(servers))
	return nil
}

// started returns the servers in the order in which they started.
func (l *serverLogs) started() []*server {
	at := func(s *server) time.Time {
		started, _ := s.first(saysStart)
		return started
	}
	servers := slices.DeleteFunc(slices.Clone(l.servers), func(s *server) bool { return at(s).IsZero() })
	slices.SortFunc(servers, func(a, b *server) int { return at(a).Compare(at(b)) })
	return servers
}

// first finds a line with the text, and returns its time and its message.
func (s *server) first(text string) (at time.Time, says string) {
	for _, l := range s.lines() {
		if strings.Contains(l, text) {
			_, says, _ = strings.Cut(l, "LOG:  ")
			return timeOf(l), says
		}
	}
	return time.Time{}, ""
}

func (s *server) last(text string) time.Time {
	var at time.Time
	for _, l := range s.lines() {
		if strings.Contains(l, text) {
			at = timeOf(l)
		}
	}
	return at
}

func (s *server) lines() []string {
	var lines []string
	scanner := bufio.NewScanner(strings.NewReader(s.log.String()))
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	return lines
}

// timeOf parses the beginning of a line: "2026-01-02 03:04:05.678 GMT [1] LOG:".
func timeOf(line string) time.Time {
	const layout = "2006-01-02 15:04:05.000 MST"
	at, err := time.Parse(layout, line[:min(len(line), len(layout))])
	if err != nil {
		return time.Time{}
	}
	return at
}
