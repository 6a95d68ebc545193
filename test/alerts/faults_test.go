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

// fault is something that goes wrong in the cluster, and what a person would do about it.
type fault struct {
	what string
	// begin and mend are commands of a shell. With a node it is powered off after begin, and
	// on again before mend.
	begin, mend, node string
	// alerts tell of it.
	alerts []wanted
}

// wanted is an alert with the labels that its runbook goes by.
type wanted struct{ alert, kind, namespace, name string }

// narrow is the namespace with a quota in which nothing can be made.
const narrow = "narrow"

// lostNode is the Node that is powered off.
const lostNode = "node-3"

// faults are all there at one time. Each kind has some.
var faults = []fault{
	{
		what:  "a quota allows nothing of what has to be made",
		begin: "kubectl apply -f FILES/narrow.yaml && kubectl apply -n narrow " + samples("statefulcluster", "replicatedstatefulset", "extendedstatefulset"),
		mend:  "kubectl delete quota -n narrow --all",
		alerts: []wanted{
			{"StatefulObjectDegraded", "StatefulCluster", narrow, "pages"},
			{"StatefulObjectDegraded", "ReplicatedStatefulSet", narrow, "toy"},
			{"StatefulObjectDegraded", "ExtendedStatefulSet", narrow, "hello"},
		},
	},
	{
		what:  "a claim asks for a storage class that is not there",
		begin: "kubectl apply -n shop -f FILES/homeless.yaml",
		mend:  "kubectl get storageclass standard -o yaml | grep -v is-default-class | sed -e 's/name: standard/name: later/' -e '/uid:/d' -e '/resourceVersion:/d' | kubectl create -f -",
		alerts: []wanted{
			{"StatefulObjectStuck", "StatefulCluster", shop, "homeless"},
			{"StatefulObjectUnavailable", "StatefulCluster", shop, "homeless"},
		},
	},
	{
		what:  "no member can say how new its copy is",
		begin: "kubectl apply -n shop -f FILES/blind.yaml",
		mend:  `kubectl patch -n shop rss blind --type=merge -p '{"spec":{"pod":{"commands":{"sequence":{"command":["echo","0"]}}}}}'`,
		alerts: []wanted{
			{"ReplicatedStatefulSetDataLossRisk", "ReplicatedStatefulSet", shop, "blind"},
			{"ReplicatedStatefulSetNotSeeded", "ReplicatedStatefulSet", shop, "blind"},
			{"StatefulObjectUnavailable", "ReplicatedStatefulSet", shop, "blind"},
		},
	},
	{
		what:   "a Secret is not there",
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
		what: "two StatefulSingletons select the same pods, as the second was made while no webhook answered",
		begin: "kubectl scale -n " + operators + " deployment/stateful-operator-webhook --replicas=0 && " +
			"kubectl wait -n " + operators + " --for=delete pod -l control-plane=webhook --timeout=2m && " +
			"kubectl apply -n shop -f FILES/twins.yaml; " +
			"kubectl scale -n " + operators + " deployment/stateful-operator-webhook --replicas=2 && " +
			"kubectl rollout status -n " + operators + " deployment/stateful-operator-webhook --timeout=5m",
		mend: "kubectl delete -n shop ssn second",
		// The first may go on: its pods were there before.
		alerts: []wanted{{"StatefulSingletonSelectorConflict", "StatefulSingleton", shop, "second"}},
	},
	{
		what:   "a pod was there before its StatefulSingleton",
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
		// Last, as it takes operands of the others with it.
		what:  "a Node does not answer",
		begin: "kubectl apply -n shop -f FILES/lost.yaml && kubectl wait -n shop --for=condition=Available ssn/lost --timeout=5m",
		node:  lostNode,
		mend:  "true",
		alerts: []wanted{
			{"StatefulNodeUnreachable", "StatefulSingleton", shop, "lost"},
			{"StatefulSingletonDown", "", shop, "lost"},
		},
	},
}

// samples are the files of the plain sample of each of these kinds.
func samples(kinds ...string) string {
	var all []string
	for _, kind := range kinds {
		all = append(all, "-f config/samples/"+kind+"/plain.yaml")
	}
	return strings.Join(all, " ")
}

// image is the command that gives the ExtendedStatefulSet another one.
func image(ref string) string {
	return `kubectl patch -n shop ests hello --type=json -p '[{"op":"replace","path":"/spec/template/spec/template/spec/containers/0/image","value":"` + ref + `"}]'`
}

// run runs a command of a fault.
func (s site) run(command string) {
	s.t.Helper()
	s.shell(strings.ReplaceAll(command, "FILES", "test/alerts/testdata"))
}

// quiet waits until a sample of each kind is well, and no alert fires.
func (s site) quiet() {
	s.kubectl("apply -n " + shop + " " + samples("statefulcluster", "replicatedstatefulset", "extendedstatefulset") + " -f config/samples/statefulsingleton/deployment.yaml")
	s.kubectl("wait -n " + shop + " --for=condition=Available --timeout=10m stc/pages rss/toy ests/hello ssn/mailer")
	s.kubectl("wait -n " + shop + " --for=condition=Ready --timeout=10m stc/pages rss/toy ests/hello ssn/mailer")
	s.until(func(g Gomega) { g.Expect(s.prometheus.firing(s.t.Context())).To(BeEmpty()) }, "alerts that fire where all is well")
}

// faultsFire makes all faults, and waits for the alerts of each.
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

// liven has each sample do what its dashboard shows: a replacement, a failover, an upgrade and
// a handover.
func (s site) liven() {
	s.shell(`kubectl delete -n shop "$(kubectl get pods -n shop -l app=pages -o name | head -1)"`)
	s.shell(`kubectl exec -n shop "$(kubectl get rss -n shop toy -o jsonpath='{.status.members.primary[0]}')" -- rm /tmp/role`)
	s.kubectl(`patch -n shop ests hello --type=merge -p '{"spec":{"template":{"spec":{"template":{"metadata":{"annotations":{"again":"1"}}}}}}}'`)
	s.kubectl("rollout restart -n shop deployment/mailer")
	s.kubectl("rollout status -n shop deployment/mailer --timeout=10m")
	s.kubectl("wait -n shop --for=jsonpath='{.status.currentVersion}'=2 ests/hello --timeout=10m")
	s.kubectl("wait -n shop --for=condition=Ready --timeout=10m stc/pages rss/toy")
}

// among finds the alert.
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

// named are the words for what an alert is about, in runbooks, and the labels that they are of.
var named = map[string]string{"the kind": "kind", "`$NS`": "namespace", "`$NAME`": "name", "the controller": "controller"}

// helps expects that an alert has words without gaps, a runbook, and all labels that the
// runbook says it has.
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

// remembered tells of the last hour, and so is not silent when all is well again.
const remembered = "StatefulSingletonTimeouts"

// mendedFallSilent mends all faults, and waits until no alert fires. The Node is first: a pod
// that is deleted may be on it. The quota is next: what was refused is tried again later.
func (s site) mendedFallSilent() {
	s.Expect(s.local.StartNode(lostNode)).To(Succeed())
	for _, f := range faults {
		s.t.Logf("mending: %s", f.what)
		s.run(f.mend)
	}
	s.until(func(g Gomega) {
		firing, err := s.prometheus.firing(s.t.Context())
		g.Expect(err).To(Succeed())
		late := slices.DeleteFunc(firing, func(a alert) bool { return a.Labels["alertname"] == remembered })
		g.Expect(late).To(BeEmpty(), "alerts that fire where all is mended")
	})
}

// operatorDown stops the controllers.
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
	}, "the operator does not run, and no alert tells")
	scale(2)
	s.until(func(g Gomega) {
		firing, err := s.prometheus.firing(s.t.Context())
		g.Expect(err).To(Succeed())
		g.Expect(down.among(firing)).To(BeNil())
	}, "the operator runs, and the alert goes on")
}
