package olm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/manifest"
)

// sample is a file of config/samples, one for each kind. change replaces images that are not on the
// nodes of a local cluster, because these pull no images.
type sample struct {
	file   string
	change func(s *site, container map[string]any)
}

var samplesOfKinds = []sample{
	{"config/samples/statefulcluster/coder.yaml", func(s *site, c map[string]any) { c["image"] = s.coder }},
	{"config/samples/statefulsingleton/deployment.yaml", inBusybox},
	{"config/samples/replicatedstatefulset/ledger.yaml", func(s *site, c map[string]any) { c["image"] = s.ledger }},
	{"config/samples/extendedstatefulset/blue-green.yaml", func(_ *site, c map[string]any) {
		c["image"], c["command"] = cluster.BusyboxImage, []any{"sh", "-c", cluster.WebServer}
	}},
}

// plainSamples are the samples that the console offers, for the kinds that create pods.
var plainSamples = []sample{
	{"config/samples/statefulcluster/plain.yaml", inBusybox},
	{"config/samples/replicatedstatefulset/plain.yaml", inBusybox},
	{"config/samples/extendedstatefulset/plain.yaml", inBusybox},
}

func inBusybox(_ *site, c map[string]any) { c["image"] = cluster.BusyboxImage }

// objects returns the objects of the sample in a namespace.
func (p sample) objects(s *site, namespace string) []*unstructured.Unstructured {
	objects, err := manifest.ReadFile[*unstructured.Unstructured](p.file)
	s.Expect(err).To(Succeed())
	for _, object := range objects {
		object.SetNamespace(namespace)
		eachContainer(object.Object, func(c map[string]any) { p.change(s, c) })
	}
	return objects
}

// eachContainer calls do for all containers in an object, at any depth.
func eachContainer(object map[string]any, do func(map[string]any)) {
	for key, inner := range object {
		if key == "containers" {
			eachMap(inner, do)
			continue
		}
		eachMap(inner, func(m map[string]any) { eachContainer(m, do) })
	}
}

func (s *site) applySamples(ctx context.Context, namespace string, samples []sample, change ...func(map[string]any)) {
	for _, p := range samples {
		for _, object := range p.objects(s, namespace) {
			for _, f := range change {
				f(object.Object)
			}
			s.m.Say("apply %s %s to %s", object.GetKind(), object.GetName(), namespace)
			s.Expect(s.m.Client.Create(ctx, object)).To(Succeed(), "create %s %s", object.GetKind(), object.GetName())
		}
	}
}

// samplesReady waits until all objects are available at their current generation, and checks that the
// gate was injected into the program of a StatefulSingleton.
func (s *site) samplesReady(ctx context.Context, namespace string, samples []sample) {
	for _, p := range samples {
		for _, object := range p.objects(s, namespace) {
			if object.GetKind() == "Deployment" {
				s.m.Rolled(ctx, client.ObjectKeyFromObject(object))
				s.gated(ctx, namespace, object.GetName())
				continue
			}
			s.m.Until(ctx, object.GetKind()+" "+object.GetName(), func(ctx context.Context) error { return s.available(ctx, object) })
		}
	}
}

func (s *site) available(ctx context.Context, object *unstructured.Unstructured) error {
	if err := s.m.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	seen, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		c := c.(map[string]any)
		if c["type"] != "Available" {
			continue
		}
		if c["status"] == "True" && seen == object.GetGeneration() {
			return nil
		}
		return fmt.Errorf("Available is %v at generation %d of %d (%v: %v)", c["status"], seen, object.GetGeneration(), c["reason"], c["message"])
	}
	return errors.New("it has no condition Available")
}

// gated checks that the pods of an application were mutated by the pod webhook.
func (s *site) gated(ctx context.Context, namespace, app string) {
	var pods corev1.PodList
	s.Expect(s.m.Client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app})).To(Succeed())
	for i := range pods.Items {
		command := pods.Items[i].Spec.Containers[0].Command
		s.Expect(len(command) > 0 && command[0] == singletonv1.GateInPod).To(
			BeTrueBecause("the program of pod %s runs without the gate: %v", pods.Items[i].Name, command))
	}
	s.Expect(pods.Items).NotTo(BeEmpty(), "pods of %s", app)
}

// refusesBadObject verifies that the webhook of each kind is called. The API server itself would accept
// these objects, and an unreachable webhook is ignored.
func (s *site) refusesBadObject(ctx context.Context, namespace string) {
	for _, p := range samplesOfKinds {
		bad := p.objects(s, namespace)[0]
		bad.SetName("bad-one")
		eachContainer(bad.Object, func(c map[string]any) {
			c["volumeMounts"] = []any{map[string]any{"name": "there-is-no-such-volume", "mountPath": "/nowhere"}}
		})
		if bad.GetKind() == "StatefulSingleton" { // it has no containers
			not := map[string]any{"key": "app", "operator": "NotIn", "values": []any{"mailer"}}
			s.Expect(unstructured.SetNestedSlice(bad.Object, []any{not}, "spec", "selector", "matchExpressions")).To(Succeed())
		}
		s.m.Until(ctx, "the webhook of "+bad.GetKind()+" in "+namespace+" to refuse a bad one", func(ctx context.Context) error {
			err := s.m.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll)
			if err == nil {
				return errors.New("it is accepted")
			}
			if !strings.Contains(err.Error(), "admission webhook") || !strings.Contains(err.Error(), "denied the request") {
				return fmt.Errorf("it is refused with another error: %w", err)
			}
			return nil
		})
	}
}

// operands returns the UIDs of a namespace's pods and the state of their containers, which change if a
// pod is touched.
func (s *site) operands(ctx context.Context, namespace string) map[string]string {
	var pods corev1.PodList
	s.Expect(s.m.Client.List(ctx, &pods, client.InNamespace(namespace))).To(Succeed())
	found := map[string]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		words := []string{string(pod.UID)}
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			words = append(words, fmt.Sprintf("%s=%s restarted %d times", c.Name, c.ContainerID, c.RestartCount))
		}
		found[pod.Name] = strings.Join(words, " ")
	}
	s.Expect(len(found)).To(BeNumerically(">=", len(samplesOfKinds)), "pods in %s: too few for a result", namespace)
	return found
}

// untouched checks that the pods of a namespace are the same as before, and that no program was
// restarted.
func (s *site) untouched(ctx context.Context, namespace string, before map[string]string) {
	now := s.operands(ctx, namespace)
	for name := range now {
		s.Expect(before).To(HaveKey(name), "pod %s is new", name)
	}
	for name, was := range before {
		s.Expect(now[name]).To(Equal(was), "pod %s", name)
	}
}
