// Package place provides the cluster for samples: the one of KUBECONFIG, or the local one, with real or
// simulated nodes.
package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
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

// operatorNamespace is the namespace of the operator's Deployments.
const operatorNamespace = "stateful-operator-system"

// parts are the components of the operator, with the names of their Deployments and accounts. The first
// one is started first and does not need the others.
var parts = []struct{ component, name string }{
	{"installer", "stateful-operator-installer"},
	{"webhooks", "stateful-operator-webhook"},
	{"controllers", "stateful-operator-controller-manager"},
}

// Kind is the kind of a place.
type Kind string

// Kinds of places. Simulated nodes run no programs: their containers, and the responses to commands,
// are simulated.
const (
	Given     Kind = "given"
	Local     Kind = "local"
	Simulated Kind = "simulated"
)

// Place is the cluster that is used.
type Place struct {
	Kind       Kind
	Kubeconfig string
	Kubectl    string
	Client     client.WithWatch
	// Local is nil for a given cluster.
	Local *cluster.Cluster

	way   *way              // for images, in a given cluster
	noWay error             // why way is nil
	built map[string]string // image references by Program.Ref
}

// Choose returns the kind of the place: the cluster of KUBECONFIG, or a local one, with nodes if this
// machine can run them. Otherwise why is the reason.
func Choose() (kind Kind, why error) {
	if given := os.Getenv("KUBECONFIG"); given != "" {
		local, err := cluster.Open(cluster.DefaultName)
		if ours := err == nil && local.Kubeconfig() == given; !ours {
			return Given, nil
		}
		if len(local.Nodes()) == 0 {
			return Simulated, errors.New("the local cluster has no nodes")
		}
		return Local, nil
	}
	if why := cluster.NodesPossible(); why != nil {
		return Simulated, why
	}
	return Local, nil
}

// Find opens the cluster of KUBECONFIG, or boots the local one, which KUBECONFIG may also specify. It
// has nodes.
func Find(ctx context.Context) (Place, error) {
	kind, why := Choose()
	if why != nil {
		return Place{}, why
	}
	return Open(ctx, kind)
}

// Sets returns the sets of programs that a place needs.
func (k Kind) Sets() []cluster.Set {
	return map[Kind][]cluster.Set{
		Local:     {cluster.Kubernetes, cluster.Containerd, cluster.CoreDNS},
		Simulated: {cluster.Kubernetes, cluster.Kwok},
	}[k]
}

// Open opens a place, and builds the images of programs in parallel.
func Open(ctx context.Context, kind Kind, programs ...program.Program) (Place, error) {
	where := Place{Kind: kind, Kubeconfig: os.Getenv("KUBECONFIG"), Kubectl: "kubectl", built: map[string]string{}}
	// Before the images: both compile the same packages, and the second build uses the cache.
	if _, err := cluster.Build(ctx, os.Stdout, kind.Sets()...); err != nil {
		return Place{}, err
	}
	var log bytes.Buffer // printed after the output of the boot
	both, within := errgroup.WithContext(ctx)
	both.Go(func() error { return where.prepare(within, &log, programs) })
	both.Go(func() error { return where.boot(within) })
	err := both.Wait()
	_, _ = log.WriteTo(os.Stdout)
	if err != nil {
		return Place{}, err
	}
	if kind == Given {
		err = where.findWay(ctx)
	}
	if len(programs) > 0 && err == nil {
		err = where.noWay
	}
	return where, err
}

// prepare builds programs together into a persistent folder, because Go does not link up-to-date
// binaries again.
func (p *Place) prepare(ctx context.Context, log io.Writer, programs []program.Program) error {
	switch {
	case len(programs) == 0:
		return nil
	case p.Kind == Simulated: // no other program runs
		return cluster.Host(ctx, log, ".", operatorProgram)
	}
	refs, err := program.WriteFrom(ctx, log, filepath.Join("build", "run", "programs"), programs...)
	for i := range refs {
		p.built[programs[i].Ref] = refs[i]
	}
	return err
}

// boot boots the cluster if there is none, and connects to it.
func (p *Place) boot(ctx context.Context) (err error) {
	options := cluster.Options{Log: os.Stdout}
	switch p.Kind {
	case Local:
		p.Local, err = cluster.Up(ctx, options)
	case Simulated:
		if p.Local, err = cluster.UpControlPlane(ctx, options); err == nil {
			err = p.Local.StartSimulated(ctx, simulatedNodes)
		}
	default:
		fmt.Println("using the cluster of KUBECONFIG", p.Kubeconfig)
	}
	if err != nil {
		return err
	}
	if p.Local != nil {
		p.Kubeconfig, p.Kubectl = p.Local.Kubeconfig(), filepath.Join(p.Local.Programs(), "kubectl")
	}
	config, err := p.config().ClientConfig()
	if err != nil {
		return fmt.Errorf("read %s: %w", p.Kubeconfig, err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	p.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

func (p *Place) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(p.Kubeconfig)}, nil)
}

// Operator builds the operator's image, deploys it, and waits until it runs.
func (p Place) Operator(ctx context.Context) error {
	image, err := p.Program(ctx, program.Operator("build/run/stateful-operator.tar"))
	if err != nil {
		return err
	}
	// The same command as for users.
	command := exec.CommandContext(ctx, "make", "--no-print-directory", "deploy", "IMAGE="+image, "LOADED=1")
	if p.Kind == Simulated {
		command.Args = append(command.Args, "REPLICAS=0") // processes replace the pods
	}
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("deploy the operator: %w: %s", err, out)
	}
	fmt.Printf("make deploy has applied the %d objects of config/default\n", bytes.Count(out, []byte("\n")))
	if p.Kind == Simulated {
		return p.runOperator(ctx, image)
	}
	for _, part := range parts {
		if err := p.Rolled(ctx, types.NamespacedName{Namespace: operatorNamespace, Name: part.name}); err != nil {
			return err
		}
	}
	return nil
}

// Rolled waits until the rollout of a Deployment is complete.
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
		return done, fmt.Sprintf("%s: %d pods, %d of the current revision, %d of %d ready",
			key.Name, status.Replicas, status.UpdatedReplicas, status.ReadyReplicas, want), err
	})
}

// Until retries ask until it is done, and prints changes.
func (p Place) Until(ctx context.Context, ask func(context.Context) (done bool, seen string, err error)) error {
	var last string
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, seen, err := ask(ctx)
		if err != nil {
			seen = err.Error() // retry, for example if the API server is overloaded
		}
		if seen != last {
			fmt.Println(seen)
			last = seen
		}
		return done && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("not complete after %s: %s", patience, last)
	}
	return nil
}
