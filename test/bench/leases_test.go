package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

func TestRenewalsAreCountedBetweenTwoTimes(t *testing.T) {
	g := NewWithT(t)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	asked := func(verb, lease string, from, to int, code int32) *request {
		return &request{&auditv1.Event{Verb: verb, ObjectRef: &auditv1.ObjectReference{Resource: "leases", Namespace: "n", Name: lease},
			RequestReceivedTimestamp: metav1.NewMicroTime(at(from)), StageTimestamp: metav1.NewMicroTime(at(to)), ResponseStatus: &metav1.Status{Code: code}}}
	}
	seen := renewalsOf([]*request{
		asked("patch", "a", 0, 1, 200), // before
		asked("watch", "a", 0, 20, 200),
		asked("patch", "a", 10, 11, 200), asked("patch", "b", 12, 12, 200), asked("get", "c", 13, 13, 404),
		asked("patch", "a", 20, 22, 200), asked("patch", "b", 27, 27, 409), asked("patch", "b", 28, 28, 200),
		asked("patch", "a", 40, 41, 200), // after
	}, at(10), at(30))
	g.Expect(seen).To(Equal(renewals{succeeded: 4, refused: 1, took: []time.Duration{time.Second, 0, 2 * time.Second, 0}, gap: 16 * time.Second,
		others: "1 get leases (returned 404), 1 watch leases"}))
	g.Expect(renewalsOf(nil, at(10), at(30))).To(Equal(renewals{others: "none"}))
}

func TestWritesWithoutHoldersAreNotThoseOfRenewals(t *testing.T) {
	g := NewWithT(t)
	idle := used{during: time.Minute, written: 6000}
	busy := used{during: 5 * time.Minute, written: 130000}
	g.Expect(writtenPerWrite(idle, busy, 100)).To(BeNumerically("~", 1000))
	g.Expect(busy.share(3 * time.Second)).To(BeNumerically("~", 1))
}

func TestOnlyAgentsThatLiveAreMeasured(t *testing.T) {
	g := NewWithT(t)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	before := []agentUse{{pid: 1, at: at, cpu: time.Second, sent: 10, received: 20, resident: 1, own: 2}, {pid: 2, cpu: time.Second}}
	after := []agentUse{{pid: 1, at: at.Add(time.Minute), cpu: 3 * time.Second, sent: 40, received: 60, resident: 3, own: 4}, {pid: 3, cpu: time.Second}}
	found := sinceReading(before, after)
	g.Expect(found).To(HaveExactElements(agentUse{pid: 1, at: after[0].at, during: time.Minute, cpu: 2 * time.Second, sent: 30, received: 40, resident: 3, own: 4}))
	g.Expect(found[0].hourly()).To(Equal(2 * time.Minute))
	g.Expect(found[0].rate(found[0].sent)).To(Equal(0.5))
	g.Expect(readAgents([]int{-1})).To(BeEmpty())
}

func TestFlagsOfAProcessAreRead(t *testing.T) {
	g := NewWithT(t)
	args := []string{"etcd", "--listen-peer-urls=http://a:1", "--listen-client-urls=http://a:2"}
	g.Expect(flagOf(args, "--listen-client-urls")).To(Equal("http://a:2"))
	g.Expect(attempt(func() { flagOf(args, "--listen") })).To(MatchError("no flag --listen"))
}

// The operator and the agent get their objects and files as in a cluster.
func TestThePodOfAHolderRunsTheAgent(t *testing.T) {
	g := NewWithT(t)
	singleton := fencedSingleton("n", 7, 15*time.Second)
	singleton.UID = "uid"
	pod := fencedPod(singleton, 7)
	g.Expect(pod.Spec.Containers[0].Command).To(HaveExactElements(v1.AgentInPod, "run", "--lease=set-7.singleton", "--duration=15s", "--", "sleep", "infinity"))
	g.Expect(pod.Spec.NodeName).NotTo(BeEmpty())
	pod.UID = "of-the-pod"
	folder := filepath.Join(t.TempDir(), "pod")
	g.Expect(writePodFolder(folder, pod, "a token", []byte("a certificate"))).To(Succeed())
	for name, want := range map[string]string{"token": "a token", "ca.crt": "a certificate", "namespace": "n", "pod-name": "set-7", "pod-uid": "of-the-pod"} {
		text, err := os.ReadFile(filepath.Join(folder, "fencing", name))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(Equal(want))
	}
	g.Expect(filepath.Join(folder, "signal")).To(BeADirectory())
}

func TestHoldersAreSpreadOverNamespaces(t *testing.T) {
	g := NewWithT(t)
	h := &holders{site: &site{size: sizes{holders: 11}}, duration: 30 * time.Second}
	g.Expect(h.namespaces()).To(HaveExactElements("leases-30s-0", "leases-30s-1"))
	request := &request{&auditv1.Event{}}
	request.User.Username = "system:serviceaccount:leases-30s-1:default"
	g.Expect(h.isOwn(request)).To(BeTrue())
	request.User.Username = operatorUser
	g.Expect(h.isOwn(request)).To(BeFalse())
}
