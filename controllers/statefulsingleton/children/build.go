package children

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
)

// GrantOf returns the annotation value that lets the pod with that UID start its program.
func GrantOf(uid types.UID, epoch int64) string { return fmt.Sprintf("%s %d", uid, epoch) }

// BuildWrapper builds the ConfigMap with the script of Script mode, for users to read. The
// StatefulSingletons of a namespace share it and all own it, so the garbage collector
// deletes it with the last one. New pods do not mount it: otherwise anyone with write
// access to ConfigMaps could choose the first command of other users' pods.
func BuildWrapper(namespace, script string, owners []v1.StatefulSingleton) *corev1.ConfigMap {
	wrapper := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapWrapper, Namespace: namespace, Labels: ownLabels()},
		Data:       map[string]string{v1.FileScript: script},
	}
	for i := range owners {
		wrapper.OwnerReferences = append(wrapper.OwnerReferences, metav1.OwnerReference{
			APIVersion: v1.GroupVersion.String(), Kind: "StatefulSingleton", Name: owners[i].Name, UID: owners[i].UID})
	}
	slices.SortFunc(wrapper.OwnerReferences, func(a, b metav1.OwnerReference) int { return strings.Compare(a.Name, b.Name) })
	return wrapper
}

// ownLabels returns the labels on all objects that the operator creates.
func ownLabels() map[string]string {
	return map[string]string{v1.LabelPartOf: v1.PartOf, v1.LabelManagedBy: v1.ManagedBy}
}

// BudgetName returns the name of the PodDisruptionBudget of an object. Budgets of the other
// kinds have no dot in this position.
func BudgetName(object string) string { return object + ".singleton" }

// BuildBudget builds the PodDisruptionBudget that protects the holder, the only Ready pod
// of the object. Pods that are not Ready may be evicted, because their program does not run
// or serves no requests.
func BuildBudget(s *v1.StatefulSingleton) *policyv1.PodDisruptionBudget {
	of := map[string]string{v1.LabelSingleton: s.Name}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: BudgetName(s.Name), Namespace: s.Namespace, Labels: Merged(ownLabels(), of),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1.GroupVersion.WithKind("StatefulSingleton"))}},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               ptr.To(intstr.FromInt32(1)),
			Selector:                   &metav1.LabelSelector{MatchLabels: of},
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// SignalVolume returns the volume through which the gate reads the grant: the kubelet writes the
// pod's annotation and UID into its files.
func SignalVolume() corev1.Volume {
	return corev1.Volume{Name: v1.VolumeSignal, VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{podField(v1.FileSignal, grantField), podField(v1.FilePodUID, uidField)},
	}}}
}

// podField returns a file with a field of the pod.
func podField(path, fieldPath string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: path, FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: fieldPath}}
}

const (
	grantField = "metadata.annotations['" + v1.AnnotationGrant + "']"
	uidField   = "metadata.uid"
)

// home is the location of the gate in a pod.
type home struct {
	volume, path string
	source       string            // of the gate in the operator's image
	limit        string            // of the emptyDir
	small        resource.Quantity // the ephemeral storage limit below which its size matters
}

// HomeOf returns the location of the script in Script mode, that of the agent with fencing by a
// Lease, else that of the static gate.
func HomeOf(mode v1.GateMode) home {
	switch mode {
	case v1.GateScript:
		return home{v1.VolumeScripts, v1.PathScripts, v1.GateInImage, "16Mi", smallStorage}
	case gateLease:
		return home{v1.VolumeGate, v1.PathGate, v1.AgentInImage, "64Mi", smallForAgent}
	}
	return home{v1.VolumeGate, v1.PathGate, v1.GateInImage, "16Mi", smallStorage}
}

// EmptyVolume returns the volume of the gate, on disk or in memory. In memory it counts
// towards the pod's memory.
func (h home) EmptyVolume(medium corev1.StorageMedium) corev1.Volume {
	return corev1.Volume{Name: h.volume, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium, SizeLimit: ptr.To(resource.MustParse(h.limit))}}}
}

// ImageVolume returns the volume of the gate as a mount of the image with it.
func (h home) ImageVolume(image string) corev1.Volume {
	return corev1.Volume{Name: h.volume, VolumeSource: corev1.VolumeSource{
		Image: &corev1.ImageVolumeSource{Reference: image}}}
}

// mediumFor returns the medium of the gate's volume. Files on disk count towards the
// ephemeral storage limits of the pod's containers. The kubelet evicts a pod that exceeds
// their sum, and its replacements too. If their sum is small, the volume is in memory.
func mediumFor(pod *corev1.Pod, small resource.Quantity) corev1.StorageMedium {
	sum, limited := resource.Quantity{}, false
	for i := range pod.Spec.Containers {
		if limit, ok := pod.Spec.Containers[i].Resources.Limits[corev1.ResourceEphemeralStorage]; ok {
			sum.Add(limit)
			limited = true
		}
	}
	if limited && sum.Cmp(small) < 0 {
		return corev1.StorageMediumMemory
	}
	return corev1.StorageMediumDefault
}

// smallStorage is the ephemeral storage limit below which the 1.7 MB of the gate matter.
var smallStorage = resource.MustParse("64Mi")

// smallForAgent is the same for the 17 MB of the agent.
var smallForAgent = resource.MustParse("256Mi")

// mount returns the mount of the gate.
func (h home) mount() corev1.VolumeMount { return mounted(h.volume, h.path) }

// installCommand returns the command that copies the gate there.
func (h home) installCommand() []string { return []string{h.source, "install", h.path} }

// mounted returns a read-only mount of a volume.
func mounted(volume, path string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true}
}

// The containers. They set no user: the operator's image defines one, and OpenShift assigns
// each namespace its own range.

var (
	binaryGate   = []string{v1.GateInPod, "run", "--"}
	scriptGate   = []string{v1.ScriptInPod}
	waitCommand  = []string{v1.GateInImage, "wait"}
	idleCommand  = []string{v1.GateInImage, "idle"}
	touchCommand = []string{v1.GateInPod, "touch"}
)

// installContainer copies the gate into the volume from which the pod's containers run it.
func installContainer(pod *corev1.Pod, at home, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerInstall, image, at.installCommand())
	c.VolumeMounts = []corev1.VolumeMount{{Name: at.volume, MountPath: at.path}}
	c.Resources = likeProgram(pod)
	return c
}

// waitContainer exits when the pod is granted.
func waitContainer(pod *corev1.Pod, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerWait, image, waitCommand)
	c.VolumeMounts = []corev1.VolumeMount{mounted(v1.VolumeSignal, v1.PathSignal)}
	c.Resources = likeProgram(pod)
	return c
}

// SidecarContainer reports the state of the pod.
func SidecarContainer(pod *corev1.Pod, image string) corev1.Container {
	c := gateContainer(pod, v1.ContainerSidecar, image, idleCommand)
	c.VolumeMounts = []corev1.VolumeMount{mounted(v1.VolumeSignal, v1.PathSignal)}
	c.Resources = corev1.ResourceRequirements{Requests: cpuAndMemory("10m", "32Mi"), Limits: cpuAndMemory("20m", "64Mi")}
	if guaranteed(pod) { // keep the QoS class
		c.Resources.Limits = cpuAndMemory("10m", "32Mi")
	}
	return c
}

// imageContainer pulls the image of a container onto the pod's node. It runs as the same
// user as that container, because the image may require it, and because the namespace
// allows that user.
func imageContainer(like *corev1.Container, name string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: like.Image, ImagePullPolicy: like.ImagePullPolicy,
		Command:         touchCommand,
		VolumeMounts:    []corev1.VolumeMount{HomeOf(v1.GateInit).mount()},
		Resources:       cpuAndMemoryOf(like),
		SecurityContext: Restricted(),
	}
	if own := like.SecurityContext; own != nil {
		c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup = own.RunAsUser, own.RunAsGroup
		c.SecurityContext.RunAsNonRoot = own.RunAsNonRoot
		c.SecurityContext.SELinuxOptions = own.SELinuxOptions
	}
	return c
}

// gateContainer runs the gate from the operator's image, whose user is not root. If the pod
// sets its user to root, the gate runs as root too.
func gateContainer(pod *corev1.Pod, name, image string, command []string) corev1.Container {
	c := corev1.Container{Name: name, Image: image, Command: command, SecurityContext: Restricted()}
	if own := pod.Spec.SecurityContext; own == nil || ptr.Deref(own.RunAsUser, 1) != 0 {
		c.SecurityContext.RunAsNonRoot = ptr.To(true)
	}
	return c
}

// Restricted returns the security context required by the Pod Security Standard
// "restricted", except for the user.
func Restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false),
		ReadOnlyRootFilesystem:   ptr.To(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// likeProgram gives an init container the resources of the pod's first container. This
// costs nothing, because init containers run before that container. It keeps the pod's QoS
// class, satisfies a LimitRange, and does not slow the gate down by a limit that the
// program does not have.
func likeProgram(pod *corev1.Pod) corev1.ResourceRequirements {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; !IsOurs(c) {
			return cpuAndMemoryOf(c)
		}
	}
	return corev1.ResourceRequirements{}
}

// cpuAndMemoryOf returns the CPU and memory of a container, without its other resources.
func cpuAndMemoryOf(c *corev1.Container) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: onlyCPUAndMemory(c.Resources.Requests), Limits: onlyCPUAndMemory(c.Resources.Limits)}
}

func onlyCPUAndMemory(list corev1.ResourceList) corev1.ResourceList {
	var only corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if quantity, ok := list[name]; ok {
			if only == nil {
				only = corev1.ResourceList{}
			}
			only[name] = quantity.DeepCopy()
		}
	}
	return only
}

func cpuAndMemory(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// guaranteed reports whether all containers of the pod except ours have CPU and memory
// limits equal to their requests, which is QoS class Guaranteed.
func guaranteed(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if c := &list[i]; !IsOurs(c) && !isGuaranteed(c) {
				return false
			}
		}
	}
	return true
}

func isGuaranteed(c *corev1.Container) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := c.Resources.Limits[name]
		request, requested := c.Resources.Requests[name]
		if !requested { // defaults to the limit
			request = limit
		}
		if !limited || request.Cmp(limit) != 0 {
			return false
		}
	}
	return true
}

// startupProbe keeps the kubelet from probing a waiting program: other probes begin after
// this one has succeeded, which is after the grant.
func startupProbe(command []string) *corev1.Probe {
	const always = 1<<31 - 1
	return &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: command}},
		PeriodSeconds:  1,
		TimeoutSeconds: 10,
		// A pod may wait for the whole lifetime of its predecessor.
		FailureThreshold: always,
	}
}

var (
	binaryProbe = []string{v1.GateInPod, "status"}
	scriptProbe = []string{"/bin/sh", "-c", `read -r uid epoch <` + v1.PathSignal + `/` + v1.FileSignal +
		`; read -r pod <` + v1.PathSignal + `/` + v1.FilePodUID + `; [ -n "$uid" ] && [ "$uid" = "$pod" ]`}
)

// The guard: checks by the API server that work without the operator. The policy is
// evaluated once for each StatefulSingleton in the pod's namespace. Every optional field is
// tested with has(): an object that fails the evaluation would block every pod of its
// namespace. HasGate is the same check as variable hasGate, isOurMount as mountsCEL, and
// spec.Selects as matchesCEL.

// guardVariables are the variables of the policy. They are evaluated on first use.
var guardVariables = []admissionv1.Variable{
	{Name: "labels", Expression: `has(object.metadata.labels) ? object.metadata.labels : {}`},
	{Name: "oldLabels", Expression: `oldObject != null && has(oldObject.metadata.labels) ? oldObject.metadata.labels : {}`},
	{Name: "wanted", Expression: `has(params.spec) && has(params.spec.selector) && has(params.spec.selector.matchLabels) ? params.spec.selector.matchLabels : {}`},
	{Name: "asked", Expression: `has(params.spec) && has(params.spec.selector) && has(params.spec.selector.matchExpressions) ? params.spec.selector.matchExpressions : []`},
	{Name: "matches", Expression: matchesCEL("variables.labels")},
	{Name: "matched", Expression: matchesCEL("variables.oldLabels")},
	{Name: "released", Expression: `has(params.metadata.deletionTimestamp) && !(has(params.metadata.finalizers) && ` + quoted(v1.FinalizerSingleton) + ` in params.metadata.finalizers)`},
	{Name: "grant", Expression: policy.AnnotationCEL("object", v1.AnnotationGrant)},
	{Name: "oldGrant", Expression: policy.AnnotationCEL("oldObject", v1.AnnotationGrant)},
	{Name: "maker", Expression: policy.AnnotationCEL("object", v1.AnnotationSingletonUID)},
	{Name: "oldMaker", Expression: policy.AnnotationCEL("oldObject", v1.AnnotationSingletonUID)},
	{Name: "named", Expression: labelCEL("variables.labels", v1.LabelSingleton)},
	{Name: "wasNamed", Expression: labelCEL("variables.oldLabels", v1.LabelSingleton)},
	{Name: "mirror", Expression: policy.AnnotationCEL("object", corev1.MirrorPodAnnotationKey) + ` != ""`},
	{Name: "ended", Expression: `has(oldObject.status) && has(oldObject.status.phase) && oldObject.status.phase in ["Succeeded", "Failed"] && ` +
		`!(has(oldObject.metadata.finalizers) && ` + quoted(v1.FinalizerPod) + ` in oldObject.metadata.finalizers)`},
	{Name: "signal", Expression: `has(object.spec.volumes) && object.spec.volumes.exists(v, v.name == ` + quoted(v1.VolumeSignal) +
		` && has(v.downwardAPI) && has(v.downwardAPI.items) && size(v.downwardAPI.items) == 2 && ` + fileCEL(v1.FileSignal, grantField) + ` && ` + fileCEL(v1.FilePodUID, uidField) + `)`},
	{Name: "waits", Expression: `has(object.spec.initContainers) && object.spec.initContainers.exists(c, ` + isContainerCEL(v1.ContainerWait, waitCommand) + `)`},
	{Name: "inits", Expression: `has(object.spec.initContainers) ? object.spec.initContainers : []`},
	{Name: "fencing", Expression: `has(object.spec.volumes) && object.spec.volumes.exists(v, ` + fencingCEL() + `)`},
	{Name: "ours", Expression: `["` + v1.VolumeSignal + `"] + (variables.fencing ? ["` + v1.VolumeFencing + `"] : [])` +
		installedCEL(v1.GateBinary) + installedCEL(v1.GateScript) + installedCEL(gateLease)},
	{Name: "intact", Expression: `variables.inits.all(c, ` + mountsCEL + `) && object.spec.containers.all(c, ` + mountsCEL + `)`},
	{Name: "script", Expression: `has(object.spec.volumes) && object.spec.volumes.exists(v, v.name == ` + quoted(v1.VolumeScripts) + ` && has(v.emptyDir))`},
	{Name: "held", Expression: `object.spec.containers.filter(c, has(c.command) && (` +
		`size(c.command) > 3 && c.command[0] == ` + quoted(v1.GateInPod) + ` && c.command[1] == "run" && c.command[2] == "--" || ` +
		`size(c.command) > 1 && c.command[0] == ` + quoted(v1.ScriptInPod) + ` && variables.script)).map(c, c.name)`},
	{Name: "leased", Expression: `object.spec.containers.filter(c, ` + leasedCEL() + `).map(c, c.name)`},
	{Name: "program", Expression: `has(params.spec) && has(params.spec.containers) && size(params.spec.containers) > 0 ? params.spec.containers : ` +
		`object.spec.containers.filter(c, !(` + isContainerCEL(v1.ContainerSidecar, idleCommand) + `)).map(c, c.name)`},
	{Name: "hasGate", Expression: `variables.signal && variables.intact && (variables.waits || variables.program.all(n, n in variables.held) || ` +
		`variables.fencing && size(variables.program) == 1 && variables.program[0] in variables.leased)`},
}

// installedCEL returns the CEL expression that adds the volume of the gate of a mode to a list, if the
// pod has the container that installs it.
func installedCEL(mode v1.GateMode) string {
	at := HomeOf(mode)
	return ` + variables.inits.filter(c, ` + isContainerCEL(v1.ContainerInstall, at.installCommand()) + `).map(c, "` + at.volume + `")`
}

// mountsCEL is isOurMount in CEL, for all mounts of a container.
const mountsCEL = `!has(c.volumeMounts) || c.volumeMounts.all(m, !(m.name in variables.ours) || ` +
	`m.mountPath == {"` + v1.VolumeSignal + `": "` + v1.PathSignal + `", "` + v1.VolumeGate + `": "` + v1.PathGate + `", "` + v1.VolumeScripts + `": "` + v1.PathScripts + `", "` + v1.VolumeFencing + `": "` + v1.PathFencing + `"}[m.name] && ` +
	`(has(m.readOnly) && m.readOnly || c.name == "` + v1.ContainerInstall + `" || m.name == "` + v1.VolumeSignal + `") && ` +
	`(!has(m.subPath) || m.subPath == "") && (!has(m.subPathExpr) || m.subPathExpr == ""))`

// matchesCEL returns labels.Selector in CEL.
func matchesCEL(have string) string {
	hasOne := `e.key in ` + have + ` && ` + have + `[e.key] in e.values`
	return strings.NewReplacer("\n", " ", "\t", "", "HAVE", have, "ONE", hasOne).Replace(
		`size(variables.wanted) + size(variables.asked) > 0 &&
		variables.wanted.all(k, k in HAVE && HAVE[k] == variables.wanted[k]) &&
		variables.asked.all(e, has(e.values) && size(e.values) > 0 ?
			e.operator == "In" && ONE || e.operator == "NotIn" && !(ONE) :
			e.operator == "Exists" && e.key in HAVE || e.operator == "DoesNotExist" && !(e.key in HAVE))`)
}

// labelCEL returns the CEL expression of a label's value, or "".
func labelCEL(labels, name string) string {
	return fmt.Sprintf(`(%[2]q in %[1]s ? %[1]s[%[2]q] : "")`, labels, name)
}

// fileCEL returns the CEL expression that volume v exposes a field of the pod in a file.
func fileCEL(path, fieldPath string) string {
	return fmt.Sprintf(`v.downwardAPI.items.exists(i, i.path == %q && has(i.fieldRef) && i.fieldRef.fieldPath == %q)`, path, fieldPath)
}

// isContainerCEL is is in CEL, for container c.
func isContainerCEL(name string, command []string) string {
	return fmt.Sprintf(`c.name == %q && has(c.command) && c.command == ["%s"] && !has(c.args)`, name, strings.Join(command, `", "`))
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// guardName returns the name of the policy. It contains the operator's namespace, so that
// two operators in one cluster do not overwrite each other's policy.
func guardName(namespace string) string { return "statefulsingleton-guard-" + namespace }

// BuildGuard builds the policy, and the binding that limits it to the watched namespaces;
// an empty list means all. Defaults are set explicitly, so that the stored objects can be
// compared with these.
func BuildGuard(namespace string, watched []string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	meta := metav1.ObjectMeta{Name: guardName(namespace), Labels: ownLabels()}
	made := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		ParamKind:     &admissionv1.ParamKind{APIVersion: v1.GroupVersion.String(), Kind: "StatefulSingleton"},
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
					Scope: ptr.To(admissionv1.AllScopes)},
			}}},
			// The policy needs the selector too: the API server denies requests that it
			// cannot evaluate before it looks at the binding.
			NamespaceSelector: policy.Namespaces(namespace, watched), ObjectSelector: &metav1.LabelSelector{}, MatchPolicy: ptr.To(admissionv1.Equivalent),
		},
		Variables:   guardVariables,
		Validations: guardValidations(namespace),
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: *meta.DeepCopy(), Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: made.Name,
		// Select all StatefulSingletons in the pod's namespace. If there are none, nothing
		// is checked.
		ParamRef: &admissionv1.ParamRef{Selector: &metav1.LabelSelector{},
			ParameterNotFoundAction: ptr.To(admissionv1.AllowAction)},
		ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
	policy.Limit(binding, namespace, watched)
	return made, binding
}

// isOperatorCEL is the CEL expression that the requester may update the status of StatefulSingletons.
var isOperatorCEL = `authorizer.group(` + quoted(v1.GroupVersion.Group) + `).resource("statefulsingletons").subresource("status").namespace(request.namespace).check("update").allowed()`

// guardValidations returns the validations of the policy, with their messages.
func guardValidations(namespace string) []admissionv1.Validation {
	message := func(text string) string { return `"StatefulSingleton " + params.metadata.name + ` + quoted(" "+text) }
	withoutGate := "selects this pod, but the pod was created without the gate that holds back its program: " +
		"the operator did not respond, or the StatefulSingleton has just been created. The pod is refused because two programs could run otherwise. " +
		"Its owner will retry; if that does not help, check whether the operator is running: kubectl -n " + namespace + " get pods"
	relabelled := "selects by these labels: this change would add a pod that may be running to its selection, or remove one, " +
		"so that two programs could run. Delete the pod instead, or change the labels in its template"
	granted := "starts one pod at a time: only the operator may change annotation " + v1.AnnotationGrant + ", which starts the program"
	remade := "selects this pod: annotation " + v1.AnnotationSingletonUID + " is immutable, because it records the StatefulSingleton under which the pod was created"
	named := "waits for all pods with label " + v1.LabelSingleton + " and its name, and its PodDisruptionBudget selects them; only pods that it selects and that have the gate may have this label. Remove the label"
	return []admissionv1.Validation{
		{Expression: `request.operation != "CREATE" || !variables.matches || variables.released || variables.mirror || variables.hasGate`,
			Message: "a StatefulSingleton " + withoutGate, MessageExpression: message(withoutGate), Reason: ptr.To(metav1.StatusReasonForbidden)},
		{Expression: `request.operation != "UPDATE" || variables.matches == variables.matched || variables.ended`,
			Message: "a StatefulSingleton " + relabelled, MessageExpression: message(relabelled), Reason: ptr.To(metav1.StatusReasonForbidden)},
		{Expression: `request.operation != "UPDATE" || variables.grant == variables.oldGrant || ` + isOperatorCEL,
			Message: "a StatefulSingleton " + granted, MessageExpression: message(granted), Reason: ptr.To(metav1.StatusReasonForbidden)},
		{Expression: `request.operation != "UPDATE" || !variables.matches || variables.maker == variables.oldMaker`,
			Message: "a StatefulSingleton " + remade, MessageExpression: message(remade), Reason: ptr.To(metav1.StatusReasonForbidden)},
		{Expression: `variables.named != params.metadata.name || request.operation == "UPDATE" && variables.named == variables.wasNamed || ` +
			`variables.matches && variables.hasGate || ` + isOperatorCEL,
			Message: "a StatefulSingleton " + named, MessageExpression: message(named), Reason: ptr.To(metav1.StatusReasonForbidden)},
	}
}

// Merged returns want, with the other keys of have.
func Merged(have, want map[string]string) map[string]string {
	all := maps.Clone(want)
	for key, value := range have {
		if _, ours := all[key]; !ours {
			all[key] = value
		}
	}
	return all
}

// OnOneNode reports whether only one node at a time can mount a claim.
func OnOneNode(claim *corev1.PersistentVolumeClaim) bool {
	for _, mode := range claim.Spec.AccessModes {
		if mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany {
			return false
		}
	}
	return true
}
