package olm_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/olm"
)

// forced applies the restrictions of OpenShift's constraint restricted-v2 to the pods of namespaces
// with a label: a user ID of the namespace that is not in any image, the same ID as fsGroup, no
// capabilities, and no privilege escalation. Pods that request another user or group are rejected.
const forced = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: restricted-v2.test}
spec:
  failurePolicy: Fail
  reinvocationPolicy: IfNeeded
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: test/uid, operator: Exists}]}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  variables:
  - {name: uid, expression: 'int(namespaceObject.metadata.labels["test/uid"])'}
  - {name: user, expression: 'object.spec.?securityContext.?runAsUser.orValue(variables.uid)'}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{
          securityContext: Object.spec.securityContext{
            fsGroup: object.spec.?securityContext.?fsGroup.orValue(variables.uid),
            seccompProfile: Object.spec.securityContext.seccompProfile{type: "RuntimeDefault"}},
          containers: object.spec.containers.map(c, Object.spec.containers{name: c.name,
            securityContext: Object.spec.containers.securityContext{
              runAsUser: c.?securityContext.?runAsUser.orValue(variables.user), runAsNonRoot: true, allowPrivilegeEscalation: false}}),
          initContainers: object.spec.?initContainers.orValue([]).map(c, Object.spec.initContainers{name: c.name,
            securityContext: Object.spec.initContainers.securityContext{
              runAsUser: c.?securityContext.?runAsUser.orValue(variables.user), runAsNonRoot: true, allowPrivilegeEscalation: false}})}}
  - {patchType: JSONPatch, jsonPatch: {expression: 'NO_CAPABILITY'}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: restricted-v2.test}
spec: {policyName: restricted-v2.test}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: restricted-v2.test}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchExpressions: [{key: test/uid, operator: Exists}]}
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  variables:
  - {name: uid, expression: 'int(namespaceObject.metadata.labels["test/uid"])'}
  - {name: all, expression: 'object.spec.containers + (has(object.spec.initContainers) ? object.spec.initContainers : [])'}
  validations:
  - expression: object.spec.?securityContext.?fsGroup.orValue(0) == variables.uid
    message: volumes have the group of the pod's namespace
  - expression: variables.all.all(c, c.?securityContext.?runAsUser.orValue(0) == variables.uid)
    message: a container runs as the user of its namespace
  - expression: variables.all.all(c, !has(c.securityContext.capabilities.add))
    message: a container adds no capability
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: restricted-v2.test}
spec: {policyName: restricted-v2.test, validationActions: [Deny]}
`

// noCapability returns the patch that drops all capabilities. It uses the index of each container,
// because an atomic list cannot be applied.
func noCapability() string {
	var patches []string
	for _, list := range []string{"containers", "initContainers"} {
		for i := range 6 {
			patches = append(patches, fmt.Sprintf(`(size(object.spec.?%[1]s.orValue([])) > %[2]d && !has(object.spec.%[1]s[%[2]d].securityContext.capabilities) ? `+
				`[JSONPatch{op: "add", path: "/spec/%[1]s/%[2]d/securityContext/capabilities", value: Object.spec.%[1]s.securityContext.capabilities{drop: ["ALL"]}}] : [])`, list, i))
		}
	}
	return strings.Join(patches, " + ")
}

// openShift runs operator and operands as OpenShift runs unprivileged pods. This cluster has
// OpenShift's admission plugin enabled.
func openShift(t *testing.T, s *site) {
	s.try(t, "OLM-5 under restricted-v2 with a random user", (*site).restricted)
}

func (s *site) restricted(ctx context.Context) {
	const home, operands = "openshift-home", "openshift-operands"
	s.m.Apply(ctx, strings.ReplaceAll(forced, "NO_CAPABILITY", noCapability()))
	uids := map[string]int64{}
	for _, namespace := range []string{home, operands} {
		uids[namespace] = 1_000_000_000 + rand.Int64N(1000)*10_000
		s.m.MakeNamespace(ctx, namespace, map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted", "test/uid": fmt.Sprint(uids[namespace])})
	}
	s.forces(ctx, operands)
	s.m.Subscribe(ctx, olm.Subscription{Namespace: home, Catalog: s.catalog})
	s.m.Succeeded(ctx, home, s.present.Name)
	// The namespace sets the user, so pods must not request one.
	s.applySamples(ctx, operands, samplesOfKinds, anyUser)
	s.applySamples(ctx, operands, plainSamples) // they request no user
	s.operatorRuns(ctx, home, s.present)
	s.samplesReady(ctx, operands, samplesOfKinds)
	s.samplesReady(ctx, operands, plainSamples)
	for namespace, uid := range uids {
		s.allRunAs(ctx, namespace, uid)
	}
	s.leave(ctx, home, operands)
}

// anyUser removes the users and groups of pods from an object.
func anyUser(object map[string]any) {
	for key, inner := range object {
		if security, ok := inner.(map[string]any); ok && key == "securityContext" {
			for _, who := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
				delete(security, who)
			}
		}
		eachMap(inner, anyUser)
	}
}

// eachMap calls do for the maps that a value is or contains.
func eachMap(value any, do func(map[string]any)) {
	switch v := value.(type) {
	case map[string]any:
		do(v)
	case []any:
		for _, inner := range v {
			eachMap(inner, do)
		}
	}
}

// forces waits until the policy is enforced: a pod with a fixed user is rejected, and a pod without one
// is accepted.
func (s *site) forces(ctx context.Context, namespace string) {
	s.m.Until(ctx, "the policy to be enforced", func(ctx context.Context) error {
		pod := podOf("somebody")
		pod.Namespace = namespace
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(4711))}
		err := s.m.Client.Create(ctx, pod, client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "a container runs as the user of its namespace") {
			return errors.Join(err, errors.New("a pod with another user is not refused"))
		}
		plain := podOf("plain")
		plain.Namespace = namespace
		return s.m.Client.Create(ctx, plain, client.DryRunAll)
	})
}

// allRunAs checks that all pods of a namespace run with the user.
func (s *site) allRunAs(ctx context.Context, namespace string, uid int64) {
	var pods corev1.PodList
	s.Expect(s.m.Client.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	s.Expect(pods.Items).NotTo(BeEmpty(), "pods in %s", namespace)
	for i := range pods.Items {
		pod := &pods.Items[i]
		s.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), "pod %s", pod.Name)
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			s.Expect(c.User != nil && c.User.Linux != nil && c.User.Linux.UID == uid).To(
				BeTrueBecause("container %s of %s runs as %v: want %d", c.Name, pod.Name, c.User, uid))
		}
	}
}
