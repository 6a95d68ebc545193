package settings

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

var (
	name   = regexp.MustCompile(`^[a-z0-9]+(_[a-z0-9]+)*$`)
	option = regexp.MustCompile(`^[a-z]+\.[a-z0-9_]+$`) // of Galera
)

// refused has the settings that users cannot set, with the reason.
var refused = map[string]string{
	"datadir":                        settings.ReasonPath,
	"basedir":                        settings.ReasonPath,
	"tmpdir":                         settings.ReasonPath,
	"pid_file":                       settings.ReasonPath,
	"init_file":                      settings.ReasonPath,
	"innodb_data_home_dir":           settings.ReasonPath,
	"innodb_data_file_path":          settings.ReasonPath,
	"innodb_log_group_home_dir":      settings.ReasonPath,
	"innodb_undo_directory":          settings.ReasonPath,
	"aria_log_dir_path":              settings.ReasonPath,
	"defaults_file":                  settings.ReasonPath,
	"defaults_extra_file":            settings.ReasonPath,
	"socket":                         settings.ReasonLocal,
	"grant_tables":                   settings.ReasonLocal,
	"port":                           settings.ReasonNetwork,
	"extra_port":                     settings.ReasonNetwork,
	"bind_address":                   settings.ReasonNetwork,
	"networking":                     settings.ReasonNetwork,
	"binlog_format":                  settings.ReasonReplication,
	"default_storage_engine":         settings.ReasonReplication,
	"innodb_autoinc_lock_mode":       settings.ReasonReplication,
	"innodb_flush_log_at_trx_commit": settings.ReasonDurable,
	"innodb_doublewrite":             settings.ReasonDurable,
	"sync_binlog":                    settings.ReasonDurable,
	"repl.commit_order":              settings.ReasonDurable,
	"require_secure_transport":       settings.ReasonTLS,
	"silent_startup":                 settings.ReasonLog,
	"innodb_force_recovery":          settings.ReasonDurable,
	"innodb_read_only":               settings.ReasonReplication,
	"log_error":                      settings.ReasonLog,
	"user":                           "the agent manages the process",
	"bootstrap":                      "the agent manages the process",
	"daemonize":                      "the agent manages the process",
}

// refusedPrefixes have the reasons for groups of settings.
var refusedPrefixes = []struct{ prefix, reason string }{
	{"ssl", settings.ReasonTLS},
	{"tls_version", settings.ReasonTLS},
	{"wsrep_", settings.ReasonReplication},
	{"pc.", settings.ReasonReplication},
	{"base_", settings.ReasonNetwork},
	{"gmcast.listen_addr", settings.ReasonNetwork},
	{"ist.recv_", settings.ReasonNetwork},
	{"socket.ssl", settings.ReasonTLS},
	{"gcache.dir", settings.ReasonPath},
	{"gcache.name", settings.ReasonPath},
	{"gcache.recover", settings.ReasonReplication},
}

// allowed are settings of Galera in MariaDB that users can set.
var allowed = []string{
	"wsrep_slave_threads", "wsrep_sync_wait", "wsrep_retry_autocommit", "wsrep_log_conflicts", "wsrep_max_ws_rows",
	"wsrep_max_ws_size", "wsrep_trx_fragment_size", "wsrep_trx_fragment_unit", "wsrep_certify_nonpk",
	"wsrep_ignore_apply_errors", "wsrep_slave_fk_checks", "wsrep_slave_uk_checks",
}

// durable are the values of innodb_flush_method that flush data to the disk.
var durable = []string{"FSYNC", "O_DSYNC", "O_DIRECT"}

// modifiers are prefixes that MariaDB accepts in front of a name.
var modifiers = []string{"loose_", "skip_", "enable_", "disable_", "maximum_", "autoset_"}

// IsOption reports whether a setting is an option of Galera, and not one of MariaDB.
func IsOption(key string) bool { return option.MatchString(key) }

// Problems returns the settings that users cannot set, in the order of names.
func Problems(values map[string]string) []settings.Problem { return settings.Problems(values, invalid) }

func invalid(key, value string) string {
	switch {
	case !name.MatchString(key) && !IsOption(key):
		return "the name is not that of a setting: write it in lower case, with underscores"
	case !settings.IsLine(value):
		return fmt.Sprintf("the value is not one line of at most %d bytes", settings.MaxValue)
	case IsOption(key) && strings.ContainsAny(value, `;"\ `):
		return "the value of an option of Galera can contain no space, semicolon, quote and backslash"
	case slices.Contains(allowed, key):
		return ""
	case strings.HasSuffix(key, "innodb_flush_method") && !slices.Contains(durable, strings.ToUpper(value)):
		return "it must be one of " + strings.Join(durable, ", ") + ": with others, data can be lost"
	}
	return reserved(key)
}

// reserved returns why a name is reserved. MariaDB accepts an abbreviation of a name, so each beginning of
// a refused name is refused.
func reserved(key string) string {
	for again := true; again; {
		again = false
		for _, m := range modifiers {
			if rest, found := strings.CutPrefix(key, m); found {
				key, again = rest, true
			}
		}
	}
	for _, r := range refusedPrefixes {
		if strings.HasPrefix(key, r.prefix) {
			return r.reason
		}
	}
	if reason, found := refused[key]; found {
		return reason
	}
	if IsOption(key) {
		return ""
	}
	for _, full := range slices.Sorted(maps.Keys(refused)) {
		if strings.HasPrefix(full, key) {
			return "it is the beginning of the name " + full + ": write the whole name"
		}
	}
	if all := "wsrep_"; strings.HasPrefix(all, key) {
		return settings.ReasonReplication
	}
	return ""
}
