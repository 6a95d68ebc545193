package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/children"
	"github.com/stateful-operator/stateful-operator/test/cluster"
)

// Each pod of the holders is simulated by kwok, and its agent is a real process of this machine. The pod has the gate
// that admission would add, and the agent has the arguments of its container and a token of the pod.

const (
	// holdersPerNamespace limits the Roles that the API server reads for a request, and the StatefulSingletons with
	// which its policy compares a pod.
	holdersPerNamespace = 10
	// commRunning is the name of an agent in /proc when its program was started.
	commRunning = "agent-running"
	// tokenSeconds is the validity of the token that the kubelet would request.
	tokenSeconds = 3600
)

// enterPod creates the mounts of a pod with folder $0, and becomes the agent.
const enterPod = `set -e
mount --make-rprivate /
mount -t proc proc /proc
mount --bind "$0" /run
exec "$@"`

// holders are StatefulSingletons of one pod each, and the agents of the pods.
type holders struct {
	*site
	agent    string // its path
	duration time.Duration
	running  []*holder
}

// holder is the agent of one pod.
type holder struct {
	command *exec.Cmd
	log     string
	ended   chan struct{}
}

func (h *holders) namespace(i int) string {
	return fmt.Sprintf("leases-%s-%d", h.duration, i/holdersPerNamespace)
}

func (h *holders) namespaces() (names []string) {
	for i := 0; i < h.size.holders; i += holdersPerNamespace {
		names = append(names, h.namespace(i))
	}
	return names
}

func (h *holders) makeNamespaces(ctx context.Context) {
	names := h.namespaces()
	check(spread(ctx, len(names), func(i int) error { return attempt(func() { h.makeNamespace(ctx, names[i]) }) }))
}

// isOwn reports whether the request is one of an agent.
func (h *holders) isOwn(r *request) bool {
	return strings.HasPrefix(r.User.Username, fmt.Sprintf("system:serviceaccount:leases-%s-", h.duration))
}

// start starts the agents one after another, and returns when all hold their Leases.
func (h *holders) start(ctx context.Context) {
	step("starting %s agents", thousands(h.size.holders))
	printed := time.Now()
	for i := range h.size.holders {
		next := time.Now().Add(startPause)
		within(fmt.Sprintf("agent %d", i), func() { h.startOne(ctx, i) })
		if time.Since(printed) > progressInterval {
			printed = time.Now()
			step("%d of %d agents were started", i+1, h.size.holders)
		}
		pause(ctx, time.Until(next))
	}
	for i, one := range h.running {
		waitFor(ctx, 2*time.Minute, fmt.Sprintf("agent %d", i), func() (bool, string) {
			if one.hasEnded() {
				fail("it ended: %s", one.lastWords())
			}
			return one.isRunning(), one.lastWords()
		})
	}
}

// startOne creates the StatefulSingleton and the pod, and starts its agent. The operator replaces a pod whose agent
// starts later than the duration of the Lease.
func (h *holders) startOne(ctx context.Context, i int) {
	singleton := fencedSingleton(h.namespace(i), i, h.duration)
	check(h.client.Create(ctx, singleton))
	pod := fencedPod(singleton, i)
	check(h.client.Create(ctx, pod))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](tokenSeconds),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	check(h.client.SubResource("token").Create(ctx, account, request))
	folder := filepath.Join(h.folder, "pods", pod.Namespace, pod.Name)
	check(writePodFolder(folder, pod, request.Status.Token, must(os.ReadFile(h.cluster.Authority()))))
	h.running = append(h.running, h.startAgent(folder, pod.Spec.Containers[0].Command))
}

// startAgent starts an agent with the command of its container.
func (h *holders) startAgent(folder string, container []string) *holder {
	one := &holder{log: folder + ".log", ended: make(chan struct{})}
	log := must(os.Create(one.log))
	defer log.Close()
	server := must(url.Parse(h.cluster.Config().Host))
	one.command = exec.Command("/bin/sh", append([]string{"-c", enterPod, folder, h.agent}, container[1:]...)...)
	// With the marker of the cluster's own programs, Down also finds this process if the benchmark was killed.
	one.command.Env = []string{"PATH=" + os.Getenv("PATH"), "KUBERNETES_SERVICE_HOST=" + server.Hostname(), "KUBERNETES_SERVICE_PORT=" + server.Port(),
		"STATEFUL_OPERATOR_CLUSTER=" + h.cluster.Dir()}
	one.command.Stdout, one.command.Stderr = log, log
	one.command.SysProcAttr = ownNamespaces()
	check(one.command.Start())
	go func() {
		defer close(one.ended)
		_ = one.command.Wait() // its log has the reason
	}()
	return one
}

// fencedSingleton returns a StatefulSingleton with fencing by a Lease.
func fencedSingleton(namespace string, i int, duration time.Duration) *v1.StatefulSingleton {
	return &v1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: setName(i)},
		Spec: v1.StatefulSingletonSpec{
			Selector:               &metav1.LabelSelector{MatchLabels: setLabels(i)},
			TerminationGracePeriod: ptr.To(int64(0)),
			Fencing:                &v1.Fencing{Mode: v1.FencingLease, LeaseDurationSeconds: ptr.To(int32(duration.Seconds()))},
		},
	}
}

// fencedPod returns the pod of a StatefulSingleton, as admission returns it.
func fencedPod(singleton *v1.StatefulSingleton, i int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: singleton.Namespace, Name: setName(i), Labels: setLabels(i)},
		Spec: corev1.PodSpec{
			NodeName:                     cluster.SimulatedNode(1 + i%simulatedNodes),
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "main", Image: "example.com/main:1", Command: []string{"sleep", "infinity"}}},
		},
	}
	if errs := children.Inject(pod, singleton, children.Surroundings{Image: "example.com/operator:1"}); len(errs) > 0 {
		fail("add the agent to a pod: %w", errs.ToAggregate())
	}
	return pod
}

// writePodFolder writes the folders of the pod's volumes below a folder, which becomes /run of the agent.
func writePodFolder(folder string, pod *corev1.Pod, token string, authority []byte) error {
	fencing := filepath.Join(folder, "fencing")
	for _, made := range []string{fencing, filepath.Join(folder, "signal")} {
		if err := os.MkdirAll(made, 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{"token": token, "ca.crt": string(authority), "namespace": pod.Namespace, "pod-name": pod.Name, "pod-uid": string(pod.UID)} {
		if err := os.WriteFile(filepath.Join(fencing, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (h *holders) pids() (all []int) {
	for _, one := range h.running {
		all = append(all, one.command.Process.Pid)
	}
	return all
}

// ended returns the number of agents that have ended.
func (h *holders) ended() (count int) {
	for _, one := range h.running {
		if one.hasEnded() {
			count++
		}
	}
	return count
}

// stop kills the agents. The kernel kills their programs. It can be called more than once.
func (h *holders) stop() {
	for _, one := range h.running {
		_ = one.command.Process.Kill() // it may have ended
	}
	for _, one := range h.running {
		<-one.ended
	}
	h.running = nil
}

// clear deletes the objects while the operator runs, which removes its finalizers.
func (h *holders) clear(ctx context.Context) {
	names := h.namespaces()
	check(spread(ctx, len(names), func(i int) error {
		return h.client.DeleteAllOf(ctx, &v1.StatefulSingleton{}, client.InNamespace(names[i]))
	}))
	h.clearNamespaces(ctx, names...)
}

func (h *holder) hasEnded() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

// isRunning reports whether the agent has started its program.
func (h *holder) isRunning() bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", h.command.Process.Pid))
	return err == nil && strings.TrimSpace(string(name)) == commRunning
}

// lastWords returns the last line of the agent's log.
func (h *holder) lastWords() string {
	text, err := os.ReadFile(h.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// awaitLeaseGuard waits until the API server enforces the operator's policy on Leases.
func (s *site) awaitLeaseGuard(ctx context.Context) {
	policy, binding := children.BuildLeaseGuard(metav1.NamespaceSystem, nil)
	waitFor(ctx, time.Minute, "the policy on Leases", func() (bool, string) {
		for _, object := range []client.Object{policy, binding} {
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				check(client.IgnoreNotFound(err))
				return false, err.Error()
			}
		}
		return true, ""
	})
}
