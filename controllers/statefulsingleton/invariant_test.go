package statefulsingleton_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// invariant checks the guarantee at every change of every pod: no program starts while
// another one with the same label app runs, and each has a higher epoch than all before. It
// relies only on the status by the kubelets of the fake control plane: a pod that
// disappears before its containers were reported as terminated keeps running.
type invariant struct {
	mu       sync.Mutex
	pods     map[types.UID]*subject
	machines map[string]bool // that are off
	excused  map[string]bool // namespaces in which a user has ended the guarantee
	restarts map[string]bool // namespaces in which the object that counted epochs is gone
	broken   map[string][]string
	isBlind  bool
}

// subject is a pod as the invariant sees it.
type subject struct {
	*corev1.Pod
	runs, granted bool
}

var theInvariant = &invariant{pods: map[types.UID]*subject{}, machines: map[string]bool{}, excused: map[string]bool{}, restarts: map[string]bool{}, broken: map[string][]string{}}

func (l *invariant) see(change watch.EventType, p *corev1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.pods[p.UID]
	now := &subject{Pod: p, runs: runs(p), granted: granted(p)}
	l.pods[p.UID] = now
	if change == watch.Deleted && !now.granted && !now.runs {
		delete(l.pods, p.UID)
		return
	}
	if l.excused[p.Namespace] || !now.granted || before != nil && before.granted {
		return
	}
	for _, other := range l.pods {
		if other.Namespace == p.Namespace && other.Labels["app"] == p.Labels["app"] && other.granted && other.UID != p.UID && epoch(other.Pod) >= epoch(p) && !l.restarts[p.Namespace] {
			l.broken[p.Namespace] = append(l.broken[p.Namespace], fmt.Sprintf("pod %s has epoch %d, and pod %s had %d", p.Name, epoch(p), other.Name, epoch(other.Pod)))
		}
		if other.UID != p.UID && other.Namespace == p.Namespace && other.Labels["app"] == p.Labels["app"] && other.runs && !l.machines[other.Spec.NodeName] {
			l.broken[p.Namespace] = append(l.broken[p.Namespace], fmt.Sprintf("pod %s is granted while pod %s is running", p.Name, other.Name))
		}
	}
}

// runs reports whether the program of the pod runs or may start at any time.
func runs(p *corev1.Pod) bool {
	if over(p) {
		return false
	}
	started := slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.ContainerID != "" })
	return granted(p) || !gated(p) && started
}

// epoch returns the fencing token of the pod's grant.
func epoch(p *corev1.Pod) int {
	_, text, _ := strings.Cut(p.Annotations[v1.AnnotationGrant], " ")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// off records that the machine of a Node is switched off.
func (l *invariant) off(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machines[node] = true
}

// on records that the machine is switched on, and starts the pods that its kubelet finds.
func (l *invariant) on(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.machines, node)
}

// excuse ends the guarantee for the namespace.
func (l *invariant) excuse(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.excused[namespace] = true
}

// countAgain lets the epochs of the namespace start at 1 again.
func (l *invariant) countAgain(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restarts[namespace] = true
}

func (l *invariant) blind() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isBlind = true
}

// judge waits until the invariant has seen the current state of the namespace, and reports
// violations.
func (l *invariant) judge(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var list corev1.PodList
		g.Expect(user.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range list.Items {
			seen := l.pods[list.Items[i].UID]
			g.Expect(seen).NotTo(BeNil(), "the checker of the invariant lags behind")
			g.Expect(seen.ResourceVersion).To(Equal(list.Items[i].ResourceVersion), "the checker of the invariant lags behind")
		}
	}).Should(Succeed())
	l.mu.Lock()
	defer l.mu.Unlock()
	Expect(l.isBlind).To(BeFalse(), "the watch of pods has ended")
	Expect(strings.Join(l.broken[namespace], "; ")).To(BeEmpty(), "two programs ran at the same time")
}
