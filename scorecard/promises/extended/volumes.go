package extended

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Data in volumes.

// claimsFollow takes a set through five versions, with scaling and a version that is rolled back
// between them.
func claimsFollow(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	apart := pods.Hold(claimsApart)
	x := newFixture(c, "diary", 2, onClaims, patiently)
	x.create(ctx)
	first := x.claimed(ctx, 2, nil)
	x.edit(ctx, scaled(3))
	x.serves(ctx, 1)
	first = x.claimed(ctx, 3, first)
	for _, step := range []struct {
		version string
		size    int32
		bad     bool
	}{{"2", 3, false}, {"3", 2, true}, {"4", 2, false}, {"5", 3, false}} {
		c.During(fmt.Sprintf("version %s", step.version), func() { x.turnTo(ctx, pods, step.version, step.size, step.bad) })
		c.During("after version "+step.version, func() { x.claimed(ctx, 3, first) })
	}
	x.diaries(ctx)
	c.Check(apart.Kept())
	c.Remove(ctx, x.set)
	c.Gone(ctx, x.set)
	x.empty(ctx)
	x.claimed(ctx, 3, first)
}

// turnTo scales, and then rolls a version out. A bad version is rolled back.
func (x *fixture) turnTo(ctx context.Context, pods *kit.Lookout, version string, size int32, bad bool) {
	serving := x.set.Status.CurrentVersion
	x.edit(ctx, scaled(size))
	x.serves(ctx, serving)
	capacity := pods.Hold(least(x.set.Name, int(size)-1))
	if bad {
		good := keeperOf(&x.set.Spec).Command
		x.edit(ctx, inVersion(version), running("sleep 1; exit 1"), minReady(probation), watchFor(8*time.Second, 30*time.Second))
		x.takenBack(ctx, v1alpha1.PhaseStale, serving)
		// The version is corrected in the next edit, because the spec still has the bad one.
		x.Check(capacity.Kept())
		x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).Command = good }, minReady(0), inVersion("3a"), patiently)
		x.serves(ctx, serving+2)
		return
	}
	x.edit(ctx, inVersion(version))
	x.upgraded(ctx, serving)
	x.Check(capacity.Kept())
	x.hostnames(ctx)
}

// claimed checks that each ordinal has its claim, that known claims were not recreated, and that
// there are no other claims.
func (x *fixture) claimed(ctx context.Context, ordinals int, before map[string]types.UID) map[string]types.UID {
	all := x.Claims(ctx)
	now, want := map[string]types.UID{}, map[string]bool{}
	for i := range ordinals {
		want[fmt.Sprintf("data-%s-%d", x.set.Name, i)] = true
	}
	var err error
	for name, claim := range all {
		now[name] = claim.UID
		switch {
		case !want[name]:
			err = errors.Join(err, fmt.Errorf("claim %s leaked", name))
		case before[name] != "" && before[name] != claim.UID:
			err = errors.Join(err, fmt.Errorf("claim %s was replaced", name))
		case claim.DeletionTimestamp != nil || len(claim.OwnerReferences) > 0:
			err = errors.Join(err, fmt.Errorf("claim %s should be deleted: deleted at %v, owners %v", name, claim.DeletionTimestamp, claim.OwnerReferences))
		}
	}
	if len(now) != len(want) {
		err = errors.Join(err, fmt.Errorf("claims %v exist, want %v", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(want))))
	}
	x.Check(err)
	return now
}

// diaries reads the files that the programs wrote: each ordinal has an entry of every version that
// it was part of, and no volume ever had two programs.
func (x *fixture) diaries(ctx context.Context) {
	pods := x.pods(ctx)
	wanted := map[string][]string{"0": {"1", "2", "3a", "4", "5"}, "1": {"1", "2", "3a", "4", "5"}, "2": {"1", "2", "5"}}
	for name, p := range pods {
		text := x.shell(ctx, name, "cat /data/diary")
		x.Expect(strings.Contains(text, "overlap")).To(BeFalse(), "two programs used the volume of %s: %q", name, text)
		for _, version := range wanted[p.Labels[v1alpha1.LabelPodOrdinal]] {
			x.Expect(text+"\n").To(ContainSubstring("begin "+version+"\n"), "%s has no entry of version %s of its ordinal: %q", name, version, text)
		}
	}
}

// hostnames checks that the host name of each pod has its ordinal in every version, and that DNS
// resolves it.
func (x *fixture) hostnames(ctx context.Context) {
	pods := x.pods(ctx)
	for name, p := range pods {
		want := x.set.Name + "-" + p.Labels[v1alpha1.LabelPodOrdinal]
		x.Expect(x.shell(ctx, name, "hostname")).To(Equal(want), "the host name of %s", name)
		long := fmt.Sprintf("%s.%s.%s.svc.cluster.local", want, x.set.Spec.Template.Spec.ServiceName, x.Namespace)
		x.Until(ctx, long+" to be found", func(ctx context.Context) {
			answer := x.shell(ctx, name, "nslookup "+long)
			x.Expect(answer).To(ContainSubstring(p.Status.PodIP), "it is not %s: %s", p.Status.PodIP, answer)
		})
	}
}

// empty waits until no pods and StatefulSets are left.
func (x *fixture) empty(ctx context.Context) {
	x.Until(ctx, "nothing of "+x.set.Name+" to be left", func(ctx context.Context) {
		pods := x.pods(ctx)
		children := x.children(ctx)
		x.Expect(len(pods)+len(children)).To(BeZero(), "%d pods and %d StatefulSets are left", len(pods), len(children))
	})
}

// volumeMoves has volumes that every node can mount, and versions that each run on another node.
func volumeMoves(ctx context.Context, c *kit.Cluster) {
	const replicas = 2
	sharedVolumes(ctx, c, replicas)
	nodes := c.Schedulable(ctx)
	c.Expect(len(nodes)).To(BeNumerically(">=", 2), "two nodes are required, and there are %d", len(nodes))
	on := func(i int) specChange {
		return func(s *v1alpha1.ExtendedStatefulSetSpec) { kit.OnNodes(nodes[i%2])(&s.Template.Spec.Template) }
	}
	pods := c.LookOut(ctx)
	x := newFixture(c, "moves", replicas, onClaims, patiently, on(0), func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &c.Namespace
	})
	x.create(ctx)
	apart, capacity := pods.Hold(claimsApart), pods.Hold(least(x.set.Name, replicas-1))
	for i := 1; i < 3; i++ {
		began := time.Now()
		x.edit(ctx, inVersion(fmt.Sprint(i+1)), on(i))
		x.serves(ctx, int64(i+1))
		c.Log("%d volumes moved to %s within %s", replicas, nodes[i%2], time.Since(began).Round(100*time.Millisecond))
	}
	for ordinal := range replicas {
		text := x.shell(ctx, fmt.Sprintf("%s-%d", x.child(3), ordinal), "cat /data/diary")
		c.Expect(text).To(Equal("begin 1\nend 1\nbegin 2\nend 2\nbegin 3"), "the diary of ordinal %d", ordinal)
	}
	c.Check(apart.Kept())
	c.Check(capacity.Kept())
}

// sharedVolumes creates volumes in the folder that all nodes share. Their storage class is named
// after the namespace. They are removed at the end.
func sharedVolumes(ctx context.Context, c *kit.Cluster, count int) {
	for i := range count {
		path := filepath.Join(c.Shared, c.Namespace, fmt.Sprint(i))
		c.Check(os.MkdirAll(path, 0o777))
		c.Check(os.Chmod(path, 0o777))
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.Namespace, i)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: c.Namespace, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
			},
		}
		c.Put(ctx, v)
		c.Cleanup(func() { c.Remove(context.WithoutCancel(ctx), v) })
	}
}

// claimTemplatesGrow increases the size of the claims of a set, which creates no version, and tries
// requests that cannot be fulfilled.
func claimTemplatesGrow(ctx context.Context, c *kit.Cluster) {
	x := newFixture(c, "grows", 1, onClaims, patiently)
	x.create(ctx)
	size := resource.MustParse("32Mi")
	x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = size
	})
	c.Until(ctx, "the claim to grow", func(ctx context.Context) {
		have := c.Claims(ctx)["data-grows-0"].Status.Capacity[corev1.ResourceStorage]
		c.Expect(have.Cmp(size)).To(BeNumerically(">=", 0), "it has %s", have.String())
	})
	x.serves(ctx, 1)
	for why, edit := range map[string]func(*corev1.PersistentVolumeClaim){
		"only the requested storage": func(t *corev1.PersistentVolumeClaim) {
			t.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
		"cannot shrink": func(t *corev1.PersistentVolumeClaim) {
			t.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("8Mi")
		},
	} {
		x.Read(ctx, x.set)
		edit(&x.set.Spec.Template.Spec.VolumeClaimTemplates[0])
		c.Check(refused(c.Client.Update(ctx, x.set), why))
	}
	x.serves(ctx, 1)
}
