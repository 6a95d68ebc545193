package extendedstatefulset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/kubelet"
)

var theKey = client.ObjectKey{Namespace: "ns", Name: "db"}

// stage is a simulated cluster with an operator whose passes are run one by one.
type stage struct {
	t *testing.T
	*simulate.Simulation
	simtest.Verdict
	// floor is the min number of Ready pods at any time; -1 disables the check.
	floor int
	// shares is true if two pods may use the same claim.
	shares bool

	made   map[string]string    // digest of every StatefulSet that ever existed, by name
	high   map[string]int64     // the highest version that ever existed, by zone
	ran    map[string]types.UID // Jobs that were started
	claims map[string]types.UID // every claim that ever existed
}

func newStage(t *testing.T, set *v1alpha1.ExtendedStatefulSet) *stage {
	c := simulation.New(fixture.Noon)
	s := &stage{t: t, Verdict: simtest.VerdictOf(c), floor: -1, made: map[string]string{}, high: map[string]int64{},
		ran: map[string]types.UID{}, claims: map[string]types.UID{}}
	for i := range 3 {
		kubelet.Turn(c, fmt.Sprintf("n%d", i+1), true)
	}
	c.Put(set)
	s.Simulation = simulate.Start(c, theKey)
	s.Changed, s.JobEnd = s.invariant, jobEnd
	return s
}

// jobEnd returns how a Job ends, depending on its image.
func jobEnd(job *batchv1.Job) batchv1.JobConditionType {
	switch job.Spec.Template.Spec.Containers[0].Image {
	case "hangs":
		return ""
	case kubelet.BadImage:
		return batchv1.JobFailed
	}
	return batchv1.JobComplete
}

func (s *stage) set() *v1alpha1.ExtendedStatefulSet {
	var set v1alpha1.ExtendedStatefulSet
	if s.Get(context.Background(), theKey, &set) != nil {
		return nil
	}
	return &set
}

// change changes the set as a user.
func (s *stage) change(what string, f func(*v1alpha1.ExtendedStatefulSet)) {
	s.Say("# %s", what)
	set := s.set()
	was := set.DeepCopy()
	if f(set); !apiequality.Semantic.DeepEqual(was.Spec, set.Spec) {
		set.Generation++
	}
	s.Put(set)
}

func (s *stage) image(image string) {
	s.change("the image is "+image, func(set *v1alpha1.ExtendedStatefulSet) {
		set.Spec.Template.Spec.Template.Spec.Containers[0].Image = image
	})
}

// pass runs a pass of the operator. It reports whether anything was written, and the requeue delay.
func (s *stage) pass() (acted bool, wait time.Duration) {
	passed := s.Pass()
	if passed.Err != nil && !passed.Acted {
		s.t.Fatal(passed.Err) // reads do not fail
	}
	return passed.Acted, passed.Wait
}

func (s *stage) scale(replicas int32) {
	s.change(fmt.Sprintf("%d replicas", replicas), func(set *v1alpha1.ExtendedStatefulSet) { set.Spec.Template.Spec.Replicas = &replicas })
}

// edit changes a StatefulSet as another client.
func (s *stage) edit(name string, f func(*appsv1.StatefulSet)) {
	for _, c := range s.children() {
		if c.Name == name {
			s.Say("# another client edits %s", name)
			was := c.DeepCopy()
			if f(c); !apiequality.Semantic.DeepEqual(was.Spec, c.Spec) {
				c.Generation++
			}
			s.Put(c)
		}
	}
}

// until lets all participants act until the story has a new line that ends with the given text.
func (s *stage) until(line string) {
	s.t.Helper()
	told := len(s.Story)
	s.settleUntil(func() bool {
		return slices.ContainsFunc(s.Story[told:], func(l string) bool { return strings.HasSuffix(l, line) })
	})
}

// settle lets all participants act until nothing changes and nothing is pending.
func (s *stage) settle() {
	s.t.Helper()
	s.settleUntil(func() bool { return false })
}

func (s *stage) settleUntil(done func() bool) {
	s.t.Helper()
	for range 3000 {
		behind := s.Shuffle != nil && s.Shuffle.Intn(2) == 0
		if !behind {
			s.Look()
		}
		acted, wait := s.pass()
		s.Check(s.t)
		moves := s.Moves()
		if s.Shuffle != nil {
			s.Shuffle.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
			moves = moves[:min(len(moves), 1+s.Shuffle.Intn(3))]
		}
		for _, move := range moves {
			move()
			s.Check(s.t)
			if done() {
				return
			}
		}
		s.Now = s.Now.Add(10 * time.Millisecond)
		switch {
		case acted || behind || len(moves) > 0:
		case wait > 0:
			s.Now = s.Now.Add(wait)
		default:
			return
		}
	}
	s.Fatal(s.t, "the set does not become stable")
}

// rest calls settle, and logs the state that a user sees.
func (s *stage) rest() *v1alpha1.ExtendedStatefulSet {
	s.t.Helper()
	s.settle()
	if before := s.Writes(); s.set() != nil {
		s.Look()
		if s.pass(); s.Writes() != before {
			s.Fatal(s.t, "the operator writes in a stable state")
		}
	}
	set := s.set()
	if set == nil {
		s.Say("= gone")
		return nil
	}
	var children []string
	for _, c := range s.children() {
		children = append(children, fmt.Sprintf("%s %s%s", c.Name, (&facts.Child{Set: c}).Span(), map[string]string{"true": " stale"}[c.Annotations[v1alpha1.AnnotationStale]]))
	}
	st := set.Status
	s.Say("= %s, version %d, %d Ready; %s; active %s", st.Phase, st.CurrentVersion, st.ReadyReplicas, strings.Join(children, ", "), s.active())
	return set
}

func (s *stage) active() string {
	var service corev1.Service
	if s.Get(context.Background(), client.ObjectKey{Namespace: "ns", Name: "db-active"}, &service) != nil {
		return "none"
	}
	return rules.Selected(service.Spec.Selector)
}

func (s *stage) children() []*appsv1.StatefulSet {
	var list appsv1.StatefulSetList
	_ = s.List(context.Background(), &list) // the fake never fails
	all := make([]*appsv1.StatefulSet, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

// invariant verifies the invariants after every change.
func (s *stage) invariant(act *action.Action, was, is client.Object) {
	switch obj := is.(type) {
	case *appsv1.StatefulSet:
		s.numbers(was == nil, obj)
	case *batchv1.Job:
		if !ptr.Deref(obj.Spec.Suspend, false) {
			if uid, known := s.ran[obj.Name]; known && uid != obj.UID {
				s.Breaks("Job %s runs a second time", obj.Name)
			}
			s.ran[obj.Name] = obj.UID
		}
	case *corev1.PersistentVolumeClaim:
		if uid, known := s.claims[obj.Name]; known && uid != obj.UID {
			s.Breaks("claim %s was recreated", obj.Name)
		}
		s.claims[obj.Name] = obj.UID
	}
	if gone, isSet := was.(*appsv1.StatefulSet); isSet && is == nil {
		s.remember(gone)
	}
	if _, isClaim := was.(*corev1.PersistentVolumeClaim); isClaim && is == nil && act != nil {
		s.Breaks("a claim is deleted: %s", act)
	}
	s.podInvariants()
}

// numbers verifies that a version number is used once, and that new numbers are higher than earlier
// ones.
func (s *stage) numbers(isNew bool, obj *appsv1.StatefulSet) {
	index, number, ok := children.ParseChild("db", obj.Name)
	digest := obj.Annotations[v1alpha1.AnnotationDigest]
	if !isNew || !ok {
		return
	}
	if before, known := s.made[obj.Name]; known && before != digest {
		s.Breaks("%s is reused for other content", obj.Name)
	} else if zone := fmt.Sprint(index); !known && number <= s.high[zone] {
		s.Breaks("%s was created after version %d", obj.Name, s.high[zone])
	} else {
		s.high[zone] = max(s.high[zone], number)
	}
	s.made[obj.Name] = digest
}

// remember keeps the content of a deleted StatefulSet whose number is in the status, because it may be recreated.
// It is missing if it was created before an earlier status was lost.
func (s *stage) remember(gone *appsv1.StatefulSet) {
	set, digest := s.set(), gone.Annotations[v1alpha1.AnnotationDigest]
	_, number, ok := children.ParseChild("db", gone.Name)
	if !ok || digest == "" || set == nil || set.Status.VersionHighWater < number {
		return
	}
	if _, known := s.made[gone.Name]; !known {
		s.made[gone.Name] = digest
	}
}

// podInvariants verifies that no two pods use the same claim, and that enough pods are Ready.
func (s *stage) podInvariants() {
	ready, holder := 0, map[string]string{}
	for _, obj := range s.All {
		pod, isPod := obj.(*corev1.Pod)
		if !isPod {
			continue
		}
		if isUnassigned(pod) {
			s.Breaks("%s has no claims", pod.Name)
		}
		if podstate.Ready(pod) && !podstate.Terminating(pod) {
			ready++
		}
		if n := s.budgetsOf(pod); n > 1 {
			s.Breaks("%s matches %d budgets, so that it cannot be evicted", pod.Name, n)
		}
		for _, c := range s.Claims(pod) {
			if other := holder[c.Name]; other != "" && !s.shares {
				s.Breaks("%s and %s both have claim %s", other, pod.Name, c.Name)
			}
			holder[c.Name] = pod.Name
		}
	}
	if ready < s.floor {
		s.Breaks("%d pods are Ready, want at least %d", ready, s.floor)
	}
}

// isUnassigned reports whether a volume of a pod is on the claim that never exists.
func isUnassigned(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && strings.HasSuffix(v.PersistentVolumeClaim.ClaimName, v1alpha1.UnassignedClaim)
	})
}

// budgetsOf returns the number of PodDisruptionBudgets that select a pod.
func (s *stage) budgetsOf(pod *corev1.Pod) (n int) {
	for _, obj := range s.All {
		budget, isBudget := obj.(*policyv1.PodDisruptionBudget)
		if isBudget && labels.SelectorFromSet(budget.Spec.Selector.MatchLabels).Matches(labels.Set(pod.Labels)) {
			n++
		}
	}
	return n
}

// pods returns all pods, sorted by name.
func (s *stage) pods() []*corev1.Pod {
	return slices.DeleteFunc(kubelet.Pods(s.Cluster), func(p *corev1.Pod) bool { return p.Labels[v1alpha1.LabelSet] == "" })
}
