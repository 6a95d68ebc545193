package replicated

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// application is a sample of spec.application, with what its test uses.
type application struct {
	sample, client     string
	images             []string // of the server
	container, process string   // names
	driver             string   // of the agent
	port               string
	environment        []corev1.EnvVar // of the client, in addition to the password
	passwordVariable   string
	// count prints the number of entries in a member.
	count func(password string) []string
	// durable is true if an acknowledged entry is on disk.
	durable bool
	// many is true if all members are primaries.
	many bool
	// leaves is true if the application has a list of members.
	leaves bool
	// set changes a setting.
	set func(*v1alpha1.ApplicationPolicy)
	// prepare changes the sample before it is created. Optional.
	prepare func(*v1alpha1.ReplicatedStatefulSet)
}

func postgreSQL(c *kit.Cluster) application {
	return application{
		sample: c.PostgreSQLSample, images: []string{c.PostgreSQL, c.PostgreSQLNext}, client: c.PostgreSQLClient, container: "postgresql", process: "postgres", driver: "postgresql", port: "5432",
		environment: []corev1.EnvVar{{Name: "PGUSER", Value: "postgres"}}, passwordVariable: "PGPASSWORD", durable: true,
		count: func(string) []string { return []string{"psql", "-XAtqc", "select count(*) from entries"} },
		set: func(p *v1alpha1.ApplicationPolicy) {
			p.PostgreSQL.Settings = map[string]string{"work_mem": "8MB"}
		},
	}
}

func redisInLines(c *kit.Cluster) application {
	return application{
		sample: c.RedisInLines, images: []string{c.Redis, c.RedisNext}, client: c.RedisClient, container: "redis", process: "redis-server", driver: "redis", port: "6379",
		passwordVariable: "REDIS_PASSWORD",
		count: func(password string) []string {
			return []string{"redis-cli", "--no-auth-warning", "-a", password, "-s", "/dev/shm/redis/redis.sock", "--user", "default", "dbsize"}
		},
		set: func(p *v1alpha1.ApplicationPolicy) { p.Redis.Settings = map[string]string{"timeout": "600"} },
	}
}

// create creates the sample and a client that writes to its primary, and waits until both work.
func (a application) create(ctx context.Context, c *kit.Cluster) *database {
	passwords, set := openSample(c, a.sample, &corev1.Secret{})
	d := &database{
		replica: &replica{Cluster: c}, container: a.container, process: a.process, count: a.count(passwords.StringData["password"]),
		sequence: []string{"/opt/stateful-operator/agent", a.driver, "sequence"}, images: a.images, durable: a.durable, many: a.many,
	}
	c.Put(ctx, passwords)
	if a.prepare != nil {
		a.prepare(set)
	}
	d.createSample(ctx, set, a.images[0])
	began := time.Now()
	d.whole(ctx)
	c.Log("all members ran in their roles after %s", time.Since(began).Round(time.Second))
	password := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: passwords.Name}, Key: "password"}}
	c.Put(ctx, d.clientPod(a.client, a.port, append(a.environment, corev1.EnvVar{Name: a.passwordVariable, ValueFrom: password})...))
	return d
}

// createSample creates a set with the image that was built from the distribution's packages.
func (d *database) createSample(ctx context.Context, set *v1alpha1.ReplicatedStatefulSet, image string) {
	d.set = set
	d.set.Spec.Pod.Containers[0].Image = image
	d.Put(ctx, d.set)
}

// lives runs a sample, and does to it what happens in its life while a client writes. No acknowledged
// entry may be missing.
func (a application) lives(ctx context.Context, c *kit.Cluster) {
	d := a.create(ctx, c)
	last := "rss-" + d.set.Name + "-2"
	acts := []act{
		{"kill -9 of the primary's server", func(ctx context.Context) {
			old := d.primary(ctx)
			d.killServers(ctx, old.Name)
			d.handedOver(ctx, old)
		}},
		{"a switchover", func(ctx context.Context) { d.switchTo(ctx, last) }},
		{"kubectl delete of the primary", func(ctx context.Context) {
			old := d.primary(ctx)
			d.Remove(ctx, old)
			d.anotherPod(ctx, old)
		}},
		{"kubectl delete --now of the primary", func(ctx context.Context) { d.anotherPod(ctx, d.deletePod(ctx, d.primary(ctx).Name)) }},
		{"an eviction of the primary", func(ctx context.Context) { d.evictedUntilGone(ctx, d.primary(ctx)) }},
		{"the deletion of all pods", func(ctx context.Context) {
			d.whole(ctx)
			grace := client.GracePeriodSeconds(1)
			if !a.durable {
				grace = client.GracePeriodSeconds(60) // the members save their data
			}
			d.Check(d.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(d.Namespace), client.MatchingLabels{v1alpha1.LabelApp: d.set.Name}, grace))
		}},
		{"a change of a setting", func(ctx context.Context) {
			d.whole(ctx)
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { a.set(s.Spec.Application) })
			d.renewed(ctx, before)
		}},
		{"another image", func(ctx context.Context) {
			d.whole(ctx)
			before := d.lives(ctx)
			d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Pod.Containers[0].Image = a.images[1] })
			d.renewed(ctx, before)
		}},
		{"from three members to one to three", func(ctx context.Context) {
			d.resize(ctx, 1)
			d.resize(ctx, 3)
		}},
		d.fromZero(),
		d.recreated(func(ctx context.Context) {
			_, set := openSample(c, a.sample, &corev1.Secret{})
			d.createSample(ctx, set, a.images[0])
		}),
	}
	if a.durable {
		acts = append(acts, act{"lights out", func(ctx context.Context) {
			d.whole(ctx)
			for name := range d.lives(ctx) {
				d.killServers(ctx, name)
			}
		}})
	}
	d.during(ctx, acts)
	d.whole(ctx)
	d.judges(ctx)
	d.agree(ctx)
}

func lives(of func(*kit.Cluster) application) func(context.Context, *kit.Cluster) {
	return func(ctx context.Context, c *kit.Cluster) { of(c).lives(ctx, c) }
}

// killServers kills all processes of the servers of these members.
func (d *database) killServers(ctx context.Context, members ...string) {
	for _, name := range members {
		d.Check(d.signal(ctx, name, "-9"))
	}
}

// signal sends a signal to all processes of the server. The agent ends the container with its server,
// which can kill the command that kills the server.
func (d *database) signal(ctx context.Context, member, signal string) error {
	_, err := d.TryExec(ctx, client.ObjectKey{Namespace: d.Namespace, Name: member}, d.container, "/bin/killall", signal, d.process)
	var exit exec.CodeExitError
	if errors.As(err, &exit) && exit.Code == 128+int(syscall.SIGKILL) {
		return nil
	}
	return err
}

// soakOf lets random faults happen to a sample. With few runs it is a part of every test.
func soakOf(of func(*kit.Cluster) application) func(context.Context, *kit.Cluster) {
	return func(ctx context.Context, c *kit.Cluster) {
		runs := c.Faults
		if !long(c) {
			runs = 1
		}
		chance := rand.New(rand.NewPCG(c.Seed, 147))
		c.Log("seed %d: %d runs", c.Seed, runs)
		for range runs {
			a, own := of(c), rand.New(rand.NewPCG(chance.Uint64(), 0))
			c.Check(c.Kept(func(c *kit.Cluster) { a.suffers(ctx, c, own) }))
		}
	}
}

// suffers runs a sample with three random faults. No acknowledged entry may be missing.
func (a application) suffers(ctx context.Context, c *kit.Cluster, chance *rand.Rand) {
	d := a.create(ctx, c)
	t := &trial{replica: d.replica, chance: chance, trials: &trials{Cluster: c}, database: d}
	d.grows(ctx)
	for _, f := range draw(chance, wantedFaults(c, d), 3) {
		t.During(f.name, func() { t.suffer(ctx, f) })
	}
	t.recovers(ctx)
	d.judges(ctx)
	d.agree(ctx)
	d.removed(ctx)
	for _, all := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.Secret{}} {
		d.Check(d.Client.DeleteAllOf(ctx, all, client.InNamespace(d.Namespace)))
	}
	d.Until(ctx, "the client and the claims to be gone", func(ctx context.Context) {
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		d.Check(errors.Join(d.Client.List(ctx, &pods, client.InNamespace(d.Namespace)), d.Client.List(ctx, &claims, client.InNamespace(d.Namespace))))
		d.Expect(len(pods.Items)+len(claims.Items)).To(BeZero(), "%d pods, %d claims", len(pods.Items), len(claims.Items))
	})
}

// lacksAKey creates the sample with a Secret that has only one of its keys.
func lacksAKey(ctx context.Context, c *kit.Cluster) {
	passwords, set := openSample(c, c.PostgreSQLSample, &corev1.Secret{})
	d := &database{replica: &replica{Cluster: c}}
	d.createSample(ctx, set, c.PostgreSQL)
	d.conditionSays(ctx, v1alpha1.ConditionDegraded, "do not exist: orders")
	password := passwords.StringData["replicationPassword"]
	delete(passwords.StringData, "replicationPassword")
	c.Put(ctx, passwords)
	d.conditionSays(ctx, v1alpha1.ConditionDegraded, "replicationPassword")
	c.Expect(d.set.Status.Members.Primary).To(BeEmpty())
	kit.Change(ctx, c, passwords, func(s *corev1.Secret) { s.StringData = map[string]string{"replicationPassword": password} })
	d.whole(ctx)
}

// limitsLoss kills the primary of an asynchronous PostgreSQL while no standby replicates. With
// maxLoss 0 it must be primary again, with all its rows.
func limitsLoss(ctx context.Context, c *kit.Cluster) {
	d := postgreSQL(c).create(ctx, c)
	before := d.lives(ctx)
	d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Application.PostgreSQL.SynchronousStandbys = 0
		s.Spec.Failover = &v1alpha1.FailoverPolicy{MaxLoss: new(int64(0))}
	})
	d.renewed(ctx, before)
	old := d.primary(ctx)
	onPrimary := func(statements ...string) {
		d.Until(ctx, old.Name+" to execute a statement", func(ctx context.Context) {
			for _, s := range statements {
				_, err := d.TryExec(ctx, client.ObjectKeyFromObject(old), d.container, "psql", "-XAtqc", s)
				d.Check(err)
			}
		})
	}
	onPrimary("alter role replicator nologin", "select pg_terminate_backend(pid) from pg_stat_replication")
	first := d.entries(ctx, old.Name)
	d.Until(ctx, "rows that no standby has", func(ctx context.Context) {
		d.Expect(d.entries(ctx, old.Name)).To(BeNumerically(">", first+20))
	})
	behind := d.entries(ctx, d.set.Status.Members.Secondary[0])
	d.killServers(ctx, old.Name)
	d.Until(ctx, old.Name+" to be primary again", func(ctx context.Context) {
		d.Read(ctx, d.set)
		d.Expect(d.set.Status.Members.Primary).To(Equal([]string{old.Name}), "%s", describe(d.set))
		d.Expect(d.entries(ctx, old.Name)).To(BeNumerically(">", behind+10))
	})
	onPrimary("alter role replicator login")
	d.whole(ctx)
	d.judges(ctx)
	d.agree(ctx)
}

// keepsAgent upgrades the operator, and changes the template afterwards.
func keepsAgent(ctx context.Context, c *kit.Cluster) {
	d := postgreSQL(c).create(ctx, c)
	d.grows(ctx)
	before, agent := d.lives(ctx), *d.set.Status.Agent
	c.Check(c.Client.DeleteAllOf(ctx, &corev1.Event{}, client.InNamespace(d.Namespace)))
	d.Read(ctx, d.set)
	c.Expect(d.set.Status.Decisions).NotTo(BeEmpty(), "%s", describe(d.set))
	last := d.set.Status.Decisions[len(d.set.Status.Decisions)-1]
	c.WithOperatorImage(ctx, c.OperatorNext, func() {
		c.Log("%s is the leader", c.Leader(ctx).Name)
		d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.DeletionProtection = true })
		d.Until(ctx, "the new operator to have read the set", func(ctx context.Context) {
			d.Read(ctx, d.set)
			d.Expect(d.set.Status.ObservedGeneration).To(Equal(d.set.Generation))
		})
		d.grows(ctx)
		c.Expect(d.lives(ctx)).To(Equal(before))
		c.Expect(*d.set.Status.Agent).To(Equal(agent))
		c.Expect(d.set.Status.Decisions).To(ContainElement(last), "the decisions of the earlier operator, whose events are deleted")
		d.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.DeletionProtection = false
			s.Spec.Application.PostgreSQL.Settings = map[string]string{"work_mem": "8MB"}
		})
		d.renewed(ctx, before)
		c.Expect(d.set.Status.Agent.Image).To(Equal(c.OperatorNext))
	})
	d.grows(ctx)
	d.judges(ctx)
	d.agree(ctx)
}

// copiesAgent has a Node that does not support image volumes. Then an init container copies the agent.
func copiesAgent(ctx context.Context, c *kit.Cluster) {
	c.AddOldNode(ctx)
	d := postgreSQL(c).create(ctx, c)
	d.grows(ctx)
	c.Expect(d.set.Status.Agent.Mount).To(Equal(v1alpha1.AgentInitContainer))
	d.killServers(ctx, d.set.Status.Members.Primary[0])
	d.grows(ctx)
	d.judges(ctx)
}
