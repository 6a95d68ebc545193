package etcd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/membership"
	"github.com/stateful-operator/stateful-operator/agent/processes"
)

// Versions that have learners and the gateway.
const oldestMajor, oldestMinor = 3, 4

var versionText = regexp.MustCompile(`etcd Version: (\d+)\.(\d+)\.`)

// program returns the path of the server in the image.
func (s *Server) program(ctx context.Context) (string, error) {
	path, err := driver.FindProgram(processName)
	if err != nil {
		return "", err
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

// launch starts the server with its data, or with additional arguments as a new member of a cluster. It
// returns when the server answers.
func (s *Server) launch(ctx context.Context, args ...string) error {
	return s.begin(ctx, s.listenHost(), append(args, "--initial-cluster-state=existing")...)
}

// begin starts the server with additional arguments. Clients connect to a host.
func (s *Server) begin(ctx context.Context, clients string, args ...string) error {
	program, err := s.program(ctx)
	if err != nil {
		return err
	}
	for _, entry := range os.Environ() { // etcd also reads flags from variables
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "ETCD_") {
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	host := s.listenHost()
	all := []string{
		"--name=" + s.Name, "--data-dir=" + s.folder(), "--strict-reconfig-check=true",
		"--listen-client-urls=" + s.url(clients, s.config.Port), "--advertise-client-urls=" + s.url(s.host(), s.config.Port),
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
	return s.undoStart(driver.WaitUntil(ctx, servers.Running, func() error { return s.answers(ctx) }))
}

// undoStart kills the server after an error: a start takes effect before its command ends, or not at all.
func (s *Server) undoStart(err error) error { return driver.Undo(err, s.kill) }

// Seed starts the first member: with its data, or as a new cluster of one member if it has none.
func (s *Server) Seed(ctx context.Context) error {
	m, runs, err := s.prepare(ctx)
	switch {
	case err != nil, runs:
		return err
	case m.IsMember():
		return s.launch(ctx)
	}
	if err := s.record().CheckCreate(m, s.Name); err != nil {
		return err
	}
	return s.create(ctx)
}

// prepare returns the mark of a copy that is to be started. runs is true if it runs as a member already.
func (s *Server) prepare(ctx context.Context) (m membership.Mark, runs bool, err error) {
	return s.record().Prepare(servers.Running, func() error { return s.answers(ctx) })
}

// create creates a new cluster of this member. Until authentication is enabled, only this pod reaches it.
func (s *Server) create(ctx context.Context) error {
	if err := s.record().Write(membership.Mark{State: membership.Creating}); err != nil {
		return err
	}
	if err := s.discard(); err != nil {
		return err
	}
	token := make([]byte, 16)
	if _, err := rand.Read(token); err != nil {
		return err
	}
	err := s.begin(ctx, s.loopback(), "--initial-cluster="+s.Name+"="+s.peerURL(), "--initial-cluster-state=new",
		"--initial-cluster-token="+hex.EncodeToString(token))
	if err != nil {
		return err
	}
	if err := s.initialize(ctx); err != nil {
		return s.undoStart(err)
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.launch(ctx)
}

// initialize enables authentication in a new cluster, and marks this copy as a member.
func (s *Server) initialize(ctx context.Context) error {
	client, err := s.client(s.loopback())
	if err != nil {
		return err
	}
	defer client.Close()
	if err := driver.WaitUntil(ctx, servers.Running, func() error { return s.Ready(ctx) }); err != nil {
		return err
	}
	if err := client.EnableAuth(ctx); err != nil {
		return err
	}
	found, err := client.State(ctx)
	if err != nil {
		return err
	}
	return s.record().Write(membership.Mark{State: membership.Member, Cluster: found.Cluster, Member: found.Member})
}
