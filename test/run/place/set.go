package place

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

// MemberImage sets the image of the first container of a ReplicatedStatefulSet's members.
func MemberImage(object *unstructured.Unstructured, image string) error {
	if object.GetKind() != "ReplicatedStatefulSet" {
		return nil
	}
	path := []string{"spec", "pod", "containers"}
	containers, _, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil || len(containers) == 0 {
		return fmt.Errorf("want containers in %s (%w)", strings.Join(path, "."), err)
	}
	if err := unstructured.SetNestedField(containers[0].(map[string]any), image, "image"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(object.Object, containers, path...)
}

// Set waits until all members of a ReplicatedStatefulSet run in their roles and but returns "". It
// returns the set.
func (p Place) Set(ctx context.Context, key types.NamespacedName, but func(*v1alpha1.ReplicatedStatefulSet) string) (*v1alpha1.ReplicatedStatefulSet, error) {
	var set *v1alpha1.ReplicatedStatefulSet
	err := p.Until(ctx, func(ctx context.Context) (bool, string, error) {
		set = &v1alpha1.ReplicatedStatefulSet{}
		if err := p.Client.Get(ctx, key, set); err != nil {
			return false, "", err
		}
		s := &set.Status
		steady := s.ObservedGeneration == set.Generation && set.Spec.Replicas != nil && s.ReadyReplicas == *set.Spec.Replicas &&
			meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable) &&
			meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)
		why := but(set)
		return steady && why == "", fmt.Sprintf("%s: primary %s, secondary %s; %s%s", key.Name,
			names(s.Members.Primary), names(s.Members.Secondary), s.Reason, why), nil
	})
	return set, err
}

func names(members []string) string {
	if len(members) == 0 {
		return "none"
	}
	return strings.Join(members, " ")
}

// Calm is longer than the time in which a delayed start of a primary may still reach the container that
// replaces the primary's. The operator does not trust that container until then, so the failover of a
// primary that fails earlier after its promotion takes longer.
const Calm = 20 * time.Second

// AnotherPrimary waits until another member is primary and all members run again. It returns the new
// primary.
func (p Place) AnotherPrimary(ctx context.Context, key types.NamespacedName, old string) (string, error) {
	began := time.Now()
	var after time.Duration
	set, err := p.Set(ctx, key, func(set *v1alpha1.ReplicatedStatefulSet) string {
		if primary := set.Status.Members.Primary; len(primary) != 1 || primary[0] == old {
			return "; it waits for a primary other than " + old
		}
		if after == 0 {
			after = time.Since(began)
		}
		return ""
	})
	if err != nil {
		return "", err
	}
	now := set.Status.Members.Primary[0]
	fmt.Printf("%s was primary, %s is: after %d ms, and all members were ready after %s\n",
		old, now, after.Milliseconds(), time.Since(began).Round(100*time.Millisecond))
	return now, nil
}

// Run runs kubectl in the namespace of the samples, and returns its output.
func (p Place) Run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, p.Kubectl, append([]string{"--kubeconfig", p.Kubeconfig, "-n", Namespace}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
