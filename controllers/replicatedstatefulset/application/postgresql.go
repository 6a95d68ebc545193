package application

import (
	"path"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/postgresql/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names of the agent's driver, and defaults of PostgreSQL.
const (
	postgreSQL     = "postgresql" // also the name of the port
	postgreSQLPort = 5432
	postgreSQLUser = 999 // of docker.io/library/postgres; alpine images have 70
	postgreSQLData = "/data"

	// PathServerTLS is the mount path of spec.TLS.static.member.serverSecret.
	PathServerTLS = "/etc/rss/tls/server"
)

// Timeouts of commands. Those that start the server may copy all data, and the agent gives up within
// its own limit, which is shorter.
const (
	statusTimeout  = "10s"
	commandTimeout = "10m"
)

// postgreSQL fills a set of PostgreSQL.
func (f *filling) postgreSQL() {
	f.set.Spec.Primaries = ptr.To(ptr.Deref(f.set.Spec.Primaries, 1))
	data := f.data(postgreSQLData)
	f.agent(postgreSQL)
	f.credentials(settings.PasswordKey, settings.ReplicationPasswordKey)
	f.configure(data)
	f.port(postgreSQL, postgreSQLPort)
	f.readiness(postgreSQL)
	f.security(postgreSQLUser)
	f.command(v1alpha1.CommandStatus, postgreSQL, "status", statusTimeout)
	for name, argument := range map[string]string{
		v1alpha1.CommandSequence: "sequence", v1alpha1.CommandSeed: "seed", v1alpha1.CommandPrimary: "seed",
		v1alpha1.CommandSecondary: "secondary", v1alpha1.CommandPromote: "promote", v1alpha1.CommandDemote: "demote", v1alpha1.CommandStop: "stop",
	} {
		f.command(name, postgreSQL, argument, commandTimeout)
	}
}

// configure sets the variables of the agent, and those with which psql in the container connects
// without arguments.
func (f *filling) configure(data string) {
	options := ptr.Deref(f.set.Spec.Application.PostgreSQL, v1alpha1.PostgreSQLPolicy{})
	config := settings.Config{
		PrimaryHost:         f.set.PrimaryServiceName(),
		DataDir:             path.Join(data, "pgdata"),
		RunDir:              pathRun,
		CredentialsDir:      pathCredentials,
		SynchronousStandbys: options.SynchronousStandbys,
		Settings:            options.Settings,
	}
	if hasServerSecret(&f.set.Spec) {
		config.TLSDir = PathServerTLS
	}
	text, err := config.Encode()
	if err != nil {
		return // strings can always be encoded; the agent reports a missing variable
	}
	f.env(settings.Variable, text)
	f.env("PGHOST", path.Join(pathRun, postgreSQL))
	f.env("PGUSER", settings.Superuser)
}

// hasServerSecret reports whether the members have a certificate for clients.
func hasServerSecret(spec *v1alpha1.ReplicatedStatefulSetSpec) bool {
	return spec.TLS != nil && spec.TLS.Static != nil && spec.TLS.Static.Member != nil && spec.TLS.Static.Member.ServerSecret != ""
}

// validatePostgreSQL checks what only PostgreSQL requires.
func validatePostgreSQL(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p := ptr.Deref(spec.Primaries, 1); p > 1 {
		errs = append(errs, field.Invalid(field.NewPath("spec", "primaries"), p, "PostgreSQL has one primary; set it to 1, or remove it"))
	}
	options := ptr.Deref(spec.Application.PostgreSQL, v1alpha1.PostgreSQLPolicy{})
	if n := options.SynchronousStandbys; n < 0 || n > maxStandbys {
		errs = append(errs, field.Invalid(at.Child("postgreSQL", "synchronousStandbys"), n, "must be from 0 to 63"))
	}
	for _, p := range settings.Problems(options.Settings) {
		errs = append(errs, field.Forbidden(at.Child("postgreSQL", "settings").Key(p.Setting), p.Reason+"; remove or correct it"))
	}
	return errs
}

// maxStandbys is the max of synchronousStandbys: members with ordinals up to 63 count.
const maxStandbys = 63
