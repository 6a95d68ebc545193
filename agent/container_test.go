package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	"github.com/stateful-operator/stateful-operator/agent/processes"
	common "github.com/stateful-operator/stateful-operator/agent/settings"
)

// Members run in containers of runc: with a PID namespace, a read-only root file system, a user of the
// image and no capabilities. All use the network of this machine, each with another address.

const (
	memberUser = 999
	password   = "s3cret: of\\ the 'superuser'"
	replPass   = "other:secret"
)

// agentBinary is the path of the tested program.
var agentBinary string

func TestMain(m *testing.M) { os.Exit(withAgent(m.Run)) }

func withAgent(run func() int) int {
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	agentBinary = filepath.Join(dir, programName)
	build := exec.Command("go", "build", "-o", agentBinary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic("building the agent: " + err.Error() + "\n" + string(out))
	}
	return run()
}

// withContainers runs the tests with databases in containers, which take some minutes:
//
//	apt-get install --no-install-recommends runc postgresql-15 redis-server etcd-server \
//	  mariadb-server mariadb-backup galera-4 socat iproute2
//	go test -count=1 -timeout=20m ./agent -containers
var withContainers = flag.Bool("containers", false, "run the tests with databases in containers; requires root, runc, and the databases of Debian")

// set is a ReplicatedStatefulSet.
type set struct {
	t           *testing.T
	dir         string
	application string
	server      string // the name of its processes
	dataDir     string // relative to the volume
	programs    string // a prefix of PATH
	usr         string // the programs of the containers; defaults to those of this machine
	port        int32
	// bridge is a network for members that cannot share one, or "".
	bridge string

	// environment returns the configuration of a member that listens at an address.
	environment func(address string) ([]string, error)
	config      settings.Config // of PostgreSQL
	members     []*member
}

// member is a member with its container.
type member struct {
	*set
	name    string
	address string
	user    int
	path    string // a prefix of PATH
	started int
}

func needContainers(t *testing.T) {
	t.Helper()
	if !*withContainers {
		t.Skip("requires -containers")
	}
}

// newSet returns a set of PostgreSQL whose members have running containers without data.
func newSet(t *testing.T, members int, change ...func(*settings.Config)) *set {
	t.Helper()
	s := &set{t: t, application: postgresql.Name, server: "postgres", dataDir: "pgdata"}
	s.prepare()
	s.config = settings.Config{Common: s.common("/data/pgdata", map[string]string{
		"shared_buffers": "16MB", "max_connections": "20", "dynamic_shared_memory_type": "mmap",
	})}
	for _, f := range change {
		f(&s.config)
	}
	s.environment = func(address string) ([]string, error) {
		config := s.config
		config.ListenAddresses = address
		text, err := config.Encode()
		return []string{"PGPASSWORD=of-the-user", settings.Variable + "=" + text}, err
	}
	s.write("etc/passwd", fmt.Sprintf("root:x:0:0::/:/bin/sh\npostgres:x:%d:%d::/:/bin/sh\n", memberUser, memberUser))
	s.write("credentials/"+settings.PasswordKey, password)
	s.write("credentials/"+settings.ReplicationPasswordKey, replPass+"\n")
	s.startMembers(members)
	return s
}

// common returns the configuration that all applications have.
func (s *set) common(data string, options map[string]string) common.Common {
	return common.Common{
		PrimaryHost: "db-primary", Port: s.port, DataDir: data, RunDir: "/run/agent", CredentialsDir: "/credentials",
		Settings: options, CommandSeconds: 120,
	}
}

// prepare creates the folders of a set, and installs the agent.
func (s *set) prepare() {
	s.t.Helper()
	needContainers(s.t)
	dir, err := os.MkdirTemp("", "pg") // short, because of the sockets
	check(s.t, err)
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	s.dir, s.port = dir, freePort(s.t)
	for _, folder := range []string{"etc", "credentials", "tls", "runc", "agent"} {
		check(s.t, os.Mkdir(filepath.Join(dir, folder), 0o755))
	}
	check(s.t, os.Chmod(dir, 0o755))
	s.write("etc/hosts", "127.0.0.1 localhost\n")
	if out, err := exec.Command(agentBinary, "install", filepath.Join(dir, "agent")).CombinedOutput(); err != nil {
		s.t.Fatalf("install: %v: %s", err, out)
	}
}

func (s *set) startMembers(count int) {
	s.t.Helper()
	for i := range count {
		m := &member{set: s, name: "db-" + strconv.Itoa(i), address: "127.0.1." + strconv.Itoa(10+i), user: memberUser}
		if s.bridge != "" {
			m.attach(i)
		}
		s.members = append(s.members, m)
		check(s.t, os.MkdirAll(m.volume(), 0o777))
		check(s.t, os.Chmod(m.volume(), 0o777))
		m.start()
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.1.10:0")
	check(t, err)
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// write writes a file of the set in its place, so that containers see the change.
func (s *set) write(name, text string) {
	s.t.Helper()
	check(s.t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644))
}

// primaryIs points the name of the primary to a member, or to none.
func (s *set) primaryIs(m *member) {
	s.t.Helper()
	text := "127.0.0.1 localhost\n"
	for _, other := range s.members {
		text += other.address + " " + other.host() + "\n"
	}
	if m != nil {
		text += m.address + " db-primary\n"
	}
	s.write("etc/hosts", text)
}

func (m *member) host() string   { return m.name + ".db-svc" }
func (m *member) volume() string { return filepath.Join(m.dir, m.name) }
func (m *member) data(names ...string) string {
	return filepath.Join(append([]string{m.volume(), m.dataDir}, names...)...)
}
func (m *member) container() string {
	return fmt.Sprintf("%s-%s-%d", filepath.Base(m.dir), m.name, m.started)
}
func (m *member) logFile() string { return filepath.Join(m.dir, m.name+".log") }

func (m *member) log() string {
	text, err := os.ReadFile(m.logFile())
	check(m.t, err)
	return string(text)
}

func (m *member) runc(args ...string) *exec.Cmd {
	return exec.Command("runc", append([]string{"--root", filepath.Join(m.dir, "runc")}, args...)...)
}

type object map[string]any

// start starts the container with process 1, as a new pod.
func (m *member) start() {
	m.t.Helper()
	m.started++
	environment, err := m.environment(m.address)
	check(m.t, err)
	bundle := filepath.Join(m.dir, m.container())
	run := filepath.Join(bundle, "run") // an emptyDir
	check(m.t, os.MkdirAll(run, 0o755))
	check(m.t, os.Chmod(run, 0o777))
	root := filepath.Join(bundle, "rootfs")
	for _, folder := range []string{"usr", "proc", "dev", "etc", "data", "run/agent", "agent", "credentials", "tls"} {
		check(m.t, os.MkdirAll(filepath.Join(root, folder), 0o755))
	}
	for _, name := range []string{"bin", "lib", "lib64", "sbin"} {
		check(m.t, os.Symlink("usr/"+name, filepath.Join(root, name)))
	}
	mount := func(kind, from, to string, options ...string) object {
		return object{"type": kind, "source": from, "destination": to, "options": options}
	}
	description, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": m.user, "gid": 0}, "cwd": "/", "noNewPrivileges": true,
			"args": []string{"/agent/agent", m.application, "idle"},
			"env":  append(environment, "PATH="+m.path+m.programs+"/usr/bin:/bin", "POD_NAME="+m.name),
		},
		"root": object{"path": root, "readonly": true},
		"mounts": []object{
			mount("proc", "proc", "/proc"),
			mount("tmpfs", "tmpfs", "/dev", "mode=755"),
			mount("bind", cmp.Or(m.usr, "/usr"), "/usr", "rbind", "ro"),
			mount("bind", filepath.Join(m.dir, "etc"), "/etc", "bind", "ro"),
			mount("bind", filepath.Join(m.dir, "agent"), "/agent", "bind", "ro"),
			mount("bind", filepath.Join(m.dir, "credentials"), "/credentials", "bind", "ro"),
			mount("bind", filepath.Join(m.dir, "tls"), "/tls", "bind", "ro"),
			mount("bind", m.volume(), "/data", "bind"),
			mount("bind", run, "/run/agent", "bind"),
		},
		"linux": object{"namespaces": m.namespaces()},
	})
	check(m.t, err)
	check(m.t, os.WriteFile(filepath.Join(bundle, "config.json"), description, 0o644))
	log, err := os.OpenFile(m.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	check(m.t, err)
	defer log.Close()
	cmd := m.runc("run", "--detach", "--bundle", bundle, m.container())
	cmd.Stdout, cmd.Stderr = log, log
	m.t.Cleanup(m.remove)
	if err := cmd.Run(); err != nil {
		m.t.Fatal("runc cannot create containers here: " + err.Error() + "\n" + m.log())
	}
}

func (m *member) namespaces() []object {
	all := []object{{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}}
	if m.bridge != "" {
		all = append(all, object{"type": "network", "path": "/run/netns/" + m.network()})
	}
	return all
}

// network is the name of the member's network namespace.
func (m *member) network() string { return m.bridge + "-" + m.name }

func (s *set) ip(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// addBridge creates the network of the set.
func (s *set) addBridge() {
	s.t.Helper()
	s.bridge = "agent" + strconv.Itoa(os.Getpid()%10000)
	s.ip("link", "add", s.bridge, "type", "bridge")
	s.t.Cleanup(func() { s.ip("link", "delete", s.bridge) })
	s.ip("address", "add", "198.18.7.1/24", "dev", s.bridge)
	s.ip("link", "set", s.bridge, "up")
}

// attach creates a network namespace for a member, which outlives its containers.
func (m *member) attach(i int) {
	m.t.Helper()
	m.address = "198.18.7." + strconv.Itoa(10+i)
	link := fmt.Sprintf("%s-%d", m.bridge, i)
	m.ip("netns", "add", m.network())
	m.t.Cleanup(func() { m.ip("netns", "delete", m.network()) })
	m.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", m.network())
	m.ip("link", "set", link, "master", m.bridge, "up")
	m.ip("-n", m.network(), "link", "set", "lo", "up")
	m.ip("-n", m.network(), "address", "add", m.address+"/24", "dev", "eth0")
	m.ip("-n", m.network(), "link", "set", "eth0", "up")
}

func (m *member) remove() {
	_ = m.runc("delete", "--force", m.container()).Run() // it may be gone
}

// kill ends the container as the loss of a node does, and starts another one.
func (m *member) restart() {
	m.t.Helper()
	m.remove()
	m.start()
}

// replace restarts the member with a script instead of a program. In the script, $real is the program.
func (m *member) replace(program, script string) {
	m.t.Helper()
	real, err := filepath.Glob("/usr/lib/postgresql/*/bin/*")
	check(m.t, err)
	folder := filepath.Join(m.dir, "agent", program)
	check(m.t, os.RemoveAll(folder))
	check(m.t, os.MkdirAll(folder, 0o755))
	for _, path := range real {
		name := filepath.Join(folder, filepath.Base(path))
		if filepath.Base(path) != program {
			check(m.t, os.Symlink(path, name))
			continue
		}
		check(m.t, os.WriteFile(name, []byte("#!/bin/sh\nreal="+path+"\n"+script+"\n"), 0o755))
	}
	m.path = "/agent/" + program + ":"
	m.restart()
}

// killed starts secondary, and kills the command when a program runs that it has started, and the data
// folder has files.
func (m *member) killed(program string, primary *member, files ...string) {
	m.t.Helper()
	cmd := m.runc("exec", m.container(), "/agent/agent", "postgresql", "secondary", primary.host())
	check(m.t, cmd.Start())
	m.eventually(program+" runs", func() bool {
		for _, name := range files {
			if _, err := os.Stat(m.data(name)); err != nil {
				return false
			}
		}
		return len(m.processes(program)) > 0
	})
	m.killCommands("secondary", "copy")
	if err := cmd.Wait(); err == nil {
		m.t.Errorf("secondary was not killed while %s ran", program)
	}
}

// killCommands kills the running commands of these names.
func (m *member) killCommands(names ...string) {
	m.t.Helper()
	for _, p := range m.processes("agent") {
		if args := p.Arguments(); len(args) > 2 && slices.Contains(names, args[2]) {
			check(m.t, syscall.Kill(p.ID, syscall.SIGKILL))
		}
	}
}

// result is the result of a command.
type result struct {
	code           driver.Code
	stdout, stderr string
	took           time.Duration
}

// run runs a command of the agent, as the operator does.
func (m *member) run(name string, args ...string) result {
	m.t.Helper()
	return m.execute(append([]string{"/agent/agent", m.application, name}, args...)...)
}

func (m *member) execute(argv ...string) result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	whole := m.runc(append([]string{"exec", m.container()}, argv...)...)
	cmd := exec.CommandContext(ctx, whole.Path, whole.Args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		m.t.Fatalf("%s %v: %v %v\n%s\n%s", m.name, argv, err, ctx.Err(), stderr.String(), m.log())
	}
	return result{driver.Code(cmd.ProcessState.ExitCode()), stdout.String(), stderr.String(), time.Since(start)}
}

// must runs a command that must exit with a code.
func (m *member) must(code driver.Code, name string, args ...string) result {
	m.t.Helper()
	got := m.run(name, args...)
	if got.code != code {
		m.t.Fatalf("%s %s %v exits with %d after %s, want %d: %s\nlog:\n%s", m.name, name, args, got.code, got.took, code, got.stderr, m.log())
	}
	return got
}

// sequence returns the output of sequence, which must succeed.
func (m *member) sequence() uint64 {
	m.t.Helper()
	got := m.must(driver.Succeeded, "sequence")
	number, err := strconv.ParseUint(strings.TrimSpace(got.stdout), 10, 64)
	check(m.t, err)
	return number
}

func timelineOf(sequence uint64) uint64 { return sequence >> 48 }

// servers returns the process IDs of the server on this machine, outside of the PID namespace.
func (m *member) processes(name string) []processes.Process {
	m.t.Helper()
	out, err := m.runc("ps", "--format", "json", m.container()).Output()
	check(m.t, err)
	var ids []int
	check(m.t, json.Unmarshal(out, &ids))
	all, err := processes.Named(name)
	check(m.t, err)
	var found []processes.Process
	for _, p := range all {
		for _, id := range ids {
			if p.ID == id {
				found = append(found, p)
			}
		}
	}
	return found
}

func (m *member) signal(name string, s syscall.Signal) {
	m.t.Helper()
	found := m.processes(name)
	if len(found) == 0 {
		m.t.Fatalf("%s has no process %s", m.name, name)
	}
	processes.Signal(found, s)
}

// crash kills the server. Process 1 ends with it, and the kubelet starts another container.
func (m *member) crash() {
	m.t.Helper()
	m.signal(m.server, syscall.SIGKILL)
	m.ends()
	m.restart()
}

// ends waits until the container has ended.
func (m *member) ends() {
	m.t.Helper()
	m.eventually("the container ends", func() bool {
		out, err := m.runc("state", m.container()).Output()
		return err == nil && strings.Contains(string(out), `"status": "stopped"`)
	})
}

func (s *set) eventually(what string, done func() bool) {
	s.t.Helper()
	if !processes.WaitUntil(time.Minute, done) {
		text := ""
		for _, m := range s.members {
			text += "\n" + m.name + ":\n" + m.log()
		}
		s.t.Fatalf("not true after a minute: %s%s", what, text)
	}
}
