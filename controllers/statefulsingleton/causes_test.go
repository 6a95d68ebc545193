package statefulsingleton

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/facts"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/status"
)

// serverOf returns an API server that has these owners, and only these events.
func serverOf(set *appsv1.ReplicaSet, deployment *appsv1.Deployment, events ...corev1.Event) client.Reader {
	return interceptor.NewClient(nil, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			return causestest.Events(events...).List(ctx, list, o...)
		},
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
			switch into := into.(type) {
			case *appsv1.ReplicaSet:
				set.DeepCopyInto(into)
			case *appsv1.Deployment:
				deployment.DeepCopyInto(into)
			}
			return nil
		},
	})
}

// lackingSet returns a ReplicaSet whose pod was first refused with that text, and its
// Deployment with that number of replicas.
func lackingSet(first string, replicas int32) (*appsv1.ReplicaSet, *appsv1.Deployment) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "ns", UID: "set",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "web", Controller: ptr.To(true)}}}}
	set.Spec.Replicas, set.Spec.Template.Labels = &replicas, map[string]string{"app": "db"}
	set.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Message: first}}
	return set, d
}

// refusedPod returns an event of a ReplicaSet about a refused pod.
func refusedPod(text string) corev1.Event {
	return corev1.Event{Reason: "FailedCreate", Message: `Error creating: pods "web-1-x7f2k" is forbidden: ` + text}
}

// look makes passes at these times before noon, each with the status that the previous one
// wrote, and returns the facts of the last pass.
func look(w *facts.World, r *observe.Reader, ago ...time.Duration) *facts.Facts {
	known := &observe.Remembered{}
	var f *facts.Facts
	for _, before := range ago {
		w.Now, w.Delay = noon.Add(-before), facts.Delay{}
		r.ReadCauses(context.Background(), w, known)
		f = facts.Derive(w)
		w.Object.Status = status.Summarize(f)
	}
	return f
}

// sampled returns a pod of a Deployment that has the container of the samples and no status
// yet.
func sampled(m *memberFixture) *memberFixture {
	m.of("web").Program = []string{causestest.Container}
	m.Node = nodestate.Facts{Ready: true}
	m.Pod.Status.ContainerStatuses, m.Pod.Status.Conditions = nil, nil
	return m
}

// keptFor returns a world in which the cause of a sample has kept a pod from running for
// that long; nil if the sample is not about a pod.
func keptFor(s *causestest.Sample, m *memberFixture, age time.Duration) (*facts.World, client.Reader) {
	set, d := lackingSet("an older reason", 1)
	since := noon.Add(-age)
	switch {
	case s.Fails:
		return nil, nil
	case s.Refused != "":
		w := worldOf(singleton("db"))
		w.RefusedOwners = []facts.Object{set}
		return w, serverOf(set, d, refusedPod(s.Refused))
	case s.Pod != nil:
		s.Pod(m.Pod, since)
	default:
		m.Pod.CreationTimestamp.Time = since
	}
	return worldOf(held(), m), serverOf(set, d, s.Told)
}

// TestW7EachCauseIsToldOf checks that the cause that keeps the pod whose turn it is from
// running is in condition Degraded after a minute, with the command that helps, and in
// Stalled if it needs manual intervention.
func TestW7EachCauseIsToldOf(t *testing.T) {
	for i := range causestest.All {
		s := &causestest.All[i]
		for what, m := range map[string]*memberFixture{"the pod waits": waiting("a"), "the pod may run": granted("a", 1)} {
			w, live := keptFor(s, sampled(m), 70*time.Second)
			if w == nil {
				continue
			}
			t.Run(s.Situation+", "+what, func(t *testing.T) {
				look(w, &observe.Reader{Live: live}, 70*time.Second, 69*time.Second, 5*time.Second, 0)
				s.Check(t, v1.ConditionDegraded, w.Object, w.Object.Status.Conditions)
			})
		}
	}
}

// sayingOf returns a condition in one line.
func sayingOf(w *facts.World, kind string) string {
	c := meta.FindStatusCondition(w.Object.Status.Conditions, kind)
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

const (
	noProblem = "False Healthy: no problems detected"
	overQuota = "True PodFailing: pod of ReplicaSet web-1 cannot be created: exceeded quota: small, requested: pods=1; raise the quota or free some of it: kubectl -n ns describe quota"
	sysctl    = "the kubelet does not allow a sysctl"
)

func sampleOf(t *testing.T, situation string) *causestest.Sample {
	i := slices.IndexFunc(causestest.All, func(s causestest.Sample) bool { return s.Situation == situation })
	if i < 0 {
		t.Fatalf("no sample for %s", situation)
	}
	return &causestest.All[i]
}

// TestW7NothingIsToldOfWhatIsNotHindered checks that no cause is reported for standbys at
// their gates, for leftover pods of a Deployment that is scaled to 0, and for a pod that
// starts.
func TestW7NothingIsToldOfWhatIsNotHindered(t *testing.T) {
	broken := sampled(waiting("b"))
	sampleOf(t, "the image cannot be pulled: it is missing, or its registry refuses access").Pod(broken.Pod, noon.Add(-time.Hour))
	ended := sampled(waiting("a"))
	sampleOf(t, sysctl).Pod(ended.Pod, noon.Add(-time.Hour))
	young := sampled(waiting("a"))
	sampleOf(t, "the scheduler finds no Node for another reason").Pod(young.Pod, noon.Add(-30*time.Second))
	elder := &singleton("a").StatefulSingleton
	elder.CreationTimestamp.Time = noon.Add(-2 * time.Hour)
	set, d := lackingSet("", 0)
	for what, w := range map[string]*facts.World{
		"pods at their gates":              worldOf(held(), granted("a", 1).serving(), waiting("b"), waiting("c")),
		"a standby that cannot start":      worldOf(held(), granted("a", 1).serving(), broken),
		"the only pods are at their gates": worldOf(singleton("db"), waiting("a"), waiting("b")),
		"a pod is unschedulable for 30 s":  worldOf(singleton("db"), young),
		"no pods":                          worldOf(singleton("db")),
		"an invalid object":                worldWith(worldOf(singleton("db"), broken), func(w *facts.World) { w.Rivals = []*v1.StatefulSingleton{elder} }),
	} {
		look(w, &observe.Reader{Live: serverOf(set, d)}, 3*time.Second, 0)
		if got := sayingOf(w, v1.ConditionDegraded); got != noProblem {
			t.Errorf("%s: Degraded is %s", what, got)
		}
	}
	w := worldOf(singleton("db"), ended)
	look(w, &observe.Reader{Live: serverOf(set, d)}, 3*time.Second, 0)
	if got := sayingOf(w, v1.ConditionStalled); !strings.HasPrefix(got, "False") {
		t.Errorf("a Deployment with 0 replicas and a refused pod an hour ago: Stalled is %s", got)
	}
}

// TestW7APodThatIsNotCreated checks that a pod that cannot be created is reported with the
// API server's last error, also after a restart of the operator, and no longer when it is
// created.
func TestW7APodThatIsNotCreated(t *testing.T) {
	set, d := lackingSet(`pods "web-1-x" is forbidden: an older reason`, 1)
	w := worldOf(singleton("db"))
	w.RefusedOwners = []facts.Object{set}
	r := &observe.Reader{Live: serverOf(set, d, refusedPod("exceeded quota: small, requested: pods=1"))}
	look(w, r, 30*time.Second, 29*time.Second, 0)
	if got := sayingOf(w, v1.ConditionDegraded); got != noProblem {
		t.Errorf("after 30 s: %s", got)
	}
	look(w, r, 70*time.Second, 69*time.Second, 0)
	stalled := sayingOf(w, v1.ConditionStalled)
	if got := sayingOf(w, v1.ConditionDegraded); got != overQuota || stalled != overQuota {
		t.Errorf("after 60 s: %s\nStalled is %s", got, stalled)
	}
	for _, passes := range [][]time.Duration{{0}, {time.Second, 0}} { // each with an empty memory
		look(w, r, passes...)
		if got := sayingOf(w, v1.ConditionDegraded); got != overQuota || sayingOf(w, v1.ConditionStalled) != stalled {
			t.Errorf("after a restart of the operator: %s", got)
		}
	}
	set.Status.Conditions[0].Status = corev1.ConditionFalse
	look(w, r, 2*time.Second, 0)
	if got := sayingOf(w, v1.ConditionDegraded); got != noProblem {
		t.Errorf("after the pod was created: %s", got)
	}
	set, d = lackingSet(`pods "web-1-x" is forbidden: exceeded quota: small, requested: pods=1`, 1)
	w.RefusedOwners = []facts.Object{set}
	look(w, &observe.Reader{Live: serverOf(set, d)}, 70*time.Second, 69*time.Second, 0)
	if got := sayingOf(w, v1.ConditionDegraded); got != overQuota {
		t.Errorf("after its events were deleted: %s", got)
	}
}

// TestW7OnePodAfterAnotherIsRefused checks that the cause is reported if a kubelet refuses
// one pod after another, each with a different name.
func TestW7OnePodAfterAnotherIsRefused(t *testing.T) {
	set, d := lackingSet("", 1)
	r, known := &observe.Reader{Live: serverOf(set, d)}, &observe.Remembered{}
	w := worldOf(singleton("db"))
	for second := -80; second < 0; second += 2 {
		at := noon.Add(time.Duration(second) * time.Second)
		next := sampled(waiting(fmt.Sprintf("p%d", second)))
		next.Pod.CreationTimestamp.Time = at
		next.silent().phase(corev1.PodPending)
		w.Pods = append(w.Pods, &next.Member)
		for range 2 { // first it has just been created, and a second later it is refused
			w.Now, w.Delay = at, facts.Delay{}
			r.ReadCauses(context.Background(), w, known)
			w.Object.Status = status.Summarize(facts.Derive(w))
			sampleOf(t, sysctl).Pod(next.Pod, at)
			at = at.Add(time.Second)
		}
	}
	const want = "True PodFailing: pod p-2 was terminated by its Node: SysctlForbidden: forbidden sysctl"
	if got := sayingOf(w, v1.ConditionStalled); !strings.HasPrefix(got, want) {
		t.Errorf("Stalled is %s", got)
	}
}

// TestW7ALateHandoverSaysWhy checks that a handover that takes too long keeps its reason,
// and reports why its pod does not start.
func TestW7ALateHandoverSaysWhy(t *testing.T) {
	m := sampled(waiting("a"))
	sampleOf(t, "no Node has enough cpu, memory or other resources").Pod(m.Pod, noon.Add(-time.Hour))
	w := worldOf(singleton("db").with(func(s *v1.StatefulSingleton) {
		s.Status.TransitionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)}
	}), m)
	set, d := lackingSet("", 1)
	look(w, &observe.Reader{Live: serverOf(set, d)}, 0)
	got := sayingOf(w, v1.ConditionDegraded)
	if !strings.HasPrefix(got, "True TransitionTimeout: ") || !strings.Contains(got, "; pod a cannot be scheduled: Unschedulable: ") {
		t.Errorf("Degraded is %s", got)
	}
}
