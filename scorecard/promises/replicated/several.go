package replicated

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

func etcd(c *kit.Cluster) application {
	return application{
		sample: c.EtcdSample, images: []string{c.Etcd, c.EtcdNext}, client: c.EtcdClient, container: "etcd", process: "etcd", driver: "etcd", port: "2379",
		passwordVariable: "ETCD_PASSWORD", durable: true, many: true, leaves: true,
		count: func(password string) []string {
			return []string{"sh", "-c", `etcdctl --user "root:$1" --endpoints 127.0.0.1:2379 get entry: --prefix --keys-only --consistency s | grep -c entry: || true`, "sh", password}
		},
		set: func(p *v1alpha1.ApplicationPolicy) {
			p.Etcd.Settings = map[string]string{"auto-compaction-retention": "4h"}
		},
	}
}

func mariaDB(c *kit.Cluster) application {
	return application{
		sample: c.MariaDBSample, images: []string{c.MariaDB, c.MariaDBNext}, client: c.MariaDBClient, container: "mariadb", process: "mariadbd", driver: "galera", port: "3306",
		passwordVariable: "MARIADB_PASSWORD", durable: true, many: true,
		count: func(password string) []string {
			return []string{"sh", "-c", `MYSQL_PWD="$1" exec mariadb -uroot -h127.0.0.1 -NBe 'select count(*) from test.entries'`, "sh", password}
		},
		set: func(p *v1alpha1.ApplicationPolicy) {
			p.MariaDBGalera.Settings = map[string]string{"wsrep_slave_threads": "2"}
		},
	}
}

func rabbitMQ(c *kit.Cluster) application {
	const entries = `{ok, {_, N}, _} = ra:local_query({list_to_atom("%2F_entries"), node()}, fun rabbit_fifo:query_messages_total/1), io:format("entries: ~b~n", [N]).`
	return application{
		sample: c.RabbitMQSample, images: []string{c.RabbitMQ, c.RabbitMQNext}, client: c.RabbitMQClient, container: "rabbitmq", process: "beam.smp", driver: "rabbitmq", port: "5672",
		passwordVariable: "RABBITMQ_PASSWORD", durable: true, many: true, leaves: true,
		count: func(string) []string {
			return []string{"env", "HOME=/dev/shm/rabbitmq", "RABBITMQ_USE_LONGNAME=true", "sh", "-c", `rabbitmqctl -q -n "rabbit@$POD_NAME.$SERVICE_NAME" eval "$1" | sed -n 's/^entries: //p'`, "sh", entries}
		},
		set: func(p *v1alpha1.ApplicationPolicy) {
			p.RabbitMQ.Settings = map[string]string{"heartbeat": "20"}
		},
	}
}

// livesTogether runs a sample whose members are all primaries, and does to it what happens in its life
// while a client writes. No acknowledged entry may be missing.
func livesTogether(of func(*kit.Cluster) application) func(context.Context, *kit.Cluster) {
	return func(ctx context.Context, c *kit.Cluster) { of(c).livesTogether(ctx, c) }
}

func (a application) livesTogether(ctx context.Context, c *kit.Cluster) {
	d := a.create(ctx, c)
	first := d.set.Status.Members.Primary[0]
	settled := func(do func(context.Context)) func(context.Context) {
		return func(ctx context.Context) {
			d.whole(ctx)
			do(ctx)
			d.whole(ctx)
		}
	}
	d.during(ctx, []act{
		{"kill -9 of a server", settled(func(ctx context.Context) { d.killServers(ctx, first) })},
		{"kubectl delete of a pod", settled(func(ctx context.Context) {
			old := d.pod(ctx, first)
			d.Remove(ctx, old)
			d.anotherPod(ctx, old)
		})},
		{"kubectl delete --now of a pod", settled(func(ctx context.Context) { d.anotherPod(ctx, d.deletePod(ctx, first)) })},
		{"an eviction", settled(func(ctx context.Context) { d.evictedUntilGone(ctx, d.pod(ctx, first)) })},
		{"the loss of a volume", settled(func(ctx context.Context) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Namespace, claim.Name = d.Namespace, "data-"+first
			d.Check(d.Client.Delete(ctx, claim))
			d.anotherPod(ctx, d.deletePod(ctx, first))
		})},
		{"the deletion of all pods", settled(func(ctx context.Context) {
			d.Check(d.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(d.Namespace), client.MatchingLabels{v1alpha1.LabelApp: d.set.Name}, client.GracePeriodSeconds(1)))
		})},
		{"lights out", settled(func(ctx context.Context) {
			for name := range d.lives(ctx) {
				d.killServers(ctx, name)
			}
		})},
		{"a change of a setting", settled(func(ctx context.Context) {
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { a.set(s.Spec.Application) })
			d.renewed(ctx, before)
		})},
		{"another image", settled(func(ctx context.Context) {
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = a.images[1] })
			d.renewed(ctx, before)
		})},
		{"from three members to one to three", settled(func(ctx context.Context) {
			d.resize(ctx, 1)
			if a.leaves {
				d.Expect(d.set.Status.Memberships).To(HaveLen(1))
			}
			d.grows(ctx) // one member has a majority only if the others were removed from the cluster
			d.resize(ctx, 3)
		})},
		d.fromZero(),
		d.recreated(func(ctx context.Context) {
			_, set := openSample(c, a.sample, &corev1.Secret{})
			d.createSample(ctx, set, a.images[0])
		}),
	})
	d.whole(ctx)
	d.judges(ctx)
	d.agree(ctx)
}
