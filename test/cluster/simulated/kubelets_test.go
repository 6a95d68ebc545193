package simulated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
)

func podNamed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func TestTheStandInForKubeletsObeysAsAnApplicationWould(t *testing.T) {
	g := NewWithT(t)
	k := newKubelets(nil)
	server := httptest.NewServer(k.handler())
	t.Cleanup(server.Close)
	run := func(pod, command string) string {
		at, err := url.Parse(server.URL + "/exec/ns/" + pod + "/main?stdout=true&command=" + command + "&command=peer")
		g.Expect(err).NotTo(HaveOccurred())
		executor, err := remotecommand.NewWebSocketExecutor(&rest.Config{Host: server.URL}, "GET", at.String())
		g.Expect(err).NotTo(HaveOccurred())
		var out bytes.Buffer
		err = executor.StreamWithContext(context.Background(), remotecommand.StreamOptions{Stdout: &out})
		var code exec.CodeExitError
		if !errors.As(err, &code) {
			g.Expect(err).NotTo(HaveOccurred())
		}
		return fmt.Sprintf("%d %q", code.Code, out.String())
	}
	for i, row := range []struct{ pod, command, want string }{
		{"a", "status", `7 ""`}, {"a", "sequence", `0 "1\n"`},
		{"a", "seed", `0 ""`}, {"a", "status", `8 ""`},
		{"b", "secondary", `0 ""`}, {"b", "status", `0 ""`},
		{"a", "demote", `0 ""`}, {"a", "status", `0 ""`},
		{"b", "promote", `0 ""`}, {"b", "status", `8 ""`},
		{"b", "stop", `0 ""`}, {"b", "status", `7 ""`},
		{"b", "nothing", `127 "this container is simulated, and supports only the commands of its ReplicatedStatefulSet, and crash\n"`},
	} {
		began := time.Now()
		if got := run(row.pod, row.command); got != row.want {
			t.Errorf("%d: %s in %s: %s, want %s", i, row.command, row.pod, got, row.want)
		}
		if told := k.Since(began); len(told) != 1 || told[0].Pod != podNamed(row.pod) || told[0].Name != row.command {
			t.Errorf("%d: recorded %v", i, told)
		}
	}
	run("a", "primary")
	if k.Kill(podNamed("a")); run("a", "status") != `7 ""` {
		t.Error("a container that was killed still runs")
	}
}

// TestAChangedRoleShowsThePodToWhoWatches verifies that a changed role only triggers Watch's
// function. If kwok simulates the pods, only kwok may write their whole status.
func TestAChangedRoleShowsThePodToWhoWatches(t *testing.T) {
	g := NewWithT(t)
	k, seen := newKubelets(nil), make(chan string, 1)
	k.pods = cache.NewStore(cache.MetaNamespaceKeyFunc)
	k.see = func(_ context.Context, pod *corev1.Pod) { seen <- pod.Name }
	g.Expect(k.pods.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})).To(Succeed())
	k.obey(podNamed("a"), "status")
	g.Consistently(seen, "100ms").ShouldNot(Receive())
	k.obey(podNamed("a"), "seed")
	g.Eventually(seen).Should(Receive(Equal("a")))
}
