// Package place is the cluster that samples are shown in: the one of KUBECONFIG,
// or the local one.
package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

const patience = 10 * time.Minute

var operatorKey = types.NamespacedName{Namespace: "stateful-operator-system", Name: "stateful-operator-controller-manager"}

// Place is the cluster everything happens in.
type Place struct {
	Kubeconfig string
	Kubectl    string
	Client     client.Client
	// Local is nil in a cluster that was there before us.
	Local *cluster.Cluster
}

// Find finds the cluster of KUBECONFIG, or boots the local one, which KUBECONFIG may
// name too.
func Find(ctx context.Context) (Place, error) {
	where := Place{Kubeconfig: os.Getenv("KUBECONFIG"), Kubectl: "kubectl"}
	local, err := cluster.Open(cluster.DefaultName)
	if where.Kubeconfig == "" {
		local, err = cluster.Up(ctx, cluster.Options{Log: os.Stdout})
		if err != nil {
			return Place{}, err
		}
		where.Kubeconfig = local.Kubeconfig()
	}
	if err == nil && where.Kubeconfig == local.Kubeconfig() {
		where.Local = local
		where.Kubectl = filepath.Join(local.Programs(), "kubectl")
	} else {
		fmt.Println("using the cluster of KUBECONFIG", where.Kubeconfig)
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(where.Kubeconfig)}, nil).ClientConfig()
	if err != nil {
		return Place{}, fmt.Errorf("reading %s: %w", where.Kubeconfig, err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return Place{}, err
	}
	where.Client, err = client.New(config, client.Options{Scheme: scheme})
	return where, err
}

// Operator builds the operator's image, deploys it, and waits until it runs.
func (p Place) Operator(ctx context.Context) error {
	image, err := p.Program(ctx, program.Operator("build/run/stateful-operator.tar"))
	if err != nil {
		return err
	}
	// As everybody does, so that there is one way to do it.
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+image)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("deploying the operator: %w", err)
	}
	return p.Rolled(ctx, operatorKey)
}

// Rolled waits until a rollout of a Deployment is complete.
func (p Place) Rolled(ctx context.Context, key types.NamespacedName) error {
	return p.Until(ctx, func(ctx context.Context) (bool, string, error) {
		var deployment appsv1.Deployment
		err := p.Client.Get(ctx, key, &deployment)
		status, want := deployment.Status, int32(1)
		if deployment.Spec.Replicas != nil {
			want = *deployment.Spec.Replicas
		}
		done := status.ObservedGeneration >= deployment.Generation && status.UpdatedReplicas == want &&
			status.Replicas == want && status.AvailableReplicas == want
		return done, fmt.Sprintf("%s: %d pods, %d of the present revision, %d of %d ready",
			key.Name, status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, want), err
	})
}

// Until asks again and again, and says what has changed.
func (p Place) Until(ctx context.Context, ask func(context.Context) (done bool, seen string, err error)) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, seen, err := ask(ctx)
		if err != nil {
			seen = err.Error() // an API server that is busy gets another try
		}
		if seen != last {
			fmt.Println(seen)
			last = seen
		}
		return done && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("still not so after %s: %s", patience, last)
	}
	return nil
}

// Program builds the image of a program and brings it to the nodes.
func (p Place) Program(ctx context.Context, wanted program.Program) (ref string, err error) {
	if ref, err = wanted.Write(ctx); err != nil {
		return "", err
	}
	return ref, p.Load(ctx, ref, wanted.Tar)
}

// Load brings an image to the nodes.
func (p Place) Load(ctx context.Context, ref, tar string) error {
	if p.Local == nil {
		fmt.Printf("%s is in %s; your cluster's nodes need it: for kind, kind load image-archive %s\n", ref, tar, tar)
		return nil
	}
	// The cluster's folder goes with the cluster, and so does this note.
	note := filepath.Join(p.Local.Dir(), "loaded-"+filepath.Base(tar))
	loaded, err := os.ReadFile(note)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.TrimSpace(string(loaded)) == ref {
		fmt.Printf("%s is in the cluster already\n", ref)
		return nil
	}
	fmt.Printf("loading %s into the nodes …\n", ref)
	if err := p.Local.LoadImage(ctx, tar); err != nil {
		return err
	}
	return os.WriteFile(note, []byte(ref+"\n"), 0o644)
}
