package replicated

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

const postgreSQLContainer = "postgresql" // name in the sample

// createPostgreSQL creates the sample of PostgreSQL and a client that writes to its primary, and waits
// until both work.
func createPostgreSQL(ctx context.Context, c *kit.Cluster) *database {
	passwords, set := openSample(c, c.PostgreSQLSample, &corev1.Secret{})
	c.Put(ctx, passwords)
	d := &database{replica: &replica{Cluster: c}, container: postgreSQLContainer, count: []string{"psql", "-XAtqc", "select count(*) from entries"}}
	d.createSample(ctx, set)
	began := time.Now()
	d.whole(ctx)
	c.Log("all members ran in their roles after %s", time.Since(began).Round(time.Second))
	password := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: passwords.Name}, Key: "password"}}
	c.Put(ctx, d.clientPod(c.PostgreSQLClient, "5432", corev1.EnvVar{Name: "PGUSER", Value: "postgres"}, corev1.EnvVar{Name: "PGPASSWORD", ValueFrom: password}))
	return d
}

// createSample creates a set with the image that was built from the distribution's packages.
func (d *database) createSample(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet) {
	d.set = set
	d.set.Spec.Pod.Containers[0].Image = d.PostgreSQL
	d.Put(ctx, d.set)
}

// postgreSQL runs the sample of 25 lines, and does to it what happens in its life while a client writes.
// With one synchronous standby, no acknowledged row may be missing.
func postgreSQL(ctx context.Context, c *kit.Cluster) {
	d := createPostgreSQL(ctx, c)
	d.during(ctx, []act{
		{"kill -9 of the primary's server", func(ctx context.Context) {
			old := d.primary(ctx)
			d.killServers(ctx, old.Name)
			d.handedOver(ctx, old)
		}},
		{"a switchover", func(ctx context.Context) { d.switchTo(ctx, "rss-orders-2") }},
		{"kubectl delete of the primary", func(ctx context.Context) {
			old := d.primary(ctx)
			d.Remove(ctx, old)
			d.anotherPod(ctx, old)
		}},
		{"kubectl delete --now of the primary", func(ctx context.Context) { d.anotherPod(ctx, d.deletePod(ctx, d.primary(ctx).Name)) }},
		{"an eviction of the primary", func(ctx context.Context) { d.evictedUntilGone(ctx, d.primary(ctx)) }},
		{"kill -9 of all servers", func(ctx context.Context) {
			d.whole(ctx)
			d.killServers(ctx, "rss-orders-0", "rss-orders-1", "rss-orders-2")
		}},
		{"the deletion of all pods", func(ctx context.Context) {
			d.whole(ctx)
			d.Check(d.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(d.Namespace),
				client.MatchingLabels{v1alpha1.LabelApp: d.set.Name}, client.GracePeriodSeconds(1)))
		}},
		{"a change of a setting", func(ctx context.Context) {
			d.whole(ctx)
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
				s.Spec.Application.PostgreSQL.Settings = map[string]string{"work_mem": "8MB"}
			})
			d.renewed(ctx, before)
		}},
		{"from three members to one to three", func(ctx context.Context) {
			d.resize(ctx, 1)
			d.resize(ctx, 3)
		}},
		d.fromZero(),
		d.recreated(func(ctx context.Context) {
			_, set := openSample(c, c.PostgreSQLSample, &corev1.Secret{})
			d.createSample(ctx, set)
		}),
	})
	d.whole(ctx)
	d.judges(ctx)
	d.agree(ctx)
}

// killServers kills all processes of PostgreSQL of these members.
func (d *database) killServers(ctx context.Context, members ...string) {
	for _, name := range members {
		d.Exec(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, d.container, "/bin/killall", "-9", "postgres")
	}
}

// lacksAKey creates the sample with a Secret that has only one of its keys.
func lacksAKey(ctx context.Context, c *kit.Cluster) {
	passwords, set := openSample(c, c.PostgreSQLSample, &corev1.Secret{})
	d := &database{replica: &replica{Cluster: c}}
	d.createSample(ctx, set)
	d.conditionSays(ctx, v1alpha1.ConditionDegraded, "do not exist: orders")
	password := passwords.StringData["replicationPassword"]
	delete(passwords.StringData, "replicationPassword")
	c.Put(ctx, passwords)
	d.conditionSays(ctx, v1alpha1.ConditionDegraded, "replicationPassword")
	c.Expect(d.set.Status.Members.Primary).To(BeEmpty())
	kit.Change(ctx, c, passwords, func(s *corev1.Secret) { s.StringData = map[string]string{"replicationPassword": password} })
	d.whole(ctx)
}

// copiesAgent has a Node that does not support image volumes. Then an init container copies the agent.
func copiesAgent(ctx context.Context, c *kit.Cluster) {
	old := kit.Node("without-image-volumes")
	old.Spec.Unschedulable = true
	c.Put(ctx, old)
	c.Cleanup(func() { c.Remove(context.WithoutCancel(ctx), old) })
	d := createPostgreSQL(ctx, c)
	d.grows(ctx)
	c.Expect(d.set.Status.Agent.Mount).To(Equal(v1alpha1.AgentInitContainer))
	d.killServers(ctx, d.set.Status.Members.Primary[0])
	d.grows(ctx)
	d.judges(ctx)
}
