// Package olm brings the Operator Lifecycle Manager to a local cluster, and the
// operator to it as its users get it: by a catalog and a subscription. OLM's
// programs and those that serve catalogs are built from their modules, and run as
// pods, so that they have the rights, names and networks they have anywhere.
//
//	Install    OLM's CRDs, its configuration and its two programs
//	Serve      a catalog by `opm serve`, with the bundles in it
//	Subscribe  OperatorGroup and Subscription
//	Registry   a registry on this machine, for bundles and catalogs as images
package olm

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Namespace is OLM's own, where catalogs for all namespaces are too.
const Namespace = "olm"

// patience bounds every wait. It is a limit for what never comes, not a goal.
const patience = 5 * time.Minute

// Manager is OLM in a local cluster.
type Manager struct {
	Cluster *cluster.Cluster
	Client  client.Client
	// OPM is the program that makes catalogs, on this machine.
	OPM string

	log    io.Writer
	folder string // goes with the cluster
	images images
}

// Open attaches to the OLM of a cluster that Install was called for, or to what
// Install will make of it.
func Open(ctx context.Context, local *cluster.Cluster, log io.Writer) (*Manager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", local.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error { return operatorsv1.AddToScheme(scheme) },
		func() error { return operatorsv1alpha1.AddToScheme(scheme) },
		func() error { return apiextensionsv1.AddToScheme(scheme) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	m := &Manager{Cluster: local, log: log, folder: filepath.Join(local.Dir(), "olm")}
	if m.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	folders, err := cluster.Build(ctx, log, cluster.OPM, cluster.OLM)
	if err != nil {
		return nil, err
	}
	m.OPM = filepath.Join(folders[cluster.OPM], "opm")
	m.images = imagesOf(folders)
	return m, nil
}

// dir is a folder for this.
func (m *Manager) dir(parts ...string) (string, error) {
	path := filepath.Join(append([]string{m.folder}, parts...)...)
	return path, os.MkdirAll(path, 0o755)
}

// Say tells of a step.
func (m *Manager) Say(format string, args ...any) { fmt.Fprintf(m.log, format+"\n", args...) }

// Until asks again and again, and tells what has changed; the error is the last
// answer.
func (m *Manager) Until(ctx context.Context, what string, ask func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		answer := ask(ctx)
		if answer != nil && (last == nil || last.Error() != answer.Error()) {
			m.Say("  %s: %v", what, answer)
		}
		if answer == nil || ctx.Err() == nil || last == nil {
			last = answer // one that only says that time is up hides the better one
		}
		return answer == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited for %s: %w", what, last)
	}
	return nil
}
