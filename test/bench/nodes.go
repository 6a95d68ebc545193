package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// realNodes is the number of nodes: one that runs the pod, one for the next pod, and one more so that
// both are still available after the loss of a node.
const realNodes = 3

// The operator as installed by `make deploy`.
const (
	operatorNamespace  = "stateful-operator-system"
	operatorDeployment = "stateful-operator-controller-manager"
	operatorLease      = "stateful-operator"
	deployedOperator   = "system:serviceaccount:" + operatorNamespace + ":" + operatorDeployment
)

// bootNodes boots a cluster of real nodes and installs the operator as users do, with two replicas, its
// webhook and its own rights.
func (s *site) bootNodes(ctx context.Context) {
	say("Booting a cluster of %d nodes and deploying the operator", realNodes)
	s.connect(must(cluster.Up(ctx, cluster.Options{Name: clusterName, Nodes: realNodes, Log: os.Stdout})))
	image := s.load(ctx, program.Operator(filepath.Join(s.folder, "operator.tar")))
	s.witness = s.load(ctx, program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532",
		Tar: filepath.Join(s.folder, "witness.tar")})
	if out, err := s.cluster.Shell(ctx, "make --no-print-directory deploy IMAGE="+image).CombinedOutput(); err != nil {
		fail("make deploy: %w\n%s", err, out)
	}
	s.operatorAvailable(ctx)
}

// load builds the image of a program and loads it onto the nodes.
func (s *site) load(ctx context.Context, wanted program.Program) (ref string) {
	ref = must(wanted.Write(ctx))
	check(s.cluster.LoadImage(ctx, wanted.Tar))
	return ref
}

func (s *site) kubectl(ctx context.Context, namespace string, args ...string) (string, error) {
	return output(ctx, append([]string{filepath.Join(s.cluster.Programs(), "kubectl"), "--kubeconfig", s.cluster.Kubeconfig(), "-n", namespace}, args...)...)
}

func (s *site) operatorAvailable(ctx context.Context) {
	waitFor(ctx, 5*time.Minute, "the operator", func() (bool, string) {
		var d appsv1.Deployment
		check(s.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}, &d))
		return d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas >= *d.Spec.Replicas,
			fmt.Sprintf("(%d replicas are available)", d.Status.AvailableReplicas)
	})
}

// actsOn returns the node of the operator's leader, or "" if there is none.
func (s *site) actsOn(ctx context.Context) string {
	var lease coordinationv1.Lease
	check(s.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorLease}, &lease))
	for _, pod := range s.podsIn(ctx, operatorNamespace) {
		if strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), pod.Name+"_") {
			return pod.Spec.NodeName
		}
	}
	return ""
}

func (s *site) podsIn(ctx context.Context, namespace string) []corev1.Pod {
	var pods corev1.PodList
	check(s.client.List(ctx, &pods, client.InNamespace(namespace)))
	return pods.Items
}

func (s *site) nodeReady(ctx context.Context, name string) bool {
	var node corev1.Node
	check(s.client.Get(ctx, client.ObjectKey{Name: name}, &node))
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func (s *site) changeNode(ctx context.Context, name string, change func(*corev1.Node)) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	check(s.client.Get(ctx, client.ObjectKeyFromObject(node), node))
	before := node.DeepCopy()
	change(node)
	check(s.client.Patch(ctx, node, client.MergeFrom(before)))
}
