package alerts_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/stateful-operator/stateful-operator/test/cluster"
	"github.com/stateful-operator/stateful-operator/test/cluster/clustertest"
	"github.com/stateful-operator/stateful-operator/test/run/program"
)

const (
	// operators is the namespace of the operator, shop that of the objects.
	operators = "stateful-operator-system"
	shop      = "shop"
	// patience is the timeout of every wait.
	patience = 10 * time.Minute
)

// site is a local cluster with the operator, its monitoring, and a Prometheus that scrapes it.
type site struct {
	Gomega
	t          *testing.T
	local      *cluster.Cluster
	prometheus prometheus
}

// TestAlerts injects faults into a real cluster. It verifies with a real Prometheus that each fault
// fires its alert, and that the alert resolves after the repair.
func TestAlerts(t *testing.T) {
	s := boot(t)
	s.t.Run("the operator is scraped as configured in its ServiceMonitor", s.as(site.scraped))
	s.t.Run("no alert fires at rest", s.as(site.quiet))
	s.t.Run("each fault triggers its alerts", s.as(site.faultsFire))
	s.t.Run("each panel shows a value", s.as(site.panelsShow))
	s.t.Run("alerts stop firing after their fault was fixed", s.as(site.mendedFallSilent))
	s.t.Run("without a leader the alert for the operator fires", s.as(site.operatorDown))
}

// as returns a part of the test as a subtest, which prints diagnostics if it fails.
func (s site) as(part func(site)) func(*testing.T) {
	return func(t *testing.T) {
		s.Gomega, s.t = NewWithT(t), t
		defer func() {
			if t.Failed() {
				s.show()
			}
		}()
		part(s)
	}
}

// boot boots a separate local cluster and installs the operator with its monitoring.
func boot(t *testing.T) site {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	local := clustertest.Boot(t, cluster.Options{Name: "alerts", Nodes: 3})
	s := site{Gomega: g, t: t, local: local}
	tar := filepath.Join(t.TempDir(), "operator.tar")
	image, err := program.Operator(tar).Write(ctx)
	g.Expect(err).To(Succeed())
	g.Expect(local.LoadImage(ctx, tar)).To(Succeed())
	// Follow the user's steps: make deploy requires only the CRDs of the Prometheus operator.
	s.kubectl("apply -f test/alerts/testdata/kinds.yaml")
	s.kubectl("wait --for=condition=Established --timeout=1m -f test/alerts/testdata/kinds.yaml")
	s.shell("make --no-print-directory deploy MONITORING=yes IMAGE=" + image)
	for _, part := range []string{"installer", "webhook", "controller-manager"} {
		s.kubectl("rollout status -n " + operators + " deployment/stateful-operator-" + part + " --timeout=5m")
	}
	s.prometheus = s.startPrometheus()
	return s
}

// kubectl runs kubectl and returns its output.
func (s site) kubectl(args string) string {
	s.t.Helper()
	return s.shell("kubectl " + args)
}

func (s site) shell(command string) string {
	s.t.Helper()
	out, err := s.try(command)
	s.Expect(err).To(Succeed(), "%s\n%s", command, out)
	return out
}

// try runs a shell command with the cluster's kubectl.
func (s site) try(command string) (string, error) {
	out, err := s.local.Shell(context.WithoutCancel(s.t.Context()), command).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// until retries ask until all of its expectations pass.
func (s site) until(ask func(Gomega), what ...any) {
	s.t.Helper()
	s.Eventually(s.t.Context(), ask).WithTimeout(patience).WithPolling(time.Second).Should(Succeed(), what...)
}

// show logs diagnostics of the cluster.
func (s site) show() {
	firing, err := s.prometheus.firing(context.WithoutCancel(s.t.Context()))
	s.t.Logf("alerts that fire: %v %v", firing, err)
	for _, command := range []string{
		"kubectl get nodes,stc,rss,ests,ssn,pods -A -o wide",
		"kubectl get events -A --sort-by=.lastTimestamp | tail -60",
		"kubectl logs -n " + operators + " -l control-plane=controller-manager --tail=40 --prefix",
		"tail -40 " + filepath.Join(s.local.Dir(), "logs", "prometheus.log"),
	} {
		out, _ := s.try(command)
		s.t.Logf("%s\n%s", command, out)
	}
}
