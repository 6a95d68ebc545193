package settings

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxValue is the max length of a value.
const maxValue = 8192

var name = regexp.MustCompile(`^[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)*$`)

// refused has the settings that users cannot set, with the reason.
var refused = map[string]string{
	"data_directory":          reasonPath,
	"config_file":             reasonPath,
	"hba_file":                reasonPath,
	"ident_file":              reasonPath,
	"external_pid_file":       reasonPath,
	"include":                 reasonPath,
	"include_dir":             reasonPath,
	"include_if_exists":       reasonPath,
	"stats_temp_directory":    reasonPath,
	"unix_socket_directories": reasonLocal,
	"unix_socket_group":       reasonLocal,
	"unix_socket_permissions": reasonLocal,
	"listen_addresses":        reasonNetwork,
	"port":                    reasonNetwork,
	"ssl":                     reasonTLS,
	"ssl_cert_file":           reasonTLS,
	"ssl_key_file":            reasonTLS,
	"ssl_ca_file":             reasonTLS,
	"ssl_passphrase_command":  reasonTLS,

	"ssl_passphrase_command_supports_reload": reasonTLS,

	"primary_conninfo":              reasonReplication,
	"primary_slot_name":             reasonReplication,
	"synchronous_standby_names":     reasonReplication,
	"cluster_name":                  reasonReplication,
	"hot_standby":                   reasonReplication,
	"promote_trigger_file":          reasonReplication,
	"restore_command":               reasonReplication,
	"archive_cleanup_command":       reasonReplication,
	"recovery_end_command":          reasonReplication,
	"recovery_min_apply_delay":      reasonReplication,
	"wal_retrieve_retry_interval":   reasonReplication,
	"wal_receiver_timeout":          reasonReplication,
	"wal_receiver_status_interval":  reasonReplication,
	"wal_receiver_create_temp_slot": "a slot can keep log until the volume is full",
	"default_transaction_read_only": "standbys follow only a server that accepts writes",
	"transaction_read_only":         "standbys follow only a server that accepts writes",
	"wal_log_hints":                 reasonRewind,
	"full_page_writes":              reasonDurable,
	"fsync":                         reasonDurable,
	"data_sync_retry":               reasonDurable,
	"zero_damaged_pages":            reasonDurable,
	"ignore_checksum_failure":       reasonDurable,
	"ignore_invalid_pages":          reasonDurable,
	"logging_collector":             "the log of the server is the log of the container",
}

// Reasons of refused settings.
const (
	reasonPath        = "the agent selects the files"
	reasonLocal       = "the agent connects by a socket in a private folder"
	reasonNetwork     = "the operator configures the network"
	reasonTLS         = "use spec.TLS"
	reasonReplication = "the agent configures replication"
	reasonRewind      = "pg_rewind requires it"
	reasonDurable     = "data can be lost or damaged"
)

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

// Problem is why a user cannot set a setting to a value.
type Problem struct{ Setting, Reason string }

// Problems returns the settings that users cannot set, in the order of names.
func Problems(values map[string]string) (problems []Problem) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if reason := invalid(key, values[key]); reason != "" {
			problems = append(problems, Problem{key, reason})
		}
	}
	return problems
}

// Validate returns an error that lists the problems.
func Validate(values map[string]string) error {
	var faults []error
	for _, p := range Problems(values) {
		faults = append(faults, fmt.Errorf("setting %s: %s", p.Setting, p.Reason))
	}
	return errors.Join(faults...)
}

func invalid(key, value string) string {
	if !name.MatchString(key) {
		return "the name is not that of a setting: it must be in lower case"
	}
	if reason, found := refused[key]; found {
		return reason
	}
	if strings.HasPrefix(key, "recovery_target") {
		return reasonReplication
	}
	if len(value) > maxValue || strings.ContainsAny(value, "\n\r\x00") {
		return fmt.Sprintf("the value is not one line of at most %d bytes", maxValue)
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
