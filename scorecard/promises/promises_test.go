package promises_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/image"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// root is the project's folder.
const root = "../.."

// TestPromises tries every promise on real nodes: on KUBECONFIG's cluster, which
// has the operator and whose nodes are not disturbed, or on a local one.
func TestPromises(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Minute)
	defer cancel()
	log.SetLogger(logr.Discard()) // the tests say what they do
	c := findCluster(ctx, t)
	for _, p := range promises.StatefulCluster {
		t.Run(p.Name, func(t *testing.T) {
			if p.Faults && c.Nodes == nil {
				t.Skip("the nodes of this cluster are not ours to disturb")
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
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if err := operatorReady(ctx, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// boot boots a local cluster of its own with four nodes, and deploys the
// operator from its image.
func boot(ctx context.Context, t *testing.T, c *promises.Cluster) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes needs root; set KUBECONFIG to use another one")
	}
	local, err := cluster.Up(ctx, cluster.Options{Name: "promises", Nodes: 4, Log: os.Stdout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Down(context.WithoutCancel(ctx), "promises", os.Stdout); err != nil {
			t.Error(err)
		}
	})
	c.Nodes, c.Image = local, cluster.BusyboxImage
	folder := t.TempDir()
	other := filepath.Join(folder, "other.tar")
	c.OtherImage = "localhost/busybox-other:1"
	files := []image.File{{Path: "/bin/busybox", Source: "/bin/busybox"}}
	for _, applet := range []string{"sh", "cat", "date", "sleep"} {
		files = append(files, image.File{Path: "/bin/" + applet, Link: "busybox"})
	}
	if err := image.Write(other, c.OtherImage, v1.Config{Env: []string{"PATH=/bin"}}, files...); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	operator := program.Operator(filepath.Join(folder, "operator.tar"))
	ref, err := operator.Write(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, tar := range []string{other, operator.Tar} {
		if err := local.LoadImage(ctx, tar); err != nil {
			t.Fatal(err)
		}
	}
	deploy := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+ref)
	deploy.Env = append(os.Environ(), "KUBECONFIG="+local.Kubeconfig(), "PATH="+local.Programs()+":"+os.Getenv("PATH"))
	if out, err := deploy.CombinedOutput(); err != nil {
		t.Fatalf("make deploy: %v\n%s", err, out)
	}
	return local.Kubeconfig()
}

func operatorReady(ctx context.Context, c *promises.Cluster) error {
	var d appsv1.Deployment
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, c.Operator, &d)
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas >= *d.Spec.Replicas, nil
	})
	if err != nil {
		return fmt.Errorf("the operator is not available: %+v: %w", d.Status, err)
	}
	return nil
}

// show prints what a person would look at after a broken promise.
func show(ctx context.Context, t *testing.T, c *promises.Cluster) {
	t.Helper()
	local, err := cluster.Open("promises")
	if err != nil {
		return
	}
	for _, args := range [][]string{
		{"get", "statefulclusters,pods,pvc", "-o", "wide"}, {"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-n", c.Operator.Namespace, "-l", "control-plane=controller-manager", "--tail=30", "--prefix"},
	} {
		var out bytes.Buffer
		kubectl := exec.CommandContext(ctx, filepath.Join(local.Programs(), "kubectl"), append([]string{"--kubeconfig", local.Kubeconfig(), "-n", c.Namespace}, args...)...)
		kubectl.Stdout, kubectl.Stderr = &out, &out
		_ = kubectl.Run()
		t.Logf("kubectl %v\n%s", args, out.String())
	}
}
