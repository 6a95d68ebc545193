package statefulsingleton_test

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// admitted returns a new pod after admission by the API server.
func admitted(ctx context.Context, p *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	p = p.DeepCopy()
	Expect(user.Create(ctx, p, client.DryRunAll)).To(Succeed())
	return p
}

// asWritten returns a pod without the fields that the API server sets on every pod.
func asWritten(p *corev1.Pod) string {
	GinkgoHelper()
	p = p.DeepCopy()
	p.UID, p.CreationTimestamp, p.ManagedFields, p.Namespace = "", metav1.Time{}, nil, ""
	text, err := json.Marshal(p)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func containerNames(containers []corev1.Container) []string {
	var names []string
	for i := range containers {
		names = append(names, containers[i].Name)
	}
	return names
}

func volumeNames(p *corev1.Pod) []string {
	var names []string
	for i := range p.Spec.Volumes {
		names = append(names, p.Spec.Volumes[i].Name)
	}
	return names
}

// quoting is a command that a shell would change.
var quoting = []string{"serve", "two words", `"quoted"`, "$(id)", "a,b]", "x;y", "line\nbreak", ""}

var _ = Describe("the gate in a new pod", func() {
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	every := func(p *corev1.Pod) {
		GinkgoHelper()
		Expect(p.Spec.ReadinessGates).To(Equal([]corev1.PodReadinessGate{{ConditionType: "apps.statefulsingleton.com/singleton-ready"}}))
		Expect(p.Labels).To(And(HaveKeyWithValue("apps.statefulsingleton.com/managed", "true"), HaveKeyWithValue("apps.statefulsingleton.com/singleton", "db")))
		Expect(p.Annotations).To(HaveKeyWithValue("apps.statefulsingleton.com/statefulsingleton-managed", "true"))
		apart := p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		Expect(apart).To(HaveLen(1))
		Expect(apart[0].Weight).To(BeEquivalentTo(100))
		Expect(apart[0].PodAffinityTerm.TopologyKey).To(Equal("kubernetes.io/hostname"))
		Expect(apart[0].PodAffinityTerm.LabelSelector.MatchLabels).To(Equal(map[string]string{"apps.statefulsingleton.com/singleton": "db"}))
	}

	It("S3 S18 is Binary for a program with a command, which follows the gate unchanged", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		p := admitted(ctx, newPod(ns, "a", func(p *corev1.Pod) {
			p.Spec.Containers[0].Command, p.Spec.Containers[0].Args = quoting, []string{"-g", "daemon off;"}
		}))
		every(p)
		Expect(volumeNames(p)).To(Equal([]string{"signal-volume", "gate-volume"}))
		Expect(containerNames(p.Spec.InitContainers)).To(Equal([]string{"gate-install"}))
		Expect(p.Spec.InitContainers[0].Image).To(Equal("image"))
		Expect(containerNames(p.Spec.Containers)).To(Equal([]string{"app"}))
		c := p.Spec.Containers[0]
		Expect(c.Command).To(Equal(append([]string{"/var/run/gate/gate", "run", "--"}, quoting...)))
		Expect(c.Args).To(Equal([]string{"-g", "daemon off;"}))
		Expect(c.VolumeMounts).To(ConsistOf(HaveField("MountPath", "/var/run/signal"), HaveField("MountPath", "/var/run/gate")))
		var original struct{ Command, Args []string }
		Expect(c.Env).To(HaveLen(1))
		Expect(c.Env[0].Name).To(Equal("ORIGINAL_ENTRYPOINT"))
		Expect(json.Unmarshal([]byte(c.Env[0].Value), &original)).To(Succeed())
		Expect(original.Args).To(Equal([]string{"-g", "daemon off;"}))
	})

	It("S3 S2 is the script from the operator's image in mode Script, with the sidecar", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns, mode(v1.GateScript)))
		p := admitted(ctx, newPod(ns, "a"))
		every(p)
		Expect(volumeNames(p)).To(Equal([]string{"signal-volume", "wrapper-scripts"}))
		Expect(p.Spec.Volumes[1].EmptyDir).NotTo(BeNil())
		Expect(p.Spec.InitContainers).To(ConsistOf(HaveField("Command", Equal([]string{"/gate", "install", "/opt/wrapper"}))))
		Expect(p.Spec.Containers[0].Command).To(Equal([]string{"/opt/wrapper/entrypoint-wrapper.sh", "serve"}))
		Expect(containerNames(p.Spec.Containers)).To(Equal([]string{"app", "status-sidecar"}))
		requests := p.Spec.Containers[1].Resources.Requests
		Expect([]string{requests.Cpu().String(), requests.Memory().String()}).To(Equal([]string{"10m", "32Mi"}))
	})

	It("S3 holds back the whole pod in mode Init, and does not change its containers", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		own := newPod(ns, "a", func(p *corev1.Pod) { // no command: Auto is Init
			p.Spec.Containers = []corev1.Container{{Name: "app", Image: "one"}}
			p.Spec.InitContainers = []corev1.Container{{Name: "prepare", Image: "two"}}
		})
		p := admitted(ctx, own)
		every(p)
		Expect(containerNames(p.Spec.InitContainers)).To(Equal([]string{"gate-install", "gate-image-1", "gate-image-2", "gate-wait", "prepare"}))
		stranger := newPod(ns, "a", func(p *corev1.Pod) { p.Labels, p.Spec.Containers = nil, own.Spec.Containers })
		Expect(p.Spec.Containers).To(Equal(admitted(ctx, stranger).Spec.Containers))
	})

	It("S3 is not added to pods that are not selected, which remain identical byte for byte", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		elsewhere := newNamespace(ctx)
		for _, labels := range []map[string]string{nil, {}, {"app": "web"}, {"App": "db"}} {
			stranger := func(ns string) string {
				return asWritten(admitted(ctx, newPod(ns, "a", func(p *corev1.Pod) { p.Labels = labels })))
			}
			Expect(stranger(ns)).To(Equal(stranger(elsewhere)))
		}
	})

	for _, m := range []v1.GateMode{v1.GateBinary, v1.GateScript, v1.GateInit} {
		It("S4 is added only once, also on a repeated admission, in mode "+string(m), func(ctx SpecContext) {
			declare(ctx, newSingleton(ns, mode(m), func(s *v1.StatefulSingleton) { s.Spec.StatusSidecar = ptr.To(true) }))
			once := admitted(ctx, newPod(ns, "a"))
			again := once.DeepCopy()
			again.UID, again.ResourceVersion, again.CreationTimestamp, again.ManagedFields = "", "", metav1.Time{}, nil
			again.Status = corev1.PodStatus{}
			Expect(asWritten(admitted(ctx, again))).To(Equal(asWritten(once)))
		})
	}

	It("S4 keeps the pod's own fields", func(ctx SpecContext) {
		declare(ctx, newSingleton(ns))
		own := newPod(ns, "a", func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/other"}}
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 7, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "zone"}}}}}
		})
		p := admitted(ctx, own)
		Expect(p.Spec.ReadinessGates[0]).To(Equal(own.Spec.ReadinessGates[0]))
		Expect(p.Spec.ReadinessGates).To(HaveLen(2))
		Expect(volumeNames(p)).To(Equal([]string{"data", "signal-volume", "gate-volume"}))
		Expect(p.Spec.Containers[0].VolumeMounts[0]).To(Equal(own.Spec.Containers[0].VolumeMounts[0]))
		terms := p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		Expect(slices.Collect(func(yield func(int32) bool) {
			for _, t := range terms {
				yield(t.Weight)
			}
		})).To(Equal([]int32{7, 100}))
	})

	DescribeTable("S4 is refused", func(ctx SpecContext, change func(*corev1.Pod), message string) {
		declare(ctx, newSingleton(ns, mode(v1.GateBinary), func(s *v1.StatefulSingleton) { s.Spec.Containers = []string{"app"} }))
		Expect(refusal(ctx, newPod(ns, "a", change))).To(Equal("StatefulSingleton db cannot hold back this pod: " + message))
	},
		Entry("to a pod that already has a signal-volume", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "signal-volume", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}}}}
		}, `spec.volumes[0].name: Invalid value: "signal-volume": the operator adds its own to the pod; choose another name`),
		Entry("to a pod that already has a status-sidecar", func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "status-sidecar", Image: "one"})
		}, `spec.containers[1].name: Invalid value: "status-sidecar": the operator adds its own to the pod; choose another name`),
		Entry("S18 to a program whose command is unknown", func(p *corev1.Pod) { p.Spec.Containers[0].Command = nil },
			`spec.containers[0].command: Required value: gate mode Binary runs the command of the container, and the entrypoint of the image is unknown; set the command, or set spec.gateMode of the StatefulSingleton to Auto or Init, or list the containers of the program in its spec.containers if this is not one`),
	)

	DescribeTable("S5 comes with a grace period", func(ctx SpecContext, wanted, own int64, respect bool, want int64) {
		declare(ctx, newSingleton(ns, func(s *v1.StatefulSingleton) {
			s.Spec.TerminationGracePeriod, s.Spec.RespectPodGracePeriod = &wanted, &respect
		}))
		p := admitted(ctx, newPod(ns, "a", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &own }))
		Expect(p.Spec.TerminationGracePeriodSeconds).To(HaveValue(Equal(want)))
	},
		Entry("the object's, with respectPodGracePeriod false", int64(120), int64(60), false, int64(120)),
		Entry("the pod's, which is longer and may not be shortened", int64(60), int64(180), false, int64(180)),
		Entry("the pod's, which is longer", int64(60), int64(180), true, int64(180)),
		Entry("the object's, which is longer", int64(60), int64(30), true, int64(60)),
		Entry("the pod's, if the object has 0", int64(0), int64(45), false, int64(45)),
	)
})
