package observe

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/slim"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// MetadataOf returns the empty metadata of an object of a core kind.
func MetadataOf(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// PodWatch watches the metadata of pods and PodDisruptionBudgets to trigger passes. It
// watches only namespaces that have StatefulSingletons, so pods in other namespaces cost
// nothing. A nil PodWatch watches nothing.
type PodWatch struct {
	root    context.Context // canceled when the manager stops
	end     context.CancelFunc
	cluster cluster.Cluster
	open    leasewatch.Opener
	// Find returns the requests for the objects that a changed pod or budget concerns.
	Find func(context.Context, metav1.Object) []reconcile.Request
	// Requests receives an event for each object to reconcile.
	Requests chan event.GenericEvent
	// namespaces are the watched namespaces; "" means all.
	namespaces []string

	mu sync.Mutex
	// followed are the namespaces with a watch, with the functions that end it.
	followed map[string]context.CancelFunc
}

// NewPodWatch returns a PodWatch. watched are the namespaces that the operator manages; empty
// means all.
func NewPodWatch(c cluster.Cluster, watched []string) *PodWatch {
	p := &PodWatch{cluster: c, Requests: make(chan event.GenericEvent, 1024), namespaces: watched}
	if len(watched) == 0 {
		p.namespaces = []string{metav1.NamespaceAll}
	}
	p.root, p.end = context.WithCancel(context.Background())
	p.open = leasewatch.OpenerOf(c, p.root)
	return p
}

// Leases returns a watch of the Leases of the objects, which ends as this one does.
func (p *PodWatch) Leases(now func() time.Time) *leasewatch.Watch {
	return leasewatch.New(now, v1.LabelSingleton, p.open, p.requeue)
}

// Start requeues the objects for which existing pods were created. An object may have been
// deleted while no operator ran, and no watch event reports that its pods still wait. Start
// ends all watches when the manager stops.
func (p *PodWatch) Start(ctx context.Context) error {
	defer p.end()
	for _, namespace := range p.namespaces {
		// The only error is that the manager stops.
		_ = wait.PollUntilContextCancel(ctx, spec.OrphanListRetry, true, func(ctx context.Context) (bool, error) { return p.requeueCreatedFor(ctx, namespace), nil })
	}
	<-ctx.Done()
	return nil
}

// requeueCreatedFor requeues the objects for which the pods of a namespace, or of all
// namespaces, were created according to their label.
func (p *PodWatch) requeueCreatedFor(ctx context.Context, namespace string) bool {
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	if err := p.cluster.GetAPIReader().List(ctx, &pods, client.InNamespace(namespace), client.HasLabels{v1.LabelSingleton}); err != nil {
		log.FromContext(ctx).Error(err, "list pods that may wait for a deleted StatefulSingleton", "namespace", namespace)
		return false
	}
	for i := range pods.Items {
		p.requeue(types.NamespacedName{Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Labels[v1.LabelSingleton]})
	}
	return true
}

// requeue triggers a pass of an object.
func (p *PodWatch) requeue(key types.NamespacedName) {
	select {
	case p.Requests <- event.GenericEvent{Object: &v1.StatefulSingleton{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}}:
	case <-p.root.Done():
	}
}

// Follow starts to watch the pods and budgets of a namespace, unless it already does.
func (p *PodWatch) Follow(ctx context.Context, namespace string) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.followed[namespace] != nil {
		return nil
	}
	end, err := p.open(ctx, cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}, DefaultTransform: stripToLabels},
		p.handler(), MetadataOf("Pod"), budgetMetadata())
	if err != nil {
		return fmt.Errorf("watch pods and PodDisruptionBudgets in %s: %w", namespace, err)
	}
	if p.followed == nil {
		p.followed = map[string]context.CancelFunc{}
	}
	p.followed[namespace] = end
	return nil
}

// budgetMetadata returns the metadata type of PodDisruptionBudgets. Our budgets have the
// same label as pods, so that a change or deletion requeues the object.
func budgetMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"))
	return m
}

// leave stops the watch of a namespace.
func (p *PodWatch) leave(namespace string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end := p.followed[namespace]; end != nil {
		end()
		delete(p.followed, namespace)
	}
}

// handler returns the event handler for pods and budgets.
func (p *PodWatch) handler() toolscache.ResourceEventHandler {
	requeue := func(objects ...any) {
		for _, o := range objects {
			if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			pod, ok := o.(metav1.Object)
			if !ok {
				continue
			}
			for _, req := range p.Find(p.root, pod) {
				p.requeue(req.NamespacedName)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { requeue(pod) },
		DeleteFunc: func(pod any) { requeue(pod) },
		UpdateFunc: func(old, pod any) {
			if labels.Equals(old.(metav1.Object).GetLabels(), pod.(metav1.Object).GetLabels()) {
				requeue(pod)
				return
			}
			requeue(old, pod) // it may no longer match a selector
		},
	}
}

// stripToLabels is a cache transform that keeps only identity and labels. A pod with more
// labels than the cache keeps is treated as one that any object may select.
func stripToLabels(obj any) (any, error) {
	if m, ok := obj.(*metav1.PartialObjectMetadata); ok {
		createdFor := m.Labels[v1.LabelSingleton]
		m.ObjectMeta = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels}
		if slim.Bounded(&m.ObjectMeta) {
			m.Annotations = map[string]string{annotationLabelsDropped: v1.True}
			m.Labels = map[string]string{v1.LabelSingleton: createdFor}
		}
	}
	return obj, nil
}

// annotationLabelsDropped marks such pods in the cache. It is never written to the API server.
const annotationLabelsDropped = v1.Prefix + "more-labels-than-kept"

// LabelsDropped reports whether the cache does not have the labels of a pod, because they are
// too many.
func LabelsDropped(pod metav1.Object) bool {
	return pod.GetAnnotations()[annotationLabelsDropped] != ""
}
