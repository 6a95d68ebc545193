package extendedstatefulset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// wire returns an object as sent by a client without this project's types.
func wire(namespace, job string) *unstructured.Unstructured {
	text := `apiVersion: fissile.cloudfoundry.org/v1alpha1
kind: ExtendedStatefulSet
metadata: {name: web, namespace: ` + namespace + `}
spec:
  updateStrategy: {preUpdateJob: {spec: {template: ` + job + `}}}
  template:
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec: {containers: [{name: web, image: web}]}
`
	var object map[string]any
	Expect(yaml.Unmarshal([]byte(text), &object)).To(Succeed())
	return &unstructured.Unstructured{Object: object}
}

var _ = DescribeTable("E44 the pod template of a job", func(ctx SpecContext, job, want string) {
	object := wire(newNamespace(ctx), job)
	err := user.Create(ctx, object)
	if want == "" {
		Expect(err).To(Succeed())
		return
	}
	Expect(said(err)).To(ContainSubstring(want))
},
	Entry("with all fields of a pod is accepted", `{spec: {restartPolicy: Never, priorityClassName: "", containers: [{name: a, image: a, resources: {limits: {cpu: "1"}}, livenessProbe: {exec: {command: [a]}}}]}}`, ""),
	Entry("with a number instead of a string is rejected", `{spec: {restartPolicy: Never, containers: [{name: 5, image: a}]}}`,
		"spec.updateStrategy.preUpdateJob.spec.template: Invalid value: is not a valid pod template: json: cannot unmarshal number"),
	Entry("with an unknown field is rejected", `{spec: {restartPolicy: Never, container: []}}`,
		`spec.updateStrategy.preUpdateJob.spec.template: Invalid value: is not a valid pod template: unknown field "spec.template.spec.container"`),
	Entry("with a value that the API server rejects is rejected", `{spec: {restartPolicy: Never, containers: [{name: A_, image: a}]}}`,
		"spec.updateStrategy.preUpdateJob.spec.template.spec.containers[0].name"),
	Entry("with a quantity that would exhaust memory is rejected by the schema", `{spec: {restartPolicy: Never, containers: [{name: a, image: a, resources: {limits: {cpu: "1e2000000000"}}}]}}`,
		"spec.updateStrategy.preUpdateJob.spec.template.spec.containers[0].resources.limits.cpu"),
	Entry("with a quantity in an ephemeral container that would exhaust memory is rejected by the schema", `{spec: {restartPolicy: Never, containers: [{name: a, image: a}], ephemeralContainers: [{name: b, resources: {limits: {cpu: "1e2000000000"}}}]}}`,
		"spec.updateStrategy.preUpdateJob.spec.template.spec.ephemeralContainers[0].resources.limits.cpu"),
)
