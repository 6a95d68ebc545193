package promises_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

var (
	handovers = flag.Int("handovers", 50, "how many `handovers` S9 makes")
	faults    = flag.Int("faults", 3, "how many `runs` with faults RS-56 makes")
	fault     = flag.String("fault", "", "a `text` in the names of the faults that RS-56 makes, and of the scenarios of V2; empty are all")
	freezes   = flag.Int("freezes", 2, "at how many `writes` V2 freezes a leader of each kind; 0 is at each of all scenarios, in each mode")
	seed      = flag.Uint64("seed", 0, "`seed` of the chances of S9, RS-56, E35 and V2; 0 takes one by chance")
	keep      = flag.String("keep", "", "`name` of a local cluster that is used again and not taken down")
)

// TestPromises tries every promise on real nodes: on KUBECONFIG's cluster, which
// has the operator and whose nodes are not disturbed, or on a local one. Those
// that can be tried together are, after the others.
func TestPromises(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if deadline, limited := t.Deadline(); limited {
		// What is still to do then is to say what was found, and to clean up.
		ctx, cancel = context.WithDeadline(t.Context(), deadline.Add(-5*time.Minute))
	}
	t.Cleanup(cancel)
	log.SetLogger(logr.Discard()) // the tests say what they do
	c := findCluster(ctx, t)
	c.Freezes = *freezes
	if c.Handovers, c.Faults, c.Fault, c.Seed = *handovers, *faults, *fault, *seed; c.Seed == 0 {
		c.Seed = rand.Uint64N(1_000_000)
	}
	turns := make(chan struct{}, atOnce)
	var untried []string
	t.Cleanup(func() { sayUntried(untried) })
	for _, p := range slices.Concat(promises.StatefulCluster, promises.ReplicatedStatefulSet, promises.ExtendedStatefulSet, promises.StatefulSingleton, promises.Freeze) {
		t.Run(p.Name, func(t *testing.T) {
			if p.Faults && c.Nodes == nil {
				untried = append(untried, p.Name)
				t.Skip("the nodes of this cluster are not ours to disturb, or to look into")
			}
			if p.Together {
				defer takeTurn(t, turns, p.Long)()
			}
			own, remove, err := c.New(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer remove()
			own.Log = func(format string, args ...any) { t.Logf(format, args...) }
			if err := p.Keep(ctx, own); err != nil {
				t.Error(err)
				show(ctx, t, own)
			}
		})
	}
}

// sayUntried says at the end which promises were left out, and how to try them: the
// lines of tests that are skipped are lost among hundreds that pass.
func sayUntried(names []string) {
	if len(names) == 0 {
		return
	}
	fmt.Printf("\nNOT TRIED: %d promises, because KUBECONFIG names a cluster whose nodes are not ours to disturb.\n"+
		"Unset KUBECONFIG and run as root to try them on a local cluster:\n", len(names))
	for _, name := range names {
		fmt.Println("  -", name)
	}
}

// atOnce is how many promises are tried beside each other.
const atOnce = 6

// takeTurn waits until the promise may be tried beside others. A long one has its turn
// before any of them begins.
func takeTurn(t *testing.T, turns chan struct{}, long bool) (end func()) {
	t.Helper()
	if long {
		turns <- struct{}{} // there are fewer of these than turns
	}
	t.Parallel()
	if !long {
		turns <- struct{}{}
	}
	return func() { <-turns }
}

// findCluster makes a cluster with the operator in it.
func findCluster(ctx context.Context, t *testing.T) *promises.Cluster {
	t.Helper()
	c := &promises.Cluster{
		Operator: client.ObjectKey{Namespace: "stateful-operator-system", Name: "stateful-operator-controller-manager"},
		Image:    os.Getenv("PROMISES_IMAGE"), OtherImage: os.Getenv("PROMISES_OTHER_IMAGE"),
	}
	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		kubeconfig = boot(ctx, t, c)
	} else if c.Image == "" || c.OtherImage == "" {
		t.Fatal("with KUBECONFIG set, PROMISES_IMAGE and PROMISES_OTHER_IMAGE must name two images with a /bin/sh, for example busybox:1.36 and busybox:1.37")
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	c.Config = config
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if c.Kube, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if err := operatorReady(ctx, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func operatorReady(ctx context.Context, c *promises.Cluster) error {
	var d appsv1.Deployment
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, c.Operator, &d)
		s, want := d.Status, *d.Spec.Replicas
		return err == nil && s.ObservedGeneration == d.Generation && s.Replicas == want && s.UpdatedReplicas == want && s.AvailableReplicas == want, nil
	})
	if err != nil {
		return fmt.Errorf("the operator is not available: %+v: %w", d.Status, err)
	}
	return nil
}

// show prints what a person would look at after a broken promise.
func show(ctx context.Context, t *testing.T, c *promises.Cluster) {
	t.Helper()
	local, ok := c.Nodes.(*cluster.Cluster)
	if !ok {
		return
	}
	for _, args := range [][]string{
		{"get", "statefulclusters,replicatedstatefulsets,extendedstatefulsets,statefulsingletons,deployments,statefulsets,jobs,pods,pvc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-n", c.Operator.Namespace, "-l", "control-plane=controller-manager", "--tail=30", "--prefix"},
	} {
		var out bytes.Buffer
		kubectl := exec.CommandContext(ctx, filepath.Join(local.Programs(), "kubectl"), append([]string{"--kubeconfig", local.Kubeconfig(), "-n", c.Namespace}, args...)...)
		kubectl.Stdout, kubectl.Stderr = &out, &out
		_ = kubectl.Run()
		t.Logf("kubectl %v\n%s", args, out.String())
	}
}
