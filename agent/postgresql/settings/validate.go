package settings

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

var name = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$`)

// refused has the settings that users cannot set, with the reason.
var refused = map[string]string{
	"data_directory":          settings.ReasonPath,
	"config_file":             settings.ReasonPath,
	"hba_file":                settings.ReasonPath,
	"ident_file":              settings.ReasonPath,
	"external_pid_file":       settings.ReasonPath,
	"include":                 settings.ReasonPath,
	"include_dir":             settings.ReasonPath,
	"include_if_exists":       settings.ReasonPath,
	"stats_temp_directory":    settings.ReasonPath,
	"unix_socket_directories": settings.ReasonLocal,
	"unix_socket_group":       settings.ReasonLocal,
	"unix_socket_permissions": settings.ReasonLocal,
	"listen_addresses":        settings.ReasonNetwork,
	"port":                    settings.ReasonNetwork,
	"ssl":                     settings.ReasonTLS,
	"ssl_cert_file":           settings.ReasonTLS,
	"ssl_key_file":            settings.ReasonTLS,
	"ssl_ca_file":             settings.ReasonTLS,
	"ssl_passphrase_command":  settings.ReasonTLS,

	"ssl_passphrase_command_supports_reload": settings.ReasonTLS,

	"primary_conninfo":              settings.ReasonReplication,
	"primary_slot_name":             settings.ReasonReplication,
	"synchronous_standby_names":     settings.ReasonReplication,
	"cluster_name":                  settings.ReasonReplication,
	"hot_standby":                   settings.ReasonReplication,
	"promote_trigger_file":          settings.ReasonReplication,
	"restore_command":               settings.ReasonReplication,
	"archive_cleanup_command":       settings.ReasonReplication,
	"recovery_end_command":          settings.ReasonReplication,
	"recovery_min_apply_delay":      settings.ReasonReplication,
	"wal_retrieve_retry_interval":   settings.ReasonReplication,
	"wal_receiver_timeout":          settings.ReasonReplication,
	"wal_receiver_status_interval":  settings.ReasonReplication,
	"wal_receiver_create_temp_slot": "a slot can keep log until the volume is full",
	"default_transaction_read_only": "standbys follow only a server that accepts writes",
	"transaction_read_only":         "standbys follow only a server that accepts writes",
	"wal_log_hints":                 reasonRewind,
	"full_page_writes":              settings.ReasonDurable,
	"fsync":                         settings.ReasonDurable,
	"data_sync_retry":               settings.ReasonDurable,
	"zero_damaged_pages":            settings.ReasonDurable,
	"ignore_checksum_failure":       settings.ReasonDurable,
	"ignore_invalid_pages":          settings.ReasonDurable,
	"logging_collector":             settings.ReasonLog,
}

const reasonRewind = "pg_rewind requires it"

// atLeast has the settings with a min value.
var atLeast = map[string]int{
	"max_wal_senders":                4, // two standbys, and a copy for a third one
	"max_connections":                10,
	"superuser_reserved_connections": 2, // for status and sequence
}

// oneOf has the settings for which only some values are allowed.
var oneOf = map[string][]string{
	"wal_level":           {"replica", "logical"},
	"password_encryption": {"scram-sha-256"},
}

// Problems returns the settings that users cannot set, in the order of names.
func Problems(values map[string]string) []settings.Problem {
	return settings.Problems(values, invalid)
}

// Validate returns an error that lists the problems.
func Validate(values map[string]string) error {
	return settings.ProblemsError(Problems(values))
}

func invalid(key, value string) string {
	if !name.MatchString(key) {
		return "the name is not that of a setting: it must be in lower case"
	}
	if reason, found := refused[key]; found {
		return reason
	}
	if strings.HasPrefix(key, "recovery_target") {
		return settings.ReasonReplication
	}
	if !settings.IsLine(value) {
		return fmt.Sprintf("the value is not one line of at most %d bytes", settings.MaxValue)
	}
	if allowed, ok := oneOf[key]; ok && !slices.Contains(allowed, value) {
		return "the value must be " + strings.Join(allowed, " or ")
	}
	if low, ok := atLeast[key]; ok {
		if number, err := strconv.Atoi(value); err != nil || number < low {
			return fmt.Sprintf("the value must be a number of at least %d", low)
		}
	}
	return ""
}

// Refused returns the names of the settings that users cannot set. Settings that start with
// recovery_target are refused as well.
func Refused() []string {
	return slices.Sorted(maps.Keys(refused))
}
