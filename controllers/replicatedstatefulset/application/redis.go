package application

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/redis/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names of the agent's driver, and defaults of Redis.
const (
	redis     = "redis" // also the name of the port
	redisPort = 6379
	redisUser = 999 // of docker.io/library/redis and docker.io/valkey/valkey
	redisData = "/data"
)

// redis fills a set of Redis.
func (f *filling) redis() {
	data := f.data(redisData)
	f.agent(redis)
	f.credentials(settings.PasswordKey)
	options := ptr.Deref(f.set.Spec.Application.Redis, v1alpha1.RedisPolicy{})
	f.variable(settings.Variable, settings.Config{Common: f.common(data, options.Settings), MinReplicasToWrite: options.MinReplicasToWrite})
	f.port(redis, redisPort)
	f.readiness(redis)
	f.security(redisUser)
	f.commands(redis, startArgument)
}

// validateRedis checks what only Redis requires.
func validateRedis(spec *v1alpha1.ReplicatedStatefulSetSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	options := ptr.Deref(spec.Application.Redis, v1alpha1.RedisPolicy{})
	if n := options.MinReplicasToWrite; n < 0 || n > maxSecondaries {
		errs = append(errs, field.Invalid(at.Child("redis", "minReplicasToWrite"), n, "must be from 0 to 63"))
	}
	return append(errs, invalidSettings(settings.Problems(options.Settings), at.Child("redis", "settings"))...)
}
