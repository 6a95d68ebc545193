package replicated

import (
	"context"
	"os"
	"slices"
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

// database is a set of real servers, with a client that continuously writes entries to the primary. See
// test/run/writer.
type database struct {
	*replica
	container string
	process   string   // the name of the servers
	sequence  []string // prints the number of the copy
	images    []string // of the server
	durable   bool     // an acknowledged entry is on disk
	count     []string // prints the number of entries in a member
	many      bool     // all members are primaries
}

// act is something that happens to the database while the client writes.
type act struct {
	what string
	do   func(context.Context)
}

// during does one after another, and waits each time until the client continues.
func (d *database) during(ctx context.Context, acts []act) {
	d.grows(ctx)
	for _, a := range acts {
		d.During("after "+a.what, func() {
			a.do(ctx)
			d.grows(ctx)
		})
		d.Log("the client continues after %s", a.what)
	}
}

// fromZero stops the set, and starts it again.
func (d *database) fromZero() act {
	return act{"a stop, and a return from zero", func(ctx context.Context) {
		d.resize(ctx, 0)
		d.resize(ctx, 3)
	}}
}

// recreated deletes the object, and creates another one on the same claims.
func (d *database) recreated(create func(context.Context)) act {
	return act{"its deletion, and a new object on the same claims", func(ctx context.Context) {
		d.removed(ctx)
		create(ctx)
		d.whole(ctx)
	}}
}

// openSample reads the objects of a sample: one other object, and the set.
func openSample[T client.Object](c *kit.Cluster, path string, other T) (T, *v1alpha1.ReplicatedStatefulSet) {
	file, err := os.Open(path)
	c.Check(err)
	defer file.Close()
	documents, set := yaml.NewYAMLOrJSONDecoder(file, 1<<10), &v1alpha1.ReplicatedStatefulSet{}
	c.Check(documents.Decode(other))
	c.Check(documents.Decode(set))
	other.SetNamespace(c.Namespace)
	set.Namespace = c.Namespace
	return other, set
}

// clientPod returns a pod that writes to the Service of the primary.
func (d *database) clientPod(image string, port string, env ...corev1.EnvVar) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "client", Namespace: d.Namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(2)),
			Containers: []corev1.Container{{Name: "client", Image: image, Args: []string{"run", d.set.PrimaryServiceName() + ":" + port, "50ms"}, Env: env}},
		},
	}
}

// entries returns the number of entries in a member.
func (d *database) entries(ctx context.Context, member string) int {
	out := d.Exec(ctx, client.ObjectKey{Namespace: d.Namespace, Name: member}, d.container, d.count...)
	have, err := strconv.Atoi(strings.TrimSpace(out))
	d.Check(err)
	return have
}

// grows waits until the primary has more entries than a moment before.
func (d *database) grows(ctx context.Context) {
	first := -1
	d.Until(ctx, d.set.Name+" to have more entries", func(ctx context.Context) {
		d.Read(ctx, d.set)
		primaries := len(d.set.Status.Members.Primary)
		d.Expect(primaries == 1 || d.many && primaries > 0).To(BeTrue(), "%s", describe(d.set))
		have := d.entries(ctx, d.set.Status.Members.Primary[0])
		if first < 0 || have < first {
			first = have
		}
		d.Expect(have).NotTo(Equal(first), "there are %d", have)
	})
}

// judges ends the client, which then reads the acknowledged entries, and fails if one is lost.
func (d *database) judges(ctx context.Context) {
	key := client.ObjectKey{Namespace: d.Namespace, Name: "client"}
	d.Exec(ctx, key, "client", "/client", "end")
	var pod *corev1.Pod
	d.Until(ctx, "the client to have read all", func(ctx context.Context) {
		pod = d.pod(ctx, key.Name)
		d.Expect(pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed).To(BeFalse(), "it is %s", pod.Status.Phase)
	})
	output, err := d.Kube.CoreV1().Pods(key.Namespace).GetLogs(key.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	d.Check(err)
	d.Expect(pod.Status.Phase).To(Equal(corev1.PodSucceeded), "client output: %s", output)
	d.Log("%s", strings.TrimSpace(string(output)))
}

// agree waits until all members have the same number of entries, after the client has ended.
func (d *database) agree(ctx context.Context) {
	d.Until(ctx, "equal copies", func(ctx context.Context) {
		want := d.entries(ctx, d.set.Status.Members.Primary[0])
		for _, name := range slices.Concat(d.set.Status.Members.Primary[1:], d.set.Status.Members.Secondary) {
			have := d.entries(ctx, name)
			d.Expect(have).To(Equal(want), "%s has %d entries, and %s %d", name, have, d.set.Status.Members.Primary[0], want)
		}
	})
}
