package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
)

// describe returns the command that prints a set with the fields that spec.application fills.
func (p *Plugin) describe() *cobra.Command {
	filled := false
	c := &cobra.Command{
		Use: "describe --filled", Short: "Print a ReplicatedStatefulSet as if it were written without spec.application",
		Long: "Print a ReplicatedStatefulSet with all fields that spec.application fills, as a manifest without\n" +
			"spec.application. If you apply it, no member is restarted, and the operator fills nothing.",
		Example: "  kubectl stateful describe --filled rss/orders",
	}
	p.object(c, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		if !filled {
			return fmt.Errorf("set --filled, or use kubectl describe %s %s", kind.Short, name)
		}
		if !kind.Is(kinds.ReplicatedStatefulSet) {
			return fmt.Errorf("only a ReplicatedStatefulSet can have spec.application, not a %s", kind.Kind)
		}
		return p.printFilled(ctx, s, name)
	})
	c.Flags().BoolVar(&filled, "filled", false, "Print the fields that spec.application fills.")
	return c
}

func (p *Plugin) printFilled(ctx context.Context, s site, name string) error {
	var set rssv1alpha1.ReplicatedStatefulSet
	if err := s.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: name}, &set); err != nil {
		return err
	}
	if set.Spec.Problem != "" {
		return fmt.Errorf("the stored object cannot be read: %s", set.Spec.Problem)
	}
	if set.Spec.Application != nil && set.Status.Agent == nil {
		return fmt.Errorf("the operator has not recorded the agent of %s yet: see kubectl stateful status rss/%s", name, name)
	}
	text, err := yaml.Marshal(manifest{
		TypeMeta:   metav1.TypeMeta{APIVersion: kinds.ReplicatedStatefulSet.GroupVersion().String(), Kind: kinds.ReplicatedStatefulSet.Kind},
		ObjectMeta: writtenMetadata(&set), Spec: application.Filled(&set).Spec,
	})
	if err != nil {
		return err
	}
	p.say("%s", text[:len(text)-1]) // say adds a line break
	return nil
}

// manifest is a set as a user writes it.
type manifest struct {
	metav1.TypeMeta `json:",inline"`
	ObjectMeta      map[string]any                        `json:"metadata"`
	Spec            rssv1alpha1.ReplicatedStatefulSetSpec `json:"spec"`
}

// writtenMetadata returns the metadata that a user writes.
func writtenMetadata(set *rssv1alpha1.ReplicatedStatefulSet) map[string]any {
	metadata := map[string]any{"name": set.Name, "namespace": set.Namespace}
	annotations := map[string]string{}
	for key, value := range set.Annotations {
		if key != corev1.LastAppliedConfigAnnotation {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(set.Labels) > 0 {
		metadata["labels"] = set.Labels
	}
	return metadata
}
