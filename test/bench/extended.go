package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Goals of ExtendedStatefulSet, from section 5 of the contract.
const (
	goalExtendedMemory = 250 // MiB, at 1,000 objects
	goalConfigEdit     = 2.5 // s at p99: half a second after the window of 2 s
)

// Names in the namespace of the benchmark. All sets share the Secret. Each set has a ConfigMap of the
// same name.
const (
	extendedNamespace = "extended"
	sharedSecret      = "shared"
)

// extendedSet returns a set with one pod, which is restarted when its ConfigMap changes.
func extendedSet(i int) *v1alpha1.ExtendedStatefulSet {
	set := &v1alpha1.ExtendedStatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: extendedNamespace, Name: setName(i)},
		Spec:       v1alpha1.ExtendedStatefulSetSpec{UpdateOnEnvChange: true},
	}
	spec := &set.Spec.Template.Spec
	spec.Replicas, spec.Selector, spec.Template = ptr.To(int32(1)), &metav1.LabelSelector{MatchLabels: setLabels(i)}, podTemplate(i)
	c := &spec.Template.Spec.Containers[0]
	c.VolumeMounts = nil
	c.EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: set.Name}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: sharedSecret}}},
	}
	return set
}

func extendedConfig(i int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: extendedNamespace, Name: setName(i)}, Data: map[string]string{"VALUE": value}}
}

// measureExtended measures many objects: their memory, the writes while nothing changes, and the time
// from an edit of a ConfigMap to the pod's replacement.
func measureExtended(ctx context.Context, s *site) {
	s.makeNamespace(ctx, extendedNamespace)
	o := s.startOperator(ctx, "ExtendedStatefulSet")
	defer o.stop()
	objects := thousands(s.size.objects)
	step("creating %s sets of one pod", objects)
	s.makeExtended(ctx, s.size.objects)
	live, rss := o.liveHeap(ctx)
	s.report(figure{title: "memory of " + objects + " ExtendedStatefulSets", what: "resident", value: mib(rss), unit: " MiB", digits: -1,
		goal: atMost(goalExtendedMemory), detail: fmt.Sprintf("live heap %.1f MiB", mib(live))})
	mark := s.markAudit()
	s.rest(ctx, s.size.rest)
	s.reportRest("sets at rest: "+objects+" ExtendedStatefulSets", s.size.rest, mark, "")
	s.editConfigs(ctx)
	check(s.client.DeleteAllOf(ctx, &v1alpha1.ExtendedStatefulSet{}, client.InNamespace(extendedNamespace)))
	o.stop()
	s.clearNamespaces(ctx, extendedNamespace)
}

func (s *site) makeExtended(ctx context.Context, total int) {
	check(s.client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: extendedNamespace, Name: sharedSecret}, Data: map[string][]byte{"KEY": []byte("1")}}))
	check(spread(ctx, total, func(i int) error {
		if err := s.client.Create(ctx, extendedConfig(i, "1")); err != nil {
			return err
		}
		return s.client.Create(ctx, extendedSet(i))
	}))
	waitFor(ctx, 10*time.Minute, "all sets to be stable", func() (bool, string) {
		var list v1alpha1.ExtendedStatefulSetList
		check(s.client.List(ctx, &list, client.InNamespace(extendedNamespace)))
		stable := 0
		for i := range list.Items {
			if st := list.Items[i].Status; st.Phase == v1alpha1.PhaseStable && st.ReadyReplicas == 1 {
				stable++
			}
		}
		pause(ctx, time.Second)
		return stable == total, fmt.Sprintf("(%d of %d are)", stable, total)
	})
	s.quiet(ctx)
}

// editConfigs edits the ConfigMaps of sets one after another. A delay starts and ends when the API
// server receives a request.
func (s *site) editConfigs(ctx context.Context) {
	order := rand.Perm(s.size.objects)[:min(s.size.objects, s.size.changes)]
	step("editing %d ConfigMaps", len(order))
	mark := s.markAudit()
	edit(ctx, order, 400*time.Millisecond, 200*time.Millisecond, func(i int) error {
		return s.client.Patch(ctx, extendedConfig(i, ""), client.RawPatch(types.MergePatchType, []byte(`{"data":{"VALUE":"2"}}`)))
	})
	pause(ctx, settle+3*time.Second)
	took := delays(s.since(mark, (*request).isWrite), extendedNamespace, "patch configmaps", "delete pods", "-v1-", len(order))
	s.spread3("configuration edit to first pod change, "+thousands(s.size.objects)+" objects", took, bounds{p99: atMost(goalConfigEdit)},
		fmt.Sprintf("%d edits; the window in which edits are gathered is 2 s of it", len(took)))
}
