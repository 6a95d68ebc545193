// Package settings defines and validates the configuration of the driver for PostgreSQL. It has no side
// effects and few dependencies, so that the operator can use it as well.
package settings

import (
	"errors"
	"fmt"

	"github.com/stateful-operator/stateful-operator/agent/settings"
)

// Variable is the environment variable with the configuration, see Config.Encode.
const Variable = "AGENT_POSTGRESQL"

// Keys of the Secret with the credentials.
const (
	PasswordKey            = "password"            // of Superuser
	ReplicationPasswordKey = "replicationPassword" // of Replicator
)

// Roles that the driver creates. A standby connects as Replicator. Copies are compared and rewound as
// Superuser.
const (
	Superuser  = "postgres"
	Replicator = "replicator"
)

const defaultPort = 5432

// Config is the configuration of the driver. DataDir is created: its parent must be on the volume with the
// data, and be writable. CredentialsDir contains files with PasswordKey and ReplicationPasswordKey.
type Config struct {
	settings.Common

	// SynchronousStandbys is the number of standbys that must have a transaction on disk before its
	// commit returns. While fewer are connected, commits wait.
	SynchronousStandbys int32 `json:"synchronousStandbys,omitempty"`
}

// Encode returns the value of Variable. It contains no dollar sign, so that the kubelet does not expand
// references to other variables.
func (c Config) Encode() (string, error) {
	return settings.Encode(c)
}

// Decode parses and validates the value of Variable, and sets defaults. It ignores unknown fields,
// because the operator may be newer than the agent.
func Decode(text string) (Config, error) {
	var c Config
	if err := settings.Decode(Variable, text, &c); err != nil {
		return c, err
	}
	c.SetDefaults(defaultPort)
	return c, c.validate()
}

func (c Config) validate() error {
	var negative error
	if c.SynchronousStandbys < 0 {
		negative = fmt.Errorf("synchronousStandbys %d is negative", c.SynchronousStandbys)
	}
	return errors.Join(c.Validate(), negative, Validate(c.Settings))
}
