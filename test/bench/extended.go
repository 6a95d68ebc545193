package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// Goals of ExtendedStatefulSet, from the contract's section 5.
const (
	goalExtendedMemory = 250 // MiB, at 1,000 objects
	goalConfigEdit     = 2.5 // s at p99: half a second after the window of 2 s
)

// Names in the namespace of the benchmark. All sets share the Secret, and each has
// a ConfigMap of its own name.
const (
	extendedNamespace = "extended"
	sharedSecret      = "shared"
)

// extendedSet has one pod, which restarts when its ConfigMap changes.
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

// measureExtended has many objects: what they cost, what is written while nothing
// changes, and how long an edit of a ConfigMap takes to reach a pod.
func measureExtended(ctx context.Context, s *site, size sizes) ([]figure, error) {
	if err := s.makeNamespace(ctx, extendedNamespace); err != nil {
		return nil, err
	}
	o, err := s.startOperator(ctx, "ExtendedStatefulSet")
	if err != nil {
		return nil, err
	}
	defer o.stop()
	step("making %s sets of one pod", thousands(size.objects))
	if err := s.makeExtended(ctx, size.objects); err != nil {
		return nil, err
	}
	live, rss, err := o.liveHeap(ctx)
	if err != nil {
		return nil, err
	}
	figures := []figure{{title: "memory of " + thousands(size.objects) + " ExtendedStatefulSets", what: "resident", value: mib(rss), unit: " MiB", digits: -1,
		goal: atMost(goalExtendedMemory), detail: fmt.Sprintf("live heap %.1f MiB", mib(live))}}
	resting, err := s.restOfExtended(ctx, size)
	if figures = append(figures, resting...); err != nil {
		return figures, err
	}
	edits, err := s.configEdits(ctx, size)
	if figures = append(figures, edits...); err != nil {
		return figures, err
	}
	if err := s.objects.DeleteAllOf(ctx, &v1alpha1.ExtendedStatefulSet{}, client.InNamespace(extendedNamespace)); err != nil {
		return figures, err
	}
	o.stop()
	return figures, s.clearNamespaces(ctx, extendedNamespace)
}

func (s *site) makeExtended(ctx context.Context, total int) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: extendedNamespace, Name: sharedSecret}, Data: map[string][]byte{"KEY": []byte("1")}}
	if err := s.objects.Create(ctx, secret); err != nil {
		return err
	}
	err := spread(ctx, total, func(i int) error {
		if err := s.objects.Create(ctx, extendedConfig(i, "1")); err != nil {
			return err
		}
		return s.objects.Create(ctx, extendedSet(i))
	})
	if err != nil {
		return err
	}
	err = waitFor(ctx, 10*time.Minute, "all sets to be stable", func() (bool, string, error) {
		var list v1alpha1.ExtendedStatefulSetList
		if err := s.objects.List(ctx, &list, client.InNamespace(extendedNamespace)); err != nil {
			return false, "", err
		}
		stable := 0
		for i := range list.Items {
			if st := list.Items[i].Status; st.Phase == v1alpha1.PhaseStable && st.ReadyReplicas == 1 {
				stable++
			}
		}
		return stable == total, fmt.Sprintf("(%d of %d are)", stable, total), pause(ctx, time.Second)
	})
	if err != nil {
		return err
	}
	return s.quiet(ctx)
}

func (s *site) restOfExtended(ctx context.Context, size sizes) ([]figure, error) {
	mark, err := s.markAudit()
	if err != nil {
		return nil, err
	}
	step("at rest for %s", size.rest)
	if err := pause(ctx, size.rest); err != nil {
		return nil, err
	}
	writes, err := s.writesSince(mark)
	changes, events := byOperator(writes)
	changes = append(changes, events...)
	f := figure{title: "rest of " + thousands(size.objects) + " ExtendedStatefulSets", what: fmt.Sprintf("writes in %s, events counted too", size.rest),
		value: float64(len(changes)), digits: -1, goal: atMost(0)}
	if len(changes) > 0 {
		f.detail = tallied(changes)
	}
	return []figure{f}, err
}

// configEdits edits the ConfigMap of one set after another. Both ends are times at
// which the API server received a request.
func (s *site) configEdits(ctx context.Context, size sizes) ([]figure, error) {
	step("editing %d ConfigMaps", size.changes)
	mark, err := s.markAudit()
	if err != nil {
		return nil, err
	}
	for _, i := range rand.Perm(size.objects)[:min(size.objects, size.changes)] {
		edit := client.RawPatch(types.MergePatchType, []byte(`{"data":{"VALUE":"2"}}`))
		if err := s.objects.Patch(ctx, extendedConfig(i, ""), edit); err != nil {
			return nil, err
		}
		if err := pause(ctx, 400*time.Millisecond+rand.N(200*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, settle+3*time.Second); err != nil {
		return nil, err
	}
	writes, err := s.writesSince(mark)
	if err != nil {
		return nil, err
	}
	seconds, err := restartDelays(writes, extendedNamespace, min(size.objects, size.changes))
	if err != nil {
		return nil, err
	}
	return spread3("configuration edit to first pod change, "+thousands(size.objects)+" objects", seconds, bounds{p99: atMost(goalConfigEdit)},
		fmt.Sprintf("%d edits; the window in which edits are gathered is 2 s of it", len(seconds))), nil
}

// restartDelays pairs each edit of a ConfigMap with the first deletion of a pod of
// the set of the same name, and gives the seconds between them.
func restartDelays(writes []request, namespace string, want int) ([]float64, error) {
	slices.SortStableFunc(writes, func(a, b request) int { return a.Received.Compare(b.Received) })
	var found []float64
	edited := map[string]time.Time{} // by the name of the set
	for _, w := range writes {
		if w.Object.Namespace != namespace {
			continue
		}
		switch w.String() {
		case "patch configmaps":
			edited[w.Object.Name] = w.Received
		case "delete pods":
			set, _, _ := strings.Cut(w.Object.Name, "-v1-")
			if at, waiting := edited[set]; waiting {
				found = append(found, w.Received.Sub(at).Seconds())
				delete(edited, set)
			}
		}
	}
	if len(found) != want {
		return nil, fmt.Errorf("%d of %d edits were followed by the end of a pod", len(found), want)
	}
	return found, nil
}
