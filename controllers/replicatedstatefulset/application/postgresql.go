package application

import (
	"path"

	corev1 "k8s.io/api/core/v1"
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
)

// postgreSQL fills a set of PostgreSQL.
func (f *filling) postgreSQL() {
	data := f.data(postgreSQLData)
	f.agent(postgreSQL)
	f.credentials(settings.PasswordKey, settings.ReplicationPasswordKey)
	f.configure(data)
	f.port(postgreSQL, postgreSQLPort)
	f.readiness(postgreSQL)
	f.security(postgreSQLUser)
	f.commands(postgreSQL)
}

// configure sets the variables of the agent, and those with which psql in the container connects
// without arguments.
func (f *filling) configure(data string) {
	options := ptr.Deref(f.set.Spec.Application.PostgreSQL, v1alpha1.PostgreSQLPolicy{})
	config := settings.Config{Common: f.common(path.Join(data, "pgdata"), options.Settings), SynchronousStandbys: options.SynchronousStandbys}
	f.variable(settings.Variable, config)
	f.env(corev1.EnvVar{Name: "PGHOST", Value: path.Join(pathRun, postgreSQL)})
	f.env(corev1.EnvVar{Name: "PGUSER", Value: settings.Superuser})
}

// validatePostgreSQL checks what only PostgreSQL requires.
func validatePostgreSQL(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	options := ptr.Deref(spec.Application.PostgreSQL, v1alpha1.PostgreSQLPolicy{})
	if n := options.SynchronousStandbys; n < 0 || n > maxSecondaries {
		errs = append(errs, field.Invalid(at.Child("postgreSQL", "synchronousStandbys"), n, "must be from 0 to 63"))
	}
	return append(errs, invalidSettings(settings.Problems(options.Settings), at.Child("postgreSQL", "settings"))...)
}
