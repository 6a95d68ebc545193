package rabbitmq

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stateful-operator/stateful-operator/agent/driver"
	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
	"github.com/stateful-operator/stateful-operator/agent/secrets"
)

// Private files.
const (
	configFile   = "rabbitmq.conf"
	advancedFile = "advanced.config"
	pluginsFile  = "enabled_plugins"
	cookieFile   = ".erlang.cookie"
)

// user is created with a new cluster.
const user = "admin"

// access is who can connect to a server.
type access int

const (
	onlyThisPod access = iota
	allClients
)

// leaderLimit is the time for which a server waits for a majority. With the default of five minutes it would
// end, and start again.
const leaderLimit = 7 * 24 * time.Hour

// reconcileAfter is the delay after which queues get replicas on a member that was added.
const reconcileAfter = 2 * time.Second

// writeFiles writes the files that the server and its tools read.
func (s *Server) writeFiles(from access) error {
	password, err := secrets.Password(s.config.CredentialsDir, settings.PasswordKey)
	if err != nil {
		return err
	}
	cookie, err := s.cookie()
	if err != nil {
		return err
	}
	plugins := s.config.Plugins
	if from == onlyThisPod {
		plugins = nil // they have ports of their own
	}
	if err := os.MkdirAll(s.folder(), 0o700); err != nil {
		return err
	}
	for name, content := range map[string]string{
		configFile:   s.configuration(from),
		advancedFile: advanced(password),
		pluginsFile:  fmt.Sprintf("[%s].\n", strings.Join(plugins, ",")),
		cookieFile:   cookie,
	} {
		if _, err := s.Private.Replace(name, []byte(content)); err != nil {
			return err
		}
	}
	return nil
}

// maxCookie is the max length of a cookie in Erlang.
const maxCookie = 255

// cookie returns the cookie in the Secret.
func (s *Server) cookie() (string, error) {
	cookie, err := secrets.Password(s.config.CredentialsDir, settings.CookieKey)
	if err == nil && len(cookie) > maxCookie {
		err = driver.Errorf(driver.NotConfigured, "key %s of the Secret has more than %d characters", settings.CookieKey, maxCookie)
	}
	return cookie, err
}

// configuration returns rabbitmq.conf. A server that only this pod reaches does not have the settings of the
// user, which could need a cluster.
func (s *Server) configuration(from access) string {
	port := strconv.Itoa(int(s.config.Port))
	listener := [2]string{"listeners.tcp.default", port}
	switch {
	case from == onlyThisPod:
		listener = [2]string{"listeners.tcp.local", net.JoinHostPort("127.0.0.1", port)}
	case s.config.ListenAddresses != "*":
		listener = [2]string{"listeners.tcp.default", net.JoinHostPort(s.config.ListenAddresses, port)}
	}
	const reconciliation = "quorum_queue.continuous_membership_reconciliation."
	all := [][2]string{
		listener,
		{"log.console", "true"},
		{"log.file", "false"},
		{"default_queue_type", "quorum"},
		{reconciliation + "enabled", "true"},
		{reconciliation + "auto_remove", "true"},
		{reconciliation + "trigger_interval", strconv.FormatInt(reconcileAfter.Milliseconds(), 10)},
		{reconciliation + "target_group_size", "3"},
	}
	if from == allClients {
		for _, key := range slices.Sorted(maps.Keys(s.config.Settings)) {
			all = append(all, [2]string{key, s.config.Settings[key]}) // the last one counts
		}
	}
	var text strings.Builder
	for _, line := range all {
		fmt.Fprintf(&text, "%s = %s\n", line[0], line[1])
	}
	return text.String()
}

// advanced returns the configuration that rabbitmq.conf cannot have. A password is written as bytes, so that
// no character of it has a meaning.
func advanced(password string) string {
	return fmt.Sprintf("[{rabbit, [{default_user, <<%q>>}, {default_pass, <<%s>>}, {khepri_leader_wait_retry_timeout, %d}]}].\n",
		user, bytesOf(password), leaderLimit.Milliseconds())
}

// bytesOf returns a text as the content of an Erlang binary.
func bytesOf(text string) string {
	numbers := make([]string, 0, len(text))
	for _, b := range []byte(text) {
		numbers = append(numbers, strconv.Itoa(int(b)))
	}
	return strings.Join(numbers, ",")
}

// environment returns the variables of the server and its tools.
func (s *Server) environment() []string {
	return []string{
		"HOME=" + string(s.Private), // with the cookie
		"LC_ALL=C.UTF-8",
		"RABBITMQ_NODENAME=" + s.node(),
		"RABBITMQ_USE_LONGNAME=true",
		"RABBITMQ_CONF_ENV_FILE=" + s.Private.Path("no-file"),
	}
}

// serverEnvironment returns additional variables of the server.
func (s *Server) serverEnvironment() []string {
	return append(s.environment(),
		serverTag,
		"RUNNING_UNDER_SYSTEMD=true", // the script becomes the server, and remains no parent of it
		"RABBITMQ_CONFIG_FILE="+s.Private.Path(configFile),
		"RABBITMQ_CONFIG_FILES="+s.Private.Path("no-folder"),
		"RABBITMQ_ADVANCED_CONFIG_FILE="+s.Private.Path(advancedFile),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+s.Private.Path(pluginsFile),
		"RABBITMQ_PID_FILE="+s.Private.Path("rabbitmq.pid"),
		"RABBITMQ_MNESIA_BASE="+s.folder(),
		"RABBITMQ_MNESIA_DIR="+s.data(),
		"RABBITMQ_FEATURE_FLAGS_FILE="+s.folder()+"/feature_flags",
		"RABBITMQ_PLUGINS_EXPAND_DIR="+s.folder()+"/plugins",
		"RABBITMQ_LOGS=-",
		"RABBITMQ_LOG_BASE="+s.folder()+"/log",
		"RABBITMQ_DIST_PORT="+strconv.Itoa(settings.DistributionPort),
		"ERL_CRASH_DUMP_SECONDS=0", // no dump: it has the size of the memory
	)
}

// ignored are variables of the container that would replace what the agent configures.
var ignored = []string{
	"RABBITMQ_DEFAULT_USER", "RABBITMQ_DEFAULT_PASS", "RABBITMQ_DEFAULT_VHOST", "RABBITMQ_ERLANG_COOKIE", "RABBITMQ_NODE_IP_ADDRESS",
	"RABBITMQ_NODE_PORT", "RABBITMQ_QUORUM_DIR", "RABBITMQ_STREAM_DIR", "RABBITMQ_NODE_ONLY", "RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_LOG",
	"RABBITMQ_ALLOW_INPUT", "RABBITMQ_FEATURE_FLAGS",
}

func ignoreVariables() error {
	var faults []error
	for _, name := range ignored {
		faults = append(faults, os.Unsetenv(name))
	}
	return errors.Join(faults...)
}
