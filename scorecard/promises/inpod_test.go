package promises_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/scribe"
)

// otherImage is a public image with a shell. It is the default for PROMISES_OTHER_IMAGE.
const otherImage = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"

// inPod connects to the cluster of the pod that this runs in. The image of this pod has everything
// that promises run.
func inPod(ctx context.Context) (*kit.Cluster, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("this runs only in pods: %w", err)
	}
	config.WarningHandlerWithContext = rest.NoWarnings{}
	c, err := kit.Connect(config)
	if err != nil {
		return nil, err
	}
	pod, err := thisPod(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("get the own pod, whose image the promises use: %w", err)
	}
	c.Image, c.OtherImage = pod.Spec.Containers[0].Image, cmp.Or(os.Getenv("PROMISES_OTHER_IMAGE"), otherImage)
	c.Witness, c.WitnessShell, c.Ledger = c.Image, c.Image, c.Image
	if c.Shared, err = os.MkdirTemp("", "promises-"); err != nil {
		return nil, err
	}
	s, err := scribe.Start(":0", c.Shared)
	if err != nil {
		return nil, err
	}
	c.Scribe = net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(s.Port()))
	return c, nil
}

func thisPod(ctx context.Context, c *kit.Cluster) (*corev1.Pod, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	var pod corev1.Pod
	// The pod runs before its kubelet has reported the status.
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: os.Getenv("SCORECARD_NAMESPACE"), Name: name}, &pod)
		return pod.Status.PodIP != "", err
	})
	return &pod, err
}

// operators reports the Deployments of the operator whose pods are not all available, or that there
// are none.
func operators(ctx context.Context, c *kit.Cluster) []string {
	var all appsv1.DeploymentList
	if err := c.Client.List(ctx, &all); err != nil {
		return []string{"cannot determine whether the operator runs: " + err.Error()}
	}
	var said []string
	found := false
	for _, d := range all.Items {
		if d.Name != operator.Name {
			continue
		}
		found = true
		if want := *d.Spec.Replicas; want == 0 || d.Status.AvailableReplicas < want {
			said = append(said, fmt.Sprintf("check whether the operator runs: Deployment %s in namespace %s has %d desired and %d available pods",
				d.Name, d.Namespace, want, d.Status.AvailableReplicas))
		}
	}
	if !found {
		said = []string{"install the operator: there is no Deployment " + operator.Name + " in any namespace"}
	}
	return said
}

// scene returns diagnostics for a failed promise.
func scene(ctx context.Context, c *kit.Cluster) string {
	var out strings.Builder
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(c.Namespace)); err != nil {
		return err.Error()
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&out, "pod %s on %s: %s", p.Name, p.Spec.NodeName, p.Status.Phase)
		for _, s := range append(p.Status.InitContainerStatuses, p.Status.ContainerStatuses...) {
			fmt.Fprintf(&out, "; %s: ready %t, %d restarts", s.Name, s.Ready, s.RestartCount)
			if w := s.State.Waiting; w != nil {
				fmt.Fprintf(&out, ", waiting: %s %s", w.Reason, w.Message)
			}
		}
		fmt.Fprintln(&out)
	}
	var events corev1.EventList
	if err := c.Client.List(ctx, &events, client.InNamespace(c.Namespace)); err != nil {
		return out.String() + err.Error()
	}
	for _, e := range events.Items {
		if e.Type == corev1.EventTypeWarning {
			fmt.Fprintf(&out, "warning about %s %s: %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
	return out.String()
}
