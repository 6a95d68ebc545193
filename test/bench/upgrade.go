package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// upgrader is one way to bring a new version out.
type upgrader struct {
	name     string
	handover v1alpha1.Handover // "" for a StatefulSet
}

var upgraders = []upgrader{
	{name: builtIn}, {name: "Coexist", handover: v1alpha1.HandoverCoexist}, {name: "PerOrdinal", handover: v1alpha1.HandoverPerOrdinal},
}

// upgradeSizes are how many replicas are upgraded.
var upgradeSizes = []int32{3, 30}

// measureUpgrades takes sets of every kind from one version to the next, in
// turning order, on real nodes.
func measureUpgrades(ctx context.Context, n *nodes, size sizes) ([]figure, error) {
	var figures []figure
	for _, replicas := range upgradeSizes {
		laps := map[string][]lap{}
		namespace := fmt.Sprintf("upgrade-%d", replicas)
		if err := n.makeNamespace(ctx, namespace); err != nil {
			return figures, err
		}
		for round := range size.rounds {
			for turn := range upgraders {
				u := upgraders[(turn+round)%len(upgraders)]
				took, err := n.upgrade(ctx, u, namespace, replicas)
				if err != nil {
					return figures, fmt.Errorf("upgrade of %d by %s: %w", replicas, u.name, err)
				}
				fmt.Printf("  round %d, %d replicas, %s: upgraded after %.2f s\n", round+1, replicas, u.name, took.Seconds())
				laps[u.name] = append(laps[u.name], lap{created: took})
			}
		}
		plain := medianOf(laps[builtIn], func(l lap) float64 { return l.created.Seconds() })
		for _, u := range upgraders[1:] {
			ours := medianOf(laps[u.name], func(l lap) float64 { return l.created.Seconds() })
			figures = append(figures, figure{title: fmt.Sprintf("good upgrade of %d replicas, %s", replicas, u.name), what: "times as fast as a rolling update of StatefulSet",
				value: plain / ours, unit: "×", detail: fmt.Sprintf("%s %.2f s, StatefulSet %.2f s, both with minReadySeconds 1", u.name, ours, plain)})
		}
	}
	return figures, nil
}

// upgrade makes a set, upgrades it, removes it, and gives the time of the upgrade:
// until all pods are of the new version and Ready, and no other is there.
func (n *nodes) upgrade(ctx context.Context, u upgrader, namespace string, replicas int32) (time.Duration, error) {
	set := u.make(namespace, replicas)
	if err := n.client.Create(ctx, set); err != nil {
		return 0, err
	}
	if err := n.versionServes(ctx, namespace, "1", replicas); err != nil {
		return 0, err
	}
	if err := pause(ctx, settle); err != nil {
		return 0, err
	}
	path := "/spec/template/spec/containers/0/env/0/value"
	if u.handover != "" {
		path = "/spec/template" + path
	}
	began := time.Now()
	edit := fmt.Sprintf(`[{"op":"replace","path":%q,"value":"2"}]`, path)
	if err := n.client.Patch(ctx, set, client.RawPatch(types.JSONPatchType, []byte(edit))); err != nil {
		return 0, err
	}
	if err := n.versionServes(ctx, namespace, "2", replicas); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := n.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		return 0, err
	}
	return took, waitFor(ctx, 3*time.Minute, "the set to be gone", func() (bool, string, error) {
		err := n.client.Get(ctx, client.ObjectKeyFromObject(set), set)
		return apierrors.IsNotFound(err), "", client.IgnoreNotFound(err)
	})
}

// make builds a set whose pods end at once when told.
func (u upgrader) make(namespace string, replicas int32) client.Object {
	labels := map[string]string{"app": "upgraded"}
	spec := appsv1.StatefulSetSpec{
		// Both are to believe a pod after the same time; ours takes 5 s where none is said.
		MinReadySeconds: 1,
		Replicas:        &replicas, ServiceName: "upgraded", Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(5)), AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
				Containers: []corev1.Container{{
					Name: "main", Image: cluster.BusyboxImage, Env: []corev1.EnvVar{{Name: generation, Value: "1"}},
					Command: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while true; do sleep 1 & wait $!; done"},
				}},
			},
		},
	}
	about := metav1.ObjectMeta{Namespace: namespace, Name: "upgraded"}
	if u.handover == "" {
		return &appsv1.StatefulSet{ObjectMeta: about, Spec: spec}
	}
	set := &v1alpha1.ExtendedStatefulSet{ObjectMeta: about}
	// REPLICAS in the environment is the same for all, and is left out for all.
	set.Spec.InjectReplicasEnv, set.Spec.UpdateStrategy.Handover, set.Spec.Template.Spec = new(false), u.handover, spec
	return set
}

// versionServes waits until the pods of a namespace are of one version, Ready, and
// as many as wanted.
func (n *nodes) versionServes(ctx context.Context, namespace, version string, replicas int32) error {
	return waitFor(ctx, 10*time.Minute, "version "+version, func() (bool, string, error) {
		var pods corev1.PodList
		if err := n.client.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
			return false, "", err
		}
		good := 0
		for i := range pods.Items {
			for _, e := range pods.Items[i].Spec.Containers[0].Env {
				if e.Name == generation && e.Value == version && ready(&pods.Items[i]) {
					good++
				}
			}
		}
		return good == int(replicas) && len(pods.Items) == good, fmt.Sprintf("(%d of %d pods are)", good, len(pods.Items)), nil
	})
}
