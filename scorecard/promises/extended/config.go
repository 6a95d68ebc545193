package extended

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Changes of ConfigMaps and Secrets.

// The objects that a configured set references, each in a different way, and the key that each
// contains.
const (
	sayKey    = "SAYS"
	byEnv     = "by-env"      // a ConfigMap
	byEnvFrom = "by-env-from" // a Secret
	byVolume  = "by-volume"   // a ConfigMap
	projected = "projected"   // a Secret
	maybe     = "maybe"       // an optional ConfigMap
)

func isSecret(name string) bool { return name == byEnvFrom || name == projected }

// sayings is a script that prints the pod's value of each object.
const sayings = `echo "$BY_ENV $FROM_SAYS $(cat /by-volume/SAYS) $(cat /projected/SAYS) $MAYBE"`

// configured references all kinds of objects in all ways.
func configured(tracking v1alpha1.ConfigTracking) specChange {
	return func(s *v1alpha1.ExtendedStatefulSetSpec) {
		s.UpdateOnEnvChange, s.ConfigTracking = true, tracking
		from := func(name string, optional bool) *corev1.EnvVarSource {
			return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: sayKey, Optional: &optional}}
		}
		k := keeperOf(s)
		k.Env = append(k.Env, corev1.EnvVar{Name: "BY_ENV", ValueFrom: from(byEnv, false)}, corev1.EnvVar{Name: "MAYBE", ValueFrom: from(maybe, true)})
		k.EnvFrom = []corev1.EnvFromSource{{Prefix: "FROM_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: byEnvFrom}}}}
		k.VolumeMounts = append(k.VolumeMounts, corev1.VolumeMount{Name: byVolume, MountPath: "/by-volume"}, corev1.VolumeMount{Name: projected, MountPath: "/projected"})
		s.Template.Spec.Template.Spec.Volumes = []corev1.Volume{
			{Name: byVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: byVolume}}}},
			{Name: projected, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: projected}}}}}}},
		}
	}
}

// newObject returns a ConfigMap or Secret of that name with the given value.
func newObject(c *kit.Cluster, name, says string) client.Object {
	about := metav1.ObjectMeta{Name: name, Namespace: c.Namespace}
	if isSecret(name) {
		return &corev1.Secret{ObjectMeta: about, Data: map[string][]byte{sayKey: []byte(says)}}
	}
	return &corev1.ConfigMap{ObjectMeta: about, Data: map[string]string{sayKey: says}}
}

// createObjects creates all required objects.
func createObjects(ctx context.Context, c *kit.Cluster) {
	for _, name := range []string{byEnv, byEnvFrom, byVolume, projected} {
		c.Put(ctx, newObject(c, name, "1"))
	}
}

// say changes the value of an object.
func say(ctx context.Context, c *kit.Cluster, name, says string) {
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, sayKey, says)
	if isSecret(name) {
		patch = fmt.Sprintf(`{"stringData":{%q:%q}}`, sayKey, says)
	}
	c.Check(c.Client.Patch(ctx, newObject(c, name, ""), client.RawPatch(types.MergePatchType, []byte(patch))))
}

// saying waits until all pods of version 1 print that text, and at least want pods have been
// created.
func (x *fixture) saying(ctx context.Context, made func() []string, want int, says string) {
	x.Until(ctx, "the pods of "+x.set.Name+" to print "+says, func(ctx context.Context) {
		x.Expect(len(made())).To(BeNumerically(">=", want), "new pods of %s", x.set.Name) // cheap check first: commands in pods are expensive
		x.onlyPods(ctx, 1)
		for name := range x.pods(ctx) {
			x.Expect(x.shell(ctx, name, sayings)).To(Equal(says), "the output of %s", name)
		}
	})
	x.serves(ctx, 1)
	x.Expect(len(made())).To(Equal(want), "%d pods of %s were created, want %d", len(made()), x.set.Name, want)
}

// configRestarts changes one object after another. Two sets follow the changes, and a third does
// not.
func configRestarts(ctx context.Context, c *kit.Cluster) {
	createObjects(ctx, c)
	pods := c.LookOut(ctx)
	sets := []*fixture{newFixture(c, "by-index", 2, patiently, configured(v1alpha1.TrackByIndex)), newFixture(c, "by-owner", 1, patiently, configured(v1alpha1.TrackByOwnerReference))}
	still := newFixture(c, "still", 1, patiently, configured(v1alpha1.TrackByIndex), func(s *v1alpha1.ExtendedStatefulSetSpec) { s.UpdateOnEnvChange = false })
	made := map[string]func() []string{}
	for _, x := range append(sets, still) {
		made[x.set.Name] = pods.Made(func(p *corev1.Pod) bool { return ofSet(p, x.set.Name) })
		x.create(ctx)
	}
	rounds := 1
	for _, edit := range []struct {
		name  string
		write func()
		says  string
	}{
		{byEnv, func() { say(ctx, c, byEnv, "2") }, "2 1 1 1"},
		{byEnvFrom, func() { say(ctx, c, byEnvFrom, "2") }, "2 2 1 1"},
		{byVolume, func() {
			relabel(ctx, c, byEnv, projected)
			say(ctx, c, byVolume, "2")
		}, "2 2 2 1"},
		{projected, func() { say(ctx, c, projected, "2") }, "2 2 2 2"},
		{maybe, func() { c.Put(ctx, newObject(c, maybe, "there")) }, "2 2 2 2 there"},
	} {
		edit.write()
		rounds++
		for _, x := range sets {
			c.During("after a change of "+edit.name, func() { x.saying(ctx, made[x.set.Name], rounds*x.size(), edit.says) })
		}
	}
	c.Expect(made["still"]()).To(HaveLen(1), "a set that does not follow changes has other pods")
	sets[0].noVersion(ctx)
}

// relabel changes labels and annotations of objects, but not their data.
func relabel(ctx context.Context, c *kit.Cluster, names ...string) {
	for _, name := range names {
		patch := []byte(`{"metadata":{"labels":{"edited":"yes"},"annotations":{"edited":"yes"}}}`)
		c.Check(c.Client.Patch(ctx, newObject(c, name, ""), client.RawPatch(types.MergePatchType, patch)))
	}
}

// noVersion checks that restarts created no version, and that the annotation with the hash reveals
// nothing.
func (x *fixture) noVersion(ctx context.Context) {
	children := x.children(ctx)
	child := children[x.child(1)]
	hash := child.Spec.Template.Annotations[v1alpha1.AnnotationConfigHash]
	x.Expect(hash).NotTo(BeEmpty(), "the configuration has hash %q: %s", hash, describe(x.set))
	x.Expect(x.set.Status.VersionHighWater).To(BeNumerically("==", 1), "the configuration has hash %q: %s", hash, describe(x.set))
}

func configStorm(ctx context.Context, c *kit.Cluster) {
	createObjects(ctx, c)
	pods := c.LookOut(ctx)
	x := newFixture(c, "storm", 2, patiently, configured(v1alpha1.TrackByIndex))
	made := pods.Made(func(p *corev1.Pod) bool { return ofSet(p, "storm") })
	x.create(ctx)
	began := time.Now()
	c.AtOnce(10, func(own *kit.Cluster, i int) { // sequential edits take too long on a busy machine
		if i == 9 {
			say(ctx, own, projected, "storm")
			return
		}
		patch := fmt.Sprintf(`{"stringData":{"STORM-%d":"yes"}}`, i)
		own.Check(own.Client.Patch(ctx, newObject(own, projected, ""), client.RawPatch(types.MergePatchType, []byte(patch))))
	})
	c.Log("10 edits within %s", time.Since(began).Round(time.Millisecond))
	x.saying(ctx, made, 4, "1 1 1 storm")
	// Any further restart would have come before this one.
	say(ctx, c, byVolume, "calm")
	x.saying(ctx, made, 6, "1 1 calm storm")
}

// configMissing creates a required object only after the set. It then deletes and recreates the
// object while the set serves.
func configMissing(ctx context.Context, c *kit.Cluster) {
	pods := c.LookOut(ctx)
	createObjects(ctx, c)
	c.Remove(ctx, newObject(c, byEnv, ""))
	x := newFixture(c, "missing", 1, patiently, configured(v1alpha1.TrackByIndex))
	made := pods.Made(func(p *corev1.Pod) bool { return ofSet(p, "missing") })
	missing := func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		found := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionConfigMissing)
		return found != nil && found.Status == metav1.ConditionTrue && strings.Contains(found.Message, byEnv)
	}
	c.Put(ctx, x.set)
	x.says(ctx, "that by-env is missing", missing)
	c.Put(ctx, newObject(c, byEnv, "1"))
	x.serves(ctx, 1)
	// When the object was created, the first pod may have existed and needed a restart.
	before := len(made())
	c.Remove(ctx, newObject(c, byEnv, ""))
	x.says(ctx, "that by-env is missing", missing)
	c.Put(ctx, newObject(c, byEnv, "1"))
	x.says(ctx, "that it is back", func(s v1alpha1.ExtendedStatefulSetStatus) bool { return !missing(s) })
	say(ctx, c, projected, "2")
	x.saying(ctx, made, before+1, "1 1 1 2")
}

// configWhileAway edits objects while no operator runs.
func configWhileAway(ctx context.Context, c *kit.Cluster) {
	createObjects(ctx, c)
	pods := c.LookOut(ctx)
	sets := []*fixture{newFixture(c, "by-index", 1, patiently, configured(v1alpha1.TrackByIndex)), newFixture(c, "by-owner", 1, patiently, configured(v1alpha1.TrackByOwnerReference))}
	made := map[string]func() []string{}
	for _, x := range sets {
		made[x.set.Name] = pods.Made(func(p *corev1.Pod) bool { return ofSet(p, x.set.Name) })
		x.create(ctx)
	}
	c.WhileNoOperator(ctx, func() {
		say(ctx, c, byEnvFrom, "away")
		relabel(ctx, c, byVolume)
	})
	for _, x := range sets {
		x.saying(ctx, made[x.set.Name], 2, "1 away 1 1")
	}
}

// tracked waits until an object has, or does not have, the set's owner reference.
func (x *fixture) tracked(ctx context.Context, name string, want bool) {
	x.Until(ctx, fmt.Sprintf("%s to be owned by %s: %t", name, x.set.Name, want), func(ctx context.Context) {
		object := newObject(x.Cluster, name, "")
		x.Read(ctx, object)
		for _, o := range object.GetOwnerReferences() {
			if o.UID != x.set.UID {
				continue
			}
			x.Expect(want).To(BeTrue(), "finalizers and references are %+v", o)
			x.Expect(o.Kind != v1alpha1.Kind || o.Name != x.set.Name || (o.Controller != nil && *o.Controller) || o.BlockOwnerDeletion == nil || !*o.BlockOwnerDeletion).To(BeFalse(), "the owner reference is %+v", o)
			return
		}
		x.Expect(want).To(BeFalse(), "its owners are %+v", object.GetOwnerReferences())
	})
}

// spared checks that the user's objects are the same as before, and not owned by the set.
func (x *fixture) spared(ctx context.Context, before map[string]client.Object) {
	for name, was := range before {
		now := newObject(x.Cluster, name, "")
		got := x.Client.Get(ctx, client.ObjectKeyFromObject(now), now)
		if apierrors.IsNotFound(got) || (got == nil && (now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil)) {
			got = fmt.Errorf("%s of the user was adopted", name)
		}
		x.Check(got)
		x.tracked(ctx, name, false)
	}
}
