// Package olm installs the Operator Lifecycle Manager in a local cluster, and the operator through it
// as users do: by a catalog and a subscription. OLM's programs and those that serve catalogs are built
// from their modules. They run as pods, so that they have their real rights, names and networks.
//
//	Install    OLM's CRDs, its configuration and its two programs
//	Serve      a catalog by `opm serve`, with the bundles in it
//	Subscribe  OperatorGroup and Subscription
//	Registry   a registry on this machine, for bundles and catalogs as images
package olm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/onsi/gomega"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// Namespace is OLM's own namespace, which also contains the global catalogs.
const Namespace = "olm"

// patience is the timeout of every wait.
const patience = 10 * time.Minute

// Manager is OLM in a local cluster. Its methods return no errors. Failures are reported to its Gomega,
// which must stop the caller.
type Manager struct {
	gomega.Gomega
	Cluster *cluster.Cluster
	Client  client.Client
	// OPM is the path of opm, which generates catalogs, on this machine.
	OPM string

	log    io.Writer
	folder string // removed with the cluster
	images images
}

// Open returns the Manager of a cluster, before or after Install.
func Open(ctx context.Context, g gomega.Gomega, local *cluster.Cluster, log io.Writer) *Manager {
	m := &Manager{Gomega: g, Cluster: local, log: log, folder: filepath.Join(local.Dir(), "olm")}
	config, err := clientcmd.BuildConfigFromFlags("", local.Kubeconfig())
	m.Expect(err).To(gomega.Succeed())
	config.QPS = -1
	scheme, err := controllers.Scheme()
	m.Expect(err).To(gomega.Succeed())
	m.Expect(operatorsv1.AddToScheme(scheme)).To(gomega.Succeed())
	m.Expect(operatorsv1alpha1.AddToScheme(scheme)).To(gomega.Succeed())
	m.Expect(apiextensionsv1.AddToScheme(scheme)).To(gomega.Succeed())
	m.Client, err = client.New(config, client.Options{Scheme: scheme})
	m.Expect(err).To(gomega.Succeed())
	folders, err := cluster.Build(ctx, log, cluster.OPM, cluster.OLM)
	m.Expect(err).To(gomega.Succeed())
	m.OPM = filepath.Join(folders[cluster.OPM], "opm")
	m.images = imagesOf(folders)
	return m
}

// In returns a copy with another Gomega, such as that of a test.
func (m *Manager) In(g gomega.Gomega) *Manager {
	other := *m
	other.Gomega = g
	return &other
}

// Try returns a failure as an error, for callers that must continue.
func (m *Manager) Try(do func(*Manager)) (err error) {
	type failure string
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case failure:
			err = errors.New(string(failed))
		default:
			panic(failed)
		}
	}()
	do(m.In(gomega.NewGomega(func(message string, _ ...int) { panic(failure(message)) })))
	return nil
}

// dir creates and returns a folder for temporary files.
func (m *Manager) dir(parts ...string) string {
	path := filepath.Join(append([]string{m.folder}, parts...)...)
	m.Expect(os.MkdirAll(path, 0o755)).To(gomega.Succeed())
	return path
}

func (m *Manager) read(file string) string {
	content, err := os.ReadFile(file)
	m.Expect(err).To(gomega.Succeed())
	return string(content)
}

func (m *Manager) write(file, content string) {
	m.Expect(os.WriteFile(file, []byte(content), 0o644)).To(gomega.Succeed())
}

// Load builds the image of a program, loads it into the nodes, and returns its reference.
func (m *Manager) Load(ctx context.Context, p program.Program) (ref string) {
	p.Tar = filepath.Join(m.dir(), "program.tar")
	defer os.Remove(p.Tar)
	ref, err := p.Write(ctx)
	m.Expect(err).To(gomega.Succeed())
	m.Expect(m.Cluster.LoadImage(ctx, p.Tar)).To(gomega.Succeed())
	return ref
}

// Say logs a step.
func (m *Manager) Say(format string, args ...any) { fmt.Fprintf(m.log, format+"\n", args...) }

// Until retries ask until it returns no error, and logs each new error.
func (m *Manager) Until(ctx context.Context, what string, ask func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	m.Eventually(ctx, func() error {
		answer := ask(ctx)
		if answer != nil && ctx.Err() != nil && last != nil {
			return last // the last error is more helpful than a timeout
		}
		if answer != nil && (last == nil || last.Error() != answer.Error()) {
			m.Say("  %s: %v", what, answer)
		}
		last = answer
		return answer
	}).WithPolling(200*time.Millisecond).Should(gomega.Succeed(), "waited for %s", what)
}
