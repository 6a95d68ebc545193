package application

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/rabbitmq/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names of the agent's driver, and defaults of RabbitMQ.
const (
	rabbitMQ     = "rabbitmq"
	rabbitMQPort = 5672
	rabbitMQUser = 999 // of docker.io/library/rabbitmq
	rabbitMQData = "/var/lib/rabbitmq"
)

// rabbitMQ fills a set of RabbitMQ.
func (f *filling) rabbitMQ() {
	data := f.data(rabbitMQData)
	f.agent(rabbitMQ)
	f.credentials(settings.PasswordKey, settings.CookieKey)
	options := ptr.Deref(f.set.Spec.Application.RabbitMQ, v1alpha1.RabbitMQPolicy{})
	f.variable(settings.Variable, settings.Config{
		Common: f.common(data, options.Settings), Service: f.set.MembersServiceName(), Plugins: slices.Sorted(slices.Values(options.Plugins)),
	})
	f.port("amqp", rabbitMQPort)
	f.readiness(rabbitMQ)
	f.security(rabbitMQUser)
	f.primaryCommands(rabbitMQ)
	f.command(v1alpha1.CommandLeave, []string{agentInPod, rabbitMQ, v1alpha1.CommandLeave}, leaveTimeout)
}

// validateRabbitMQ checks what only RabbitMQ requires.
func validateRabbitMQ(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	options := ptr.Deref(spec.Application.RabbitMQ, v1alpha1.RabbitMQPolicy{})
	errs := invalidSettings(settings.Problems(options.Settings), at.Child("rabbitMQ", "settings"))
	errs = append(errs, invalidSettings(settings.PluginProblems(options.Plugins), at.Child("rabbitMQ", "plugins"))...)
	return append(errs, validateAllPrimaries(spec, "all members of RabbitMQ serve clients, and are primaries; remove it")...)
}
