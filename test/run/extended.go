package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fissilev1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/simulated"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const shopFile = "config/samples/extendedstatefulset/blue-green.yaml"

var shopKey = types.NamespacedName{Namespace: place.Namespace, Name: "shop"}

// applyShop applies the sample of ExtendedStatefulSet with a greeting, and calls change for its
// container and its update strategy. In the local cluster, whose nodes pull no images, the program is a
// busybox.
func (s shown) applyShop(ctx context.Context, greeting string, change func(container, strategy map[string]any)) error {
	return s.Apply(ctx, shopFile, func(sample *unstructured.Unstructured) error {
		path := []string{"spec", "template", "spec", "template", "spec", "containers"}
		containers, found, err := unstructured.NestedSlice(sample.Object, path...)
		if err != nil || !found {
			return fmt.Errorf("want containers in %v (%w)", path, err)
		}
		strategy, _, err := unstructured.NestedMap(sample.Object, "spec", "updateStrategy")
		if err != nil {
			return err
		}
		container := containers[0].(map[string]any)
		container["env"] = []any{map[string]any{"name": "GREETING", "value": greeting}}
		if s.Local != nil {
			container["image"], container["command"] = s.shopImage(), []any{"sh", "-c", cluster.WebServer}
		}
		change(container, strategy)
		if err := unstructured.SetNestedMap(sample.Object, strategy, "spec", "updateStrategy"); err != nil {
			return err
		}
		return unstructured.SetNestedSlice(sample.Object, containers, path...)
	})
}

// shopImage returns an image that the nodes have or can pull.
func (s shown) shopImage() string {
	if s.Local != nil {
		return cluster.BusyboxImage
	}
	return "docker.io/nginxinc/nginx-unprivileged:1.29"
}

// asItIs changes nothing.
func asItIs(_, _ map[string]any) {}

// shop waits until the sample is in the phase and not progressing. If but is not 0, the current version
// must differ from it.
func (s shown) shop(ctx context.Context, phase fissilev1alpha1.Phase, but int64) (*fissilev1alpha1.ExtendedStatefulSetStatus, error) {
	var set *fissilev1alpha1.ExtendedStatefulSet
	err := s.Until(ctx, func(ctx context.Context) (bool, string, error) {
		set = &fissilev1alpha1.ExtendedStatefulSet{}
		if err := s.Client.Get(ctx, shopKey, set); err != nil {
			return false, "", err
		}
		now := &set.Status
		seen := fmt.Sprintf("shop: version %d serves with %d pods Ready, phase %s", now.CurrentVersion, now.ReadyReplicas, now.Phase)
		if now.UpdateVersion != now.CurrentVersion {
			seen += fmt.Sprintf(" of version %d", now.UpdateVersion)
		}
		rests := now.ObservedGeneration == set.Generation && meta.IsStatusConditionFalse(now.Conditions, fissilev1alpha1.ConditionProgressing)
		return rests && now.Phase == phase && (but == 0 || now.CurrentVersion != but), seen, nil
	})
	return &set.Status, err
}

// startShop applies the sample.
func (s shown) startShop(ctx context.Context) error {
	if err := s.applyShop(ctx, "one", asItIs); err != nil {
		return err
	}
	_, err := s.shop(ctx, fissilev1alpha1.PhaseStable, 0)
	return err
}

// upgradeShop upgrades the sample, and prints the duration.
func (s shown) upgradeShop(ctx context.Context) error {
	before, err := s.shop(ctx, fissilev1alpha1.PhaseStable, 0)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := s.applyShop(ctx, "two", asItIs); err != nil {
		return err
	}
	after, err := s.shop(ctx, fissilev1alpha1.PhaseStable, before.CurrentVersion)
	if err != nil {
		return err
	}
	fmt.Printf("shop: version %d serves instead of %d, which is deleted: %s after the template was changed\n",
		after.CurrentVersion, before.CurrentVersion, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// spoilShop changes the sample's template to one that cannot run, and prints its rollback.
func (s shown) spoilShop(ctx context.Context) error {
	began := time.Now()
	err := s.applyShop(ctx, "three", func(container, strategy map[string]any) {
		container["image"], strategy["canaryWatchTime"] = simulated.NoImage, "5s"
	})
	if err != nil {
		return err
	}
	after, err := s.shop(ctx, fissilev1alpha1.PhaseStale, 0)
	if err != nil {
		return err
	}
	var text strings.Builder // printed at once, because other samples print in parallel
	fmt.Fprintf(&text, "shop: rolled back automatically, %s after the template was changed:\n", time.Since(began).Round(100*time.Millisecond))
	for _, name := range []string{fissilev1alpha1.ConditionAvailable, fissilev1alpha1.ConditionStale} {
		if c := meta.FindStatusCondition(after.Conditions, name); c != nil {
			fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	fmt.Print(text.String())
	return nil
}
