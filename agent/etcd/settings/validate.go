package settings

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

var name = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// refused has the flags that users cannot set, with the reason.
var refused = map[string]string{
	"name":                  reasonMembers,
	"data-dir":              settings.ReasonPath,
	"wal-dir":               settings.ReasonPath,
	"config-file":           settings.ReasonPath,
	"force-new-cluster":     reasonMembers,
	"strict-reconfig-check": reasonMembers,
	"host-whitelist":        settings.ReasonNetwork,
	"enable-grpc-gateway":   "the agent uses the gateway",
	"enable-v2":             "the agent does not copy its data",
	"auto-tls":              settings.ReasonTLS,
	"peer-auto-tls":         settings.ReasonTLS,
	"client-cert-auth":      settings.ReasonTLS,
	"peer-client-cert-auth": settings.ReasonTLS,
	"log-outputs":           settings.ReasonLog,
	"logger":                settings.ReasonLog,
	"version":               reasonMembers,
	"help":                  reasonMembers,
}

const reasonMembers = "the agent manages the members"

// refusedPrefixes have the reasons for groups of flags.
var refusedPrefixes = []struct{ prefix, reason string }{
	{"initial-", reasonMembers},
	{"discovery", reasonMembers},
	{"proxy", reasonMembers},
	{"listen-", settings.ReasonNetwork},
	{"advertise-", settings.ReasonNetwork},
	{"cert-", settings.ReasonTLS},
	{"key-", settings.ReasonTLS},
	{"trusted-ca-", settings.ReasonTLS},
	{"client-crl-", settings.ReasonTLS},
	{"peer-cert-", settings.ReasonTLS},
	{"peer-key-", settings.ReasonTLS},
	{"peer-trusted-ca-", settings.ReasonTLS},
	{"peer-crl-", settings.ReasonTLS},
	{"unsafe-", settings.ReasonDurable},
}

// Problems returns the flags that users cannot set, in the order of names.
func Problems(values map[string]string) []settings.Problem { return settings.Problems(values, invalid) }

func invalid(key, value string) string {
	if !name.MatchString(key) {
		return "the name is not that of a flag: write it without dashes in front, in lower case"
	}
	if reason, found := refused[key]; found {
		return reason
	}
	for _, r := range refusedPrefixes {
		if strings.HasPrefix(key, r.prefix) {
			return r.reason
		}
	}
	if !settings.IsLine(value) {
		return fmt.Sprintf("the value is not one line of at most %d bytes", settings.MaxValue)
	}
	return ""
}
