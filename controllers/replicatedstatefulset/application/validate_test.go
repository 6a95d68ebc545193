package application_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

func options(o v1alpha1.PostgreSQLPolicy) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Application.PostgreSQL = &o }
}

func ofEtcd(flags map[string]string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Application.Type, s.Spec.Application.Etcd, s.Spec.Primaries = v1alpha1.ApplicationEtcd, &v1alpha1.EtcdPolicy{Settings: flags}, nil
	}
}

func ofRabbitMQ(options v1alpha1.RabbitMQPolicy) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Application.Type, s.Spec.Primaries, s.Spec.Application.RabbitMQ = v1alpha1.ApplicationRabbitMQ, nil, &options
	}
}

func ofGalera(settings map[string]string) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Application.Type, s.Spec.Primaries = v1alpha1.ApplicationMariaDBGalera, nil
		s.Spec.Application.MariaDBGalera = &v1alpha1.MariaDBGaleraPolicy{Settings: settings}
	}
}

func ofRedis(o v1alpha1.RedisPolicy) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Application.Type, s.Spec.Application.Redis = v1alpha1.ApplicationRedis, &o
	}
}

// invalid is a set, and the beginning of the error for it. A valid one has none.
type invalid struct {
	name, want string
	set        change
}

func checkInvalid(t *testing.T, rows []invalid) {
	t.Helper()
	for _, row := range rows {
		errs := spec.Validate(spec.WithDefaults(fixture.PostgreSQL(row.set)))
		if row.want == "" && len(errs) > 0 || row.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, errs, row.want)
		}
	}
}

func TestInvalidApplications(t *testing.T) {
	checkInvalid(t, []invalid{
		{"a valid one", "", func(*v1alpha1.ReplicatedStatefulSet) {}},
		{"no agent on record", "", func(s *v1alpha1.ReplicatedStatefulSet) { s.Status.Agent = nil }},
		{"options", "", options(v1alpha1.PostgreSQLPolicy{SynchronousStandbys: 1, Settings: map[string]string{"shared_buffers": "256MB"}})},
		{"an unknown type", `spec.application.type: Unsupported value: "Oracle": supported values: "Etcd", "MariaDBGalera", "PostgreSQL", "RabbitMQ", "Redis"`, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.Type = "Oracle"
			s.Spec.Pod.Commands = filled(fixture.PostgreSQL()).Spec.Pod.Commands
		}},
		{"no Secret", "spec.application.credentialsSecret: Invalid value", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Application.CredentialsSecret = "" }},
		{"no claim", "spec.pod.volumeClaimTemplates: Required value: add a claim", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.VolumeClaimTemplates = nil }},
		{"two primaries", "spec.primaries: Invalid value: 2: PostgreSQL has one primary", func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = new(int32(2)) }},
		{"arguments", "spec.pod.containers[0].args: Forbidden", main(func(c *corev1.Container) { c.Args = []string{"-c", "fsync=off"} })},
		{"shared processes", "spec.pod.template.spec.shareProcessNamespace: Forbidden", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{"shareProcessNamespace":true}}`)}
		}},
		{"the processes of the Node", "spec.pod.template.spec.hostPID: Forbidden", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{"hostPID":true}}`)}
		}},
		{"the memory of the Node", "spec.pod.template.spec.hostIPC: Forbidden", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{"hostIPC":true}}`)}
		}},
		{"too many standbys", "spec.application.postgreSQL.synchronousStandbys: Invalid value: 64", options(v1alpha1.PostgreSQLPolicy{SynchronousStandbys: 64})},
		{"a negative number of standbys", "spec.application.postgreSQL.synchronousStandbys: Invalid value: -1", options(v1alpha1.PostgreSQLPolicy{SynchronousStandbys: -1})},
		{"a refused setting", `spec.application.postgreSQL.settings[fsync]: Forbidden: data can be lost`, options(v1alpha1.PostgreSQLPolicy{Settings: map[string]string{"fsync": "off"}})},
		{"a setting that is no name", `spec.application.postgreSQL.settings[a b]: Forbidden: the name is not that of a setting`, options(v1alpha1.PostgreSQLPolicy{Settings: map[string]string{"a b": "off"}})},
		{"Redis", "", ofRedis(v1alpha1.RedisPolicy{MinReplicasToWrite: 1, Settings: map[string]string{"maxmemory": "1gb"}})},
		{"two primaries of Redis", "spec.primaries: Invalid value: 2: Redis has one primary", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofRedis(v1alpha1.RedisPolicy{})(s)
			s.Spec.Primaries = new(int32(2))
		}},
		{"too many secondaries", "spec.application.redis.minReplicasToWrite: Invalid value: 64", ofRedis(v1alpha1.RedisPolicy{MinReplicasToWrite: 64})},
		{"a refused setting of Redis", "spec.application.redis.settings[appendonly]: Forbidden: the position", ofRedis(v1alpha1.RedisPolicy{Settings: map[string]string{"appendonly": "yes"}})},
	})
}

// TestInvalidApplicationsWithSeveralPrimaries tests applications whose members are all primaries.
func TestInvalidApplicationsWithSeveralPrimaries(t *testing.T) {
	checkInvalid(t, []invalid{
		{"etcd", "", ofEtcd(map[string]string{"quota-backend-bytes": "8589934592", "auto-compaction-retention": "8h"})},
		{"a refused flag of etcd", "spec.application.etcd.settings[initial-cluster]: Forbidden: the agent manages the members; remove or correct it", ofEtcd(map[string]string{"initial-cluster": "a"})},
		{"one primary of etcd", "spec.primaries: Invalid value: 1: etcd elects its leader, and all members are primaries; remove it", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofEtcd(nil)(s)
			s.Spec.Primaries = new(int32(1))
		}},
		{"secondaries of etcd", "spec.pod.commands[secondary]: Forbidden: etcd elects", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofEtcd(nil)(s)
			s.Spec.Pod.Commands = map[string]v1alpha1.Command{"secondary": {Command: []string{"/x"}}}
		}},
		{"a majority of etcd", "spec.seeding: Forbidden: a majority of new volumes", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofEtcd(nil)(s)
			s.Spec.Seeding = v1alpha1.SeedingQuorum
		}},
		{"TLS of etcd", "spec.TLS: Forbidden: type Etcd does not support TLS yet", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofEtcd(nil)(s)
			s.Spec.TLS = &v1alpha1.TLSPolicy{}
		}},
		{"RabbitMQ", "", ofRabbitMQ(v1alpha1.RabbitMQPolicy{Plugins: []string{"rabbitmq_management"}, Settings: map[string]string{"vm_memory_high_watermark.relative": "0.6"}})},
		{"a refused setting of RabbitMQ", "spec.application.rabbitMQ.settings[cluster_formation.node_type]: Forbidden: the agent manages the members; remove or correct it",
			ofRabbitMQ(v1alpha1.RabbitMQPolicy{Settings: map[string]string{"cluster_formation.node_type": "ram"}})},
		{"a refused plugin of RabbitMQ", "spec.application.rabbitMQ.plugins[rabbitmq_peer_discovery_k8s]: Forbidden: the agent manages the members; remove or correct it",
			ofRabbitMQ(v1alpha1.RabbitMQPolicy{Plugins: []string{"rabbitmq_peer_discovery_k8s"}})},
		{"one primary of RabbitMQ", "spec.primaries: Invalid value: 1: all members of RabbitMQ serve clients, and are primaries; remove it", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofRabbitMQ(v1alpha1.RabbitMQPolicy{})(s)
			s.Spec.Primaries = new(int32(1))
		}},
		{"MariaDB Galera", "", ofGalera(map[string]string{"innodb_buffer_pool_size": "1G", "gcache.size": "1G"})},
		{"a refused setting of MariaDB", "spec.application.mariaDBGalera.settings[wsrep_on]: Forbidden: the agent configures replication; remove or correct it", ofGalera(map[string]string{"wsrep_on": "OFF"})},
		{"one primary of Galera", "spec.primaries: Invalid value: 1: all members of Galera accept writes, and are primaries; remove it", func(s *v1alpha1.ReplicatedStatefulSet) {
			ofGalera(nil)(s)
			s.Spec.Primaries = new(int32(1))
		}},
	})
}

func TestTLSIsSwitchedOnlyInAStoppedSet(t *testing.T) {
	withTLS := func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{Member: &v1alpha1.MemberTLS{ServerSecret: "cert"}}}
	}
	running := func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(3)) }
	stopped := func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(0)) }
	for _, row := range []struct {
		name     string
		old, set []change
		refused  bool
	}{
		{"on", []change{running}, []change{running, withTLS}, true},
		{"off", []change{running, withTLS}, []change{running}, true},
		{"no change", []change{running, withTLS}, []change{running, withTLS}, false},
		{"on, stopped", []change{running}, []change{stopped, withTLS}, false},
	} {
		errs := application.ValidateUpdate(fixture.PostgreSQL(row.old...), fixture.PostgreSQL(row.set...))
		if len(errs) > 0 != row.refused {
			t.Errorf("%s: %v", row.name, errs)
		}
	}
}

func TestWarningsOfCommitsThatWait(t *testing.T) {
	for _, row := range []struct {
		replicas, standbys int32
		want               bool
	}{{3, 1, false}, {2, 1, true}, {1, 1, true}, {3, 2, true}, {4, 2, false}, {2, 0, false}, {0, 1, false}} {
		set := fixture.PostgreSQL(options(v1alpha1.PostgreSQLPolicy{SynchronousStandbys: row.standbys}), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = &row.replicas })
		got := application.Warnings(set)
		if slices.ContainsFunc(got, func(w string) bool { return strings.Contains(w, "commits wait") }) != row.want {
			t.Errorf("%d replicas, %d standbys: %v", row.replicas, row.standbys, got)
		}
	}
	set := fixture.Redis(ofRedis(v1alpha1.RedisPolicy{MinReplicasToWrite: 1}), func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) })
	if got := application.Warnings(set); len(got) != 1 || !strings.Contains(got[0], "redis.minReplicasToWrite is 1") {
		t.Errorf("Redis: %v", got)
	}
	if got := application.Warnings(fixture.PostgreSQL()); len(got) > 0 {
		t.Errorf("without options: %v", got)
	}
}
