package extendedstatefulset

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// namesAtOnce is the max number of pods, and of claims, that a pass reads by name. Objects without the
// operator's label are found only by their names, with one live request for each name. Ordinals above
// the limit are skipped until a later pass: this pass assigns them to no version, and creates no claims
// for them.
const namesAtOnce = 200

// place is an ordinal of a zone.
type place struct {
	zone    zone
	ordinal int32
}

// leave skips a place, and all places after it, in this pass.
func (w *world) leave(at place) {
	if w.unseen == nil {
		w.unseen = map[int32]int32{}
	}
	from := at.ordinal
	for _, z := range w.zones[slices.Index(w.zones, at.zone):] {
		if first, some := w.unseen[z.index]; !some || from < first {
			w.unseen[z.index] = from
		}
		from = 0
	}
}

// left reports whether an ordinal is skipped in this pass.
func (w *world) left(z zone, ordinal int32) bool {
	first, some := w.unseen[z.index]
	return some && ordinal >= first
}

// podNames returns the possible pod names on ordinals that no StatefulSet has at present. Before an
// ordinal is assigned, pods without the operator's label must be found too.
func (w *world) podNames() iter.Seq2[place, string] {
	return func(yield func(place, string) bool) {
		for _, z := range w.zones {
			all := spans{}
			for _, c := range w.children {
				if c.zone == z.index {
					all[c.version] = c.span()
				}
			}
			numbers := slices.Sorted(maps.Keys(all))
			for o := range all.free(w.replicas, false) {
				for _, number := range numbers {
					if !yield(place{z, o}, fmt.Sprintf("%s-%d", childName(w.set.Name, z, number), o)) {
						return
					}
				}
			}
		}
	}
}

// findPods finds pods without the operator's label with live reads.
func findPods(ctx context.Context, w *world, from engine.View) error {
	asked := 0
	for at, name := range w.podNames() {
		if asked++; asked > namesAtOnce {
			w.leave(at)
			return nil
		}
		var pod corev1.Pod
		err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && !slices.ContainsFunc(w.pods, func(t podOfOrdinal) bool { return t.pod.Name == name }) {
			w.addPod(&pod)
		}
	}
	return nil
}

// listClaims lists the claims by their label.
func listClaims(ctx context.Context, w *world, from engine.View) error {
	w.claims = map[string]*corev1.PersistentVolumeClaim{}
	if len(w.set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, ofSet(w.set)...); err != nil {
		return err
	}
	for i := range list.Items {
		w.claims[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

// findClaims finds claims without the label by their expected names, with live reads.
func findClaims(ctx context.Context, w *world, from engine.View) error {
	w.foreign, w.claimants = map[string]*corev1.PersistentVolumeClaim{}, map[string]string{}
	asked, stems := 0, sets.New[string]()
	for at, name := range claimNames(w) {
		if !from.Live || w.claims[name] != nil {
			continue
		}
		if asked++; asked > namesAtOnce {
			w.leave(at)
			return nil
		}
		var one corev1.PersistentVolumeClaim
		err := from.Get(ctx, client.ObjectKey{Namespace: w.set.Namespace, Name: name}, &one)
		switch {
		case apierrors.IsNotFound(err):
			if err := findClaimants(ctx, w, at.zone, stems, from); err != nil {
				return err
			}
		case err != nil:
			return err
		case mayHave(w.set.Name, &one):
			w.claims[name] = &one
		default:
			w.foreign[name] = &one
		}
	}
	return nil
}

// findClaimants finds the StatefulSets of other owners that would use the same claims. It runs before
// claims are created for a zone.
func findClaimants(ctx context.Context, w *world, z zone, asked sets.Set[string], from client.Reader) error {
	for _, t := range w.set.Spec.Template.Spec.VolumeClaimTemplates {
		stem := claimStem(t.Name, z.stem(w.set.Name))
		if asked.Has(stem) {
			continue
		}
		asked.Insert(stem)
		other, err := claimantOf(ctx, from, w.set.Namespace, t.Name, z.stem(w.set.Name))
		if err != nil {
			return err
		}
		if other != "" {
			w.claimants[stem] = other
		}
	}
	return nil
}

// claimantOf returns the StatefulSet whose claims have the same names as those of a template; "" if
// there is none.
func claimantOf(ctx context.Context, from client.Reader, namespace, template, stem string) (string, error) {
	for name, theirs := range claimants(template, stem) {
		var other appsv1.StatefulSet
		err := from.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &other)
		if client.IgnoreNotFound(err) != nil {
			return "", err
		}
		if err == nil && slices.ContainsFunc(other.Spec.VolumeClaimTemplates, func(t corev1.PersistentVolumeClaim) bool { return t.Name == theirs }) {
			return name, nil
		}
	}
	return "", nil
}
