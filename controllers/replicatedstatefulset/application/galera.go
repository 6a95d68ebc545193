package application

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/galera/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names of the agent's driver, and defaults of MariaDB.
const (
	galera      = "galera"
	mariaDB     = "mariadb" // the name of the port
	mariaDBPort = 3306
	mariaDBUser = 999 // of docker.io/library/mariadb
	mariaDBData = "/var/lib/mysql"
)

// galera fills a set of MariaDB Galera.
func (f *filling) galera() {
	data := f.data(mariaDBData)
	f.agent(galera)
	f.credentials(settings.PasswordKey)
	options := ptr.Deref(f.set.Spec.Application.MariaDBGalera, v1alpha1.MariaDBGaleraPolicy{})
	f.variable(settings.Variable, settings.Config{Common: f.common(data, options.Settings)})
	f.env(corev1.EnvVar{Name: settings.AddressVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"},
	}})
	f.port(mariaDB, mariaDBPort)
	f.readiness(galera)
	f.security(mariaDBUser)
	f.primaryCommands(galera, startArgument)
}

// validateGalera checks what only MariaDB Galera requires.
func validateGalera(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	options := ptr.Deref(spec.Application.MariaDBGalera, v1alpha1.MariaDBGaleraPolicy{})
	errs := invalidSettings(settings.Problems(options.Settings), at.Child("mariaDBGalera", "settings"))
	return append(errs, validateAllPrimaries(spec, "all members of Galera accept writes, and are primaries; remove it")...)
}
