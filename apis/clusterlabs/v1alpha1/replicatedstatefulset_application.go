package v1alpha1

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ApplicationType is a type of application that the operator can run without commands of the user.
// +kubebuilder:validation:Enum=PostgreSQL;Redis;Etcd;MariaDBGalera;RabbitMQ
type ApplicationType string

const (
	// ApplicationPostgreSQL is PostgreSQL 13 to 18, in the upstream image or another image with the
	// same programs.
	ApplicationPostgreSQL ApplicationType = "PostgreSQL"
	// ApplicationRedis is Redis 7 and 8, or Valkey 7 to 9, in the upstream image or another image with
	// the same program.
	ApplicationRedis ApplicationType = "Redis"
	// ApplicationEtcd is etcd 3.4 to 3.6, in the upstream image or another image with the same
	// program.
	ApplicationEtcd ApplicationType = "Etcd"
	// ApplicationMariaDBGalera is MariaDB 10.6 to 11.8 with Galera, in the upstream image or another image
	// with the same programs.
	ApplicationMariaDBGalera ApplicationType = "MariaDBGalera"
	// ApplicationRabbitMQ is RabbitMQ 4.2 and later, in the upstream image or another image with the same
	// programs.
	ApplicationRabbitMQ ApplicationType = "RabbitMQ"
)

// ApplicationPolicy makes the operator fill the fields of the set that run an application: commands,
// the program of the container, probes, ports, volumes and variables. A field that is set in the
// spec is not filled.
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",fieldPath=".type",message="is immutable, because the data on the volumes is of this type; create another set, and copy the data"
// +kubebuilder:validation:XValidation:rule="!has(self.postgreSQL) || self.type == 'PostgreSQL'",fieldPath=".postgreSQL",message="requires type PostgreSQL; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.redis) || self.type == 'Redis'",fieldPath=".redis",message="requires type Redis; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.etcd) || self.type == 'Etcd'",fieldPath=".etcd",message="requires type Etcd; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.mariaDBGalera) || self.type == 'MariaDBGalera'",fieldPath=".mariaDBGalera",message="requires type MariaDBGalera; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.rabbitMQ) || self.type == 'RabbitMQ'",fieldPath=".rabbitMQ",message="requires type RabbitMQ; remove it"
type ApplicationPolicy struct {
	// Type of the application. It is immutable.
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application","urn:alm:descriptor:com.tectonic.ui:select:PostgreSQL","urn:alm:descriptor:com.tectonic.ui:select:Redis","urn:alm:descriptor:com.tectonic.ui:select:Etcd","urn:alm:descriptor:com.tectonic.ui:select:MariaDBGalera","urn:alm:descriptor:com.tectonic.ui:select:RabbitMQ"}
	Type ApplicationType `json:"type"`

	// CredentialsSecret is the Secret with the passwords. For PostgreSQL it has the keys password
	// (of the superuser postgres) and replicationPassword (of the role replicator). For Redis it
	// has the key password (of the user default), and for etcd and MariaDB Galera the key password (of
	// the user root). For RabbitMQ it has the keys password (of the user admin) and erlangCookie (a
	// random text, with which members authenticate). It is mounted into the container in which commands run.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Credentials",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application","urn:alm:descriptor:io.kubernetes:Secret"}
	CredentialsSecret string `json:"credentialsSecret"`

	// PostgreSQL has the options of type PostgreSQL. Defaults to asynchronous replication and the
	// settings of the agent.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="PostgreSQL",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	PostgreSQL *PostgreSQLPolicy `json:"postgreSQL,omitempty"`

	// Redis has the options of type Redis. Defaults to the settings of the agent.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Redis",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Redis *RedisPolicy `json:"redis,omitempty"`

	// Etcd has the options of type Etcd. Defaults to the settings of etcd.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="etcd",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Etcd *EtcdPolicy `json:"etcd,omitempty"`

	// MariaDBGalera has the options of type MariaDBGalera. Defaults to the settings of the agent.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="MariaDB Galera",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	MariaDBGalera *MariaDBGaleraPolicy `json:"mariaDBGalera,omitempty"`

	// RabbitMQ has the options of type RabbitMQ. Defaults to quorum queues, and the settings of RabbitMQ.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="RabbitMQ",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	RabbitMQ *RabbitMQPolicy `json:"rabbitMQ,omitempty"`
}

// RabbitMQPolicy has the options of RabbitMQ.
type RabbitMQPolicy struct {
	// Plugins are the names of plugins to enable, for example rabbitmq_management. Those that they require
	// are enabled as well. A change recreates the members, one at a time. Defaults to none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=128
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Plugins",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Plugins []string `json:"plugins,omitempty"`

	// Settings are lines of rabbitmq.conf, for example vm_memory_high_watermark.relative. Those on which
	// the set depends are refused, for example cluster_formation. A change recreates the members, one at a
	// time. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a value may have at most 8192 characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settings",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Settings map[string]string `json:"settings,omitempty"`
}

// MariaDBGaleraPolicy has the options of MariaDB Galera.
type MariaDBGaleraPolicy struct {
	// Settings are variables of MariaDB, and options of Galera, which have a dot in their name, for
	// example gcache.size. Those on which the set depends are refused, for example wsrep_on. A change
	// recreates the members, one at a time. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a value may have at most 8192 characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settings",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Settings map[string]string `json:"settings,omitempty"`
}

// EtcdPolicy has the options of etcd.
type EtcdPolicy struct {
	// Settings are flags of etcd without dashes in front, for example quota-backend-bytes. Those on
	// which the set depends are refused, for example initial-cluster. A change recreates the members,
	// one at a time. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a value may have at most 8192 characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settings",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Settings map[string]string `json:"settings,omitempty"`
}

// PostgreSQLPolicy has the options of PostgreSQL.
type PostgreSQLPolicy struct {
	// SynchronousStandbys is the number of standbys that must have a transaction on disk before its
	// commit returns. While fewer are connected, commits wait. With 0, transactions that no standby
	// has received are lost with the primary. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Synchronous standbys",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application","urn:alm:descriptor:com.tectonic.ui:number"}
	SynchronousStandbys int32 `json:"synchronousStandbys,omitempty"`

	// Settings are parameters of postgresql.conf. Those on which the set depends are refused, for
	// example fsync. A change recreates the members, one at a time. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a value may have at most 8192 characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settings",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Settings map[string]string `json:"settings,omitempty"`
}

// RedisPolicy has the options of Redis.
type RedisPolicy struct {
	// MinReplicasToWrite is the number of connected secondaries without which the primary accepts no
	// writes. Redis replicates asynchronously: a write survives the loss of the primary if WAIT has
	// returned at least 1. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Min replicas to write",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application","urn:alm:descriptor:com.tectonic.ui:number"}
	MinReplicasToWrite int32 `json:"minReplicasToWrite,omitempty"`

	// Settings are parameters of redis.conf. Those on which the set depends are refused, for example
	// appendonly. A change recreates the members, one at a time. Defaults to none.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 8192)",message="a value may have at most 8192 characters"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,displayName="Settings",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldGroup:application"}
	Settings map[string]string `json:"settings,omitempty"`
}

// AgentMount is how the agent's program comes into the container.
// +kubebuilder:validation:Enum=ImageVolume;InitContainer
type AgentMount string

const (
	// AgentImageVolume mounts the agent's image as a volume.
	AgentImageVolume AgentMount = "ImageVolume"
	// AgentInitContainer copies the program into an emptyDir by an init container.
	AgentInitContainer AgentMount = "InitContainer"
)

// AgentStatus is the agent in the pods of a set with spec.application. It changes only when members
// are recreated for another reason, or while there are none, so an upgrade of the operator restarts
// no container.
type AgentStatus struct {
	// Image with the program /agent.
	// +kubebuilder:validation:MaxLength=1024
	Image string `json:"image"`
	// Mount is how the program comes into the container: ImageVolume or InitContainer.
	Mount AgentMount `json:"mount"`
}

// CommandContainer returns the index of the container in which commands run.
func (p *PodPolicy) CommandContainer() int {
	return max(0, slices.IndexFunc(p.Containers, func(c corev1.Container) bool { return c.Name == p.Container }))
}

// MembersServiceName returns the name of the headless Service of all members.
func (s *ReplicatedStatefulSet) MembersServiceName() string { return s.Name + "-svc" }

// PrimaryServiceName returns the name of the Service of the primaries.
func (s *ReplicatedStatefulSet) PrimaryServiceName() string { return s.Name + "-primary" }
