package application

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/stateful-operator/stateful-operator/agent/settings"
	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// Names and paths in the pods.
const (
	volumeAgent       = "application-agent"
	volumeCredentials = "application-credentials"
	installContainer  = "agent-install"

	pathAgent       = "/opt/stateful-operator" // not the path of a file in the image of the operator
	pathCredentials = "/etc/rss/credentials"
	// pathRun is a tmpfs of each pod, also with a read-only root file system. An emptyDir would
	// block kubectl drain.
	pathRun = "/dev/shm"

	// PathServerTLS is the mount path of spec.TLS.static.member.serverSecret.
	PathServerTLS = "/etc/rss/tls/server"

	agentInImage = "/agent"
	agentInPod   = pathAgent + "/agent"
)

// Fill sets the fields that spec.application fills. It keeps all fields that are set. The result
// depends only on the spec and on status.agent, so that another version of the operator recreates no
// pods.
func Fill(set *v1alpha1.ReplicatedStatefulSet) {
	if set.Spec.Application == nil || len(set.Spec.Pod.Containers) == 0 {
		return
	}
	f := filling{set: set, pod: &set.Spec.Pod, main: &set.Spec.Pod.Containers[set.Spec.Pod.CommandContainer()]}
	if raw := f.pod.Template; raw != nil {
		// Validate reports a template that does not decode.
		_ = json.Unmarshal(raw.Raw, &f.template)
	}
	if fill, ok := applications[set.Spec.Application.Type]; ok {
		if hasOnePrimary(set.Spec.Application.Type) {
			f.set.Spec.Primaries = ptr.To(ptr.Deref(f.set.Spec.Primaries, 1))
		}
		fill(&f)
	}
}

// Filled returns a set without spec.application that behaves the same. Process 1 of its members has the flags of
// spec.fencing, which is removed as well.
func Filled(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set = set.DeepCopy()
	Fill(set)
	set.Spec.Application, set.Spec.Fencing = nil, nil
	return set
}

// applications fill a set of their type.
var applications = map[v1alpha1.ApplicationType]func(*filling){
	v1alpha1.ApplicationPostgreSQL:    (*filling).postgreSQL,
	v1alpha1.ApplicationRedis:         (*filling).redis,
	v1alpha1.ApplicationEtcd:          (*filling).etcd,
	v1alpha1.ApplicationMariaDBGalera: (*filling).galera,
	v1alpha1.ApplicationRabbitMQ:      (*filling).rabbitMQ,
}

// hasOnePrimary reports whether an application has one primary, which the operator selects.
func hasOnePrimary(t v1alpha1.ApplicationType) bool {
	return t == v1alpha1.ApplicationPostgreSQL || t == v1alpha1.ApplicationRedis
}

// filling is a set that is being filled.
type filling struct {
	set      *v1alpha1.ReplicatedStatefulSet
	pod      *v1alpha1.PodPolicy
	template corev1.PodTemplateSpec // spec.pod.template
	main     *corev1.Container      // the container in which commands run
}

// Timeouts of commands. Those that start the server may copy all data, and the agent gives up within
// its own limit, which is shorter.
const (
	statusTimeout  = "10s"
	commandTimeout = "10m"
	// leaveTimeout is short, because no first primary is chosen before leave has ended.
	leaveTimeout = "2m"
)

// startArgument identifies a start as primary.
const startArgument = "--start=$(RSS_CREATED).$(RSS_EPOCH)"

// agent sets process 1 of the container, and how the agent comes into the pod.
func (f *filling) agent(name string) {
	if len(f.main.Command) == 0 {
		f.main.Command = f.process1(name)
	}
	agent := f.set.Status.Agent
	if agent == nil {
		return // no pod is created before it is on record
	}
	image := corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: agent.Image, PullPolicy: corev1.PullIfNotPresent}}
	switch {
	case f.hasVolume(volumeAgent): // the user brings the agent
	case agent.Mount == v1alpha1.AgentImageVolume:
		f.volume(volumeAgent, image)
	default:
		f.install(agent.Image)
		f.volume(volumeAgent, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	}
	f.mount(corev1.VolumeMount{Name: volumeAgent, MountPath: pathAgent, ReadOnly: true})
}

// install adds the init container that copies the agent. It follows those of the user, so that an
// index in an error of the API server refers to the user's container.
func (f *filling) install(image string) {
	if slices.ContainsFunc(f.pod.InitContainers, func(c corev1.Container) bool { return c.Name == installContainer }) {
		return
	}
	f.pod.InitContainers = append(f.pod.InitContainers, corev1.Container{
		Name: installContainer, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:      []string{agentInImage, "install", pathAgent},
		VolumeMounts: []corev1.VolumeMount{{Name: volumeAgent, MountPath: pathAgent}},
		// A quota may require resources. They are constant, so that those of the program can be
		// changed in place.
		Resources:       corev1.ResourceRequirements{Requests: installResources(), Limits: installResources()},
		SecurityContext: restricted(),
	})
}

func installResources() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
}

// restricted returns a security context that all Pod Security levels allow.
func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// credentials mounts these keys of the Secret. The kubelet does not start the pod if one is missing,
// and its event names the key.
func (f *filling) credentials(keys ...string) {
	secret := &corev1.SecretVolumeSource{SecretName: f.set.Spec.Application.CredentialsSecret}
	for _, key := range keys {
		secret.Items = append(secret.Items, corev1.KeyToPath{Key: key, Path: key})
	}
	f.volume(volumeCredentials, corev1.VolumeSource{Secret: secret})
	f.mount(corev1.VolumeMount{Name: volumeCredentials, MountPath: pathCredentials, ReadOnly: true})
}

// data mounts the first claim at a path, and returns the path at which it is mounted. It returns ""
// if there is no claim.
func (f *filling) data(path string) string {
	if len(f.pod.VolumeClaimTemplates) == 0 {
		return ""
	}
	claim := f.pod.VolumeClaimTemplates[0].Name
	for _, m := range f.main.VolumeMounts {
		if m.Name == claim {
			return m.MountPath
		}
	}
	f.mount(corev1.VolumeMount{Name: claim, MountPath: path})
	return path
}

func (f *filling) hasVolume(name string) bool {
	return slices.ContainsFunc(slices.Concat(f.pod.Volumes, f.template.Spec.Volumes), func(v corev1.Volume) bool { return v.Name == name })
}

func (f *filling) volume(name string, source corev1.VolumeSource) {
	if !f.hasVolume(name) {
		f.pod.Volumes = append(f.pod.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
}

func (f *filling) mount(mount corev1.VolumeMount) {
	if !slices.ContainsFunc(f.main.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == mount.MountPath }) {
		f.main.VolumeMounts = append(f.main.VolumeMounts, mount)
	}
}

func (f *filling) env(variable corev1.EnvVar) {
	if !slices.ContainsFunc(f.main.Env, func(e corev1.EnvVar) bool { return e.Name == variable.Name }) {
		f.main.Env = append(f.main.Env, variable)
	}
}

// port adds the port to the container, and to the Services, by which members find the primary.
func (f *filling) port(name string, port int32) {
	if !slices.ContainsFunc(f.main.Ports, func(p corev1.ContainerPort) bool { return p.Name == name || p.ContainerPort == port }) {
		f.main.Ports = append(f.main.Ports, corev1.ContainerPort{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
	if !slices.ContainsFunc(f.set.Spec.ServicePorts, func(p corev1.ServicePort) bool { return p.Port == port }) {
		f.set.Spec.ServicePorts = append(f.set.Spec.ServicePorts,
			corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port)})
	}
}

// readiness sets the readiness probe.
func (f *filling) readiness(name string) {
	if f.main.ReadinessProbe != nil {
		return
	}
	f.main.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{agentInPod, name, "ready"}}},
		PeriodSeconds: 5, TimeoutSeconds: 6, FailureThreshold: 3, SuccessThreshold: 1,
	}
}

// command sets a command of the agent.
func (f *filling) command(name string, argv []string, timeout v1alpha1.Duration) {
	if _, isSet := f.pod.Commands[name]; isSet {
		return
	}
	if f.pod.Commands == nil {
		f.pod.Commands = map[string]v1alpha1.Command{}
	}
	f.pod.Commands[name] = v1alpha1.Command{Command: argv, Timeout: timeout}
}

// security sets the security contexts of the pod and the container. user is the user and the group
// of the upstream image. Only this container gets the user, because it may read the private files of
// the agent. If the context of the pod is set, it determines the user.
func (f *filling) security(user int64) {
	ours := f.pod.SecurityContext == nil && f.template.Spec.SecurityContext == nil
	if ours {
		f.pod.SecurityContext = &corev1.PodSecurityContext{
			FSGroup: &user, FSGroupChangePolicy: ptr.To(corev1.FSGroupChangeOnRootMismatch),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	if f.main.SecurityContext != nil {
		return
	}
	f.main.SecurityContext = restricted()
	if ours {
		f.main.SecurityContext.RunAsUser, f.main.SecurityContext.RunAsGroup = &user, &user
	}
}

// commands sets the commands of an application with one primary. With primary the operator replaces a
// missing seed. start are additional arguments of the commands that start the member as primary.
func (f *filling) commands(driver string, start ...string) {
	for name, c := range map[string]struct {
		argument string
		timeout  v1alpha1.Duration
		start    []string
	}{
		v1alpha1.CommandStatus:    {"status", statusTimeout, nil},
		v1alpha1.CommandSequence:  {"sequence", commandTimeout, nil},
		v1alpha1.CommandSeed:      {"seed", commandTimeout, start},
		v1alpha1.CommandPrimary:   {"seed", commandTimeout, start},
		v1alpha1.CommandPromote:   {"promote", commandTimeout, start},
		v1alpha1.CommandSecondary: {"secondary", commandTimeout, nil},
		v1alpha1.CommandDemote:    {"demote", commandTimeout, nil},
		v1alpha1.CommandStop:      {"stop", commandTimeout, nil},
	} {
		f.command(name, append([]string{agentInPod, driver, c.argument}, c.start...), c.timeout)
	}
}

// primaryCommands sets the commands of an application whose members are all primaries. start are additional
// arguments of the command that starts the first member.
func (f *filling) primaryCommands(driver string, start ...string) {
	for name, timeout := range map[string]v1alpha1.Duration{
		v1alpha1.CommandStatus: statusTimeout, v1alpha1.CommandSequence: commandTimeout, v1alpha1.CommandPrimary: commandTimeout, v1alpha1.CommandStop: commandTimeout,
	} {
		f.command(name, []string{agentInPod, driver, name}, timeout)
	}
	f.command(v1alpha1.CommandSeed, append([]string{agentInPod, driver, v1alpha1.CommandSeed}, start...), commandTimeout)
}

// common returns the configuration that all applications have.
func (f *filling) common(data string, options map[string]string) settings.Common {
	c := settings.Common{
		PrimaryHost: f.set.PrimaryServiceName(), DataDir: data, RunDir: pathRun, CredentialsDir: pathCredentials, Settings: options,
	}
	if hasServerSecret(&f.set.Spec) {
		c.TLSDir = PathServerTLS
	}
	return c
}

// variable sets the variable of the agent's configuration.
func (f *filling) variable(name string, config interface{ Encode() (string, error) }) {
	text, err := config.Encode()
	if err != nil {
		return // strings can always be encoded; the agent reports a missing variable
	}
	f.env(corev1.EnvVar{Name: name, Value: text})
}

// hasServerSecret reports whether the members have a certificate for clients.
func hasServerSecret(spec *v1alpha1.ReplicatedStatefulSetSpec) bool {
	return spec.TLS != nil && spec.TLS.Static != nil && spec.TLS.Static.Member != nil && spec.TLS.Static.Member.ServerSecret != ""
}
