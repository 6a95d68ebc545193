package alerts_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/gomega"
)

// fault is a failure injected into the cluster, and its repair by an administrator.
type fault struct {
	what string
	// begin and mend are shell commands that inject and repair the fault. If node is set, it is powered
	// off after begin and powered on before mend.
	begin, mend, node string
	// alerts are the alerts that must fire.
	alerts []wanted
}

// wanted is an expected alert with the labels that its runbook uses.
type wanted struct{ alert, kind, namespace, name string }

// narrow is the namespace whose quota allows no new objects.
const narrow = "narrow"

// lostNode is the Node that is powered off.
const lostNode = "node-3"

// faults are injected together. They cover each kind.
var faults = []fault{
	{
		what:  "a quota allows no pods to be created",
		begin: "kubectl apply -f FILES/narrow.yaml && kubectl apply -n narrow " + samples("statefulcluster", "replicatedstatefulset", "extendedstatefulset"),
		mend:  "kubectl delete quota -n narrow --all",
		alerts: []wanted{
			{"StatefulObjectDegraded", "StatefulCluster", narrow, "pages"},
			{"StatefulObjectDegraded", "ReplicatedStatefulSet", narrow, "toy"},
			{"StatefulObjectDegraded", "ExtendedStatefulSet", narrow, "hello"},
		},
	},
	{
		what:  "a claim has a storage class that does not exist",
		begin: "kubectl apply -n shop -f FILES/homeless.yaml",
		mend:  "kubectl get storageclass standard -o yaml | grep -v is-default-class | sed -e 's/name: standard/name: later/' -e '/uid:/d' -e '/resourceVersion:/d' | kubectl create -f -",
		alerts: []wanted{
			{"StatefulObjectStuck", "StatefulCluster", shop, "homeless"},
			{"StatefulObjectUnavailable", "StatefulCluster", shop, "homeless"},
		},
	},
	{
		what:  "no member can report its data version",
		begin: "kubectl apply -n shop -f FILES/blind.yaml",
		mend:  `kubectl patch -n shop rss blind --type=merge -p '{"spec":{"pod":{"commands":{"sequence":{"command":["echo","0"]}}}}}'`,
		alerts: []wanted{
			{"ReplicatedStatefulSetDataLossRisk", "ReplicatedStatefulSet", shop, "blind"},
			{"ReplicatedStatefulSetNotSeeded", "ReplicatedStatefulSet", shop, "blind"},
			{"StatefulObjectUnavailable", "ReplicatedStatefulSet", shop, "blind"},
		},
	},
	{
		what:   "a Secret is missing",
		begin:  "kubectl apply -n shop -f FILES/needy.yaml",
		mend:   "kubectl create secret generic later -n shop --from-literal=WORD=hello",
		alerts: []wanted{{"ExtendedStatefulSetConfigMissing", "ExtendedStatefulSet", shop, "needy"}},
	},
	{
		what:   "an upgrade has an image that cannot be pulled",
		begin:  `kubectl patch -n shop ests hello --type=merge -p '{"spec":{"updateStrategy":{"canaries":1,"canaryWatchTime":"20s","updateWatchTime":"40s"}}}' && ` + image("localhost/no-such-image:1"),
		mend:   image("registry.k8s.io/e2e-test-images/busybox:1.37.0-1"),
		alerts: []wanted{{"ExtendedStatefulSetStale", "ExtendedStatefulSet", shop, "hello"}},
	},
	{
		what: "two StatefulSingletons select the same pods, because the second was created while the webhook was down",
		begin: "kubectl scale -n " + operators + " deployment/stateful-operator-webhook --replicas=0 && " +
			"kubectl wait -n " + operators + " --for=delete pod -l control-plane=webhook --timeout=2m && " +
			"kubectl apply -n shop -f FILES/twins.yaml; " +
			"kubectl scale -n " + operators + " deployment/stateful-operator-webhook --replicas=2 && " +
			"kubectl rollout status -n " + operators + " deployment/stateful-operator-webhook --timeout=5m",
		mend: "kubectl delete -n shop ssn second",
		// The first object continues to work: its pods already existed.
		alerts: []wanted{{"StatefulSingletonSelectorConflict", "StatefulSingleton", shop, "second"}},
	},
	{
		what:   "a pod existed before its StatefulSingleton",
		begin:  "kubectl apply -n shop -f FILES/stray.yaml",
		mend:   "kubectl delete -n shop pod stray",
		alerts: []wanted{{"StatefulSingletonUnmanagedPod", "StatefulSingleton", shop, "stray"}},
	},
	{
		what: "the policies of the operator are deleted, and its installer does not run",
		begin: "kubectl scale -n " + operators + " deployment/stateful-operator-installer --replicas=0 && " +
			"kubectl wait -n " + operators + " --for=delete pod -l control-plane=installer --timeout=2m && " +
			"kubectl delete validatingadmissionpolicybindings,validatingadmissionpolicies --all",
		mend: "kubectl scale -n " + operators + " deployment/stateful-operator-installer --replicas=1",
		alerts: []wanted{
			{alert: "StatefulOperatorPoliciesMissing", kind: "StatefulCluster"},
			{"StatefulSingletonGuardMissing", "StatefulSingleton", shop, "mailer"},
		},
	},
	{
		// This fault is last because operands of the other faults run on the node too.
		what:  "a Node is unreachable",
		begin: "kubectl apply -n shop -f FILES/lost.yaml && kubectl wait -n shop --for=condition=Available ssn/lost --timeout=5m",
		node:  lostNode,
		mend:  "true",
		alerts: []wanted{
			{"StatefulNodeUnreachable", "StatefulSingleton", shop, "lost"},
			{"StatefulSingletonDown", "", shop, "lost"},
		},
	},
}

// samples returns kubectl's -f flags for the plain sample of each kind.
func samples(kinds ...string) string {
	var all []string
	for _, kind := range kinds {
		all = append(all, "-f config/samples/"+kind+"/plain.yaml")
	}
	return strings.Join(all, " ")
}

// image returns the command that changes the image of the ExtendedStatefulSet.
func image(ref string) string {
	return `kubectl patch -n shop ests hello --type=json -p '[{"op":"replace","path":"/spec/template/spec/template/spec/containers/0/image","value":"` + ref + `"}]'`
}

// run runs a command of a fault.
func (s site) run(command string) {
	s.t.Helper()
	s.shell(strings.ReplaceAll(command, "FILES", "test/alerts/testdata"))
}

// quiet applies a sample of each kind and waits until all are ready and no alert fires.
func (s site) quiet() {
	s.kubectl("apply -n " + shop + " " + samples("statefulcluster", "replicatedstatefulset", "extendedstatefulset") + " -f config/samples/statefulsingleton/deployment.yaml")
	s.kubectl("wait -n " + shop + " --for=condition=Available --timeout=10m stc/pages rss/toy ests/hello ssn/mailer")
	s.kubectl("wait -n " + shop + " --for=condition=Ready --timeout=10m stc/pages rss/toy ests/hello ssn/mailer")
	s.until(func(g Gomega) { g.Expect(s.prometheus.firing(s.t.Context())).To(BeEmpty()) }, "alerts that fire without a fault")
}

// faultsFire injects all faults and waits until their alerts fire.
func (s site) faultsFire() {
	s.liven()
	for _, f := range faults {
		s.t.Logf("fault: %s", f.what)
		s.run(f.begin)
		if f.node != "" {
			s.Expect(s.local.StopNode(f.node)).To(Succeed())
		}
	}
	for _, f := range faults {
		for _, want := range f.alerts {
			s.until(func(g Gomega) {
				firing, err := s.prometheus.firing(s.t.Context())
				g.Expect(err).To(Succeed())
				found := want.among(firing)
				g.Expect(found).NotTo(BeNil(), "%s: %+v does not fire", f.what, want)
			})
			s.t.Logf("fires: %+v", want)
		}
	}
	firing, err := s.prometheus.firing(s.t.Context())
	s.Expect(err).To(Succeed())
	for i := range firing {
		s.helps(&firing[i])
	}
}

// liven makes each sample produce data for its dashboard: a replacement, a failover, an upgrade and a
// handover.
func (s site) liven() {
	s.shell(`kubectl delete -n shop "$(kubectl get pods -n shop -l app=pages -o name | head -1)"`)
	s.shell(`kubectl exec -n shop "$(kubectl get rss -n shop toy -o jsonpath='{.status.members.primary[0]}')" -- rm /tmp/role`)
	s.kubectl(`patch -n shop ests hello --type=merge -p '{"spec":{"template":{"spec":{"template":{"metadata":{"annotations":{"again":"1"}}}}}}}'`)
	s.kubectl("rollout restart -n shop deployment/mailer")
	s.kubectl("rollout status -n shop deployment/mailer --timeout=10m")
	s.kubectl("wait -n shop --for=jsonpath='{.status.currentVersion}'=2 ests/hello --timeout=10m")
	s.kubectl("wait -n shop --for=condition=Ready --timeout=10m stc/pages rss/toy")
}

// among returns the matching alert, or nil.
func (w wanted) among(all []alert) *alert {
	labels := map[string]string{"alertname": w.alert, "kind": w.kind, "namespace": w.namespace, "name": w.name}
	maps.DeleteFunc(labels, func(_, value string) bool { return value == "" })
	for i := range all {
		has := maps.Clone(all[i].Labels)
		maps.DeleteFunc(has, func(name, _ string) bool { return name == "severity" })
		if maps.Equal(has, labels) {
			return &all[i]
		}
	}
	return nil
}

// named maps the placeholders of an alert's subject in runbooks to the labels they stand for.
var named = map[string]string{"the kind": "kind", "`$NS`": "namespace", "`$NAME`": "name", "the controller": "controller"}

// helps expects that an alert has complete annotations, a runbook, and all labels that the runbook
// uses.
func (s site) helps(a *alert) {
	s.t.Helper()
	for name, text := range a.Annotations {
		s.Expect(text).NotTo(MatchRegexp(`no value|\{\{| / |  `), "%s of %v", name, a.Labels)
	}
	page, err := os.ReadFile(filepath.Join("docs", "runbooks", filepath.Base(a.Annotations["runbook_url"])))
	s.Expect(err).To(Succeed())
	says := regexp.MustCompile(`The alert has [^\n]*`).FindString(string(page))
	for word, label := range named {
		if strings.Contains(says, word) {
			s.Expect(a.Labels).To(HaveKeyWithValue(label, Not(BeEmpty())), "the runbook of %v: %s", a.Labels, says)
		}
	}
}

// remembered covers the last hour, so it still fires after all faults are repaired.
const remembered = "StatefulSingletonTimeouts"

// mendedFallSilent repairs all faults and waits until no alert fires. The Node is started first,
// because pods that are deleted later may be on it. The quota is next, because rejected requests are
// retried with a backoff.
func (s site) mendedFallSilent() {
	s.Expect(s.local.StartNode(lostNode)).To(Succeed())
	for _, f := range faults {
		s.t.Logf("fix: %s", f.what)
		s.run(f.mend)
	}
	s.until(func(g Gomega) {
		firing, err := s.prometheus.firing(s.t.Context())
		g.Expect(err).To(Succeed())
		late := slices.DeleteFunc(firing, func(a alert) bool { return a.Labels["alertname"] == remembered })
		g.Expect(late).To(BeEmpty(), "alerts that fire after the fault was fixed")
	})
}

// operatorDown scales the controllers to zero.
func (s site) operatorDown() {
	scale := func(replicas int) {
		s.kubectl(fmt.Sprintf("scale -n %s deployment/stateful-operator-controller-manager --replicas=%d", operators, replicas))
	}
	down := wanted{alert: "StatefulOperatorDown"}
	scale(0)
	s.until(func(g Gomega) {
		firing, err := s.prometheus.firing(s.t.Context())
		g.Expect(err).To(Succeed())
		g.Expect(down.among(firing)).NotTo(BeNil())
	}, "the operator does not run, and no alert fires")
	scale(2)
	s.until(func(g Gomega) {
		firing, err := s.prometheus.firing(s.t.Context())
		g.Expect(err).To(Succeed())
		g.Expect(down.among(firing)).To(BeNil())
	}, "the operator runs, and the alert still fires")
}
