package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

const (
	agentUser = "stateful-operator"
	socket    = "redis.sock"

	// answerLimit is the time in which a server must answer.
	answerLimit = 4 * time.Second
)

// silent discards the log of the client: its errors are returned.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func options(network, address, user, password string) *redis.Options {
	return &redis.Options{
		Network: network, Addr: address, Username: user, Password: password,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, ContextTimeoutEnabled: true,
		DialTimeout: answerLimit, ReadTimeout: answerLimit, WriteTimeout: answerLimit,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// local returns a client of the server of this member.
func (s *Server) local() *redis.Client { return redis.NewClient(s.localOptions()) }

func (s *Server) localOptions() *redis.Options {
	return options("unix", s.Private.Path(socket), agentUser, s.localPassword)
}

// remotePrimary returns a client of the primary.
func (s *Server) remotePrimary() (*redis.Client, error) {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return nil, err
	}
	o := options("tcp", net.JoinHostPort(s.config.PrimaryHost, s.port()), "", password)
	if s.config.TLSDir != "" {
		if o.TLSConfig, err = s.clientTLS(); err != nil {
			return nil, err
		}
	}
	return redis.NewClient(o), nil
}

func (s *Server) port() string { return strconv.Itoa(int(s.config.Port)) }

// clientTLS verifies that a certificate is signed by the authority. It need not contain the names of
// members.
func (s *Server) clientTLS() (*tls.Config, error) {
	text, err := os.ReadFile(s.authority())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, driver.Errorf(driver.NotConfigured, "%s has no certificate", s.authority())
	}
	return &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies all except the name
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errors.New("no certificate")
			}
			others := x509.NewCertPool()
			for _, c := range state.PeerCertificates[1:] {
				others.AddCert(c)
			}
			_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: others})
			return err
		},
	}, nil
}

// authority returns the certificate that must have signed those of the members. Without one, they are
// self-signed.
func (s *Server) authority() string {
	if secrets.HasAuthority(s.config.TLSDir) {
		return s.Private.Path(secrets.Authority)
	}
	return s.Private.Path(secrets.Certificate)
}

// state is the part of INFO that the agent uses.
type state struct {
	primary  bool
	loading  bool // the server reads its data, and does not serve it
	copying  bool // a secondary receives all data
	linked   bool // a secondary is connected to its primary
	offset   int64
	history  string // the ID of the stream of writes
	replicas []int64
}

func inspect(ctx context.Context, client *redis.Client) (state, error) {
	text, err := client.Info(ctx, "replication", "persistence").Result()
	if err != nil {
		return state{}, err
	}
	return parseState(text)
}

func parseState(text string) (state, error) {
	found := map[string]string{}
	var st state
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		found[key] = value
		if strings.HasPrefix(key, "slave") {
			if offset, ok := replicaOffset(value); ok {
				st.replicas = append(st.replicas, offset)
			}
		}
	}
	offset, err := strconv.ParseInt(found["master_repl_offset"], 10, 64)
	known := found["role"] == "master" || found["role"] == "slave"
	if err != nil || !known {
		return state{}, fmt.Errorf("the server reports role %q and offset %q", found["role"], found["master_repl_offset"])
	}
	st.primary = found["role"] == "master"
	st.loading = found["loading"] == "1" || found["async_loading"] == "1"
	st.linked = found["master_link_status"] == "up"
	st.copying = !st.primary && (st.loading || found["master_sync_in_progress"] == "1")
	st.offset, st.history = offset, found["master_replid"]
	return st, nil
}

// replicaOffset parses ip=10.0.0.7,port=6379,state=online,offset=1234,lag=0.
func replicaOffset(value string) (int64, bool) {
	if !strings.Contains(value, "state=online") {
		return 0, false
	}
	for field := range strings.SplitSeq(value, ",") {
		if text, ok := strings.CutPrefix(field, "offset="); ok {
			offset, err := strconv.ParseInt(text, 10, 64)
			return offset, err == nil
		}
	}
	return 0, false
}
