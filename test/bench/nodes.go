package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// realNodes is how many nodes there are: one that a pod runs on, one that the
// next waits on, and one more, so that both can be had when a node is gone.
const realNodes = 3

// The operator as `make deploy` installs it.
const (
	operatorNamespace  = "stateful-operator-system"
	operatorDeployment = "stateful-operator-controller-manager"
	operatorLease      = "stateful-operator"
	deployedOperator   = "system:serviceaccount:" + operatorNamespace + ":" + operatorDeployment
)

// nodes is a cluster of real nodes with the operator in it, installed as users
// install it: two replicas, its webhook, its own rights.
type nodes struct {
	cluster *cluster.Cluster
	folder  string // temporary
	keep    bool
	client  client.Client
	admin   *kubernetes.Clientset
	witness string // the image of the program that says when it runs
	open    []*application
}

func openNodes(ctx context.Context, keep bool) (*nodes, error) {
	folder, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	n := &nodes{folder: folder, keep: keep}
	if err := n.boot(ctx); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

func (n *nodes) boot(ctx context.Context) error {
	say("Booting a cluster of %d nodes and deploying the operator", realNodes)
	root, err := output(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil { // images are built from packages of the module
		return err
	}
	if n.cluster, err = cluster.Up(ctx, cluster.Options{Name: clusterName, Nodes: realNodes, Log: os.Stdout}); err != nil {
		return err
	}
	operator, err := n.load(ctx, program.Operator(filepath.Join(n.folder, "operator.tar")))
	if err != nil {
		return err
	}
	n.witness, err = n.load(ctx, program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532",
		Tar: filepath.Join(n.folder, "witness.tar")})
	if err != nil {
		return err
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	if n.client, err = client.New(n.cluster.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if n.admin, err = kubernetes.NewForConfig(protobuf(n.cluster.Config())); err != nil {
		return err
	}
	return n.deploy(ctx, operator)
}

func (n *nodes) load(ctx context.Context, wanted program.Program) (ref string, err error) {
	if ref, err = wanted.Write(ctx); err != nil {
		return "", err
	}
	return ref, n.cluster.LoadImage(ctx, wanted.Tar)
}

func (n *nodes) deploy(ctx context.Context, image string) error {
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+image)
	command.Env = append(os.Environ(), "KUBECONFIG="+n.cluster.Kubeconfig(), "PATH="+n.cluster.Programs()+":"+os.Getenv("PATH"))
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("make deploy: %w\n%s", err, out)
	}
	return n.operatorAvailable(ctx)
}

func (n *nodes) operatorAvailable(ctx context.Context) error {
	return waitFor(ctx, 5*time.Minute, "the operator", func() (bool, string, error) {
		var d appsv1.Deployment
		err := n.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}, &d)
		return err == nil && d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas >= *d.Spec.Replicas,
			fmt.Sprintf("(%d replicas are available)", d.Status.AvailableReplicas), err
	})
}

// actsOn is the node of the replica that acts.
func (n *nodes) actsOn(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := n.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorLease}, &lease); err != nil {
		return "", err
	}
	var pods corev1.PodList
	if err := n.client.List(ctx, &pods, client.InNamespace(operatorNamespace)); err != nil {
		return "", err
	}
	for i := range pods.Items {
		name := pods.Items[i].Name
		if strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), name+"_") {
			return pods.Items[i].Spec.NodeName, nil
		}
	}
	return "", nil
}

func (n *nodes) nodeReady(ctx context.Context, name string) (bool, error) {
	var node corev1.Node
	if err := n.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return false, err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

func (n *nodes) changeNode(ctx context.Context, name string, change func(*corev1.Node)) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := n.client.Get(ctx, client.ObjectKeyFromObject(node), node); err != nil {
		return err
	}
	before := node.DeepCopy()
	change(node)
	return n.client.Patch(ctx, node, client.MergeFrom(before))
}

func (n *nodes) makeNamespace(ctx context.Context, name string) error {
	return n.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func (n *nodes) close() {
	for _, a := range n.open {
		a.folder.Close()
	}
	if !n.keep {
		os.RemoveAll(n.folder)
		return
	}
	if n.cluster != nil {
		text, err := output(context.Background(), filepath.Join(n.cluster.Programs(), "kubectl"), "--kubeconfig", n.cluster.Kubeconfig(),
			"logs", "-n", operatorNamespace, "-l", "control-plane=controller-manager", "--tail=-1", "--prefix")
		err = errors.Join(err, os.WriteFile(filepath.Join(n.folder, "operator.log"), []byte(text), 0o644))
		if _, copied := output(context.Background(), "cp", "-r", filepath.Dir(n.cluster.AuditLog()), n.folder); errors.Join(err, copied) != nil {
			fmt.Println(errors.Join(err, copied))
		}
	}
	fmt.Println("logs are kept in", n.folder)
}
