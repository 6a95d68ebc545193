package extendedstatefulset_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A limit", func() {
	const (
		count = invalid + `spec.template.spec.replicas: Invalid value: `
	)
	var ns string
	BeforeEach(func(ctx SpecContext) { ns = newNamespace(ctx) })

	claims := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("{metadata: {name: d%d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}", i)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	zones := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf("z%d", i)
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	DescribeTable("applies to", func(ctx SpecContext, most, more, want string) {
		Expect(said(user.Create(ctx, object(ns, more)))).To(server.Mentions(want))
		Expect(user.Create(ctx, object(ns, most))).To(Succeed())
		Expect(said(change(ctx, object(ns), more))).To(server.Mentions(want))
	},
		Entry("replicas in a zone", "spec: {template: {spec: {replicas: 1000}}}", "spec: {template: {spec: {replicas: 1001}}}",
			count+"may be at most 1000; take fewer replicas"),
		Entry("replicas in all zones", "spec: {zones: "+zones(64)+", template: {spec: {replicas: 31}}}", "spec: {zones: "+zones(64)+", template: {spec: {replicas: 32}}}",
			count+"times the number of zones may be at most 2000; take fewer replicas or fewer zones"),
		Entry("replicas with claims", "spec: {template: {spec: {replicas: 250, volumeClaimTemplates: "+claims(16)+"}}}", "spec: {template: {spec: {replicas: 251, volumeClaimTemplates: "+claims(16)+"}}}",
			count+"times the number of zones and of claim templates may be at most 4000; take fewer replicas, zones or claim templates"),
		Entry("claim templates", "spec: {template: {spec: {replicas: 1, volumeClaimTemplates: "+claims(16)+"}}}", "spec: {template: {spec: {replicas: 1, volumeClaimTemplates: "+claims(17)+"}}}",
			"spec.template.spec.volumeClaimTemplates: Invalid value: may be at most 16; take fewer claim templates"),
		Entry("zones", "spec: {zones: "+zones(64)+"}", "spec: {zones: "+zones(65)+"}", "spec.zones: Too many: 65: must have at most 64 items"),
		Entry("scaling.max", "spec: {scaling: {max: 1000}}", "spec: {scaling: {max: 1001}}", "spec.scaling.max: Invalid value: 1001: spec.scaling.max in body should be less than or equal to 1000"),
		Entry("scaling.min", "spec: {scaling: {min: 1000}, template: {spec: {replicas: 1000}}}", "spec: {scaling: {min: 1001}}", "spec.scaling.min: Invalid value: 1001: spec.scaling.min in body should be less than or equal to 1000"),
		Entry("canaries", "spec: {updateStrategy: {canaries: 1000}, template: {spec: {replicas: 1000}}}", "spec: {updateStrategy: {canaries: 1001}}",
			"spec.updateStrategy.canaries: Invalid value: 1001: spec.updateStrategy.canaries in body should be less than or equal to 1000"),
	)

	It("applies to /scale", func(ctx SpecContext) {
		o := object(ns)
		Expect(user.Create(ctx, o)).To(Succeed())
		for _, n := range []int{1001, math.MaxInt32} {
			Expect(said(scale(ctx, o.DeepCopy(), n))).To(Equal(count + "may be at most 1000; take fewer replicas"))
			Expect(said(scaleAfterReading(ctx, o.DeepCopy(), n))).To(Equal(count + "may be at most 1000; take fewer replicas"))
		}
		Expect(scale(ctx, o.DeepCopy(), 1000)).To(Succeed())
	})
})

// listed returns a YAML list of n items, or a map of n entries. {} in item is replaced by the index.
func listed(brackets, item string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(item, "{}", strconv.Itoa(i))
	}
	return brackets[:1] + strings.Join(all, ", ") + brackets[1:]
}

var _ = Describe("The content of an object", func() {
	const pod = "spec.template.spec.template."
	DescribeTable("is limited by the schema without the webhook", func(ctx SpecContext, patch func(n int) string, most int, want string) {
		ns := newNamespace(ctx)
		Expect(said(user.Create(ctx, object(ns, patch(most+1))))).To(server.Mentions(want))
		Expect(said(user.Create(ctx, object(ns, patch(most))))).NotTo(server.Mentions(want))
	},
		Entry("labels", func(n int) string { return "spec: {template: {metadata: {labels: " + listed("{}", "k{}: v", n) + "}}}" }, 64,
			"spec.template.metadata.labels: Invalid value: may be at most 64; take fewer labels"),
		Entry("annotations", func(n int) string {
			return "spec: {template: {metadata: {annotations: " + listed("{}", "k{}: v", n) + "}}}"
		}, 64,
			"spec.template.metadata.annotations: Invalid value: may be at most 64; take fewer annotations"),
		Entry("labels of pods", func(n int) string {
			return "spec: {template: {spec: {template: {metadata: {labels: " + listed("{}", "k{}: v", n-1) + "}}}}}"
		}, 64,
			pod+"metadata.labels: Invalid value: may be at most 64; take fewer labels"),
		Entry("annotations of pods", func(n int) string {
			return "spec: {template: {spec: {template: {metadata: {annotations: " + listed("{}", "k{}: v", n) + "}}}}}"
		}, 64,
			pod+"metadata.annotations: Invalid value: may be at most 64; take fewer annotations"),
		Entry("matchLabels of the selector", func(n int) string {
			return "spec: {template: {spec: {selector: {matchLabels: " + listed("{}", "k{}: v", n-1) + "}}}}"
		}, 32,
			"spec.template.spec.selector.matchLabels: Invalid value: may be at most 32; select by fewer labels"),
		Entry("expressions", func(n int) string {
			return "spec: {template: {spec: {selector: {matchExpressions: " + listed("[]", "{key: app, operator: Exists}", n) + "}}}}"
		}, 32, "spec.template.spec.selector.matchExpressions: Invalid value: may be at most 32; take fewer expressions"),
		Entry("values", func(n int) string {
			return "spec: {template: {spec: {selector: {matchExpressions: [{key: app, operator: In, values: " + listed("[]", "web", n) + "}]}}}}"
		}, 64, "spec.template.spec.selector.matchExpressions: Invalid value: may have at most 64 values each; take fewer values"),
		Entry("containers", func(n int) string {
			return "spec: {template: {spec: {template: {spec: {containers: " + listed("[]", "{name: c{}, image: a}", n-1) + "}}}}}"
		}, 64, pod+"spec.containers: Invalid value: may be at most 64; take fewer containers"),
		Entry("init containers", func(n int) string {
			return "spec: {template: {spec: {template: {spec: {initContainers: " + listed("[]", "{name: c{}, image: a}", n) + "}}}}}"
		}, 64, pod+"spec.initContainers: Invalid value: may be at most 64; take fewer init containers"),
		Entry("volumes", func(n int) string {
			return "spec: {template: {spec: {template: {spec: {volumes: " + listed("[]", "{name: v{}, emptyDir: {medium: Memory}}", n) + "}}}}}"
		}, 256, pod+"spec.volumes: Invalid value: may be at most 256; take fewer volumes"),
		Entry("image pull secrets", func(n int) string {
			return "spec: {template: {spec: {template: {spec: {imagePullSecrets: " + listed("[]", "{name: v{}}", n) + "}}}}}"
		}, 64, pod+"spec.imagePullSecrets: Invalid value: may be at most 64; take fewer Secrets"),
		Entry("pods of a job", func(n int) string { return jobWith("parallelism: " + strconv.Itoa(n)) }, 100,
			"spec.updateStrategy.preUpdateJob.spec.parallelism: Invalid value: may be at most 100; take fewer pods at a time"),
		Entry("completions of a job", func(n int) string { return jobWith("completions: " + strconv.Itoa(n)) }, 1000,
			"spec.updateStrategy.preUpdateJob.spec.completions: Invalid value: may be at most 1000; take fewer completions"),
		Entry("attempts", func(n int) string { return "spec: {updateStrategy: {retryCount: " + strconv.Itoa(n) + "}}" }, 100,
			"spec.updateStrategy.retryCount: Invalid value: 101: spec.updateStrategy.retryCount in body should be less than or equal to 100"),
		Entry("canaryWatchTime", func(n int) string {
			return fmt.Sprintf("spec: {updateStrategy: {canaryWatchTime: %dh, updateWatchTime: %dh}}", n, n)
		}, 720, `spec.updateStrategy.canaryWatchTime: Invalid value: "721h": may be at most 720h; take a shorter time`),
		Entry("probes", func(n int) string {
			return "spec: {activePassiveProbes: " + listed("{}", "c{}: {exec: {command: [a]}}", n) + "}"
		}, 16, "spec.activePassiveProbes: Too many: 17: must have at most 16 items"),
		Entry("arguments of a probe", func(n int) string {
			return "spec: {activePassiveProbes: {web: {exec: {command: " + listed("[]", "a", n) + "}}}}"
		}, 64, "spec.activePassiveProbes[web].exec.command: Invalid value: may be at most 64; take fewer arguments, or write a script"),
		Entry("bytes of a probe command, with the webhook", func(n int) string {
			return "spec: {activePassiveProbes: {web: {exec: {command: [" + strings.Repeat("a", n) + "]}}}}"
		}, 16384, "spec.activePassiveProbes[web].exec.command: Invalid value: 16385: may be at most 16384; take fewer bytes, or write a script"),
	)

	It("is limited in total size by the webhook", func(ctx SpecContext) {
		ns := newNamespace(ctx)
		with := func(n int) string {
			return "spec: {template: {spec: {template: {metadata: {annotations: {a: " + strings.Repeat("x", n) + "}}}}}}"
		}
		Expect(said(user.Create(ctx, object(ns, with(262144))))).To(ContainSubstring("may have at most 262144 bytes; move long values into ConfigMaps"))
		Expect(user.Create(ctx, object(ns, with(250000)))).To(Succeed())
	})

	It("rejects a duration that is too long to parse", func(ctx SpecContext) {
		Expect(said(user.Create(ctx, object(newNamespace(ctx), "spec: {updateStrategy: {updateWatchTime: 999999h999999h999999h}}")))).To(ContainSubstring("spec.updateStrategy.updateWatchTime"))
	})
})

func jobWith(what string) string {
	return "spec: {updateStrategy: {preUpdateJob: {spec: {" + what + ", template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}"
}
