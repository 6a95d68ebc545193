package settings

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// refused has the settings that users cannot set, with the reason.
var refused = map[string]string{
	"dir":                              settings.ReasonPath,
	"dbfilename":                       settings.ReasonPath,
	"pidfile":                          settings.ReasonPath,
	"include":                          settings.ReasonPath,
	"aclfile":                          reasonUsers,
	"user":                             reasonUsers,
	"requirepass":                      reasonUsers,
	"masterauth":                       reasonUsers,
	"masteruser":                       reasonUsers,
	"rename-command":                   "the agent uses the commands",
	"unixsocket":                       settings.ReasonLocal,
	"unixsocketperm":                   settings.ReasonLocal,
	"port":                             settings.ReasonNetwork,
	"bind":                             settings.ReasonNetwork,
	"bind-source-addr":                 settings.ReasonNetwork,
	"protected-mode":                   settings.ReasonNetwork,
	"cluster-enabled":                  settings.ReasonReplication,
	"replicaof":                        settings.ReasonReplication,
	"slaveof":                          settings.ReasonReplication,
	"replica-read-only":                settings.ReasonReplication,
	"slave-read-only":                  settings.ReasonReplication,
	"replica-announce-ip":              settings.ReasonReplication,
	"replica-announce-port":            settings.ReasonReplication,
	"slave-announce-ip":                settings.ReasonReplication,
	"slave-announce-port":              settings.ReasonReplication,
	"repl-diskless-load":               settings.ReasonReplication,
	"replica-serve-stale-data":         "a secondary without a primary must answer the agent",
	"slave-serve-stale-data":           "a secondary without a primary must answer the agent",
	"primaryauth":                      reasonUsers,
	"primaryuser":                      reasonUsers,
	"replica-ignore-disk-write-errors": settings.ReasonReplication,
	"repl-backlog-ttl":                 "without a backlog, a primary does not know its position",
	"min-replicas-to-write":            reasonMinReplicas,
	"min-slaves-to-write":              reasonMinReplicas,
	"appendonly":                       reasonAppendOnly,
	"appendfilename":                   reasonAppendOnly,
	"appenddirname":                    reasonAppendOnly,
	"rdb-del-sync-files":               settings.ReasonDurable,
	"rdbchecksum":                      settings.ReasonDurable,
	"shutdown-on-sigterm":              settings.ReasonDurable,
	"shutdown-on-sigint":               settings.ReasonDurable,
	"logfile":                          settings.ReasonLog,
	"syslog-enabled":                   settings.ReasonLog,
	"daemonize":                        reasonProcess,
	"supervised":                       reasonProcess,
	"set-proc-title":                   reasonProcess,
	"proc-title-template":              reasonProcess,
}

// Reasons of refused settings.
const (
	reasonUsers       = "the agent configures users; the password is in the Secret"
	reasonMinReplicas = "use minReplicasToWrite"
	reasonProcess     = "the agent manages the process"
	// reasonAppendOnly: after it has read an append-only file, Redis has no position in the stream.
	reasonAppendOnly = "the position of an append-only file is unknown, so the newest copy could not be determined; use save"
)

// ciphers are the settings of TLS that users can set.
var ciphers = []string{"tls-protocols", "tls-ciphers", "tls-ciphersuites", "tls-prefer-server-ciphers", "tls-session-caching", "tls-session-cache-size", "tls-session-cache-timeout"}

// Problems returns the settings that users cannot set, in the order of names.
func Problems(values map[string]string) []settings.Problem {
	return settings.Problems(values, invalid)
}

func invalid(key, value string) string {
	if !name.MatchString(key) {
		return "the name is not that of a setting: it must be in lower case"
	}
	if reason, found := refused[key]; found {
		return reason
	}
	if strings.HasPrefix(key, "tls-") && !slices.Contains(ciphers, key) {
		return settings.ReasonTLS
	}
	if !settings.IsLine(value) {
		return fmt.Sprintf("the value is not one line of at most %d bytes", settings.MaxValue)
	}
	return ""
}
