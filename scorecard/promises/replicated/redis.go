package replicated

import (
	"context"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

const redisName = "redis" // name in the sample

// redis makes typical changes to a real server while a client writes through the Service of the
// primary. At the end the client reads all acknowledged entries.
func redis(ctx context.Context, c *kit.Cluster) {
	r := &replica{Cluster: c}
	r.applyRedis(ctx)
	r.whole(ctx)
	c.Put(ctx, r.redisClient())
	r.redisGrows(ctx)
	for _, act := range []struct {
		what string
		do   func(context.Context)
	}{
		{"a switchover", func(ctx context.Context) { r.switchTo(ctx, "rss-redis-2") }},
		{"another configuration", r.redisReconfigured},
		{"the primary's ordinal is removed", func(ctx context.Context) {
			r.switchTo(ctx, "rss-redis-2")
			r.resize(ctx, 2)
		}},
		{"its return", func(ctx context.Context) { r.resize(ctx, 3) }},
		{"a stop, and a return from zero", func(ctx context.Context) {
			r.resize(ctx, 0)
			r.resize(ctx, 3)
		}},
		{"its deletion, and a new object on the same claims", func(ctx context.Context) {
			r.removed(ctx)
			r.createRedis(ctx)
			r.whole(ctx)
		}},
	} {
		c.During("after "+act.what, func() {
			act.do(ctx)
			r.redisGrows(ctx)
		})
		c.Log("the client continues after %s", act.what)
	}
	r.redisJudges(ctx)
}

// applyRedis applies the sample, with the image that was built from the distribution's packages.
func (r *replica) applyRedis(ctx context.Context) {
	scripts, _ := r.redisSample()
	r.Put(ctx, scripts)
	r.createRedis(ctx)
}

func (r *replica) createRedis(ctx context.Context) {
	_, r.set = r.redisSample()
	server := &r.set.Spec.Pod.Containers[0]
	server.Image = r.Redis
	server.ReadinessProbe.PeriodSeconds = 5 // its command takes CPU time from the test
	r.Put(ctx, r.set)
}

func (r *replica) redisSample() (scripts *corev1.ConfigMap, set *v1alpha1.ReplicatedStatefulSet) {
	file, err := os.Open(r.RedisSample)
	r.Check(err)
	defer file.Close()
	documents := yaml.NewYAMLOrJSONDecoder(file, 1<<10)
	r.Check(documents.Decode(&scripts))
	r.Check(documents.Decode(&set))
	scripts.Namespace, set.Namespace = r.Namespace, r.Namespace
	return scripts, set
}

// redisReconfigured changes the ConfigMap: all members are recreated.
func (r *replica) redisReconfigured(ctx context.Context) {
	before := r.lives(ctx)
	scripts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: redisName}}
	kit.Change(ctx, r.Cluster, scripts, func(m *corev1.ConfigMap) { m.Data["redis.conf"] += "timeout 0\n" })
	r.renewed(ctx, before)
}

func (r *replica) redisClient() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: r.Namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(2)),
			Containers: []corev1.Container{{Name: "client", Image: r.RedisClient, Args: []string{"run", redisName + "-primary:6379", "50ms"}}},
		},
	}
}

// redisGrows waits until the primary has more entries than a moment before.
func (r *replica) redisGrows(ctx context.Context) {
	first := -1
	r.Until(ctx, "Redis to have more entries", func(ctx context.Context) {
		r.Read(ctx, r.set)
		r.Expect(len(r.set.Status.Members.Primary)).To(Equal(1), "%s", describe(r.set))
		primary := client.ObjectKey{Namespace: r.Namespace, Name: r.set.Status.Members.Primary[0]}
		out := r.Exec(ctx, primary, redisName, "redis-cli", "-s", "/tmp/redis.sock", "dbsize")
		have, err := strconv.Atoi(strings.TrimSpace(out))
		r.Check(err)
		if first < 0 || have < first {
			first = have
		}
		r.Expect(have).NotTo(Equal(first), "there are %d", have)
	})
}

// redisJudges ends the client, which then reads the acknowledged entries, and fails if one is lost.
func (r *replica) redisJudges(ctx context.Context) {
	key := client.ObjectKeyFromObject(r.redisClient())
	r.Exec(ctx, key, "client", "/client", "end")
	var pod *corev1.Pod
	r.Until(ctx, "the client to have read all", func(ctx context.Context) {
		pod = r.pod(ctx, key.Name)
		r.Expect(pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed).To(BeFalse(), "it is %s", pod.Status.Phase)
	})
	says, err := r.Kube.CoreV1().Pods(key.Namespace).GetLogs(key.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	r.Check(err)
	r.Expect(pod.Status.Phase).To(Equal(corev1.PodSucceeded), "client output: %s", says)
	r.Log("%s", strings.TrimSpace(string(says)))
}
