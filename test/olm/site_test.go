package olm_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/scorecard/promises"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/olm"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// root is the project's folder, in which tests run.
const root = "../.."

var keep = flag.String("keep", "", "`name` of a local cluster that is used again and not taken down")

// site is a local cluster with OLM, and a catalog with two versions in it.
type site struct {
	m                *olm.Manager
	local            *cluster.Cluster
	earlier, present olm.Bundle
	// Images of the operator: the same program by two names.
	earlierImage, presentImage string
	// Images of operands.
	witness, coder, ledger string
	catalog                string
	folder                 string
}

// TestOLM installs, upgrades and removes the operator as its users do.
func TestOLM(t *testing.T) {
	s := boot(t)
	t.Run("life", func(t *testing.T) { life(t, s) })
	t.Run("modes", func(t *testing.T) { modes(t, s) })
	t.Run("images", func(t *testing.T) { bundleImages(t, s) })
	t.Run("openshift", func(t *testing.T) { openShift(t, s) })
}

// boot boots a local cluster of its own, with the admission plugin that OpenShift
// has, and installs OLM.
func boot(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a local cluster with nodes needs root")
	}
	log.SetLogger(logr.Discard()) // the tests say what they do
	ctx, name := t.Context(), cmp.Or(*keep, "olm")
	release, err := cluster.Hold(ctx, name, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	t.Chdir(root)
	local, err := cluster.Up(ctx, cluster.Options{Name: name, Nodes: 3, Log: os.Stdout, AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if *keep != "" {
			return
		}
		if err := cluster.Down(context.WithoutCancel(ctx), name, os.Stdout); err != nil {
			t.Error(err)
		}
	})
	s := &site{local: local, folder: t.TempDir(), catalog: "versions"}
	if s.m, err = olm.Open(ctx, local, os.Stdout); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.m.Install(ctx), s.images(ctx), s.versions(ctx)); err != nil {
		t.Fatal(err)
	}
	return s
}

// images brings what the tests run to the nodes.
func (s *site) images(ctx context.Context) error {
	tar := func(name string) string { return filepath.Join(s.folder, name+".tar") }
	s.m.Say("building the operator and the programs of the samples …")
	operator := program.Operator(tar("operator"))
	for _, one := range []struct {
		ref *string
		of  program.Program
	}{
		{&s.presentImage, operator},
		{&s.witness, program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532", Tar: tar("witness")}},
		{&s.coder, program.Program{Package: "./test/run/coder", Ref: "localhost/coder", User: "0:0", Tar: tar("coder")}},
		{&s.ledger, program.Ledger(tar("ledger"))},
	} {
		var err error
		if *one.ref, err = one.of.Write(ctx); err != nil {
			return err
		}
		if err := s.local.LoadImage(ctx, one.of.Tar); err != nil {
			return err
		}
	}
	operator.Ref = s.presentImage + "-earlier"
	var err error
	if s.earlierImage, err = operator.Write(ctx); err != nil {
		return err
	}
	return s.local.LoadImage(ctx, operator.Tar)
}

// versions makes the catalog: the bundle as it is, but for its image, and an
// earlier version of the same.
func (s *site) versions(ctx context.Context) error {
	var err error
	if s.earlier, err = s.m.Bundle("bundle", "0.0.9", s.earlierImage); err != nil {
		return err
	}
	if s.present, err = s.m.Bundle("bundle", "", s.presentImage); err != nil {
		return err
	}
	folder, err := s.m.Catalog(ctx, s.catalog, s.earlier, s.present)
	if err != nil {
		return err
	}
	return s.m.Serve(ctx, s.catalog, folder)
}

// promises is the cluster as promises want it.
func (s *site) promises(t *testing.T) *promises.Cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.local.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &promises.Cluster{
		Client: s.m.Client, Kube: kube, Config: config, Nodes: s.local, Image: cluster.BusyboxImage, Witness: s.witness,
		Operator: client.ObjectKey{Namespace: lifeNamespace, Name: olm.DeploymentName},
		Shared:   filepath.Join(s.local.Dir(), "witness"),
		Log:      func(format string, args ...any) { t.Logf(format, args...) },
	}
}

// operatorRuns checks that the operator's pods are of an image, on several nodes.
func (s *site) operatorRuns(ctx context.Context, namespace, image string) error {
	pods, err := s.m.OperatorPods(ctx, namespace)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for i := range pods {
		if is := pods[i].Spec.Containers[0].Image; is != image || pods[i].Status.Phase != corev1.PodRunning {
			return fmt.Errorf("pod %s of image %s is %s, and %s is wanted", pods[i].Name, is, pods[i].Status.Phase, image)
		}
		on[pods[i].Spec.NodeName] = true
	}
	if len(pods) != 2 || len(on) != 2 {
		return fmt.Errorf("%d pods of the operator run on %d nodes: want two on two", len(pods), len(on))
	}
	return nil
}

// noWebhooks checks that the API server asks the operator nothing any more.
func (s *site) noWebhooks(ctx context.Context) error {
	return s.m.Until(ctx, "OLM to remove the webhooks", func(ctx context.Context) error {
		var mutating admissionv1.MutatingWebhookConfigurationList
		var validating admissionv1.ValidatingWebhookConfigurationList
		if err := errors.Join(s.m.Client.List(ctx, &mutating), s.m.Client.List(ctx, &validating)); err != nil {
			return err
		}
		if n := len(mutating.Items) + len(validating.Items); n > 0 {
			return fmt.Errorf("%d configurations are there", n)
		}
		return nil
	})
}

// check fails a test, and shows what a person would look at.
func (s *site) check(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	t.Error(err)
	for _, args := range []string{
		"get subscriptions.operators.coreos.com,csv,installplans.operators.coreos.com,operatorgroups.operators.coreos.com,catalogsources.operators.coreos.com -A -o wide",
		"get pods,jobs,stc,rss,ests,ssn -A -o wide", "get events -A --sort-by=.lastTimestamp",
		"logs -n olm deployment/olm-operator --tail=40", "logs -n olm deployment/catalog-operator --tail=40",
		"logs -n " + lifeNamespace + " deployment/" + olm.DeploymentName + " --tail=40",
	} {
		var out bytes.Buffer
		kubectl := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(s.local.Programs(), "kubectl"),
			append([]string{"--kubeconfig", s.local.Kubeconfig()}, strings.Fields(args)...)...)
		kubectl.Stdout, kubectl.Stderr = &out, &out
		_ = kubectl.Run()
		t.Logf("kubectl %s\n%s", args, out.String())
	}
}
