package facts

import (
	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// Deleting reports whether the object is being deleted.
func (w *World) Deleting() bool {
	return w.Object != nil && w.Object.DeletionTimestamp != nil
}

// ReleasesAll reports whether all pods are released at once, by a user's request or because
// the namespace is terminating.
func (w *World) ReleasesAll() bool {
	if !w.Deleting() {
		return false
	}
	if w.NamespaceGoes || w.Object.Annotations[v1.AnnotationReleaseNow] == v1.True {
		return true
	}
	return spec.ReleaseOrder{Object: w.Object}.IsOrdered()
}

// Serves reports whether this object manages its pods: its spec is valid, the namespace
// limit is not exceeded, and no older object overlaps.
func (w *World) Serves() bool {
	switch {
	case w.Object == nil, w.Invalid != "", w.BeyondLimit:
		return false
	}
	return w.OlderRival() == nil
}

// Grants reports whether this object may start a pod now, or delete one so that another can
// start.
func (w *World) Grants() bool {
	if !w.Serves() || w.ReleasesAll() {
		return false
	}
	return w.SettlesIn() == 0 && w.MirrorMayReturn() == 0
}

// OlderRival returns an older object whose selector overlaps; nil if there is none. The older
// object manages the pods of both.
func (w *World) OlderRival() *v1.StatefulSingleton {
	for _, other := range w.Rivals {
		if spec.Older(other, w.Object) {
			return other
		}
	}
	return nil
}

// Epoch returns the highest known epoch of this object's grants.
func (w *World) Epoch() int64 {
	var highest int64
	if w.Object != nil && w.Object.Status.Holder != nil {
		highest = w.Object.Status.Holder.Epoch
	}
	highest = max(highest, w.LeaseEpoch())
	for _, m := range w.Pods {
		highest = max(highest, m.Epoch())
	}
	return highest
}
