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
	// operators is the namespace of the operator, and shop that of the objects.
	operators = "stateful-operator-system"
	shop      = "shop"
	// patience bounds every wait. It is a limit for what never comes, not a goal.
	patience = 10 * time.Minute
)

// site is a local cluster with the operator, its monitoring, and a Prometheus that scrapes it.
type site struct {
	Gomega
	t          *testing.T
	local      *cluster.Cluster
	prometheus prometheus
}

// TestAlerts makes faults in a real cluster, and sees that a real Prometheus tells of each by
// the alert that is for it, until it is mended.
func TestAlerts(t *testing.T) {
	s := boot(t)
	s.t.Run("the operator is scraped as its ServiceMonitor says", s.as(site.scraped))
	s.t.Run("nothing fires at rest", s.as(site.quiet))
	s.t.Run("each fault fires", s.as(site.faultsFire))
	s.t.Run("each panel shows something", s.as(site.panelsShow))
	s.t.Run("what is mended falls silent", s.as(site.mendedFallSilent))
	s.t.Run("without a leader the operator is down", s.as(site.operatorDown))
}

// as is a part of the test, and what a person would look at if it fails.
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

// boot boots a local cluster of its own, and installs the operator in it, with its monitoring.
func boot(t *testing.T) site {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	local := clustertest.Boot(t, cluster.Options{Name: "alerts", Nodes: 3})
	s := site{Gomega: g, t: t, local: local}
	tar := filepath.Join(t.TempDir(), "operator.tar")
	image, err := program.Operator(tar).Write(ctx)
	g.Expect(err).To(Succeed())
	g.Expect(local.LoadImage(ctx, tar)).To(Succeed())
	// As users do: make deploy is given the kinds of the Prometheus operator, and no more.
	s.kubectl("apply -f test/alerts/testdata/kinds.yaml")
	s.kubectl("wait --for=condition=Established --timeout=1m -f test/alerts/testdata/kinds.yaml")
	s.shell("make --no-print-directory deploy MONITORING=yes IMAGE=" + image)
	for _, part := range []string{"installer", "webhook", "controller-manager"} {
		s.kubectl("rollout status -n " + operators + " deployment/stateful-operator-" + part + " --timeout=5m")
	}
	s.prometheus = s.startPrometheus()
	return s
}

// kubectl runs it, and gives what it prints.
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

// try runs a command with the cluster's kubectl.
func (s site) try(command string) (string, error) {
	out, err := s.local.Shell(context.WithoutCancel(s.t.Context()), command).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// until asks again and again until what is asked expects nothing more.
func (s site) until(ask func(Gomega), what ...any) {
	s.t.Helper()
	s.Eventually(s.t.Context(), ask).WithTimeout(patience).WithPolling(time.Second).Should(Succeed(), what...)
}

// show shows what a person would look at.
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
