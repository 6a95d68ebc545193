package replicatedstatefulset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/nodestate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// The tables build their worlds with these functions:
//
//	worldOf(setOf(3, 1), pod(0).primary(), pod(1).secondary().sequence("9"), pod(2).idle())
//
// In all worlds it is noon, the world is live, and the children exist. A pod runs, has the
// finalizer and has no command results. By default status was sent 10 s ago and sequence 5 s ago.
// The last primary was lost a minute ago.

func metaTime(age time.Duration) metav1.Time { return metav1.NewTime(ago(age)) }

func ago(d time.Duration) time.Time { return noon.Add(-d) }

type thing interface{ Into(w *facts.World) }

type with func(*facts.World)

func (f with) Into(w *facts.World) { f(w) }

func worldOf(set *v1alpha1.ReplicatedStatefulSet, things ...thing) *facts.World {
	set.UID, set.Generation = "uid-of-set", 3
	set.Finalizers = append(set.Finalizers, v1alpha1.FinalizerStop)
	w := &facts.World{Clock: facts.Clock{Now: noon}, Live: true, Set: spec.WithDefaults(set), LossAt: ago(time.Minute), Services: map[string]*corev1.Service{}}
	for _, s := range children.BuildServices(w.Set) {
		w.Services[s.Name] = s
	}
	w.Budget, w.PrimaryBudget = &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudget{}
	w.Stateful = children.BuildStatefulSet(w.Set, *w.Set.Spec.Replicas, children.Hashes{})
	for _, t := range things {
		t.Into(w)
	}
	for _, m := range w.Members { // labels match their states
		active, role := v1alpha1.False, v1alpha1.RoleNone
		switch w.StateOf(m, record.CommandOf(w.Set.Status.Commands, m.Pod.UID)) {
		case record.Primary:
			active, role = v1alpha1.True, v1alpha1.RolePrimary
		case record.Secondary:
			active, role = v1alpha1.True, v1alpha1.RoleSecondary
		}
		m.Pod.Labels[v1alpha1.LabelActive], m.Pod.Labels[v1alpha1.LabelRole] = active, role
	}
	for _, t := range things {
		if f, ok := t.(*podFixture); ok && f.labels != nil {
			f.Pod.Labels = spec.Merged(f.Pod.Labels, f.labels)
		}
	}
	fitBudgets(w)
	return w
}

// fitBudgets sets the expected budgets, unless a fixture removed them.
func fitBudgets(w *facts.World) {
	b := facts.Derive(w)
	if w.Budget != nil {
		switch w.Budget = children.BuildBudget(w.Set); {
		case spec.HandsOver(w.Set) && rules.MustCloseBudget(b):
			w.Budget = rules.ClosedBudget(rules.OpenedBudget(b))
		case spec.HandsOver(w.Set):
			w.Budget = rules.OpenedBudget(b)
		}
	}
	if w.PrimaryBudget == nil || !spec.HandsOver(w.Set) {
		w.PrimaryBudget = nil
		return
	}
	w.PrimaryBudget = children.BuildPrimaryBudget(w.Set, rules.MinPrimaries(b))
}

type podFixture struct {
	*facts.Member
	then []func(*facts.World)
	// labels replace the matching ones.
	labels map[string]string
}

func pod(ordinal int) *podFixture {
	name, id := fmt.Sprintf("rss-db-%d", ordinal), fmt.Sprintf("c%d", ordinal)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(fmt.Sprintf("u%d", ordinal)),
		Labels: spec.OwnLabels(setOf(1, 1)), Finalizers: []string{v1alpha1.FinalizerMember}}}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(time.Hour))}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: id,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(time.Hour))}}}}
	return &podFixture{Member: &facts.Member{Pod: p, Ordinal: ordinal, Owned: true, CommandsIn: "main", Node: nodestate.Facts{Ready: true}, Touched: ago(time.Hour),
		Results: map[string]podexec.Result{}, Said: map[string]podexec.Result{}, Tries: map[string]int{}}}
}

func (f *podFixture) Into(w *facts.World) {
	f.Pod.Annotations = map[string]string{v1alpha1.AnnotationTemplate: w.Stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]}
	w.Members = append(w.Members, f.Member)
	for _, change := range f.then {
		change(w)
	}
}

func (f *podFixture) but(change func(*facts.World)) *podFixture {
	f.then = append(f.then, change)
	return f
}

// answered adds a result of a command of that age to the Board.
func (f *podFixture) answered(name string, outcome podexec.Outcome, code int, out string, age time.Duration) *podFixture {
	r := podexec.Result{Outcome: outcome, Code: code, Stdout: out, Sent: true, Began: ago(age), Ended: ago(age - time.Second), Why: "the stream broke",
		Command: podexec.Command{Name: name, UID: f.Pod.UID, ContainerID: f.Running()}}
	f.Results[name] = r
	if outcome != podexec.Unknown {
		f.Said[name] = r
	}
	return f
}

func (f *podFixture) status(code int) *podFixture {
	if code == 0 {
		return f.answered("status", podexec.Succeeded, 0, "", 10*time.Second)
	}
	age := 10 * time.Second
	if code < 7 || code == 9 { // in such a state it is queried every second
		age = 1500 * time.Millisecond
	}
	return f.answered("status", podexec.Failed, code, "", age)
}

func (f *podFixture) idle() *podFixture      { return f.status(7) }
func (f *podFixture) secondary() *podFixture { return f.status(0) }
func (f *podFixture) primary() *podFixture   { return f.status(8).granted() }

func (f *podFixture) sequence(out string) *podFixture {
	return f.answered("sequence", podexec.Succeeded, 0, out+"\n", 5*time.Second)
}

// cut makes sequence print more than is kept.
func (f *podFixture) cut() *podFixture {
	r := f.Results["sequence"]
	r.Cut = true
	f.Results["sequence"], f.Said["sequence"] = r, r
	return f
}

// grantedFor gives the member a grant of that age.
func (f *podFixture) grantedFor(age time.Duration) *podFixture {
	return f.granted().but(func(w *facts.World) {
		all := w.Set.Status.Grants
		all[len(all)-1].Since = metav1.NewMicroTime(ago(age))
	})
}

// confirmed marks the grant as confirmed.
func (f *podFixture) confirmed() *podFixture {
	return f.but(func(w *facts.World) {
		all := w.Set.Status.Grants
		all[len(all)-1].Confirmed = true
	})
}

// changed adds a mutating command that ended that long ago.
func (f *podFixture) changed(name string, age time.Duration) *podFixture {
	return f.answered(name, podexec.Succeeded, 0, "", age+time.Second)
}

// unsent adds a command that never began, with the number of attempts and the age of the last one.
func (f *podFixture) unsent(name string, age time.Duration, tries int) *podFixture {
	f.answered(name, podexec.Unknown, 0, "", age).Tries[name] = tries
	r := f.Results[name]
	r.Sent = false
	f.Results[name] = r
	return f
}

func (f *podFixture) granted() *podFixture {
	name, uid, id := f.Name(), f.Pod.UID, f.Running()
	return f.but(func(w *facts.World) {
		w.Set.Status.Grants = append(w.Set.Status.Grants, v1alpha1.Grant{Pod: name, UID: uid, ContainerID: id, Since: metav1.NewMicroTime(ago(time.Hour))})
	})
}

// began adds a command that was sent that long ago to the record.
func (f *podFixture) began(name string, age time.Duration) *podFixture {
	c := v1alpha1.RunningCommand{Pod: f.Name(), UID: f.Pod.UID, ContainerID: f.Running(), Name: name,
		StartedAt: metav1.NewMicroTime(ago(age)), Timeout: metav1.Duration{Duration: 20 * time.Second}}
	return f.but(func(w *facts.World) { w.Set.Status.Commands = append(w.Set.Status.Commands, c) })
}

// runs adds a recorded command that the Board still runs, ends one that has ended.
func (f *podFixture) runs(name string, age time.Duration) *podFixture {
	f.Busy = &podexec.Command{Name: name, Decided: ago(age)}
	return f.began(name, age)
}

func (f *podFixture) ends(name string, outcome podexec.Outcome, code int) *podFixture {
	f.began(name, 8*time.Second).answered(name, outcome, code, "", 8*time.Second)
	r := f.Results[name]
	r.Decided = ago(8 * time.Second)
	f.Results[name] = r
	return f
}

// age sets when the recorded command ended. took also sets its duration.
func (f *podFixture) age(age time.Duration) *podFixture { return f.took(time.Second, age) }

func (f *podFixture) took(ran, age time.Duration) *podFixture {
	return f.but(func(w *facts.World) {
		c := &w.Set.Status.Commands[len(w.Set.Status.Commands)-1]
		c.StartedAt = metav1.NewMicroTime(ago(age + ran))
		r := f.Results[c.Name]
		r.Decided, r.Began, r.Ended = c.StartedAt.Time, c.StartedAt.Time, ago(age)
		f.Results[c.Name], f.Said[c.Name] = r, r
	})
}

// statusSince adds a status result of that age, newer than all other results.
func (f *podFixture) statusSince(code int, age time.Duration) *podFixture {
	outcome := podexec.Failed
	if code == 0 {
		outcome = podexec.Succeeded
	}
	f.answered("status", outcome, code, "", age)
	for _, of := range []map[string]podexec.Result{f.Results, f.Said} {
		r := of["status"]
		r.Ended = r.Began
		of["status"] = r
	}
	return f
}

func (f *podFixture) failures(count int32, command string, code int32, unclean bool) *podFixture {
	failure := v1alpha1.Failure{Pod: f.Name(), UID: f.Pod.UID, ContainerID: f.Running(), Count: count, Last: metav1.NewTime(ago(time.Minute)),
		Command: command, Code: code, Generation: 3, Unclean: unclean}
	return f.but(func(w *facts.World) { w.Set.Status.Failures = append(w.Set.Status.Failures, failure) })
}

// unready makes the pod unready for that long.
func (f *podFixture) unready(age time.Duration) *podFixture {
	f.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(ago(age))}}
	return f
}

// hangs adds a status command that has been running for that long.
func (f *podFixture) hangs(age time.Duration) *podFixture {
	f.Busy, f.AskedAt = &podexec.Command{Name: v1alpha1.CommandStatus, Asked: ago(age)}, ago(age)
	return f
}

func (f *podFixture) pending() *podFixture {
	f.Pod.Status.Conditions = nil
	f.Pod.Status.Phase, f.Pod.Status.ContainerStatuses = corev1.PodPending, nil
	return f
}

// crashed ends the container, as reported by the kubelet. restarted starts another one, that long
// ago.
func (f *podFixture) crashed() *podFixture {
	c := &f.unready(0).Pod.Status.ContainerStatuses[0]
	c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: c.ContainerID}}
	return f
}

// waiting makes the pod one whose kubelet has not reported any container yet.
func (f *podFixture) waiting() *podFixture {
	f.Pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	return f
}

func (f *podFixture) restarted(age time.Duration) *podFixture {
	c := &f.Pod.Status.ContainerStatuses[0]
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: c.ContainerID}
	c.ContainerID += "+"
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(age))}}
	return f
}

func (f *podFixture) deleted() *podFixture {
	at := metav1.NewTime(ago(time.Second))
	f.Pod.DeletionTimestamp = &at
	return f
}

// held makes the pod terminating for that long. Its preStop hook sleeps ten of the thirty seconds
// of its grace period.
func (f *podFixture) held(age time.Duration) *podFixture {
	at := metav1.NewTime(ago(age - 30*time.Second))
	f.Pod.DeletionTimestamp, f.Pod.DeletionGracePeriodSeconds = &at, new(int64(30))
	f.Pod.Spec.Containers = []corev1.Container{{Name: "main", Lifecycle: &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}}}
	return f
}

// ended makes the kubelet report that the whole pod has stopped.
func (f *podFixture) ended() *podFixture {
	f.crashed().Pod.Status.Phase = corev1.PodFailed
	f.Pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"}}
	return f
}

// silent adds that many unanswered status commands, the last one 4 s ago.
func (f *podFixture) silent(tries int) *podFixture {
	f.Tries["status"], f.Missed = tries, tries
	return f.answered("status", podexec.Unknown, 0, "", 5*time.Second)
}

// refused makes the last command of that name refused by the API server.
func (f *podFixture) refused(name string) *podFixture {
	r := f.Results[name]
	r.Sent, r.Refused = false, true
	f.Results[name] = r
	return f
}

// strange makes the pod not owned by the set.
func (f *podFixture) strange() *podFixture { f.Owned = false; return f }

// lately sets when the failure occurred.
func (f *podFixture) lately(age time.Duration) *podFixture {
	return f.but(func(w *facts.World) {
		all := w.Set.Status.Failures
		all[len(all)-1].Last = metav1.NewTime(ago(age))
	})
}

func (f *podFixture) born(age time.Duration) *podFixture {
	f.Pod.CreationTimestamp = metav1.NewTime(ago(age))
	return f
}

// beside adds another container to the pod, in which commands run now.
func (f *podFixture) beside(name string) *podFixture {
	f.CommandsIn = name
	f.Pod.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: name, ContainerID: "other",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}, f.Pod.Status.ContainerStatuses...)
	return f
}

func (f *podFixture) onNode(n nodestate.Facts) *podFixture { f.Node = n; return f }

func (f *podFixture) outdated() *podFixture {
	return f.but(func(*facts.World) { f.Pod.Annotations[v1alpha1.AnnotationTemplate] = "old" })
}

// lost sets when the last primary was lost.
func lost(age time.Duration) thing {
	return with(func(w *facts.World) { w.LossAt = ago(age) })
}

func annotated(key, value string) thing {
	return with(func(w *facts.World) { metav1.SetMetaDataAnnotation(&w.Set.ObjectMeta, key, value) })
}

func recordedSequence(pod, sequence string) thing {
	return with(func(w *facts.World) {
		w.Set.Status.Sequences = append(w.Set.Status.Sequences, v1alpha1.Sequence{Pod: pod, Sequence: sequence})
	})
}

// row is one row of a table: a description, a world, and the wanted actions.
type row struct {
	name  string
	world *facts.World
	want  []string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := rules.Decide(r.world)
			if got := gist(&p); !slices.Equal(got, r.want) {
				t.Errorf("rule %q plans\n  %s\nwant\n  %s\nstatus: %+v", p.Rule, strings.Join(got, "\n  "), strings.Join(r.want, "\n  "), p.Waiting)
			}
			if again := rules.Decide(r.world); !slices.Equal(again.Steps.Strings(), p.Steps.Strings()) {
				t.Errorf("a second decision on the same world returns another plan:\n  %s", strings.Join(again.Steps.Strings(), "\n  "))
			}
		})
	}
}

// gist returns a summary of a plan. It omits the constant parts of each chain: a command is its
// pod, its name, and the pods in its arguments.
func gist(p *rules.Plan) (lines []string) {
	for _, line := range p.Steps.Strings() {
		parts := slices.DeleteFunc(strings.Split(line, " > "), func(part string) bool { return strings.HasPrefix(part, "try pod ") })
		line = parts[len(parts)-1]
		if len(parts) > 1 && !strings.Contains(line, "exec in pod") {
			line = strings.Join(parts, " > ")
		}
		line = strings.NewReplacer("exec in pod rss-db-", "", "rss-db-", "", ".db-svc", "", "patch status of replicatedstatefulset db: Learned, ", "learned: ",
			": Ask, ", " asked ").Replace(line)
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}
