package olm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	. "github.com/onsi/gomega/gstruct"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
	"github.com/stateful-operator/stateful-operator/test/olm"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

// site is a local cluster with OLM and a catalog with two versions, for one test.
type site struct {
	Gomega
	t                *testing.T
	m                *olm.Manager
	local            *cluster.Cluster
	earlier, present olm.Bundle
	// Images of operands.
	witness, coder, ledger string
	catalog                string
}

// TestOLM installs, upgrades and removes the operator as its users do.
func TestOLM(t *testing.T) {
	s := boot(t)
	t.Run("life", func(t *testing.T) { life(t, s) })
	t.Run("modes", func(t *testing.T) { modes(t, s) })
	t.Run("images", func(t *testing.T) { bundleImages(t, s) })
	t.Run("openshift", func(t *testing.T) { openShift(t, s) })
}

// boot boots a separate local cluster with OpenShift's admission plugin, and installs OLM.
func boot(t *testing.T) *site {
	t.Helper()
	log.SetLogger(logr.Discard()) // the tests print their own output
	g, ctx := NewWithT(t), t.Context()
	local := clustertest.Boot(t, cluster.Options{Name: "olm", Nodes: 3, AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"}})
	m := olm.Open(ctx, g, local, os.Stdout)
	m.Install(ctx)
	m.Say("building the programs of the samples …")
	s := &site{
		Gomega: g, t: t, m: m, local: local, catalog: "versions",
		witness: m.Load(ctx, program.Program{Package: "./test/faults/witness", Ref: "localhost/witness", User: "65532:65532"}),
		coder:   m.Load(ctx, program.Program{Package: "./test/run/coder", Ref: "localhost/coder", User: "0:0"}),
		ledger:  m.Load(ctx, program.Ledger("")),
	}
	s.earlier, s.present = m.ServeVersions(ctx, s.catalog)
	return s
}

// at returns the site for another test.
func (s *site) at(t *testing.T) *site {
	own := *s
	own.Gomega, own.t = NewWithT(t), t
	own.m = s.m.In(own.Gomega)
	return &own
}

// try runs a part of a test, and prints diagnostics if it fails.
func (s *site) try(t *testing.T, name string, part func(*site, context.Context)) bool {
	return t.Run(name, func(t *testing.T) {
		defer func() {
			if t.Failed() {
				s.at(t).show()
			}
		}()
		part(s.at(t), t.Context())
	})
}

// promises returns the cluster in which promises are tested.
func (s *site) promises(t *testing.T) *kit.Cluster {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.local.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	c, err := kit.Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	c.Nodes, c.Shared, c.Log = s.local, filepath.Join(s.local.Dir(), "witness"), t.Logf
	c.Images = kit.Images{Image: cluster.BusyboxImage, Witness: s.witness}
	c.Operator = client.ObjectKey{Namespace: lifeNamespace, Name: olm.DeploymentName}
	return c
}

// operatorRuns checks that the operator's pods have the image of a bundle and are on several nodes.
func (s *site) operatorRuns(ctx context.Context, namespace string, b olm.Bundle) {
	pods, nodes := s.m.OperatorPods(ctx, namespace), map[string]sets.Set[string]{}
	for i := range pods {
		is, phase := pods[i].Spec.Containers[0].Image, pods[i].Status.Phase
		s.Expect(is == b.Operator && phase == corev1.PodRunning).To(
			BeTrueBecause("pod %s of image %s is %s, want %s", pods[i].Name, is, phase, b.Operator))
		part := pods[i].Labels["control-plane"]
		nodes[part] = nodes[part].Union(sets.New(pods[i].Spec.NodeName))
	}
	s.Expect(pods).To(HaveLen(5))
	s.Expect(nodes).To(MatchAllKeys(Keys{"controller-manager": HaveLen(2), "webhook": HaveLen(2), "installer": HaveLen(1)}),
		"nodes that run each part of the operator")
}

// noWebhooks waits until the operator's webhook configurations are deleted.
func (s *site) noWebhooks(ctx context.Context) {
	s.m.Until(ctx, "OLM to remove the webhooks", func(ctx context.Context) error {
		var mutating admissionv1.MutatingWebhookConfigurationList
		var validating admissionv1.ValidatingWebhookConfigurationList
		err := errors.Join(s.m.Client.List(ctx, &mutating), s.m.Client.List(ctx, &validating))
		if n := len(mutating.Items) + len(validating.Items); err == nil && n > 0 {
			err = fmt.Errorf("%d configurations exist", n)
		}
		return err
	})
}

// show prints diagnostics.
func (s *site) show() {
	for _, command := range []string{
		"get subscriptions.operators.coreos.com,csv,installplans.operators.coreos.com,operatorgroups.operators.coreos.com,catalogsources.operators.coreos.com -A -o wide",
		"get pods,jobs,stc,rss,ests,ssn -A -o wide", "get events -A --sort-by=.lastTimestamp",
		"logs -n olm deployment/olm-operator --tail=40", "logs -n olm deployment/catalog-operator --tail=40",
		"logs -n " + lifeNamespace + " -l app.kubernetes.io/name=" + olm.Package + " --tail=40 --prefix",
	} {
		out, _ := s.local.Shell(context.WithoutCancel(s.t.Context()), "kubectl "+command).CombinedOutput()
		s.t.Logf("kubectl %s\n%s", command, out)
	}
}
