package children

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/fencing"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Surroundings are the inputs of an injection besides the pod and the object.
type Surroundings struct {
	// Image is the operator's image, which contains the gate.
	Image string
	// ImageVolumes is set if the pod can mount that image.
	ImageVolumes bool
	// OneNodeClaims are the pod's claims that only one node at a time can mount.
	OneNodeClaims sets.Set[string]
}

// Inject adds the gate to a pod that is being created, or returns why it cannot and leaves
// the pod unchanged. It never removes anything, and it is idempotent: it may be called
// again on its own result, after other webhooks have changed the pod.
func Inject(pod *corev1.Pod, s *v1.StatefulSingleton, around Surroundings) field.ErrorList {
	s = spec.WithDefaults(s)
	mode := modeFor(pod, s)
	gate := gateVolume(pod, mode, around)
	volumes := []corev1.Volume{SignalVolume(), gate}
	if mode == gateLease {
		volumes = append(volumes, fencing.Volume(v1.VolumeFencing))
	}
	if errs := refusals(pod, s, mode, volumes); len(errs) > 0 {
		return errs
	}
	if ready := (corev1.PodReadinessGate{ConditionType: v1.ReadinessGate}); !slices.Contains(pod.Spec.ReadinessGates, ready) {
		pod.Spec.ReadinessGates = append(pod.Spec.ReadinessGates, ready)
	}
	pod.Spec.TerminationGracePeriodSeconds = gracePeriod(pod, &s.Spec)
	for i := range volumes {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumes[i].Name }) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, volumes[i])
		}
	}
	pod.Spec.InitContainers = gateFirst(pod, mode, &gate, around.Image)
	if mode != v1.GateInit {
		for _, c := range Program(pod, s) {
			hold(c, mode, s)
		}
	}
	if wantsSidecar(pod, s, mode) {
		pod.Spec.Containers = append(pod.Spec.Containers, SidecarContainer(pod, around.Image))
	}
	switch {
	case !mountsAny(pod, around.OneNodeClaims):
		KeepApart(pod, s)
	case pod.Labels[appsv1.StatefulSetPodNameLabel] == "": // each pod of a StatefulSet has its own claims
		keepTogether(pod, s)
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelManaged, v1.True)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, v1.LabelSingleton, s.Name)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationManaged, v1.True)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, v1.AnnotationSingletonUID, string(s.UID))
	if isOnDisk(&gate) {
		spareAutoscaler(pod, gate.Name)
	}
	return nil
}

// AnnotationLocalVolumes lists the volumes on a node's disk that do not prevent the cluster
// autoscaler from removing the node.
const AnnotationLocalVolumes = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"

// spareAutoscaler adds a volume to that annotation.
func spareAutoscaler(pod *corev1.Pod, volume string) {
	names := pod.Annotations[AnnotationLocalVolumes]
	switch {
	case names == "":
		names = volume
	case !slices.Contains(strings.Split(names, ","), volume):
		names += "," + volume
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, AnnotationLocalVolumes, names)
}

// modeFor resolves mode Auto. A pod that got mode Init in an earlier call keeps it. A pod
// that lacks a container named in spec.containers gets Init in every mode: a rejection
// would block the creation of other users' pods that a selector happens to match, and
// holding only the existing containers could let the program run. With fencing by a Lease,
// such a pod waits for a grant, as without.
func modeFor(pod *corev1.Pod, s *v1.StatefulSingleton) v1.GateMode {
	waits := slices.ContainsFunc(pod.Spec.InitContainers, IsWait)
	if !waits && hasAgent(pod) {
		return gateLease
	}
	if len(Lacking(pod, s)) > 0 {
		return v1.GateInit
	}
	if wantsLease(pod, s) {
		return gateLease
	}
	if waits && spec.FencedByLease(s) {
		return v1.GateInit
	}
	if s.Spec.GateMode != v1.GateAuto {
		return s.Spec.GateMode
	}
	if waits {
		return v1.GateInit
	}
	fixed := readOnlyVolumes(pod)
	for _, c := range Program(pod, s) {
		if len(obstacles(c, nil, v1.GateBinary)) > 0 || len(mountClashes(c, fixed, v1.GateBinary, nil)) > 0 {
			return v1.GateInit
		}
	}
	return v1.GateBinary
}

// Program returns the containers that must not run at the same time as those of another
// pod.
func Program(pod *corev1.Pod, s *v1.StatefulSingleton) []*corev1.Container {
	var found []*corev1.Container
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; isProgram(c, s) {
			found = append(found, c)
		}
	}
	return found
}

// isProgram reports whether a container belongs to the program.
func isProgram(c *corev1.Container, s *v1.StatefulSingleton) bool {
	if isSidecar(*c) {
		return false
	}
	return len(s.Spec.Containers) == 0 || slices.Contains(s.Spec.Containers, c.Name)
}

// HasGate reports whether a pod cannot start the program without a grant. The guard makes
// the same check. The mode is ignored, because it may have changed since the pod was
// created.
func HasGate(pod *corev1.Pod, s *v1.StatefulSingleton) bool {
	if !slices.ContainsFunc(pod.Spec.Volumes, isSignal) || !intact(pod) {
		return false
	}
	if slices.ContainsFunc(pod.Spec.InitContainers, IsWait) {
		return true
	}
	if hasLeaseGate(pod, s) {
		return true
	}
	missing := sets.New(s.Spec.Containers...)
	for _, c := range Program(pod, s) {
		if !waitsForGrant(c) {
			return false
		}
		missing.Delete(c.Name)
	}
	return missing.Len() == 0
}

// hold prepends the gate to a container's command. The original command follows as separate
// arguments, and args are unchanged: Kubernetes appends them as it does without the gate,
// and nothing parses them.
func hold(c *corev1.Container, mode v1.GateMode, s *v1.StatefulSingleton) {
	for _, m := range mountsOf(mode) {
		addMount(c, m)
	}
	if IsHeld(c) {
		return
	}
	if i := leaseIndex(c.Command); i > 0 {
		c.Command = agentFirst(c.Command, i)
		return
	}
	gate, probe := gateOf(mode, s)
	if text, ok := originalEntrypoint(c); ok && !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == v1.EnvOriginalEntrypoint }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: v1.EnvOriginalEntrypoint, Value: text})
	}
	needsProbe := c.LivenessProbe != nil || mode == gateLease // without a probe the pod would be Ready while it waits
	if needsProbe && c.StartupProbe == nil {
		c.StartupProbe = startupProbe(probe)
	}
	c.Command = slices.Concat(gate, c.Command)
}

// gateOf returns the command that holds back a program in a gate mode, and its startup probe.
func gateOf(mode v1.GateMode, s *v1.StatefulSingleton) (gate, probe []string) {
	switch mode {
	case v1.GateScript:
		return scriptGate, scriptProbe
	case gateLease:
		return leaseGate(s), leaseProbe
	}
	return binaryGate, binaryProbe
}

// mountsOf returns our mounts in the container of a program in a gate mode.
func mountsOf(mode v1.GateMode) []corev1.VolumeMount {
	mounts := []corev1.VolumeMount{mounted(v1.VolumeSignal, v1.PathSignal), HomeOf(mode).mount()}
	if mode == gateLease {
		mounts = append(mounts, mounted(v1.VolumeFencing, v1.PathFencing))
	}
	return mounts
}

// originalEntrypoint returns command, args and image of the container as JSON. It returns
// false if the text could exceed the max length of an environment variable in Linux, which
// would keep the program from starting.
func originalEntrypoint(c *corev1.Container) (string, bool) {
	const most = 64 << 10 // half of the limit of 128 KiB
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Command []string `json:"command"`
		Args    []string `json:"args"`
		Image   string   `json:"image"`
	}{c.Command, c.Args, c.Image})
	// The kubelet expands $(NAME) in the value, and $$ to $.
	value := strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "$", "$$")
	return value, err == nil && len(value) <= most
}

// addMount adds a mount to a container, unless it has it.
func addMount(c *corev1.Container, mount corev1.VolumeMount) {
	if !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == mount.Name && m.MountPath == mount.MountPath }) {
		c.VolumeMounts = append(c.VolumeMounts, mount)
	}
}

// gateFirst returns the pod's init containers with ours first. None copies the gate into an image
// volume, which contains it.
func gateFirst(pod *corev1.Pod, mode v1.GateMode, gate *corev1.Volume, image string) []corev1.Container {
	var install, images, wait, others []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		switch {
		case isInstall(&c):
			install = append(install, c)
		case IsImage(&c):
			images = append(images, c)
		case IsWait(c):
			wait = append(wait, c)
		default:
			others = append(others, c)
		}
	}
	if len(install) == 0 && gate.Image == nil {
		install = append(install, installContainer(pod, HomeOf(mode), image))
	}
	if mode == v1.GateInit {
		images = withImagesOf(images, others, pod.Spec.Containers)
		if len(wait) == 0 {
			wait = append(wait, waitContainer(pod, image))
		}
	}
	return slices.Concat(install, images, wait, others)
}

// withImagesOf adds a container for each image that has none yet.
func withImagesOf(have []corev1.Container, lists ...[]corev1.Container) []corev1.Container {
	images, names := sets.New[string](), sets.New[string]()
	for i := range have {
		images.Insert(have[i].Image)
		names.Insert(have[i].Name)
	}
	number := len(have)
	for _, list := range lists {
		for i := range list {
			c := &list[i]
			if IsOurs(c) || images.Has(c.Image) {
				continue
			}
			name := ""
			for name == "" || names.Has(name) {
				number++
				name = v1.ContainerImagePrefix + strconv.Itoa(number)
			}
			images.Insert(c.Image)
			names.Insert(name)
			have = append(have, imageContainer(c, name))
		}
	}
	return have
}

// wantsSidecar reports whether the pod gets the status sidecar. Pods that run to completion
// do not, because the sidecar would keep them, and their Job, from completing.
func wantsSidecar(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode) bool {
	if !*s.Spec.StatusSidecar && mode != v1.GateScript {
		return false
	}
	switch pod.Spec.RestartPolicy {
	case corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure:
		return false
	}
	return !slices.ContainsFunc(pod.Spec.Containers, isSidecar)
}

// gracePeriod returns the pod's termination grace period. The API server has already set
// its default of 30 seconds if the pod specifies none. The period is shortened only with
// the consent of the pod's author, because a program that has too little time to stop may
// damage its data.
func gracePeriod(pod *corev1.Pod, spec *v1.StatefulSingletonSpec) *int64 {
	own, wanted := pod.Spec.TerminationGracePeriodSeconds, *spec.TerminationGracePeriod
	switch {
	case wanted <= 0:
		return own
	case ptr.Deref(own, corev1.DefaultTerminationGracePeriodSeconds) > wanted &&
		(*spec.RespectPodGracePeriod || pod.Annotations[v1.AnnotationShortenGrace] != v1.True):
		return own
	}
	return ptr.To(wanted)
}

// mountsAny reports whether the pod mounts one of the claims.
func mountsAny(pod *corev1.Pod, claims sets.Set[string]) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && claims.Has(v.PersistentVolumeClaim.ClaimName)
	})
}

// KeepApart prefers a node without another pod of this object, so that the next pod does
// not fail together with the node of the current one.
func KeepApart(pod *corev1.Pod, s *v1.StatefulSingleton) {
	affinity := affinityOf(pod)
	if affinity.PodAntiAffinity == nil {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	prefer(&affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, s)
}

// keepTogether prefers the node of the object's other pods, where a volume that only one
// node can mount is usable before the current pod has released it.
func keepTogether(pod *corev1.Pod, s *v1.StatefulSingleton) {
	affinity := affinityOf(pod)
	if affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	prefer(&affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, s)
}

// affinityOf returns the affinity of a pod, and adds one if it has none.
func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

// prefer adds a preferred affinity term for the pods of this object.
func prefer(terms *[]corev1.WeightedPodAffinityTerm, s *v1.StatefulSingleton) {
	term := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey:   corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1.LabelSingleton: s.Name}},
	}}
	if !slices.ContainsFunc(*terms, func(t corev1.WeightedPodAffinityTerm) bool { return apiequality.Semantic.DeepEqual(t, term) }) {
		*terms = append(*terms, term)
	}
}

// is reports whether a container is ours: it has this name and command. Other clients may have
// changed its other fields.
func is(c *corev1.Container, name string, command []string) bool {
	return c.Name == name && slices.Equal(c.Command, command) && len(c.Args) == 0
}

// IsWait reports whether the container is the gate of mode Init.
func IsWait(c corev1.Container) bool { return is(&c, v1.ContainerWait, waitCommand) }

// isSidecar reports whether the container is the status sidecar.
func isSidecar(c corev1.Container) bool { return is(&c, v1.ContainerSidecar, idleCommand) }

// IsImage reports whether the container is one that pulls an image.
func IsImage(c *corev1.Container) bool {
	return strings.HasPrefix(c.Name, v1.ContainerImagePrefix) && is(c, c.Name, touchCommand)
}

// homes are the gate modes with different homes.
var homes = []v1.GateMode{v1.GateBinary, v1.GateScript, gateLease}

// isInstall reports whether the container is the one that installs the gate.
func isInstall(c *corev1.Container) bool {
	return slices.ContainsFunc(homes, func(mode v1.GateMode) bool { return isInstallOf(c, mode) })
}

// isInstallOf reports whether the container is the one that installs the gate of a mode.
func isInstallOf(c *corev1.Container, mode v1.GateMode) bool {
	return is(c, v1.ContainerInstall, HomeOf(mode).installCommand())
}

// IsOurs reports whether the operator added the container.
func IsOurs(c *corev1.Container) bool {
	switch {
	case isInstall(c), IsImage(c), IsWait(*c), isSidecar(*c):
		return true
	}
	return false
}

// IsHeld reports whether the container's command starts with a gate, or with the agent.
func IsHeld(c *corev1.Container) bool { return waitsForGrant(c) || isLeased(c) }

// waitsForGrant reports whether the container's command starts with a gate.
func waitsForGrant(c *corev1.Container) bool {
	return isHeldBy(c, binaryGate) || isHeldBy(c, scriptGate)
}

// isHeldBy reports whether the container's command starts with that gate and continues.
func isHeldBy(c *corev1.Container, gate []string) bool {
	return len(c.Command) > len(gate) && slices.Equal(c.Command[:len(gate)], gate)
}

// LetThrough reports whether the status of a container with a gate shows behavior that our gate
// does not show before the grant. The agent runs the program without a grant, by the Lease.
func LetThrough(c *corev1.Container, s *corev1.ContainerStatus) bool {
	if isLeased(c) {
		return false
	}
	if EndedCleanly(s) {
		return true
	}
	return isOurProbe(c.StartupProbe) && ptr.Deref(s.Started, false)
}

// EndedCleanly reports whether a container has exited successfully, now or before its last
// restart.
func EndedCleanly(s *corev1.ContainerStatus) bool {
	ended := func(t *corev1.ContainerStateTerminated) bool {
		return t != nil && t.ExitCode == 0 && t.Reason == "Completed"
	}
	return ended(s.State.Terminated) || ended(s.LastTerminationState.Terminated)
}

// isOurProbe reports whether the operator added the probe.
func isOurProbe(p *corev1.Probe) bool {
	if p == nil || p.Exec == nil {
		return false
	}
	return slices.ContainsFunc([][]string{binaryProbe, scriptProbe, leaseProbe}, func(ours []string) bool {
		return slices.Equal(p.Exec.Command, ours)
	})
}

// isSignal reports whether the volume is the one with the grant.
func isSignal(v corev1.Volume) bool { return Same(&v, ptr.To(SignalVolume())) }

// Same reports whether a volume is the one that we would add, ignoring the API server's
// defaults.
func Same(have, want *corev1.Volume) bool {
	switch {
	case have.Name != want.Name:
		return false
	case want.DownwardAPI != nil:
		return have.DownwardAPI != nil && sameFiles(have.DownwardAPI.Items, want.DownwardAPI.Items)
	case want.Image != nil:
		return apiequality.Semantic.DeepEqual(have.Image, want.Image)
	case want.Projected != nil:
		return apiequality.Semantic.DeepEqual(have.Projected, want.Projected)
	}
	return apiequality.Semantic.DeepEqual(onDisk(have.EmptyDir), onDisk(want.EmptyDir))
}

// onDisk returns an in-memory volume source as if it were on disk. The correct medium may
// change between two calls of the webhook, together with the limits of the pod.
func onDisk(source *corev1.EmptyDirVolumeSource) *corev1.EmptyDirVolumeSource {
	if source == nil || source.Medium != corev1.StorageMediumMemory {
		return source
	}
	source = source.DeepCopy()
	source.Medium = corev1.StorageMediumDefault
	return source
}

// sameFiles reports whether a volume exposes the same fields of a pod in the same files.
func sameFiles(have, want []corev1.DownwardAPIVolumeFile) bool {
	if len(have) != len(want) {
		return false
	}
	for _, w := range want {
		shown := slices.ContainsFunc(have, func(h corev1.DownwardAPIVolumeFile) bool {
			return h.Path == w.Path && h.FieldRef != nil && h.FieldRef.FieldPath == w.FieldRef.FieldPath
		})
		if !shown {
			return false
		}
	}
	return true
}

// gateVolume returns the volume with the gate in a gate mode: the image if the pod can mount it, and
// otherwise an emptyDir into which it is copied. A pod that got one in an earlier call keeps it. The
// script is always copied.
func gateVolume(pod *corev1.Pod, mode v1.GateMode, around Surroundings) corev1.Volume {
	at := HomeOf(mode)
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == at.volume })
	switch {
	case i >= 0 && isOurs(pod, &pod.Spec.Volumes[i], mode):
		return pod.Spec.Volumes[i]
	case i < 0 && around.ImageVolumes && mode != v1.GateScript:
		return at.ImageVolume(around.Image)
	}
	return at.EmptyVolume(mediumFor(pod, at.small))
}

// isOurs reports whether an earlier call has added the volume with the gate. Other webhooks may have replaced
// the registry of its image, or removed its source, if they do not support image volumes. Then it is an emptyDir
// without a limit.
func isOurs(pod *corev1.Pod, gate *corev1.Volume, mode v1.GateMode) bool {
	if pod.Annotations[v1.AnnotationManaged] != v1.True {
		return false
	}
	mounted := gate.Image != nil && mode != v1.GateScript
	return mounted || gate.EmptyDir != nil
}

// isOnDisk reports whether a volume is an emptyDir on the node's disk.
func isOnDisk(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}
