package replicatedstatefulset

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostLookups is how many pods that the labels did not find are looked for one by one.
const mostLookups = 32

// unlisted are the names of pods that there should be, or that the books name, and
// that were not listed. Where many are missing they are those that there are: a set
// that wants a thousand and gets none costs no thousand reads each time.
func (r *Reconciler) unlisted(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	for _, name := range w.inBooks() {
		if !listed[name] {
			names = append(names, name)
		}
	}
	missing := 0
	for name := range w.wantedNames() {
		if !listed[name] {
			if missing++; missing > mostLookups {
				break
			}
			names = append(names, name)
		}
	}
	if missing > mostLookups {
		if names, err = r.unlabelled(ctx, w, listed); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// unlabelled are the same, by a list of all pods of the namespace.
func (r *Reconciler) unlabelled(ctx context.Context, w *world, listed map[string]bool) (names []string, err error) {
	books := w.inBooks()
	list := metadataListOf("Pod")
	for {
		options := []client.ListOption{client.InNamespace(w.set.Namespace), client.Limit(500), client.Continue(list.Continue)}
		if err := r.Live.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("list pods: %w", err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if n, ok := ordinalOf(w.set, name); !listed[name] && (ok && n < int(*w.set.Spec.Replicas) || slices.Contains(books, name)) {
				names = append(names, name)
			}
		}
		if list.Continue == "" {
			return names, nil
		}
	}
}

// inBooks are the names of the pods that the books speak of.
func (w *world) inBooks() (names []string) {
	for i := range w.set.Status.Grants {
		names = append(names, w.set.Status.Grants[i].Pod)
	}
	for i := range w.set.Status.Commands {
		names = append(names, w.set.Status.Commands[i].Pod)
	}
	return names
}
