package application_test

import (
	"path/filepath"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/golden"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

type change = func(*v1alpha1.ReplicatedStatefulSet)

func main(change func(*corev1.Container)) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) { change(&s.Spec.Pod.Containers[0]) }
}

func copied(s *v1alpha1.ReplicatedStatefulSet) { s.Status.Agent.Mount = v1alpha1.AgentInitContainer }

// filled fills a set in place, and returns it.
func filled(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	application.Fill(set)
	return set
}

// TestFilledSets compares filled sets with golden files. A difference restarts all members of all sets
// at an upgrade of the operator, so the files of a released version do not change.
func TestFilledSets(t *testing.T) {
	for file, set := range map[string]*v1alpha1.ReplicatedStatefulSet{
		"postgresql.yaml":        fixture.PostgreSQL(),
		"postgresql-copied.yaml": fixture.PostgreSQL(copied),
		"postgresql-options.yaml": fixture.PostgreSQL(func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.PostgreSQL = &v1alpha1.PostgreSQLPolicy{SynchronousStandbys: 1, Settings: map[string]string{"log_line_prefix": "$(POD_NAME) "}}
			s.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{Member: &v1alpha1.MemberTLS{ServerSecret: "cert"}}}
		}),
		"etcd.yaml": fixture.Etcd(func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.Etcd = &v1alpha1.EtcdPolicy{Settings: map[string]string{"auto-compaction-retention": "8h"}}
		}),
		"rabbitmq.yaml": fixture.RabbitMQ(func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.RabbitMQ = &v1alpha1.RabbitMQPolicy{Plugins: []string{"rabbitmq_stream", "rabbitmq_management"}, Settings: map[string]string{"heartbeat": "30"}}
		}),
		"mariadb-galera.yaml": fixture.MariaDBGalera(func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.MariaDBGalera = &v1alpha1.MariaDBGaleraPolicy{Settings: map[string]string{"gcache.size": "256M"}}
		}),
		"postgresql-fenced.yaml": fixture.PostgreSQL(byLease(20)),
		"redis.yaml":             fixture.Redis(),
		"redis-options.yaml": fixture.Redis(func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Application.Redis = &v1alpha1.RedisPolicy{MinReplicasToWrite: 1, Settings: map[string]string{"maxmemory": "1gb"}}
			s.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{Member: &v1alpha1.MemberTLS{ServerSecret: "cert"}}}
		}),
	} {
		t.Run(file, func(t *testing.T) {
			text, err := yaml.Marshal(application.Filled(set).Spec)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, filepath.Join("testdata", file), string(text))
		})
	}
}

// TestFieldsOfTheUserAreKept fills sets in which a user set one of the filled fields.
func TestFieldsOfTheUserAreKept(t *testing.T) {
	for name, set := range map[string]change{
		"spec.primaries": func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Primaries = new(int32(0)) },
		"spec.servicePorts": func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.ServicePorts = []corev1.ServicePort{{Name: "pg", Port: 5432}}
		},
		"the program":         main(func(c *corev1.Container) { c.Command = []string{"/init"} }),
		"the readiness probe": main(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 30} }),
		"the port":            main(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: "pg", ContainerPort: 5432}} }),
		"a variable":          main(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "PGUSER", Value: "app"}} }),
		"the mount of the claim": main(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/pg"}}
		}),
		"the mount of the agent": main(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: "/opt/stateful-operator"}}
		}),
		"the context of a program": main(func(c *corev1.Container) { c.SecurityContext = &corev1.SecurityContext{} }),
		"the context of the pod":   func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.SecurityContext = &corev1.PodSecurityContext{} },
		"the volume of the agent": func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Volumes = []corev1.Volume{{Name: "application-agent"}}
		},
		"the volume of passwords": func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Volumes = []corev1.Volume{{Name: "application-credentials"}}
		},
		"the init container": func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.InitContainers = []corev1.Container{{Name: "agent-install", Image: "own"}}
		},
		"a command": func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.Commands = map[string]v1alpha1.Command{"status": {Command: []string{"/status"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := fixture.PostgreSQL(copied, set)
			got := filled(given.DeepCopy())
			if again := filled(got.DeepCopy()); !reflect.DeepEqual(again, got) {
				t.Error("a filled set changes if it is filled again")
			}
			plain := filled(fixture.PostgreSQL(copied))
			set(plain)
			for field, pair := range fieldsOf(got, plain) {
				if !reflect.DeepEqual(pair[0], pair[1]) && isSetBy(field, set) {
					t.Errorf("%s is %v, want %v", field, pair[0], pair[1])
				}
			}
		})
	}
}

// fieldsOf returns the filled fields of two sets.
func fieldsOf(a, b *v1alpha1.ReplicatedStatefulSet) map[string][2]any {
	of := func(s *v1alpha1.ReplicatedStatefulSet) map[string]any {
		c := s.Spec.Pod.Containers[0]
		return map[string]any{
			"primaries": s.Spec.Primaries, "ports": s.Spec.ServicePorts, "command": c.Command, "probe": c.ReadinessProbe, "container ports": c.Ports,
			"context": c.SecurityContext, "pod context": s.Spec.Pod.SecurityContext, "status": s.Spec.Pod.Commands["status"],
		}
	}
	both := map[string][2]any{}
	for name, value := range of(a) {
		both[name] = [2]any{value, of(b)[name]}
	}
	return both
}

// isSetBy reports whether a change sets a field.
func isSetBy(field string, set change) bool {
	before, after := fixture.PostgreSQL(), fixture.PostgreSQL(set)
	pair := fieldsOf(before, after)[field]
	return !reflect.DeepEqual(pair[0], pair[1])
}

func TestTheDataFolderIsOnTheFirstClaim(t *testing.T) {
	for _, row := range []struct {
		name, want string
		set        change
	}{
		{"the default path", "/data/pgdata", func(*v1alpha1.ReplicatedStatefulSet) {}},
		{"a mount of the user", "/var/lib/pg/pgdata", main(func(c *corev1.Container) {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/pg"}}
		})},
		{"another claim", "/data/pgdata", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Pod.VolumeClaimTemplates = append(s.Spec.Pod.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "backups"}})
		}},
	} {
		c := filled(fixture.PostgreSQL(row.set)).Spec.Pod.Containers[0]
		if got := config(t, &c).DataDir; got != row.want {
			t.Errorf("%s: the data folder is %s, want %s", row.name, got, row.want)
		}
		if m := c.VolumeMounts[0]; m.Name != "data" || m.MountPath+"/pgdata" != row.want {
			t.Errorf("%s: the mount is %+v", row.name, m)
		}
	}
}

// TestFieldsOfTheTemplateAreKept has fields that spec.pod.template sets.
func TestFieldsOfTheTemplateAreKept(t *testing.T) {
	set := filled(fixture.PostgreSQL(func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec":{"securityContext":{"runAsUser":70},"volumes":[{"name":"application-credentials","emptyDir":{}}]}}`)}
	}))
	if got := set.Spec.Pod.SecurityContext; got != nil {
		t.Errorf("the security context is %v", got)
	}
	if got := set.Spec.Pod.Volumes; len(got) != 1 || got[0].Name != "application-agent" {
		t.Errorf("the volumes are %v", got)
	}
}

func TestThePortForReplicationIsAdded(t *testing.T) {
	set := filled(fixture.PostgreSQL(func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.ServicePorts = []corev1.ServicePort{{Name: "metrics", Port: 9187}}
	}))
	if got := set.Spec.ServicePorts; len(got) != 2 || got[1].Port != 5432 {
		t.Errorf("the ports are %v", got)
	}
}

func TestAVolumeOfTheUserBringsTheAgent(t *testing.T) {
	set := filled(fixture.PostgreSQL(copied, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Volumes = []corev1.Volume{{Name: "application-agent", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "own"}}}}
	}))
	if got := set.Spec.Pod.InitContainers; len(got) > 0 {
		t.Errorf("the agent is also copied by %v", got)
	}
}

// TestAFilledSetAppliedByHandRestartsNothing builds the children of a set with spec.application, and of
// the same set with the filled fields instead.
func TestAFilledSetAppliedByHandRestartsNothing(t *testing.T) {
	for _, mount := range []v1alpha1.AgentMount{v1alpha1.AgentImageVolume, v1alpha1.AgentInitContainer} {
		set := fixture.PostgreSQL(func(s *v1alpha1.ReplicatedStatefulSet) { s.Status.Agent.Mount = mount })
		byHand := application.Filled(set)
		if byHand.Spec.Application != nil {
			t.Error("a filled set has spec.application")
		}
		build := func(set *v1alpha1.ReplicatedStatefulSet) any {
			set = spec.WithDefaults(set)
			if errs := spec.Validate(set); len(errs) > 0 {
				t.Fatal(errs)
			}
			return []any{children.BuildStatefulSet(set, 3, children.Hashes{}), children.BuildServices(set), set.Spec.Pod.Commands, set.Spec.Primaries}
		}
		if a, b := build(set), build(byHand); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: the children differ:\n%+v\n%+v", mount, a, b)
		}
	}
}

func TestASetWithoutContainersIsNotFilled(t *testing.T) {
	set := fixture.PostgreSQL(func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers = nil })
	if got := filled(set.DeepCopy()); !reflect.DeepEqual(got, set) {
		t.Errorf("it is filled: %+v", got)
	}
}
