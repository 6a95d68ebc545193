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

type thing interface{ into(w *world) }

type with func(*world)

func (f with) into(w *world) { f(w) }

func worldOf(set *v1alpha1.ReplicatedStatefulSet, things ...thing) *world {
	set.UID, set.Generation = "uid-of-set", 3
	set.Finalizers = append(set.Finalizers, v1alpha1.FinalizerStop)
	w := &world{clock: clock{now: noon}, live: true, set: withDefaults(set), lossAt: ago(time.Minute), services: map[string]*corev1.Service{}}
	for _, s := range buildServices(w.set) {
		w.services[s.Name] = s
	}
	w.budget, w.primaryBudget = &policyv1.PodDisruptionBudget{}, &policyv1.PodDisruptionBudget{}
	w.stateful = buildStatefulSet(w.set, *w.set.Spec.Replicas, hashes{})
	for _, t := range things {
		t.into(w)
	}
	for _, m := range w.members { // labels match their states
		active, role := v1alpha1.False, v1alpha1.RoleNone
		switch w.stateOf(m, commandOf(w.set.Status.Commands, m.pod.UID)) {
		case primary:
			active, role = v1alpha1.True, v1alpha1.RolePrimary
		case secondary:
			active, role = v1alpha1.True, v1alpha1.RoleSecondary
		}
		m.pod.Labels[v1alpha1.LabelActive], m.pod.Labels[v1alpha1.LabelRole] = active, role
	}
	for _, t := range things {
		if f, ok := t.(*podFixture); ok && f.labels != nil {
			f.pod.Labels = merged(f.pod.Labels, f.labels)
		}
	}
	fitBudgets(w)
	return w
}

// fitBudgets sets the expected budgets, unless a fixture removed them.
func fitBudgets(w *world) {
	b := derive(w)
	if w.budget != nil {
		switch w.budget = buildBudget(w.set); {
		case handsOver(w.set) && mustCloseBudget(b):
			w.budget = closedBudget(openedBudget(b))
		case handsOver(w.set):
			w.budget = openedBudget(b)
		}
	}
	if w.primaryBudget == nil || !handsOver(w.set) {
		w.primaryBudget = nil
		return
	}
	w.primaryBudget = buildPrimaryBudget(w.set, minPrimaries(b))
}

type podFixture struct {
	*member
	then []func(*world)
	// labels replace the matching ones.
	labels map[string]string
}

func pod(ordinal int) *podFixture {
	name, id := fmt.Sprintf("rss-db-%d", ordinal), fmt.Sprintf("c%d", ordinal)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(fmt.Sprintf("u%d", ordinal)),
		Labels: ownLabels(setOf(1, 1)), Finalizers: []string{v1alpha1.FinalizerMember}}}
	p.Spec.NodeName = "n1"
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ago(time.Hour))}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: id,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(time.Hour))}}}}
	return &podFixture{member: &member{pod: p, ordinal: ordinal, owned: true, commandsIn: "main", node: nodestate.Facts{Ready: true}, touched: ago(time.Hour),
		results: map[string]podexec.Result{}, said: map[string]podexec.Result{}, tries: map[string]int{}}}
}

func (f *podFixture) into(w *world) {
	f.pod.Annotations = map[string]string{v1alpha1.AnnotationTemplate: w.stateful.Spec.Template.Annotations[v1alpha1.AnnotationTemplate]}
	w.members = append(w.members, f.member)
	for _, change := range f.then {
		change(w)
	}
}

func (f *podFixture) but(change func(*world)) *podFixture {
	f.then = append(f.then, change)
	return f
}

// answered adds a result of a command of that age to the Board.
func (f *podFixture) answered(name string, outcome podexec.Outcome, code int, out string, age time.Duration) *podFixture {
	r := podexec.Result{Outcome: outcome, Code: code, Stdout: out, Sent: true, Began: ago(age), Ended: ago(age - time.Second), Why: "the stream broke",
		Command: podexec.Command{Name: name, UID: f.pod.UID, ContainerID: f.running()}}
	f.results[name] = r
	if outcome != podexec.Unknown {
		f.said[name] = r
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
	r := f.results["sequence"]
	r.Cut = true
	f.results["sequence"], f.said["sequence"] = r, r
	return f
}

// grantedFor gives the member a grant of that age.
func (f *podFixture) grantedFor(age time.Duration) *podFixture {
	return f.granted().but(func(w *world) {
		all := w.set.Status.Grants
		all[len(all)-1].Since = metav1.NewMicroTime(ago(age))
	})
}

// confirmed marks the grant as confirmed.
func (f *podFixture) confirmed() *podFixture {
	return f.but(func(w *world) {
		all := w.set.Status.Grants
		all[len(all)-1].Confirmed = true
	})
}

// changed adds a mutating command that ended that long ago.
func (f *podFixture) changed(name string, age time.Duration) *podFixture {
	return f.answered(name, podexec.Succeeded, 0, "", age+time.Second)
}

// unsent adds a command that never began, with the number of attempts and the age of the last one.
func (f *podFixture) unsent(name string, age time.Duration, tries int) *podFixture {
	f.answered(name, podexec.Unknown, 0, "", age).tries[name] = tries
	r := f.results[name]
	r.Sent = false
	f.results[name] = r
	return f
}

func (f *podFixture) granted() *podFixture {
	name, uid, id := f.name(), f.pod.UID, f.running()
	return f.but(func(w *world) {
		w.set.Status.Grants = append(w.set.Status.Grants, v1alpha1.Grant{Pod: name, UID: uid, ContainerID: id, Since: metav1.NewMicroTime(ago(time.Hour))})
	})
}

// began adds a command that was sent that long ago to the record.
func (f *podFixture) began(name string, age time.Duration) *podFixture {
	c := v1alpha1.RunningCommand{Pod: f.name(), UID: f.pod.UID, ContainerID: f.running(), Name: name,
		StartedAt: metav1.NewMicroTime(ago(age)), Timeout: metav1.Duration{Duration: 20 * time.Second}}
	return f.but(func(w *world) { w.set.Status.Commands = append(w.set.Status.Commands, c) })
}

// runs adds a recorded command that the Board still runs, ends one that has ended.
func (f *podFixture) runs(name string, age time.Duration) *podFixture {
	f.busy = &podexec.Command{Name: name, Decided: ago(age)}
	return f.began(name, age)
}

func (f *podFixture) ends(name string, outcome podexec.Outcome, code int) *podFixture {
	f.began(name, 8*time.Second).answered(name, outcome, code, "", 8*time.Second)
	r := f.results[name]
	r.Decided = ago(8 * time.Second)
	f.results[name] = r
	return f
}

// age sets when the recorded command ended. took also sets its duration.
func (f *podFixture) age(age time.Duration) *podFixture { return f.took(time.Second, age) }

func (f *podFixture) took(ran, age time.Duration) *podFixture {
	return f.but(func(w *world) {
		c := &w.set.Status.Commands[len(w.set.Status.Commands)-1]
		c.StartedAt = metav1.NewMicroTime(ago(age + ran))
		r := f.results[c.Name]
		r.Decided, r.Began, r.Ended = c.StartedAt.Time, c.StartedAt.Time, ago(age)
		f.results[c.Name], f.said[c.Name] = r, r
	})
}

// statusSince adds a status result of that age, newer than all other results.
func (f *podFixture) statusSince(code int, age time.Duration) *podFixture {
	outcome := podexec.Failed
	if code == 0 {
		outcome = podexec.Succeeded
	}
	f.answered("status", outcome, code, "", age)
	for _, of := range []map[string]podexec.Result{f.results, f.said} {
		r := of["status"]
		r.Ended = r.Began
		of["status"] = r
	}
	return f
}

func (f *podFixture) failures(count int32, command string, code int32, unclean bool) *podFixture {
	failure := v1alpha1.Failure{Pod: f.name(), UID: f.pod.UID, ContainerID: f.running(), Count: count, Last: metav1.NewTime(ago(time.Minute)),
		Command: command, Code: code, Generation: 3, Unclean: unclean}
	return f.but(func(w *world) { w.set.Status.Failures = append(w.set.Status.Failures, failure) })
}

// unready makes the pod unready for that long.
func (f *podFixture) unready(age time.Duration) *podFixture {
	f.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(ago(age))}}
	return f
}

// hangs adds a status command that has been running for that long.
func (f *podFixture) hangs(age time.Duration) *podFixture {
	f.busy, f.askedAt = &podexec.Command{Name: v1alpha1.CommandStatus, Asked: ago(age)}, ago(age)
	return f
}

func (f *podFixture) pending() *podFixture {
	f.pod.Status.Conditions = nil
	f.pod.Status.Phase, f.pod.Status.ContainerStatuses = corev1.PodPending, nil
	return f
}

// crashed ends the container, as reported by the kubelet. restarted starts another one, that long
// ago.
func (f *podFixture) crashed() *podFixture {
	c := &f.unready(0).pod.Status.ContainerStatuses[0]
	c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: c.ContainerID}}
	return f
}

// waiting makes the pod one whose kubelet has not reported any container yet.
func (f *podFixture) waiting() *podFixture {
	f.pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	return f
}

func (f *podFixture) restarted(age time.Duration) *podFixture {
	c := &f.pod.Status.ContainerStatuses[0]
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: c.ContainerID}
	c.ContainerID += "+"
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(ago(age))}}
	return f
}

func (f *podFixture) deleted() *podFixture {
	at := metav1.NewTime(ago(time.Second))
	f.pod.DeletionTimestamp = &at
	return f
}

// held makes the pod terminating for that long. Its preStop hook sleeps ten of the thirty seconds
// of its grace period.
func (f *podFixture) held(age time.Duration) *podFixture {
	at := metav1.NewTime(ago(age - 30*time.Second))
	f.pod.DeletionTimestamp, f.pod.DeletionGracePeriodSeconds = &at, new(int64(30))
	f.pod.Spec.Containers = []corev1.Container{{Name: "main", Lifecycle: &corev1.Lifecycle{
		PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}}}
	return f
}

// ended makes the kubelet report that the whole pod has stopped.
func (f *podFixture) ended() *podFixture {
	f.crashed().pod.Status.Phase = corev1.PodFailed
	f.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "PodFailed"}}
	return f
}

// silent adds that many unanswered status commands, the last one 4 s ago.
func (f *podFixture) silent(tries int) *podFixture {
	f.tries["status"], f.missed = tries, tries
	return f.answered("status", podexec.Unknown, 0, "", 5*time.Second)
}

// refused makes the last command of that name refused by the API server.
func (f *podFixture) refused(name string) *podFixture {
	r := f.results[name]
	r.Sent, r.Refused = false, true
	f.results[name] = r
	return f
}

// strange makes the pod not owned by the set.
func (f *podFixture) strange() *podFixture { f.owned = false; return f }

// lately sets when the failure occurred.
func (f *podFixture) lately(age time.Duration) *podFixture {
	return f.but(func(w *world) {
		all := w.set.Status.Failures
		all[len(all)-1].Last = metav1.NewTime(ago(age))
	})
}

func (f *podFixture) born(age time.Duration) *podFixture {
	f.pod.CreationTimestamp = metav1.NewTime(ago(age))
	return f
}

// beside adds another container to the pod, in which commands run now.
func (f *podFixture) beside(name string) *podFixture {
	f.commandsIn = name
	f.pod.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: name, ContainerID: "other",
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}, f.pod.Status.ContainerStatuses...)
	return f
}

func (f *podFixture) onNode(n nodestate.Facts) *podFixture { f.node = n; return f }

func (f *podFixture) outdated() *podFixture {
	return f.but(func(*world) { f.pod.Annotations[v1alpha1.AnnotationTemplate] = "old" })
}

// lost sets when the last primary was lost.
func lost(age time.Duration) thing {
	return with(func(w *world) { w.lossAt = ago(age) })
}

func annotated(key, value string) thing {
	return with(func(w *world) { metav1.SetMetaDataAnnotation(&w.set.ObjectMeta, key, value) })
}

func recordedSequence(pod, sequence string) thing {
	return with(func(w *world) {
		w.set.Status.Sequences = append(w.set.Status.Sequences, v1alpha1.Sequence{Pod: pod, Sequence: sequence})
	})
}

// row is one row of a table: a description, a world, and the wanted actions.
type row struct {
	name  string
	world *world
	want  []string
}

func check(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			p := decide(r.world)
			if got := gist(&p); !slices.Equal(got, r.want) {
				t.Errorf("rule %q plans\n  %s\nwant\n  %s\nstatus: %+v", p.Rule, strings.Join(got, "\n  "), strings.Join(r.want, "\n  "), p.Waiting)
			}
			if again := decide(r.world); !slices.Equal(again.Steps.Strings(), p.Steps.Strings()) {
				t.Errorf("a second decision on the same world returns another plan:\n  %s", strings.Join(again.Steps.Strings(), "\n  "))
			}
		})
	}
}

// gist returns a summary of a plan. It omits the constant parts of each chain: a command is its
// pod, its name, and the pods in its arguments.
func gist(p *plan) (lines []string) {
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
