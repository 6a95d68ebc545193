package plan

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Loaded are the live objects that a plan starts from.
type Loaded struct {
	Objects []client.Object
	// Listed are the lists that were read, except those in Unread.
	Listed []simulation.Listing
	// Unread has a sentence for each type that the user must not read, or that the cluster does not have.
	Unread []string
	// Unlisted are the kinds of these types.
	Unlisted map[string]bool
}

// Load reads an object and what Kind.Reads lists. The object need not exist. It returns an error if a read
// fails for another reason than missing permissions or a missing type.
func Load(ctx context.Context, c client.Reader, kind simulation.Kind, key types.NamespacedName) (Loaded, error) {
	l := Loaded{Unlisted: map[string]bool{}}
	object := kind.New()
	switch err := c.Get(ctx, key, object); {
	case err == nil:
		l.Objects = append(l.Objects, object)
	case !apierrors.IsNotFound(err):
		return l, err
	}
	for _, listing := range kind.Reads(key) {
		switch err := c.List(ctx, listing.List, listing.Options...); {
		case apierrors.IsForbidden(err), meta.IsNoMatchError(err):
			l.Unlisted[objects.KindOf(listing.List)] = true
			l.Unread = append(l.Unread, fmt.Sprintf("%s cannot be read, and the plan assumes that there are none: %v", objects.KindOf(listing.List), err))
			continue
		case err != nil:
			return l, fmt.Errorf("list %s: %w", objects.KindOf(listing.List), err)
		}
		l.Listed = append(l.Listed, listing)
		items, err := meta.ExtractList(listing.List)
		if err != nil {
			return l, fmt.Errorf("list %s: %w", objects.KindOf(listing.List), err)
		}
		for _, item := range items {
			if one, isObject := item.(client.Object); isObject && objects.KeyOf(one) != objects.KeyOf(object) {
				l.Objects = append(l.Objects, one)
			}
		}
	}
	if err := l.addVolumes(ctx, c); err != nil {
		return l, err
	}
	return withNode(l), nil
}

// addVolumes adds the PersistentVolumes of the claims. A volume can belong to a Node or a zone.
func (l *Loaded) addVolumes(ctx context.Context, c client.Reader) error {
	bound := map[string]bool{}
	for _, object := range l.Objects {
		if claim, isClaim := object.(*corev1.PersistentVolumeClaim); isClaim && claim.Spec.VolumeName != "" {
			bound[claim.Spec.VolumeName] = true
		}
	}
	if len(bound) == 0 {
		return nil
	}
	var all corev1.PersistentVolumeList
	switch err := c.List(ctx, &all); {
	case apierrors.IsForbidden(err):
		l.Unread = append(l.Unread, fmt.Sprintf("PersistentVolume cannot be read, and the plan assumes that each node can mount them: %v", err))
	case err != nil:
		return fmt.Errorf("list PersistentVolume: %w", err)
	}
	for i := range all.Items {
		if pv := &all.Items[i]; bound[pv.Name] {
			l.Objects = append(l.Objects, pv)
		}
	}
	return nil
}

// withNode adds the Nodes of the pods, and another one, if no Node can be read. Any pod can be bound to them.
func withNode(l Loaded) Loaded {
	for _, object := range l.Objects {
		if _, isNode := object.(*corev1.Node); isNode {
			return l
		}
	}
	names := map[string]bool{"node": true}
	for _, object := range l.Objects {
		if pod, isPod := object.(*corev1.Pod); isPod && pod.Spec.NodeName != "" {
			names[pod.Spec.NodeName] = true
		}
	}
	for name := range names {
		l.Objects = append(l.Objects, kubelet.FittingNode(name))
	}
	return l
}
