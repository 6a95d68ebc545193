package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	common "github.com/stateful-operator/stateful-operator/agent/settings"
)

// secretsIn returns the passwords that a text contains.
func secretsIn(text string) (found []string) {
	for _, secret := range []string{password, replPass, "of-the-user", "rotated"} {
		if strings.Contains(text, secret) {
			found = append(found, secret)
		}
	}
	return found
}

// watch looks for passwords in arguments and environments of the processes of a member, until the returned
// function is called. PGPASSWORD is a variable of the user, and must not be passed on.
func (m *member) watch() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, name := range []string{"postgres", "initdb", "pg_basebackup", "pg_rewind", "pg_ctl", "pg_waldump", "pg_controldata"} {
				for _, p := range m.processes(name) {
					for _, file := range []string{"cmdline", "environ"} {
						text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.ID, file)) // it may have ended
						if found := secretsIn(string(text)); found != nil {
							m.t.Errorf("%s of %s contains passwords: %v", file, name, found)
							return
						}
					}
				}
			}
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-done }
}

func TestPasswordsStayPrivate(t *testing.T) {
	s := newSet(t, 2, func(c *settings.Config) {
		c.Settings["log_statement"] = "all"
		c.Settings["log_min_duration_statement"] = "0"
		c.Settings["log_connections"] = "on"
	})
	primary, standby := s.members[0], s.members[1]
	for _, m := range s.members {
		defer m.watch()()
	}
	primary.must(driver.Succeeded, "seed")
	s.primaryIs(primary)
	primary.sql("create table numbers (n int)")
	standby.must(driver.Succeeded, "secondary", primary.host())

	s.write("credentials/"+settings.PasswordKey, "rotated")
	s.eventually("the new password is accepted", func() bool {
		c, err := primary.connectAs("postgres", "rotated", "sslmode=disable")
		if err == nil {
			c.Close(context.Background())
		}
		return err == nil
	})
	if c, err := primary.connect("sslmode=disable"); err == nil {
		c.Close(context.Background())
		t.Error("the old password is still accepted")
	}
	for _, m := range s.members {
		for _, name := range []string{"status", "sequence"} {
			if got := m.run(name); secretsIn(got.stdout+got.stderr) != nil {
				t.Errorf("%s prints a password: %s %s", name, got.stdout, got.stderr)
			}
		}
		if found := secretsIn(m.log()); found != nil {
			t.Errorf("the log contains passwords: %v", found)
		}
		if strings.Contains(m.log(), "SCRAM-SHA-256$") {
			t.Error("the log contains a verifier")
		}
		err := filepath.WalkDir(m.data(), func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // it was deleted
			}
			text, _ := os.ReadFile(path)
			if found := secretsIn(string(text)); found != nil {
				t.Errorf("%s contains passwords: %v", path, found)
			}
			return nil
		})
		check(t, err)
	}
	// No other user can use the socket, or read the files.
	got := standby.execute("/usr/bin/stat", "-c", "%a %u", "/run/agent/postgresql", "/run/agent/postgresql/passwords")
	if got.stdout != fmt.Sprintf("700 %[1]d\n600 %[1]d\n", memberUser) {
		t.Errorf("the private files are %q", got.stdout)
	}
}

func TestIncorrectCredentials(t *testing.T) {
	s := newSet(t, 1)
	m := s.members[0]
	for _, text := range []string{"", "\n", "pass\u00e9", "two\nlines"} {
		s.write("credentials/"+settings.ReplicationPasswordKey, text)
		if got := m.must(driver.NotConfigured, "seed"); !strings.Contains(got.stderr, settings.ReplicationPasswordKey) {
			t.Errorf("with %q, seed prints %q", text, got.stderr)
		}
	}
	check(t, os.Remove(filepath.Join(s.dir, "credentials", settings.ReplicationPasswordKey)))
	m.must(driver.NotConfigured, "seed")
	m.must(driver.Stopped, "status") // does not need them
	m.must(driver.Succeeded, "stop")
}

// A random user ID, as on OpenShift.
func TestAUserWithoutAnEntry(t *testing.T) {
	m := newSet(t, 1).members[0]
	m.user = 123456
	m.restart()
	got := m.run("seed")
	found, _ := filepath.Glob("/usr/lib/*/libnss_wrapper.so")
	switch {
	case len(found) > 0 && got.code == driver.Succeeded:
		m.must(driver.Primary, "status")
	case len(found) > 0:
		t.Errorf("seed exits with %d: %s", got.code, got.stderr)
	case got.code != driver.NotConfigured || !strings.Contains(got.stderr, "user 123456 has no entry in /etc/passwd"):
		t.Errorf("seed exits with %d: %s", got.code, got.stderr)
	}
	if len(found) > 0 {
		return
	}
	// CRI-O adds an entry. All other programs work without one.
	m.write("etc/passwd", "postgres:x:123456:0::/:/bin/false\n")
	m.must(driver.Succeeded, "seed")
	m.write("etc/passwd", "root:x:0:0::/:/bin/sh\n")
	m.crash()
	m.must(driver.Stopped, "status")
	m.must(driver.Succeeded, "seed")
	m.must(driver.Primary, "status")
}

// certificate writes a certificate of an authority into the TLS folder.
func (s *set) certificate(name string, authority *authority) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(s.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.cert, &key.PublicKey, authority.key)
	check(s.t, err)
	private, err := x509.MarshalECPrivateKey(key)
	check(s.t, err)
	s.write("tls/"+common.PrivateKey, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})))
	s.write("tls/"+common.CertificateKey, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	s.write("tls/"+common.AuthorityKey, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.cert.Raw})))
}

type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	check(t, err)
	cert, err := x509.ParseCertificate(der)
	check(t, err)
	return &authority{key, cert}
}

func TestTLS(t *testing.T) {
	s := newSet(t, 2, func(c *settings.Config) { c.TLSDir = "/tls" })
	primary, standby := s.members[0], s.members[1]
	primary.must(driver.NotConfigured, "seed")
	primary.must(driver.Stopped, "status")
	trusted := newAuthority(t)
	s.certificate("first", trusted)
	primary.must(driver.Succeeded, "seed")
	s.primaryIs(primary)
	standby.must(driver.Succeeded, "secondary", primary.host())

	served := func() string {
		c, err := primary.connect("sslmode=require")
		if err != nil {
			return err.Error()
		}
		defer c.Close(context.Background())
		state := c.PgConn().Conn().(*tls.Conn).ConnectionState()
		return state.PeerCertificates[0].Subject.CommonName
	}
	if got := served(); got != "first" {
		t.Errorf("the certificate is %s", got)
	}
	if c, err := primary.connect("sslmode=disable"); err == nil {
		c.Close(context.Background())
		t.Error("a connection without TLS is accepted")
	}
	primary.tlsValue("select count(*) from pg_stat_replication join pg_stat_ssl using (pid) where ssl", "1")

	s.certificate("second", trusted)
	s.eventually("the new certificate is served", func() bool { return served() == "second" })

	// A standby does not send its password to a server with a certificate of another authority.
	standby.must(driver.Succeeded, "stop")
	s.write("tls/"+common.AuthorityKey, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newAuthority(t).cert.Raw})))
	if got := standby.must(driver.Failed, "secondary", primary.host()); !strings.Contains(got.stderr, "certificate") {
		t.Errorf("secondary prints %q", got.stderr)
	}
}

func (m *member) tlsValue(query, want string) {
	m.t.Helper()
	c, err := m.connect("sslmode=require")
	check(m.t, err)
	defer c.Close(context.Background())
	var got string
	check(m.t, c.QueryRow(context.Background(), "select ("+query+")::text").Scan(&got))
	if got != want {
		m.t.Errorf("%s is %s, want %s", query, got, want)
	}
}
