package promises

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
)

const redisName = "redis" // in the sample

// redis does to a server that people run what people do on purpose, while a
// client writes through the Service of the primary; at its end the client reads
// all that was acknowledged.
func redis(ctx context.Context, c *Cluster) error {
	r := &replica{Cluster: c}
	if err := r.applyRedis(ctx); err != nil {
		return err
	}
	if err := errors.Join(r.whole(ctx), c.Client.Create(ctx, r.redisClient()), r.redisGrows(ctx)); err != nil {
		return err
	}
	for _, act := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"a switchover", func(ctx context.Context) error {
			return r.switchTo(ctx, "rss-redis-2")
		}},
		{"another configuration", r.redisReconfigured},
		{"the primary's ordinal to be taken away", func(ctx context.Context) error {
			return errors.Join(r.switchTo(ctx, "rss-redis-2"), r.resize(ctx, 2))
		}},
		{"its return", func(ctx context.Context) error { return r.resize(ctx, 3) }},
		{"a stop, and a return from zero", func(ctx context.Context) error { return errors.Join(r.resize(ctx, 0), r.resize(ctx, 3)) }},
		{"its deletion, and a new object on the same claims", func(ctx context.Context) error {
			return errors.Join(r.removed(ctx), r.createRedis(ctx), r.whole(ctx))
		}},
	} {
		if err := errors.Join(act.do(ctx), r.redisGrows(ctx)); err != nil {
			return fmt.Errorf("after %s: %w", act.what, err)
		}
		c.Log("the client goes on after %s", act.what)
	}
	return r.redisJudges(ctx)
}

// applyRedis applies the sample, with the image that was made of the
// distribution's packages.
func (r *replica) applyRedis(ctx context.Context) error {
	sample, err := r.redisSample()
	if err != nil {
		return err
	}
	sample.scripts.Namespace = r.Namespace
	if err := r.Client.Create(ctx, sample.scripts); err != nil {
		return err
	}
	return r.createRedis(ctx)
}

func (r *replica) createRedis(ctx context.Context) error {
	sample, err := r.redisSample()
	if err != nil {
		return err
	}
	r.set = sample.set
	r.set.Namespace, r.set.Spec.Pod.Containers[0].Image = r.Namespace, r.Redis
	return r.Client.Create(ctx, r.set)
}

type redisObjects struct {
	scripts *corev1.ConfigMap
	set     *v1alpha1.ReplicatedStatefulSet
}

func (r *replica) redisSample() (redisObjects, error) {
	found := redisObjects{&corev1.ConfigMap{}, &v1alpha1.ReplicatedStatefulSet{}}
	file, err := os.Open(r.RedisSample)
	if err != nil {
		return found, err
	}
	defer file.Close()
	documents := yaml.NewYAMLOrJSONDecoder(file, 1<<10)
	return found, errors.Join(documents.Decode(found.scripts), documents.Decode(found.set))
}

// redisReconfigured changes the ConfigMap: all members are made anew.
func (r *replica) redisReconfigured(ctx context.Context) error {
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	scripts := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: redisName}}
	if err := change(ctx, r.Cluster, scripts, func(m *corev1.ConfigMap) { m.Data["redis.conf"] += "timeout 0\n" }); err != nil {
		return err
	}
	return r.renewed(ctx, before)
}

func (r *replica) redisClient() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: r.Namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(2)),
			Containers: []corev1.Container{{Name: "client", Image: r.RedisClient, Args: []string{"run", redisName + "-primary:6379"}}},
		},
	}
}

// redisGrows waits until the primary has more entries than a moment before.
func (r *replica) redisGrows(ctx context.Context) error {
	first := -1
	return until(ctx, "Redis to have more entries", func(ctx context.Context) error {
		if err := r.get(ctx); err != nil {
			return err
		}
		if len(r.set.Status.Members.Primary) != 1 {
			return errors.New(tellSet(r.set))
		}
		primary := client.ObjectKey{Namespace: r.Namespace, Name: r.set.Status.Members.Primary[0]}
		out, err := r.exec(ctx, primary, redisName, "redis-cli", "-s", "/tmp/redis.sock", "dbsize")
		if err != nil {
			return err
		}
		have, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			return err
		}
		if first < 0 || have < first {
			first = have
		}
		if have == first {
			return fmt.Errorf("there are %d", have)
		}
		return nil
	})
}

// redisJudges ends the client, which then reads what was acknowledged, and fails
// if some of it is lost.
func (r *replica) redisJudges(ctx context.Context) error {
	key := client.ObjectKeyFromObject(r.redisClient())
	if _, err := r.exec(ctx, key, "client", "/client", "end"); err != nil {
		return err
	}
	var pod *corev1.Pod
	err := until(ctx, "the client to have read all", func(ctx context.Context) (err error) {
		if pod, err = r.pod(ctx, key.Name); err == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	if err != nil {
		return err
	}
	logs, err := r.Kube.CoreV1().Pods(key.Namespace).GetLogs(key.Name, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return err
	}
	defer logs.Close()
	says, err := io.ReadAll(logs)
	if err == nil && pod.Status.Phase != corev1.PodSucceeded {
		err = fmt.Errorf("the client says: %s", says)
	}
	r.Log("%s", strings.TrimSpace(string(says)))
	return err
}
