package observe

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

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
)

// NamesAtOnce is the max number of pods, and of claims, that a pass reads by name. Objects without the
// operator's label are found only by their names, with one live request for each name. Ordinals above
// the limit are skipped until a later pass: this pass assigns them to no version, and creates no claims
// for them.
const NamesAtOnce = 200

// markUnread marks a place, and all places after it in the order of the zones and ordinals, as not read
// by this pass.
func markUnread(w *facts.World, at children.Place) {
	if w.FirstUnread == nil {
		w.FirstUnread = map[int32]int32{}
	}
	from := at.Ordinal
	for _, z := range w.Zones[slices.Index(w.Zones, at.Zone):] {
		if first, some := w.FirstUnread[z.Index]; !some || from < first {
			w.FirstUnread[z.Index] = from
		}
		from = 0
	}
}

// podNames returns the possible pod names on ordinals that no StatefulSet has at present. Before an
// ordinal is assigned, pods without the operator's label must be found too.
func podNames(w *facts.World) iter.Seq2[children.Place, string] {
	return func(yield func(children.Place, string) bool) {
		for _, z := range w.Zones {
			all := facts.Spans{}
			for _, c := range w.Children {
				if c.Zone == z.Index {
					all[c.Version] = c.Span()
				}
			}
			numbers := slices.Sorted(maps.Keys(all))
			for o := range all.Free(w.Replicas, false) {
				for _, number := range numbers {
					if !yield(children.Place{Zone: z, Ordinal: o}, fmt.Sprintf("%s-%d", children.ChildName(w.Set.Name, z, number), o)) {
						return
					}
				}
			}
		}
	}
}

// findPods finds pods without the operator's label with live reads.
func findPods(ctx context.Context, w *facts.World, from engine.View) error {
	read := 0
	for at, name := range podNames(w) {
		if read++; read > NamesAtOnce {
			markUnread(w, at)
			return nil
		}
		var pod corev1.Pod
		err := from.Get(ctx, client.ObjectKey{Namespace: w.Set.Namespace, Name: name}, &pod)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && !slices.ContainsFunc(w.Pods, func(t facts.PodOfOrdinal) bool { return t.Pod.Name == name }) {
			AddPod(w, &pod)
		}
	}
	return nil
}

// listClaims lists the claims by their label.
func listClaims(ctx context.Context, w *facts.World, from engine.View) error {
	w.Claims = map[string]*corev1.PersistentVolumeClaim{}
	if len(w.Set.Spec.Template.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	var list corev1.PersistentVolumeClaimList
	if err := from.List(ctx, &list, OfSet(w.Set)...); err != nil {
		return err
	}
	for i := range list.Items {
		w.Claims[list.Items[i].Name] = &list.Items[i]
	}
	return nil
}

// findClaims finds claims without the label by their expected names, with live reads. A claim that the
// set may not use becomes a foreign claim. For missing claims it looks for claimants.
func findClaims(ctx context.Context, w *facts.World, from engine.View) error {
	w.ForeignClaims, w.Claimants = map[string]*corev1.PersistentVolumeClaim{}, map[string]string{}
	read, stems := 0, sets.New[string]() // stems for which claimants were read
	for at, name := range facts.ClaimNames(w) {
		if !from.Live || w.Claims[name] != nil {
			continue
		}
		if read++; read > NamesAtOnce {
			markUnread(w, at)
			return nil
		}
		var one corev1.PersistentVolumeClaim
		err := from.Get(ctx, client.ObjectKey{Namespace: w.Set.Namespace, Name: name}, &one)
		switch {
		case apierrors.IsNotFound(err):
			if err := findClaimants(ctx, w, at.Zone, stems, from); err != nil {
				return err
			}
		case err != nil:
			return err
		case children.MayHave(w.Set.Name, &one):
			w.Claims[name] = &one
		default:
			w.ForeignClaims[name] = &one
		}
	}
	return nil
}

// findClaimants finds the StatefulSets of other owners that would use the same claims. It runs before
// claims are created for a zone. done are the stems that were checked.
func findClaimants(ctx context.Context, w *facts.World, z children.Zone, done sets.Set[string], from client.Reader) error {
	for _, t := range w.Set.Spec.Template.Spec.VolumeClaimTemplates {
		stem := children.ClaimStem(t.Name, z.Stem(w.Set.Name))
		if done.Has(stem) {
			continue
		}
		done.Insert(stem)
		other, err := ClaimantOf(ctx, from, w.Set.Namespace, t.Name, z.Stem(w.Set.Name))
		if err != nil {
			return err
		}
		if other != "" {
			w.Claimants[stem] = other
		}
	}
	return nil
}

// ClaimantOf returns the StatefulSet whose claims have the same names as those of a template; "" if
// there is none.
func ClaimantOf(ctx context.Context, from client.Reader, namespace, template, stem string) (string, error) {
	for name, theirs := range children.Claimants(template, stem) {
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
