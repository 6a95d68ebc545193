package children

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// TooManyContainers returns the error about a pod with too many containers.
func TooManyContainers(count int) *field.Error {
	return field.Forbidden(field.NewPath("spec", "containers"), fmt.Sprintf(
		"%d containers, including the init containers, exceed the max of %d; split the pod, or give it labels that the StatefulSingleton does not select", count, spec.MaxContainers))
}

// refusals returns why a pod cannot get the gate, each error with its remedy.
func refusals(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode, volumes []corev1.Volume) field.ErrorList {
	podSpec := field.NewPath("spec")
	if count := theirs(pod.Spec.Containers) + theirs(pod.Spec.InitContainers); count > spec.MaxContainers {
		return field.ErrorList{TooManyContainers(count)}
	}
	if os := pod.Spec.OS; os != nil && os.Name == corev1.Windows {
		return field.ErrorList{field.NotSupported(podSpec.Child("os", "name"), os.Name, []corev1.OSName{corev1.Linux})}
	}
	errs := append(clashes(pod, volumes, podSpec), trespasses(pod, s, mode, podSpec)...)
	if mode == v1.GateInit {
		return errs
	}
	if mode == gateLease {
		if own := leaseRefusals(pod, s, podSpec); len(own) > 0 {
			return append(errs, own...)
		}
	}
	fixed := readOnlyVolumes(pod)
	for i := range pod.Spec.Containers {
		if c, at := &pod.Spec.Containers[i], podSpec.Child("containers").Index(i); isProgram(c, s) {
			if mode == gateLease {
				errs = append(errs, leaseObstacles(c, at, s)...)
			}
			errs = append(errs, obstacles(c, at, mode)...)
			errs = append(errs, mountClashes(c, fixed, mode, at)...)
		}
	}
	return errs
}

// Lacking returns the names in spec.containers of the object that no container of the pod has.
func Lacking(pod *corev1.Pod, s *v1.StatefulSingleton) []string {
	if s.Spec.GateMode == v1.GateInit {
		return nil // which ignores spec.containers
	}
	return slices.DeleteFunc(slices.Clone(s.Spec.Containers), func(name string) bool {
		return slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name && !isSidecar(c) })
	})
}

// obstacles returns why a program cannot wait in its container. Mode Init avoids all of
// them.
func obstacles(c *corev1.Container, at *field.Path, mode v1.GateMode) field.ErrorList {
	if IsHeld(c) {
		return nil
	}
	setting, remedy := "gate", "set spec.gateMode of the StatefulSingleton to Auto or Init"
	if mode == gateLease {
		setting, remedy = "fencing", noLeaseRemedy
	}
	var errs field.ErrorList
	if len(c.Command) == 0 {
		errs = append(errs, field.Required(at.Child("command"), fmt.Sprintf(
			"%s mode %s runs the command of the container, and the entrypoint of the image is unknown; set the command, or "+remedy+
				", or list the containers of the program in its spec.containers if this is not one", setting, mode)))
	}
	if c.StartupProbe != nil && !isOurProbe(c.StartupProbe) {
		errs = append(errs, field.Forbidden(at.Child("startupProbe"), "it would fail and stop the container while the program waits; "+remedy))
	}
	if c.Lifecycle != nil && c.Lifecycle.PostStart != nil {
		errs = append(errs, field.Forbidden(at.Child("lifecycle", "postStart"), "it would run while the program waits, and stop the container if it fails; "+remedy))
	}
	if c.LivenessProbe != nil && c.LivenessProbe.InitialDelaySeconds > 0 {
		errs = append(errs, field.Forbidden(at.Child("livenessProbe", "initialDelaySeconds"), "it begins with the start of the container, and would be over when the program starts; "+remedy))
	}
	return errs
}

// trespasses returns an error for each mount of our volumes by a container that may not
// mount them, or in a different way than ours. A client that can write to the gate's
// volume, or mounts another folder as the signal, could start a program without a grant.
func trespasses(pod *corev1.Pod, s *v1.StatefulSingleton, mode v1.GateMode, podSpec *field.Path) field.ErrorList {
	ours := sets.New[string]()
	for _, m := range mountsOf(mode) {
		ours.Insert(m.Name)
	}
	mayMount := func(c *corev1.Container) bool { return IsOurs(c) || isProgram(c, s) }
	errs := append(trespassesOf(pod.Spec.Containers, podSpec.Child("containers"), ours, mayMount),
		trespassesOf(pod.Spec.InitContainers, podSpec.Child("initContainers"), ours, IsOurs)...)
	return errs[:min(len(errs), spec.MaxFaults)]
}

// trespassesOf returns the errors of trespasses for a list of containers.
func trespassesOf(list []corev1.Container, at *field.Path, ours sets.Set[string], mayMount func(*corev1.Container) bool) field.ErrorList {
	var errs field.ErrorList
	for i := range list {
		c := &list[i]
		for j := range c.VolumeMounts {
			m := &c.VolumeMounts[j]
			if !ours.Has(m.Name) || len(errs) >= spec.MaxFaults {
				continue
			}
			if mayMount(c) && isOurMount(c, m) {
				continue
			}
			errs = append(errs, field.Forbidden(at.Index(i).Child("volumeMounts").Index(j).Child("name"),
				fmt.Sprintf("volume %s belongs to the operator, which holds back programs with it; mount another volume", m.Name)))
		}
	}
	return errs
}

// isOurMount reports whether one of our volumes is mounted the way we mount it. The guard
// makes the same check.
func isOurMount(c *corev1.Container, m *corev1.VolumeMount) bool {
	places := map[string]string{v1.VolumeSignal: v1.PathSignal, v1.VolumeGate: v1.PathGate, v1.VolumeScripts: v1.PathScripts, v1.VolumeFencing: v1.PathFencing}
	if m.MountPath != places[m.Name] || m.SubPath != "" || m.SubPathExpr != "" {
		return false
	}
	switch {
	case m.ReadOnly, m.Name == v1.VolumeSignal: // which no container can write
		return true
	}
	return c.Name == v1.ContainerInstall
}

// intact reports whether all mounts of our volumes are the ones that we make. The volume of
// the gate follows from the container that installs it. An image volume is not checked,
// because nothing can write to it.
func intact(pod *corev1.Pod) bool {
	ours := sets.New(v1.VolumeSignal)
	for _, mode := range homes {
		if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return isInstallOf(&c, mode) }) {
			ours.Insert(HomeOf(mode).volume)
		}
	}
	if slices.ContainsFunc(pod.Spec.Volumes, isFencing) {
		ours.Insert(v1.VolumeFencing)
	}
	return !slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return ours.Has(m.Name) && !isOurMount(&c, &m) })
	})
}

// mountClashes returns an error for each mount of a program's container that would hide
// ours, or below which ours cannot be created.
func mountClashes(c *corev1.Container, fixed sets.Set[string], mode v1.GateMode, at *field.Path) field.ErrorList {
	remedy := "set spec.gateMode of the StatefulSingleton to Init"
	if mode == gateLease {
		remedy = noLeaseRemedy
	}
	var errs field.ErrorList
	for i := range c.VolumeMounts {
		if len(errs) >= spec.MaxFaults {
			break
		}
		for _, ours := range mountsOf(mode) {
			m := &c.VolumeMounts[i]
			if why := mountClash(m, ours.MountPath, fixed, mode); why != "" {
				errs = append(errs, field.Invalid(at.Child("volumeMounts").Index(i).Child("mountPath"), m.MountPath,
					why+"; mount yours elsewhere, or "+remedy))
			}
		}
	}
	return errs
}

// mountClash returns why a mount conflicts with ours; "" if it does not.
func mountClash(m *corev1.VolumeMount, ours string, fixed sets.Set[string], mode v1.GateMode) string {
	theirs := realPath(m.MountPath)
	switch {
	case m.MountPath == ours && slices.ContainsFunc(mountsOf(mode), func(our corev1.VolumeMount) bool { return our.Name == m.Name }):
		return ""
	case isBelow(theirs, ours):
		return "the operator mounts its own volume at " + ours
	case isBelow(ours, theirs) && (m.ReadOnly || fixed.Has(m.Name)):
		return "it is read-only, and the operator has to mount its own volume below it at " + ours
	}
	return ""
}

// isBelow reports whether a path is the folder or inside it.
func isBelow(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// readOnlyVolumes returns the names of the pod's volumes in which nothing can be created.
func readOnlyVolumes(pod *corev1.Pod) sets.Set[string] {
	fixed := sets.New[string]()
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; isReadOnly(v) {
			fixed.Insert(v.Name)
		}
	}
	return fixed
}

// isReadOnly reports whether nothing can be created in a volume.
func isReadOnly(v *corev1.Volume) bool {
	switch {
	case v.ConfigMap != nil, v.Secret != nil, v.Projected != nil, v.DownwardAPI != nil, v.Image != nil:
		return true
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ReadOnly
	}
	return false
}

// realPath returns a clean path in a container, with /run as /var/run: most images link the
// two.
func realPath(p string) string {
	p = path.Clean(p)
	if p == "/run" || strings.HasPrefix(p, "/run/") {
		return "/var" + p
	}
	return p
}

// clashes returns an error for each of our names that the pod uses for something else.
// Otherwise a volume that another client fills could be taken for the grant.
func clashes(pod *corev1.Pod, volumes []corev1.Volume, podSpec *field.Path) field.ErrorList {
	const remedy = "the operator adds its own to the pod; choose another name"
	var errs field.ErrorList
	for i := range pod.Spec.Volumes {
		if len(errs) >= spec.MaxFaults {
			break
		}
		for j := range volumes {
			if v := &pod.Spec.Volumes[i]; v.Name == volumes[j].Name && !Same(v, &volumes[j]) {
				errs = append(errs, field.Invalid(podSpec.Child("volumes").Index(i).Child("name"), v.Name, remedy))
			}
		}
	}
	errs = append(errs, nameClashes(pod.Spec.InitContainers, podSpec.Child("initContainers"), remedy)...)
	return append(errs, nameClashes(pod.Spec.Containers, podSpec.Child("containers"), remedy)...)
}

// nameClashes returns an error for each container that has one of our names and is not ours.
func nameClashes(containers []corev1.Container, at *field.Path, remedy string) field.ErrorList {
	var errs field.ErrorList
	for i := range containers {
		if c := &containers[i]; reserved(c.Name) && !IsOurs(c) {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), c.Name, remedy))
		}
	}
	return errs
}

// theirs returns the number of containers that are not the operator's.
func theirs(containers []corev1.Container) (count int) {
	for i := range containers {
		if !IsOurs(&containers[i]) {
			count++
		}
	}
	return count
}

// reserved reports whether a container name is one of ours.
func reserved(name string) bool {
	switch name {
	case v1.ContainerInstall, v1.ContainerWait, v1.ContainerSidecar:
		return true
	}
	return strings.HasPrefix(name, v1.ContainerImagePrefix)
}
