package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// upgrader is a way to roll out a new version.
type upgrader struct {
	name     string
	handover v1alpha1.Handover // "" for a StatefulSet
}

var upgraders = []upgrader{
	{name: builtIn}, {name: "Coexist", handover: v1alpha1.HandoverCoexist}, {name: "PerOrdinal", handover: v1alpha1.HandoverPerOrdinal},
}

// upgradeSizes are the numbers of replicas of the upgraded sets.
var upgradeSizes = []int32{3, 30}

// measureUpgrades upgrades sets of every kind on real nodes, in alternating order.
func measureUpgrades(ctx context.Context, s *site) {
	for _, replicas := range upgradeSizes {
		laps := map[string][]lap{}
		namespace := fmt.Sprintf("upgrade-%d", replicas)
		s.makeNamespace(ctx, namespace)
		inTurns(s.size.rounds, upgraders, func(round, _ int, u upgrader) {
			within(fmt.Sprintf("upgrade of %d by %s", replicas, u.name), func() {
				took := s.upgrade(ctx, u, namespace, replicas)
				fmt.Printf("  round %d, %d replicas, %s: upgraded after %.2f s\n", round, replicas, u.name, took.Seconds())
				laps[u.name] = append(laps[u.name], lap{created: took})
			})
		})
		plain := medianOf(laps[builtIn], lap.tillCreated)
		for _, u := range upgraders[1:] {
			ours := medianOf(laps[u.name], lap.tillCreated)
			s.report(figure{title: fmt.Sprintf("good upgrade of %d replicas, %s", replicas, u.name), what: "times as fast as a rolling update of StatefulSet",
				value: plain / ours, unit: "×", detail: fmt.Sprintf("%s %.2f s, StatefulSet %.2f s, both with minReadySeconds 1", u.name, ours, plain)})
		}
	}
}

// upgrade creates a set, upgrades it and deletes it. It returns the duration of the upgrade: until all
// pods have the new version and are Ready, and no other pod exists.
func (s *site) upgrade(ctx context.Context, u upgrader, namespace string, replicas int32) time.Duration {
	set := u.make(namespace, replicas)
	check(s.client.Create(ctx, set))
	s.versionServes(ctx, namespace, "1", replicas)
	pause(ctx, settle)
	path := "/spec/template/spec/containers/0/env/0/value"
	if u.handover != "" {
		path = "/spec/template" + path
	}
	began := time.Now()
	edit := fmt.Appendf(nil, `[{"op":"replace","path":%q,"value":"2"}]`, path)
	check(s.client.Patch(ctx, set, client.RawPatch(types.JSONPatchType, edit)))
	s.versionServes(ctx, namespace, "2", replicas)
	took := time.Since(began)
	check(s.client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	waitFor(ctx, 3*time.Minute, "the set to be gone", func() (bool, string) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(set), set)
		check(client.IgnoreNotFound(err))
		return err != nil, ""
	})
	return took
}

// make returns a set whose pods exit immediately on SIGTERM.
func (u upgrader) make(namespace string, replicas int32) client.Object {
	labels := map[string]string{"app": "upgraded"}
	spec := appsv1.StatefulSetSpec{
		// The same for both kinds. The default of ExtendedStatefulSet is 5 s.
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
	// REPLICAS in the environment is optional, and left out for all.
	set.Spec.InjectReplicasEnv, set.Spec.UpdateStrategy.Handover, set.Spec.Template.Spec = new(false), u.handover, spec
	return set
}

// versionServes waits until the namespace has exactly the wanted number of pods, all Ready and of the
// given version.
func (s *site) versionServes(ctx context.Context, namespace, version string, replicas int32) {
	waitFor(ctx, 10*time.Minute, "version "+version, func() (bool, string) {
		pods := s.podsIn(ctx, namespace)
		good := 0
		for i := range pods {
			if wanted := (corev1.EnvVar{Name: generation, Value: version}); slices.Contains(pods[i].Spec.Containers[0].Env, wanted) && ready(&pods[i]) {
				good++
			}
		}
		return good == int(replicas) && len(pods) == good, fmt.Sprintf("(%d of %d pods are)", good, len(pods))
	})
}
