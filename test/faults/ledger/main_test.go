package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/client"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// ledgerBinary is the path of the program as it is shipped, which all tests run.
var ledgerBinary string

func TestMain(m *testing.M) {
	var err error
	ledgerBinary, err = gexec.BuildWithEnvironment("github.com/stateful-operator/stateful-operator/test/faults/ledger",
		[]string{"CGO_ENABLED=0"}, "-trimpath", "-ldflags=-s -w")
	if err != nil {
		panic(err)
	}
	code := m.Run()
	gexec.CleanupBuildArtifacts()
	os.Exit(code)
}

// set is a set of members on loopback addresses, with their journals.
type set struct {
	*testing.T
	*WithT
	dir     string // a short path, because of its sockets
	members []*member
	clients int
}

type member struct {
	*set
	name, dir, address string
	process            *exec.Cmd // its process 1
}

// newSet returns a set with idle members a, b, c and so on.
func newSet(t *testing.T, count int, env ...string) *set {
	t.Parallel()
	s := &set{T: t, WithT: NewWithT(t)}
	var err error
	s.dir, err = os.MkdirTemp("", "ledger")
	s.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { os.RemoveAll(s.dir) })
	for _, name := range []string{"journal", "knobs"} {
		s.Expect(os.Mkdir(filepath.Join(s.dir, name), 0o755)).To(Succeed())
	}
	for i := range count {
		name := string(rune('a' + i))
		s.members = append(s.members, &member{set: s, name: name, dir: filepath.Join(s.dir, name), address: freeAddress(t)})
	}
	for _, m := range s.members {
		m.start(env...)
	}
	return s
}

// freeAddress returns an address that is very unlikely to be taken meanwhile: Linux has 16 million
// loopback addresses.
func freeAddress(t *testing.T) string {
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	listener, err := net.Listen("tcp", host+":0")
	if err != nil {
		t.Skip("this machine has only one loopback address:", err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func (s *set) addresses(members ...*member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.address)
	}
	return all
}

func (m *member) start(env ...string) {
	m.Helper()
	m.process = exec.Command(ledgerBinary, "supervise")
	m.process.Env = append(append(os.Environ(),
		"POD_NAME="+m.name, "LEDGER_DIR="+m.dir, "LEDGER_LISTEN="+m.address, "LEDGER_SELF="+m.address,
		"LEDGER_MEMBERS="+strconv.Itoa(len(m.members)), "LEDGER_PEERS="+strings.Join(m.addresses(m.members...), ","),
		"LEDGER_JOURNAL="+filepath.Join(m.set.dir, "journal"), "LEDGER_KNOBS="+filepath.Join(m.set.dir, "knobs"),
	), env...)
	m.process.Stdout, m.process.Stderr = os.Stdout, os.Stderr
	m.Expect(m.process.Start()).To(Succeed())
	process := m.process
	m.Cleanup(func() { _ = process.Process.Kill(); _ = process.Wait() })
	m.until("its process 1 responds", func() bool { code, _ := m.run("status"); return code != exitFailed })
}

// kill kills all processes of the member, as a power failure of its node does.
func (m *member) kill() {
	m.Helper()
	m.Expect(m.process.Process.Kill()).To(Succeed())
	_ = m.process.Wait()
	m.until("its server has exited", func() bool { return !m.serves() })
}

func (m *member) serves() bool {
	c, err := net.Dial("tcp", m.address)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func (m *member) command(args ...string) *exec.Cmd {
	cmd := exec.Command(ledgerBinary, args...)
	cmd.Env = m.process.Env
	return cmd
}

// begins starts a command that may not end.
func (m *member) begins(args ...string) *exec.Cmd {
	m.Helper()
	cmd := m.command(args...)
	m.Expect(cmd.Start()).To(Succeed())
	m.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func (m *member) run(args ...string) (code int, stdout string) {
	m.Helper()
	var out, errs bytes.Buffer
	cmd := m.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	m.Expect(err == nil || errors.As(err, &exit)).To(BeTrue(), "%v: %v", args, err)
	if errs.Len() > 0 {
		m.Logf("%s %v: %s", m.name, args, strings.TrimSpace(errs.String()))
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func (m *member) does(args ...string) { m.Helper(); m.ends(0, args...) }

func (m *member) ends(want int, args ...string) {
	m.Helper()
	code, out := m.run(args...)
	m.Expect(code).To(Equal(want), "%s %v printed %q", m.name, args, out)
}

func (m *member) sequence() uint64 {
	m.Helper()
	code, out := m.run("sequence")
	n, err := strconv.ParseUint(strings.TrimSpace(out), 10, 64)
	m.Expect(code).To(BeZero(), "%s sequence printed %q", m.name, out)
	m.Expect(err).NotTo(HaveOccurred())
	return n
}

func (m *member) log() []record.Entry {
	m.Helper()
	entries, _, err := readLog(m.dir)
	m.Expect(err).NotTo(HaveOccurred())
	return entries
}

// turn sets a knob of this member, or removes it if text is empty.
func (m *member) turn(command, text string) {
	m.Helper()
	path := filepath.Join(m.set.dir, "knobs", m.name, command)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if text == "" {
		err = os.Remove(path)
	} else if err == nil {
		err = errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path))
	}
	m.Expect(err).NotTo(HaveOccurred())
}

func (s *set) until(what string, holds func() bool) {
	s.Helper()
	s.Eventually(holds, time.Minute, 5*time.Millisecond).Should(BeTrue(), "not seen: %s", what)
}

// newest returns the first member with the highest sequence.
func newest(members ...*member) *member {
	return slices.MaxFunc(members, func(a, b *member) int { return cmp.Compare(a.sequence(), b.sequence()) })
}

// client returns a client that writes its history for check.
func (s *set) client(m *member) *client.Client {
	s.Helper()
	s.clients++
	id := "client" + strconv.Itoa(s.clients)
	file, err := os.Create(filepath.Join(s.dir, id+".history"))
	s.Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() { file.Close() })
	return &client.Client{Address: m.address, ID: id, History: file}
}

// appends expects that its appends are acknowledged.
func (s *set) appends(m *member, count int) {
	s.Helper()
	c := s.client(m)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	for i := range count {
		s.Expect(c.Append(ctx, fmt.Sprint(i))).To(HaveField("Outcome", record.OK))
	}
	s.reads(m)
}

// reads expects a response, and records it in the history.
func (s *set) reads(m *member) record.Op {
	s.Helper()
	op, err := s.client(m).Read(s.Context())
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(op.Outcome).To(Equal(record.OK), "read: %+v", op)
	return op
}

func (s *set) evidence(final *member) (ledgercheck.Journals, [][]record.Op) {
	s.Helper()
	journals, err := ledgercheck.ReadJournals(filepath.Join(s.dir, "journal"))
	s.Expect(err).NotTo(HaveOccurred())
	journals.FinalPod, journals.Final = final.name, final.log()
	files, _ := filepath.Glob(filepath.Join(s.dir, "*.history"))
	var histories [][]record.Op
	for _, path := range files {
		history, err := record.ReadHistory(path)
		s.Expect(err).NotTo(HaveOccurred())
		histories = append(histories, history)
	}
	return journals, histories
}

// check expects that the ledgers kept their guarantees.
func (s *set) check(final *member) ledgercheck.Report {
	s.Helper()
	report, err := ledgercheck.Check(s.evidence(final))
	s.Expect(err).NotTo(HaveOccurred(), report.String)
	s.Log(report)
	return report
}

// breaks expects that the checker finds a fault.
func (s *set) breaks(final *member, want string) {
	s.Helper()
	_, err := ledgercheck.Check(s.evidence(final))
	s.Expect(err).To(MatchError(ContainSubstring(want)))
}
