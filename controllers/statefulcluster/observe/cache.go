package observe

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// IndexFields adds the indexes that the Reader uses to the cache.
func IndexFields(indexer client.FieldIndexer) error {
	byCluster := func(obj client.Object) []string {
		if uid := obj.GetLabels()[v1alpha1.LabelClusterUID]; uid != "" {
			return []string{uid}
		}
		return nil
	}
	ctx := context.Background()
	for _, obj := range []client.Object{&corev1.Pod{}, ClaimMetadata(), &appsv1.ControllerRevision{}} {
		if err := indexer.IndexField(ctx, obj, IndexOwner, byCluster); err != nil {
			return err
		}
	}
	return indexer.IndexField(ctx, &corev1.Pod{}, IndexNode, func(obj client.Object) []string {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
			return []string{pod.Spec.NodeName}
		}
		return nil
	})
}

// IndexOwner is the cache index of pods, claims and revisions by the UID of their set, which is in
// a label.
const IndexOwner = "stateful-operator.cluster"

// IndexNode is the cache index of pods by their Node.
const IndexNode = "spec.nodeName"

// ClaimMetadata returns the empty object under which claims are cached: only their metadata.
func ClaimMetadata() *metav1.PartialObjectMetadata { return metadataOf("PersistentVolumeClaim") }

// metadataOf returns empty metadata of an object of the given core kind.
func metadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// metadataList returns an empty metadata list of the given core kind.
func metadataList(kind string) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
	return l
}
