package promises

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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// What becomes of the data.

// claimsFollow takes a set through five versions, with scalings and a version
// that is taken back between them.
func claimsFollow(ctx context.Context, c *Cluster) error {
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	apart := pods.hold(claimsApart)
	x := c.extended("diary", 2, onClaims, patiently)
	if err := x.create(ctx); err != nil {
		return err
	}
	first, err := x.claimed(ctx, 2, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(x.edit(ctx, scaled(3)), x.serves(ctx, 1)); err != nil {
		return err
	}
	if first, err = x.claimed(ctx, 3, first); err != nil {
		return err
	}
	for _, step := range []struct {
		version string
		size    int32
		bad     bool
	}{{"2", 3, false}, {"3", 2, true}, {"4", 2, false}, {"5", 3, false}} {
		if err := x.turnTo(ctx, pods, step.version, step.size, step.bad); err != nil {
			return fmt.Errorf("version %s: %w", step.version, err)
		}
		if _, err := x.claimed(ctx, 3, first); err != nil {
			return fmt.Errorf("after version %s: %w", step.version, err)
		}
	}
	if err := errors.Join(x.diaries(ctx), apart.kept()); err != nil {
		return err
	}
	if err := errors.Join(c.Client.Delete(ctx, x.set), c.gone(ctx, x.set), x.empty(ctx)); err != nil {
		return err
	}
	_, err = x.claimed(ctx, 3, first)
	return err
}

// turnTo scales, and then rolls a version out; a bad one is taken back.
func (x *extended) turnTo(ctx context.Context, pods *lookout, version string, size int32, bad bool) error {
	serving := x.set.Status.CurrentVersion
	if err := errors.Join(x.edit(ctx, scaled(size)), x.serves(ctx, serving)); err != nil {
		return err
	}
	capacity := pods.hold(least(x.set.Name, int(size)-1))
	if bad {
		good := keeperOf(&x.set.Spec).Command
		edit := errors.Join(x.edit(ctx, inVersion(version), running("sleep 1; exit 1"), minReady(probation), watchFor(8*time.Second, 30*time.Second)), x.takenBack(ctx, v1alpha1.PhaseStale, serving))
		if edit != nil {
			return errors.Join(edit, capacity.kept())
		}
		// With the next step: what was taken back is still wanted.
		return errors.Join(capacity.kept(), x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) { keeperOf(s).Command = good }, minReady(0), inVersion("3a"), patiently), x.serves(ctx, serving+2))
	}
	if err := errors.Join(x.edit(ctx, inVersion(version)), x.upgraded(ctx, serving)); err != nil {
		return errors.Join(err, capacity.kept())
	}
	return errors.Join(capacity.kept(), x.hostnames(ctx))
}

// claimed checks that the ordinals have their claims, which were there before if
// they are known, and that no other claim is.
func (x *extended) claimed(ctx context.Context, ordinals int, before map[string]types.UID) (map[string]types.UID, error) {
	all, err := x.claims(ctx)
	if err != nil {
		return nil, err
	}
	now, want := map[string]types.UID{}, map[string]bool{}
	for i := range ordinals {
		want[fmt.Sprintf("data-%s-%d", x.set.Name, i)] = true
	}
	for name, claim := range all {
		now[name] = claim.UID
		switch {
		case !want[name]:
			err = errors.Join(err, fmt.Errorf("claim %s leaked", name))
		case before[name] != "" && before[name] != claim.UID:
			err = errors.Join(err, fmt.Errorf("claim %s is another one than before", name))
		case claim.DeletionTimestamp != nil || len(claim.OwnerReferences) > 0:
			err = errors.Join(err, fmt.Errorf("claim %s is to go: deleted at %v, owners %v", name, claim.DeletionTimestamp, claim.OwnerReferences))
		}
	}
	if len(now) != len(want) {
		err = errors.Join(err, fmt.Errorf("claims %v are there, and %v are wanted", slices.Sorted(maps.Keys(now)), slices.Sorted(maps.Keys(want))))
	}
	return now, err
}

// diaries reads what the programs wrote: each ordinal tells of all versions that
// it was part of, and none was ever two.
func (x *extended) diaries(ctx context.Context) error {
	pods, err := x.pods(ctx)
	if err != nil {
		return err
	}
	wanted := map[string][]string{"0": {"1", "2", "3a", "4", "5"}, "1": {"1", "2", "3a", "4", "5"}, "2": {"1", "2", "5"}}
	for name, p := range pods {
		text, err := x.shell(ctx, name, "cat /data/diary")
		if err != nil {
			return err
		}
		if strings.Contains(text, "overlap") {
			return fmt.Errorf("two programs were on the volume of %s: %q", name, text)
		}
		for _, version := range wanted[p.Labels[v1alpha1.LabelPodOrdinal]] {
			if !strings.Contains(text+"\n", "begin "+version+"\n") {
				return fmt.Errorf("%s does not know version %s, which its ordinal was of: %q", name, version, text)
			}
		}
	}
	return nil
}

// hostnames checks that each pod is called by its ordinal, in every version, and
// is found by that name.
func (x *extended) hostnames(ctx context.Context) error {
	pods, err := x.pods(ctx)
	if err != nil {
		return err
	}
	for name, p := range pods {
		want := x.set.Name + "-" + p.Labels[v1alpha1.LabelPodOrdinal]
		if have, err := x.shell(ctx, name, "hostname"); err != nil || have != want {
			return errors.Join(err, fmt.Errorf("the host name of %s is %q and should be %q", name, have, want))
		}
		long := fmt.Sprintf("%s.%s.%s.svc.cluster.local", want, x.set.Spec.Template.Spec.ServiceName, x.Namespace)
		err := until(ctx, long+" to be found", func(ctx context.Context) error {
			answer, err := x.shell(ctx, name, "nslookup "+long)
			if err == nil && !strings.Contains(answer, p.Status.PodIP) {
				err = fmt.Errorf("it is not %s: %s", p.Status.PodIP, answer)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// empty waits until neither pods nor StatefulSets are left.
func (x *extended) empty(ctx context.Context) error {
	return until(ctx, "nothing of "+x.set.Name+" to be left", func(ctx context.Context) error {
		pods, err := x.pods(ctx)
		if err != nil {
			return err
		}
		children, err := x.children(ctx)
		if err == nil && len(pods)+len(children) > 0 {
			err = fmt.Errorf("%d pods and %d StatefulSets are", len(pods), len(children))
		}
		return err
	})
}

// volumeMoves has volumes that every node can mount, and versions that each run
// on another node.
func volumeMoves(ctx context.Context, c *Cluster) (err error) {
	const replicas = 2
	remove, err := c.sharedVolumes(ctx, replicas)
	defer func() { err = errors.Join(err, remove()) }()
	if err != nil {
		return err
	}
	nodes, err := c.schedulable(ctx)
	if err != nil || len(nodes) < 2 {
		return errors.Join(err, fmt.Errorf("two nodes are needed, and %d are there", len(nodes)))
	}
	on := func(i int) extendedChange {
		return func(s *v1alpha1.ExtendedStatefulSetSpec) { onNodes(nodes[i%2])(&s.Template.Spec.Template) }
	}
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("moves", replicas, onClaims, patiently, on(0), func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &c.Namespace
	})
	if err := x.create(ctx); err != nil {
		return err
	}
	apart, capacity := pods.hold(claimsApart), pods.hold(least(x.set.Name, replicas-1))
	for i := 1; i < 3; i++ {
		began := time.Now()
		if err := errors.Join(x.edit(ctx, inVersion(fmt.Sprint(i+1)), on(i)), x.serves(ctx, int64(i+1))); err != nil {
			return err
		}
		c.Log("%d volumes moved to %s within %s", replicas, nodes[i%2], time.Since(began).Round(100*time.Millisecond))
	}
	for ordinal := range replicas {
		text, err := x.shell(ctx, fmt.Sprintf("%s-%d", x.child(3), ordinal), "cat /data/diary")
		if want := "begin 1\nend 1\nbegin 2\nend 2\nbegin 3"; err != nil || text != want {
			return errors.Join(err, fmt.Errorf("the diary of ordinal %d should be %q: %q", ordinal, want, text))
		}
	}
	return errors.Join(apart.kept(), capacity.kept())
}

// sharedVolumes makes volumes of a class that is called as the namespace, in the
// folder that all nodes have. The result removes them.
func (c *Cluster) sharedVolumes(ctx context.Context, count int) (remove func() error, err error) {
	var made []*corev1.PersistentVolume
	remove = func() error {
		var err error
		for _, v := range made {
			err = errors.Join(err, c.Client.Delete(context.WithoutCancel(ctx), v))
		}
		return err
	}
	for i := range count {
		path := filepath.Join(c.Shared, c.Namespace, fmt.Sprint(i))
		if err := errors.Join(os.MkdirAll(path, 0o777), os.Chmod(path, 0o777)); err != nil {
			return remove, err
		}
		v := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", c.Namespace, i)},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName: c.Namespace, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("16Mi")},
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}},
			},
		}
		if err := c.Client.Create(ctx, v); err != nil {
			return remove, err
		}
		made = append(made, v)
	}
	return remove, nil
}

// schedulable are the names of the nodes that take pods.
func (c *Cluster) schedulable(ctx context.Context) ([]string, error) {
	var list corev1.NodeList
	err := c.Client.List(ctx, &list)
	var names []string
	for _, n := range list.Items {
		if !n.Spec.Unschedulable && !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names, err
}

// claimTemplatesGrow grows the claims of a set, which makes no version, and tries
// what cannot be carried out.
func claimTemplatesGrow(ctx context.Context, c *Cluster) error {
	x := c.extended("grows", 1, onClaims, patiently)
	if err := x.create(ctx); err != nil {
		return err
	}
	size := resource.MustParse("32Mi")
	if err := x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.Template.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = size
	}); err != nil {
		return err
	}
	err := until(ctx, "the claim to grow", func(ctx context.Context) error {
		all, err := c.claims(ctx)
		if claim := all["data-grows-0"]; err == nil {
			if have := claim.Status.Capacity[corev1.ResourceStorage]; have.Cmp(size) < 0 {
				err = fmt.Errorf("it has %s", have.String())
			}
		}
		return err
	})
	if err := errors.Join(err, x.serves(ctx, 1)); err != nil {
		return err
	}
	for why, edit := range map[string]func(*corev1.PersistentVolumeClaim){
		"only the requested storage": func(t *corev1.PersistentVolumeClaim) {
			t.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
		"cannot shrink": func(t *corev1.PersistentVolumeClaim) {
			t.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("8Mi")
		},
	} {
		if err := x.get(ctx); err != nil {
			return err
		}
		edit(&x.set.Spec.Template.Spec.VolumeClaimTemplates[0])
		if err := refused(c.Client.Update(ctx, x.set), why); err != nil {
			return err
		}
	}
	return x.serves(ctx, 1)
}
