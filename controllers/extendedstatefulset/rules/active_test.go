package rules_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// probedPod is a pod whose container main runs.
type probedPod struct {
	version int64
	ordinal int32
	pod     *corev1.Pod
	probed  facts.Probed
	strange bool // it has no owner, or another owner
}

func pod(version int64, ordinal int32) *probedPod {
	name := fmt.Sprintf("db-v%d-%d", version, ordinal)
	p := &probedPod{version: version, ordinal: ordinal, probed: facts.Probed{Results: map[string]podexec.Result{}}, pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelSet: "db"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", ContainerID: "first", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}}
	return p.ready(corev1.ConditionTrue)
}

func (p *probedPod) ready(is corev1.ConditionStatus) *probedPod {
	p.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}
	return p
}

func (p *probedPod) active() *probedPod {
	p.pod.Labels[v1alpha1.LabelPodActive] = v1alpha1.PodActive
	return p
}

func (p *probedPod) going() *probedPod {
	p.pod.DeletionTimestamp = &metav1.Time{Time: fixture.Noon}
	return p
}

func (p *probedPod) strangers() *probedPod {
	p.strange = true
	return p
}

func (p *probedPod) busy() *probedPod {
	p.probed.Busy = true
	return p
}

// said adds a result of the first container from the given time ago.
func (p *probedPod) said(outcome podexec.Outcome, ago time.Duration) *probedPod {
	p.probed.Results["main"] = podexec.Result{Command: podexec.Command{Name: "main", ContainerID: "first"}, Outcome: outcome, Sent: true,
		Began: fixture.Noon.Add(-ago), Ended: fixture.Noon.Add(-ago + 100*time.Millisecond)}
	return p
}

// silent adds a probe that timed out.
func (p *probedPod) silent() *probedPod {
	p.said(podexec.Unknown, 20*time.Second)
	r := p.probed.Results["main"]
	r.Ended = r.Began.Add(spec.ProbeTimeout)
	p.probed.Results["main"] = r
	return p
}

// restarted replaces the container.
func (p *probedPod) restarted() *probedPod {
	p.pod.Status.ContainerStatuses[0].ContainerID = "second"
	return p
}

func (p *probedPod) crashed() *probedPod {
	p.pod.Status.ContainerStatuses[0].State = corev1.ContainerState{}
	return p
}

func probedWorld(single bool, pods ...*probedPod) *facts.World {
	set := fixture.FakeSet(3)
	set.Status.CurrentVersion = 1
	set.Spec.ActivePassiveProbes = map[string]v1alpha1.ActivePassiveProbe{"main": {Exec: &corev1.ExecAction{Command: []string{"/active"}}, SingleActive: single}}
	w := &facts.World{Now: fixture.Noon, Set: set, Probes: map[types.UID]facts.Probed{}}
	for _, p := range pods {
		w.Pods = append(w.Pods, facts.PodOfOrdinal{Zone: children.NoZone, Version: p.version, Ordinal: p.ordinal, Pod: p.pod, Owned: !p.strange})
		w.Probes[p.pod.UID] = p.probed
	}
	return w
}

func TestFollowProbes(t *testing.T) {
	const yes, no, lost = podexec.Succeeded, podexec.Failed, podexec.Unknown
	const recent = 10 * time.Second
	asked := func(name string) string { return "exec in pod " + name + ": Probe, main" }
	on := func(name string) string { return "patch pod " + name + ": Active" }
	off := func(name string) string { return "patch pod " + name + ": Passive" }
	for _, r := range []struct {
		name   string
		single bool
		pods   []*probedPod
		want   []string
		wait   time.Duration
	}{
		{"E34 only a Ready pod is probed", false, []*probedPod{pod(1, 0), pod(1, 1).ready(corev1.ConditionFalse)}, []string{asked("db-v1-0")}, 0},
		{"a pod is not probed while a probe runs", false, []*probedPod{pod(1, 0).busy()}, nil, 0},
		{"a terminating pod is not probed", false, []*probedPod{pod(1, 0).going()}, nil, 0},
		{"a pod is probed again after 30 s", false, []*probedPod{pod(1, 0).said(no, 30*time.Second)}, []string{asked("db-v1-0")}, 0},
		{"a pod is not probed again before the period ends", false, []*probedPod{pod(1, 0).said(no, recent)}, nil, 20 * time.Second},
		{"a pod is probed immediately after its container restarted", false, []*probedPod{pod(1, 0).said(no, recent).restarted()}, []string{asked("db-v1-0")}, 0},
		{"E34 a successful probe adds the label", false, []*probedPod{pod(1, 0).said(yes, recent)}, []string{on("db-v1-0")}, 20 * time.Second},
		{"E34 a failed probe removes the label", false, []*probedPod{pod(1, 0).active().said(no, recent)}, []string{off("db-v1-0")}, 20 * time.Second},
		{"a probe timeout removes the label", false, []*probedPod{pod(1, 0).active().silent()}, []string{off("db-v1-0")}, 10 * time.Second},
		{"a lost probe result changes nothing", false, []*probedPod{pod(1, 0).active().said(lost, recent), pod(1, 1).said(lost, recent)}, nil, 20 * time.Second},
		{"a restarted operator probes before it changes a label", false, []*probedPod{pod(1, 0).active()}, []string{asked("db-v1-0")}, 0},
		{"the result of a previous container is ignored", false, []*probedPod{pod(1, 0).said(yes, recent).restarted()}, []string{asked("db-v1-0")}, 0},
		{"a pod that is not Ready loses the label", false, []*probedPod{pod(1, 0).active().said(yes, recent).ready(corev1.ConditionFalse)}, []string{off("db-v1-0")}, 0},
		{"a terminating pod loses the label", false, []*probedPod{pod(1, 0).active().said(yes, recent).going()}, []string{off("db-v1-0")}, 0},
		{"a pod whose container does not run loses the label", false, []*probedPod{pod(1, 0).active().said(yes, recent).crashed()}, []string{off("db-v1-0")}, 0},
		{"a pod of another controller with the same name is not probed", false, []*probedPod{pod(1, 0).strangers(), pod(1, 1).strangers().said(yes, recent)}, nil, 0},
		{"a pod of another controller with the same name loses the label", true, []*probedPod{pod(1, 0).strangers().active().said(yes, recent), pod(1, 1).said(yes, recent)}, []string{off("db-v1-0")}, 20 * time.Second},
		{"several pods may be active without singleActive", false, []*probedPod{pod(1, 0).active().said(yes, recent), pod(1, 1).said(yes, recent)}, []string{on("db-v1-1")}, 20 * time.Second},
		{"E34 only one pod is active with singleActive", true, []*probedPod{pod(1, 0).active().said(yes, recent), pod(1, 1).said(yes, recent)}, nil, 20 * time.Second},
		{"singleActive selects the first pod with a successful probe", true, []*probedPod{pod(1, 2).said(yes, recent), pod(1, 1).said(yes, recent), pod(1, 0).said(no, recent)}, []string{on("db-v1-1")}, 20 * time.Second},
		{"singleActive prefers a pod of the current version", true, []*probedPod{pod(2, 0).said(yes, recent), pod(1, 2).said(yes, recent)}, []string{on("db-v1-2")}, 20 * time.Second},
		{"singleActive removes the label of one pod before it adds the label to another", true, []*probedPod{pod(1, 0).active().said(no, recent), pod(1, 1).said(yes, recent)}, []string{off("db-v1-0")}, 20 * time.Second},
		{"singleActive removes the label of a terminating pod before it adds the label to another", true, []*probedPod{pod(1, 0).active().going(), pod(1, 1).said(yes, recent)}, []string{off("db-v1-0")}, 20 * time.Second},
		{"singleActive keeps the label of a pod whose probe result is lost", true, []*probedPod{pod(1, 0).active().said(lost, recent), pod(1, 1).said(yes, recent)}, nil, 20 * time.Second},
		{"singleActive keeps the label of a pod with a successful probe if several have it", true, []*probedPod{pod(1, 0).active().said(lost, recent), pod(1, 1).active().said(yes, recent), pod(1, 2).active().said(yes, recent)},
			[]string{off("db-v1-0"), off("db-v1-2")}, 20 * time.Second},
	} {
		w, p := probedWorld(r.single, r.pods...), rules.Plan{}
		rules.FollowProbes(&facts.Facts{World: w}, &p)
		if got := p.Steps.Strings(); !slices.Equal(got, r.want) {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
		if p.Wait != r.wait {
			t.Errorf("%s: next pass after %s, want %s", r.name, p.Wait, r.wait)
		}
	}
}

func TestProbesThatAreTakenOffTheSpecTakeTheLabelsAlong(t *testing.T) {
	w, p := probedWorld(true, pod(1, 0).active().said(podexec.Succeeded, time.Second), pod(1, 1)), rules.Plan{}
	w.Set.Spec.ActivePassiveProbes = nil
	rules.FollowProbes(&facts.Facts{World: w}, &p)
	if got, want := p.Steps.Strings(), []string{"patch pod db-v1-0: Passive"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSeveralProbesMustAgree verifies that two containers are probed one after the other, and that both
// must succeed.
func TestSeveralProbesMustAgree(t *testing.T) {
	two := pod(1, 0).said(podexec.Succeeded, time.Second)
	two.pod.Status.ContainerStatuses = append(two.pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "side", ContainerID: "s", State: two.pod.Status.ContainerStatuses[0].State})
	for _, r := range []struct {
		outcome podexec.Outcome
		want    []string
	}{
		{"", []string{"exec in pod db-v1-0: Probe, side"}},
		{podexec.Failed, nil},
		{podexec.Succeeded, []string{"patch pod db-v1-0: Active"}},
	} {
		if r.outcome != "" {
			two.probed.Results["side"] = podexec.Result{Command: podexec.Command{ContainerID: "s"}, Outcome: r.outcome, Sent: true, Began: fixture.Noon, Ended: fixture.Noon}
		}
		w, p := probedWorld(false, two), rules.Plan{}
		w.Set.Spec.ActivePassiveProbes["side"] = v1alpha1.ActivePassiveProbe{Exec: &corev1.ExecAction{Command: []string{"/side"}}, PeriodSeconds: 3}
		rules.FollowProbes(&facts.Facts{World: w}, &p)
		if got := p.Steps.Strings(); !slices.Equal(got, r.want) {
			t.Errorf("result %q of container side: got %q, want %q", r.outcome, got, r.want)
		}
	}
}

// TestNeverTwoActive verifies E34: no two pods have the label, whatever the probes return and whichever
// results and writes are lost.
func TestNeverTwoActive(t *testing.T) {
	for seed := range int64(300) {
		random := rand.New(rand.NewSource(seed))
		pods := []*probedPod{pod(1, 0), pod(1, 1), pod(2, 0), pod(2, 1)}
		for step := range 60 {
			p := pods[random.Intn(len(pods))]
			switch random.Intn(5) {
			case 0:
				p.ready(map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[random.Intn(2) == 0])
			default:
				p.said([]podexec.Outcome{podexec.Succeeded, podexec.Failed, podexec.Unknown}[random.Intn(3)], time.Second)
			}
			plan := rules.Plan{}
			rules.FollowProbes(&facts.Facts{World: probedWorld(true, pods...)}, &plan)
			for _, chains := range plan.Steps {
				random.Shuffle(len(chains), func(i, j int) { chains[i], chains[j] = chains[j], chains[i] })
				for _, chain := range chains {
					if chain[0].Verb != action.Patch || random.Intn(4) == 0 { // the write is lost
						continue
					}
					at := slices.IndexFunc(pods, func(p *probedPod) bool { return p.pod.UID == chain[0].Object.GetUID() })
					pods[at].pod.Labels = chain[0].Object.GetLabels()
					if n := count(pods); n > 1 {
						t.Fatalf("seed %d, step %d: %d pods are active", seed, step, n)
					}
				}
			}
		}
	}
}

func count(pods []*probedPod) (n int) {
	for _, p := range pods {
		if rules.IsActive(p.pod) {
			n++
		}
	}
	return n
}
