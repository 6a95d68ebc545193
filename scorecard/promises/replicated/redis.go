package replicated

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

const redisName = "redis" // name in the sample

// redis makes typical changes to a real server while a client writes through the Service of the
// primary. At the end the client reads all acknowledged entries.
func redis(ctx context.Context, c *kit.Cluster) {
	r := &database{replica: &replica{Cluster: c}, container: redisName, count: []string{"redis-cli", "-s", "/tmp/redis.sock", "dbsize"}}
	scripts, set := openSample(c, c.RedisSample, &corev1.ConfigMap{})
	c.Put(ctx, scripts)
	r.createRedis(ctx, set)
	r.whole(ctx)
	c.Put(ctx, r.clientPod(c.RedisClient, "6379"))
	r.during(ctx, []act{
		{"a switchover", func(ctx context.Context) { r.switchTo(ctx, "rss-redis-2") }},
		{"another configuration", r.redisReconfigured},
		{"the primary's ordinal is removed", func(ctx context.Context) {
			r.switchTo(ctx, "rss-redis-2")
			r.resize(ctx, 2)
		}},
		{"its return", func(ctx context.Context) { r.resize(ctx, 3) }},
		r.fromZero(),
		r.recreated(func(ctx context.Context) {
			_, set := openSample(c, c.RedisSample, &corev1.ConfigMap{})
			r.createRedis(ctx, set)
		}),
	})
	r.judges(ctx)
}

// createRedis creates the set of the sample, with the image that was built from the distribution's
// packages.
func (d *database) createRedis(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) {
	d.set = set
	server := &d.set.Spec.Pod.Containers[0]
	server.Image = d.Redis
	server.ReadinessProbe.PeriodSeconds = 5 // its command takes CPU time from the test
	d.Put(ctx, d.set)
}

// redisReconfigured changes the ConfigMap: all members are recreated.
func (d *database) redisReconfigured(ctx context.Context) {
	before := d.lives(ctx)
	scripts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: redisName}}
	kit.Change(ctx, d.Cluster, scripts, func(m *corev1.ConfigMap) { m.Data["redis.conf"] += "timeout 0\n" })
	d.renewed(ctx, before)
}
