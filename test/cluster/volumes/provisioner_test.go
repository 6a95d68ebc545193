package volumes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func class() *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: Provisioner}
}

func claim(edit func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	name := "standard"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "u1"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &name,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: size("1Gi")},
		},
	}
	edit(c)
	return c
}

func size(s string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(s)}
}

// over returns a provisioner whose caches contain these objects.
func over(t *testing.T, dir string, claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) *provisioner {
	t.Helper()
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(client, time.Hour)
	p := &provisioner{
		client:  client,
		claims:  factory.Core().V1().PersistentVolumeClaims().Lister(),
		volumes: factory.Core().V1().PersistentVolumes().Lister(),
		classes: factory.Storage().V1().StorageClasses().Lister(),
		folder:  func(node, volume string) string { return filepath.Join(dir, node, volume) },
	}
	for _, c := range claims {
		if _, err := client.CoreV1().PersistentVolumeClaims(c.Namespace).Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_ = factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().Add(c)
	}
	for _, v := range volumes {
		if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), v, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		_ = factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(v)
	}
	_ = factory.Storage().V1().StorageClasses().Informer().GetStore().Add(class())
	return p
}

func TestAClaimWithoutAChosenNodeWaits(t *testing.T) {
	p := over(t, t.TempDir(), []*corev1.PersistentVolumeClaim{claim(func(*corev1.PersistentVolumeClaim) {})}, nil)
	if err := p.sync(t.Context(), key{"ns", "data"}); err != nil {
		t.Fatal(err)
	}
	if list, _ := p.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); len(list.Items) > 0 {
		t.Errorf("created %v", list.Items)
	}
}

func TestAClaimGetsAFolderOnItsNodeOnce(t *testing.T) {
	dir := t.TempDir()
	chosen := claim(func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{selectedNode: "node-2"} })
	p := over(t, dir, []*corev1.PersistentVolumeClaim{chosen}, nil)
	for range 2 { // the second time as after a crash
		if err := p.sync(t.Context(), key{"ns", "data"}); err != nil {
			t.Fatal(err)
		}
	}
	volume, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if volume.Spec.HostPath.Path != filepath.Join(dir, "node-2", "pvc-u1") || volume.Spec.ClaimRef.UID != "u1" {
		t.Errorf("volume %+v", volume.Spec)
	}
	if node := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]; node != "node-2" {
		t.Errorf("bound to %s", node)
	}
	if info, err := os.Stat(volume.Spec.HostPath.Path); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("its folder: %v %v", info, err)
	}
}

func bound(capacity string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec:       corev1.PersistentVolumeSpec{Capacity: size(capacity)},
	}
}

func TestAClaimThatAsksForMoreGetsIt(t *testing.T) {
	more := claim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Spec.Resources.Requests = "pvc-u1", size("2Gi")
		c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, size("1Gi")
	})
	p := over(t, t.TempDir(), []*corev1.PersistentVolumeClaim{more}, []*corev1.PersistentVolume{bound("1Gi")})
	if err := p.sync(t.Context(), key{"ns", "data"}); err != nil {
		t.Fatal(err)
	}
	grown, err := p.client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	volume, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := grown.Status.Capacity.Storage().String(), volume.Spec.Capacity.Storage().String(); a != "2Gi" || b != "2Gi" {
		t.Errorf("claim %s, volume %s", a, b)
	}
}

func TestOnlyAReleasedVolumeOfOursLosesItsData(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(*corev1.PersistentVolume)
		kept bool
	}{
		"released":                        {func(*corev1.PersistentVolume) {}, false},
		"still bound":                     {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, true},
		"a volume of another provisioner": {func(v *corev1.PersistentVolume) { v.Annotations = nil }, true},
		"a volume to keep": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, true},
		"a volume with another path": {func(v *corev1.PersistentVolume) { v.Name = "pvc-u2" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pvc-u1")
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
			volume := bound("1Gi")
			volume.Spec.HostPath = &corev1.HostPathVolumeSource{Path: path}
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			volume.Status.Phase = corev1.VolumeReleased
			row.edit(volume)
			p := over(t, t.TempDir(), nil, []*corev1.PersistentVolume{volume})
			_ = p.sync(t.Context(), key{"", volume.Name})
			if _, err := os.Stat(path); (err == nil) != row.kept {
				t.Errorf("data kept: %t, want %t", err == nil, row.kept)
			}
		})
	}
}
