// Package volumes provisions the volumes of the local cluster. They are folders of this machine, each
// bound to the node of its pod. Data is lost with its node, as with local disks, and the tests rely on
// that.
//
// It does not use sig-storage's library, because that adds modules to the operator's go.mod that are
// not needed otherwise.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Provisioner is the name of this provisioner in a StorageClass.
const Provisioner = "stateful-operator.github.io/node-volumes"

// Annotations that make the built-in controllers ignore these volumes.
const (
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	selectedNode  = "volume.kubernetes.io/selected-node"
)

type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[key]
	folder  func(node, volume string) string
}

// key is a claim, or a volume if the namespace is empty.
type key struct{ namespace, name string }

// Run provisions, expands and removes volumes until ctx ends. folder returns the folder of a volume's
// data.
func Run(ctx context.Context, config *rest.Config, folder func(node, volume string) string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &provisioner{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](50*time.Millisecond, 5*time.Second)),
		folder: folder,
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    p.enqueue,
		UpdateFunc: func(_, obj any) { p.enqueue(obj) },
	}
	if _, err := factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	if _, err := factory.Core().V1().PersistentVolumes().Informer().AddEventHandler(handler); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
	for range 8 {
		go p.work(ctx)
	}
	<-ctx.Done()
	return nil
}

func (p *provisioner) enqueue(obj any) {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		p.queue.Add(key{o.Namespace, o.Name})
	case *corev1.PersistentVolume:
		p.queue.Add(key{"", o.Name})
	}
}

func (p *provisioner) work(ctx context.Context) {
	for {
		k, done := p.queue.Get()
		if done {
			return
		}
		err := p.sync(ctx, k)
		if err != nil {
			fmt.Printf("%s %s/%s: %v\n", time.Now().Format(time.RFC3339), k.namespace, k.name, err)
			p.queue.AddRateLimited(k)
		} else {
			p.queue.Forget(k)
		}
		p.queue.Done(k)
	}
}

func (p *provisioner) sync(ctx context.Context, k key) error {
	if k.namespace == "" {
		volume, err := p.volumes.Get(k.name)
		if err != nil {
			return ignoreGone(err)
		}
		return p.reclaim(ctx, volume)
	}
	claim, err := p.claims.PersistentVolumeClaims(k.namespace).Get(k.name)
	if err != nil {
		return ignoreGone(err)
	}
	if claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return ignoreGone(err)
	}
	switch {
	case class.Provisioner != Provisioner:
		return nil
	case claim.Spec.VolumeName == "":
		return p.provision(ctx, claim, class)
	default:
		return p.grow(ctx, claim)
	}
}

// provision creates the volume on the node that the scheduler chose. It does nothing until then.
func (p *provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	node := claim.Annotations[selectedNode]
	if node == "" {
		return nil
	}
	// Derived only from the claim, so a retry finds its own volume.
	name := "pvc-" + string(claim.UID)
	path := p.folder(node, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	// Override the umask: the kubelet does not apply fsGroup to hostPath folders.
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	_, err := p.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim, class, node, name, path), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create volume %s: %w", name, err)
	}
	return nil
}

func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node, name, path string) *corev1.PersistentVolume {
	folder := corev1.HostPathDirectory
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &folder},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
					}},
				}},
			}},
		},
	}
}

// grow expands the volume of a claim that requests more. It updates first the volume and then the
// claim's status, for which the claim's owner waits.
func (p *provisioner) grow(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	has, bound := claim.Status.Capacity[corev1.ResourceStorage]
	if !bound || claim.Status.Phase != corev1.ClaimBound || wanted.Cmp(has) <= 0 {
		return nil
	}
	cached, err := p.volumes.Get(claim.Spec.VolumeName)
	if err != nil {
		return err
	}
	volume := cached.DeepCopy()
	if volume.Annotations[provisionedBy] != Provisioner {
		return nil
	}
	if size := volume.Spec.Capacity[corev1.ResourceStorage]; size.Cmp(wanted) < 0 {
		volume.Spec.Capacity[corev1.ResourceStorage] = wanted
		if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, volume, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("expand volume %s: %w", volume.Name, err)
		}
	}
	grown := claim.DeepCopy()
	grown.Status.Capacity[corev1.ResourceStorage] = wanted
	grown.Status.AllocatedResources = corev1.ResourceList{corev1.ResourceStorage: wanted}
	grown.Status.AllocatedResourceStatuses = nil
	grown.Status.Conditions = nil
	if _, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).UpdateStatus(ctx, grown, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("set the new size of claim %s: %w", claim.Name, err)
	}
	return nil
}

// reclaim removes data and volume once the claim is deleted.
func (p *provisioner) reclaim(ctx context.Context, volume *corev1.PersistentVolume) error {
	if volume.Annotations[provisionedBy] != Provisioner ||
		volume.Status.Phase != corev1.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete ||
		volume.DeletionTimestamp != nil {
		return nil
	}
	path := volume.Spec.HostPath.Path
	// Anyone who may edit a volume could set the path to any folder of this machine.
	if filepath.Base(path) != volume.Name {
		return errors.New("its path does not end in its name; its data is kept")
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return ignoreGone(p.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{}))
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
