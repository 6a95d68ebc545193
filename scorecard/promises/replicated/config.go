package replicated

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// changedSecret changes a Secret while a client writes: it is referenced, changed, deleted, and
// recreated.
func changedSecret(ctx context.Context, c *kit.Cluster) {
	secret := func(text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret-credentials", Namespace: c.Namespace}, StringData: map[string]string{"password": text}}
	}
	c.Put(ctx, secret("one"))
	r := createLedger(ctx, c, "secret", 3)
	before := r.lives(ctx)
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Pod.Containers[0].Env = append(s.Spec.Pod.Containers[0].Env, corev1.EnvVar{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "secret-credentials"}, Key: "password"}}})
	})
	r.renewed(ctx, before) // because the spec changed
	before = r.lives(ctx)
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.UpdateOnEnvChange = true })
	r.Event(ctx, r.set, v1alpha1.EventConfigFollowed, "started to watch the ConfigMaps and Secrets that the members use")

	c.Check(c.Client.Delete(ctx, secret("")))
	r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonConfigMissing)
	r.goesOnWriting(ctx)
	c.Put(ctx, secret("one"))
	r.whole(ctx)
	r.untouched(ctx, before, "rss-secret-0", "rss-secret-1", "rss-secret-2")

	first := r.primary(ctx).Name
	c.Check(c.Client.Update(ctx, secret("two")))
	r.Event(ctx, r.set, v1alpha1.EventConfigRestart, "because a ConfigMap or Secret that they use changed")
	r.renewed(ctx, before)
	r.stoppedInOrder(first)
	r.goesOnWriting(ctx)
	r.judge(ctx)
}
