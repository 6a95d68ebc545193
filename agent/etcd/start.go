package etcd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/etcd/gateway"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Versions that have learners and the gateway.
const oldestMajor, oldestMinor = 3, 4

var versionText = regexp.MustCompile(`etcd Version: (\d+)\.(\d+)\.`)

// program returns the path of the server in the image.
func (s *Server) program(ctx context.Context) (string, error) {
	path, err := exec.LookPath(processName)
	if err != nil {
		return "", driver.Errorf(driver.NotConfigured, "the image contains no %s in PATH", processName)
	}
	out, err := processes.Output(processes.Tool(ctx, path, "--version"))
	if err != nil {
		return "", err
	}
	match := versionText.FindStringSubmatch(out)
	if match == nil {
		return "", driver.Errorf(driver.NotConfigured, "%s --version prints %q", path, out)
	}
	major, _ := strconv.Atoi(match[1]) // digits
	minor, _ := strconv.Atoi(match[2])
	if major != oldestMajor || minor < oldestMinor {
		return "", driver.Errorf(driver.NotConfigured, "the image has etcd %s.%s, and the min version is %d.%d", match[1], match[2], oldestMajor, oldestMinor)
	}
	return path, nil
}

// launch starts the server with additional arguments, and returns when it answers.
func (s *Server) launch(ctx context.Context, args ...string) error {
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	host := s.listenHost()
	all := []string{
		"--name=" + s.Name, "--data-dir=" + s.folder(), "--strict-reconfig-check=true",
		"--listen-client-urls=" + s.url(host, s.config.Port), "--advertise-client-urls=" + s.url(s.host(), s.config.Port),
		"--listen-peer-urls=" + s.url(host, s.config.PeerPort()), "--initial-advertise-peer-urls=" + s.peerURL(),
		"--listen-metrics-urls=" + s.url(host, s.config.MetricsPort()),
	}
	for _, key := range slices.Sorted(maps.Keys(s.config.Settings)) {
		all = append(all, "--"+key+"="+s.config.Settings[key])
	}
	pid, err := processes.Detach(s.log.Output(), nil, program, append(all, args...)...)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.Private.Path(pidFile), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return s.undoStart(err)
	}
	return s.undoStart(driver.WaitUntil(ctx, s.running, func() error { return s.answers(ctx) }))
}

// undoStart kills the server after an error: a start takes effect before its command ends, or not at all.
func (s *Server) undoStart(err error) error {
	if err == nil {
		return nil
	}
	if stopErr := s.kill(); stopErr != nil {
		return fmt.Errorf("%w, and then: %w", err, stopErr)
	}
	return err
}

// Seed starts the first member: with its data, or as a new cluster of one member if it has none.
func (s *Server) Seed(ctx context.Context) error {
	m, runs, err := s.prepare(ctx)
	switch {
	case err != nil, runs:
		return err
	case m.State == stateMember:
		return s.launch(ctx)
	case m.State == stateLeft:
		return driver.Errorf(driver.NotInstalled, "this member has left its cluster, which may have newer data: to create a new cluster, delete the claim of %s", s.Name)
	}
	return s.create(ctx)
}

// prepare returns the mark of a copy that is to be started. runs is true if it runs as a member already.
func (s *Server) prepare(ctx context.Context) (m mark, runs bool, err error) {
	m, err = s.mark()
	if err != nil {
		return m, false, err
	}
	running, err := s.running()
	switch {
	case err != nil:
		return m, false, err
	case running && m.State == stateMember:
		return m, true, s.answers(ctx)
	case running:
		return m, false, fmt.Errorf("the server runs, and is no complete member of the cluster: %s", m.State)
	}
	return m, false, s.checkForeign(m)
}

// create creates a new cluster of this member.
func (s *Server) create(ctx context.Context) error {
	if s.start.Epoch < 1 {
		return driver.Errorf(driver.NotConfigured, "this command requires the argument %sTIME.EPOCH", driver.StartFlag)
	}
	if err := s.setMark(mark{State: stateCreating}); err != nil {
		return err
	}
	if err := s.discard(); err != nil {
		return err
	}
	err := s.launch(ctx, "--initial-cluster="+s.Name+"="+s.peerURL(), "--initial-cluster-state=new",
		fmt.Sprintf("--initial-cluster-token=%s-%d-%d", s.config.Service, s.start.Created, s.start.Epoch))
	if err != nil {
		return err
	}
	client, err := s.local()
	if err != nil {
		return s.undoStart(err)
	}
	err = driver.WaitUntil(ctx, s.running, func() error {
		healthy, err := s.health(ctx)
		if err == nil && !healthy {
			err = errors.New("it has no leader")
		}
		return err
	})
	if err == nil {
		err = client.EnableAuth(ctx)
	}
	if err == nil {
		err = s.complete(ctx)
	}
	return s.undoStart(err)
}

// complete marks this copy as a member.
func (s *Server) complete(ctx context.Context) error {
	client, err := s.local()
	if err != nil {
		return err
	}
	var found gateway.State
	err = driver.WaitUntil(ctx, s.running, func() (err error) {
		found, err = client.State(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return s.setMark(mark{State: stateMember, Cluster: found.Cluster, Member: found.Member})
}
