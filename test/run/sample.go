package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

const (
	sampleFile = "config/samples/statefulcluster/coder.yaml"
	patience   = 10 * time.Minute
)

var (
	operatorKey = types.NamespacedName{Namespace: "stateful-operator-system", Name: "stateful-operator-controller-manager"}
	sampleKey   = types.NamespacedName{Namespace: "default", Name: "coder"}
)

// applySample applies the sample as it is, but for its image.
func (p place) applySample(ctx context.Context, image string) error {
	content, err := os.ReadFile(sampleFile)
	if err != nil {
		return err
	}
	var sample unstructured.Unstructured
	if err := yaml.Unmarshal(content, &sample.Object); err != nil {
		return fmt.Errorf("reading %s: %w", sampleFile, err)
	}
	sample.SetNamespace(sampleKey.Namespace)
	containers, found, err := unstructured.NestedSlice(sample.Object, "spec", "template", "spec", "containers")
	if err != nil || !found {
		return fmt.Errorf("the sample has no containers: %w", err)
	}
	for _, container := range containers {
		if fields, ok := container.(map[string]any); ok {
			fields["image"] = image
		}
	}
	if err := unstructured.SetNestedSlice(sample.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		return err
	}
	// A replica count that the user has changed since stays: trying that is
	// one of the things that show suggests.
	var before engev1alpha1.StatefulCluster
	if err := p.client.Get(ctx, sampleKey, &before); err == nil {
		unstructured.RemoveNestedField(sample.Object, "spec", "replicas")
	}
	err = p.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&sample), client.FieldOwner("make-run"), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying the sample: %w", err)
	}
	return nil
}

func (p place) operatorReady(ctx context.Context) error {
	return p.until(ctx, func(ctx context.Context) (bool, string, error) {
		var deployment appsv1.Deployment
		err := p.client.Get(ctx, operatorKey, &deployment)
		status, want := deployment.Status, int32(1)
		if deployment.Spec.Replicas != nil {
			want = *deployment.Spec.Replicas
		}
		done := status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
			status.Replicas == want && status.AvailableReplicas == want
		return done, fmt.Sprintf("operator: %d of %d replicas ready", status.ReadyReplicas, want), err
	})
}

func (p place) sampleReady(ctx context.Context) error {
	return p.until(ctx, func(ctx context.Context) (bool, string, error) {
		var set engev1alpha1.StatefulCluster
		err := p.client.Get(ctx, sampleKey, &set)
		status, want := set.Status, int32(1)
		if set.Spec.Replicas != nil {
			want = *set.Spec.Replicas
		}
		done := status.ObservedGeneration >= set.Generation && status.Replicas == want &&
			status.ReadyReplicas == want && status.UpdatedReplicas == want
		return done, fmt.Sprintf("coder: %d of %d members ready, %d of the present revision", status.ReadyReplicas, want, status.UpdatedReplicas), err
	})
}

// until asks every half second and says what has changed.
func (p place) until(ctx context.Context, ask func(context.Context) (done bool, seen string, err error)) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, seen, err := ask(ctx)
		if err != nil {
			seen = err.Error() // an API server that is busy gets another try
		}
		if seen != last {
			fmt.Println(seen)
			last = seen
		}
		return done && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("still not so after %s: %s", patience, last)
	}
	return nil
}

// show prints the members, and what to try.
func (p place) show(ctx context.Context) error {
	var pods corev1.PodList
	if err := p.client.List(ctx, &pods, client.InNamespace(sampleKey.Namespace),
		client.MatchingLabels{engev1alpha1.LabelCluster: sampleKey.Name}); err != nil {
		return fmt.Errorf("listing the members: %w", err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("the sample is Ready and has no pods")
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tNODE\tCLAIMS")
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", pod.Name, pod.Spec.NodeName, strings.Join(claims(pod), ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	p.suggest(&pods.Items[0])
	return nil
}

func claims(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

func (p place) suggest(member *corev1.Pod) {
	fmt.Printf("\nTry next:\n  export KUBECONFIG=%s\n", p.kubeconfig)
	if p.local != nil {
		fmt.Printf("  alias kubectl=%s\n", p.kubectl)
	}
	fmt.Printf(`  kubectl get stc,pods,pvc -o wide
  kubectl describe stc coder                  # conditions and events say what happened
  kubectl delete pod %s         # a new member, with a new name and new claims
  kubectl scale stc coder --replicas=5
`, member.Name)
	if p.local == nil {
		fmt.Print("\nStop:\n  kubectl delete stc coder && make undeploy\n")
		return
	}
	fmt.Printf(`  go run ./test/cluster/cmd/cluster cut %[1]s    # off the network: NotReady after about 45 s, replaced 30 s later
  go run ./test/cluster/cmd/cluster heal %[1]s   # it returns; the lost member does not

Stop:
  make cluster-down
`, member.Spec.NodeName)
}
