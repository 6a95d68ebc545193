package settings

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

var (
	name   = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[A-Za-z0-9_-]+)*$`)
	plugin = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

const (
	reasonMembers = "the agent manages the members"
	reasonUser    = "the Secret has the password of the user admin, and other users are created in RabbitMQ"
)

// refused have the reasons for which users cannot set keys with a prefix.
var refused = []struct{ prefix, reason string }{
	{"listeners", settings.ReasonNetwork},
	{"distribution", settings.ReasonNetwork},
	{"proxy_protocol", "the agent connects to the port without it"},
	{"cluster_formation", reasonMembers},
	{"cluster_partition_handling", reasonMembers},
	{"quorum_queue.continuous_membership_reconciliation.enabled", reasonMembers},
	{"quorum_queue.continuous_membership_reconciliation.auto_remove", reasonMembers},
	{"raft.data_dir", settings.ReasonPath},
	{"default_user", reasonUser},
	{"default_users", reasonUser},
	{"default_user_tags", reasonUser},
	{"default_pass", reasonUser},
	{"default_vhost", reasonUser},
	{"loopback_users", reasonUser},
	{"log.file", settings.ReasonLog},
	{"log.dir", settings.ReasonLog},
	{"ssl_options", settings.ReasonTLS},
}

// Problems returns the settings that users cannot set, in the order of names.
func Problems(values map[string]string) []settings.Problem { return settings.Problems(values, invalid) }

func invalid(key, value string) string {
	if !name.MatchString(key) {
		return "the name is not that of a setting in rabbitmq.conf"
	}
	if key == "log.console" {
		return settings.ReasonLog
	}
	for _, r := range refused {
		if key == r.prefix || strings.HasPrefix(key, r.prefix+".") {
			return r.reason
		}
	}
	if !settings.IsLine(value) {
		return fmt.Sprintf("the value is not one line of at most %d bytes", settings.MaxValue)
	}
	return ""
}

// PluginProblems returns the plugins that users cannot enable.
func PluginProblems(names []string) (problems []settings.Problem) {
	for _, p := range names {
		switch {
		case !plugin.MatchString(p):
			problems = append(problems, settings.Problem{Setting: p, Reason: "the name is not that of a plugin"})
		case strings.HasPrefix(p, "rabbitmq_peer_discovery"):
			problems = append(problems, settings.Problem{Setting: p, Reason: reasonMembers})
		}
	}
	return problems
}
