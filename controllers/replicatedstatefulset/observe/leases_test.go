package observe_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leasewatch"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
)

// leased is a set with a member that has a Lease, and a reader of it.
type leased struct {
	set   *v1alpha1.ReplicatedStatefulSet
	pod   *corev1.Pod
	lease *coordinationv1.Lease
	funcs interceptor.Funcs
	// results are those of commands in the pod.
	results []podexec.Result
	// policy checks the policy on Leases, and watch watches them. Both may be nil.
	policy *policy.Checker
	watch  *leasewatch.Watch
	// late is how much time passes with each read of the clock, besides a second.
	late time.Duration
	// existing are further objects.
	existing []client.Object
	// read is the last Reader.
	read *observe.Reader
}

// board is a Board with results.
type board struct{ results []podexec.Result }

func (b board) Of(types.NamespacedName, types.UID) (*podexec.Command, []podexec.Result) {
	return nil, b.results
}
func (b board) Keep(types.NamespacedName, ...types.UID) {}

func newLeased(t *testing.T) *leased {
	t.Helper()
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	set := fixture.SetOf(2, 1)
	set.UID = "uid-of-set"
	m := fixture.Pod(0).Unleased()
	return &leased{set: set, pod: m.Pod, lease: children.BuildLease(set, m.Pod, "main", 4)}
}

// reader returns a Reader, and a function that observes the set with it.
func (l *leased) reader(t *testing.T, live bool) (look func() *facts.World) {
	t.Helper()
	return l.readerOf(t, &live)
}

// readerOf does the same. live can be changed between passes.
func (l *leased) readerOf(t *testing.T, live *bool) (look func() *facts.World) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	objects := append([]client.Object{l.set, l.pod, node}, l.existing...)
	if l.lease != nil {
		objects = append(objects, l.lease)
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(l.funcs).Build()
	now := fixture.Noon
	r := &observe.Reader{Cache: c, Nodes: c, Live: c, Board: board{l.results}, Policy: l.policy, Leases: l.watch, Namespace: "operator", Now: func() time.Time {
		now = now.Add(time.Second + l.late)
		return now
	}}
	l.read = r
	return func() *facts.World {
		t.Helper()
		var set v1alpha1.ReplicatedStatefulSet
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(l.set), &set); err != nil {
			t.Fatal(err)
		}
		w, err := r.Observe(t.Context(), &set, engine.View{Reader: c, Live: *live})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

func TestLeasesAreRead(t *testing.T) {
	l := newLeased(t)
	look := l.reader(t, true)
	w := look()
	if w.Fencing.Leases["rss-db-0"] == nil || !w.Fencing.ReadRights || w.Fencing.Problem.Message != "" {
		t.Fatalf("read %+v", w.Fencing)
	}
	since := w.Fencing.Since["rss-db-0"]
	if !since.After(w.Now) {
		t.Errorf("it is known since %s, before the read", since)
	}
	if again := look(); !again.Fencing.Since["rss-db-0"].Equal(since) {
		t.Errorf("the same version is known since %s, want %s", again.Fencing.Since["rss-db-0"], since)
	}

	if w = l.reader(t, false)(); w.Fencing.Leases["rss-db-0"] == nil || w.Fencing.ReadRights || !w.Fencing.RightsAreDue {
		t.Errorf("a pass on the cache reads %+v", w.Fencing)
	}
	l.lease.OwnerReferences = nil
	w = l.reader(t, true)()
	if described, _ := w.Foreign(); len(w.Fencing.Leases) != 0 || described != "Lease rss-db-0.member" {
		t.Errorf("Leases of another owner are read: %v, foreign is %q", w.Fencing.Leases, described)
	}
	l.pod.Spec.Containers[0].Command = nil
	if w = l.reader(t, true)(); w.Fencing.Leases != nil {
		t.Error("Leases are read although no member has one")
	}
}

// TestALeaseOfAnotherClientIsReported reads a Lease with the name of a member's, with and without the labels of the
// operator, and one that the operator has just created.
func TestALeaseOfAnotherClientIsReported(t *testing.T) {
	const command = "kubectl -n ns delete lease/rss-db-0.member"
	for name, r := range map[string]struct {
		change func(*coordinationv1.Lease)
		want   string // in the condition
	}{
		"another client": {func(l *coordinationv1.Lease) { l.Labels, l.OwnerReferences = nil, nil }, "Lease rss-db-0.member was not created by the operator"},
		"another client, with the owner of the operator's": {func(l *coordinationv1.Lease) { l.Labels = nil }, "Lease rss-db-0.member was not created by the operator"},
		"a backup":     {func(l *coordinationv1.Lease) { l.OwnerReferences = nil }, "Lease rss-db-0.member has no owner, like an object restored from a backup"},
		"the operator": {func(*coordinationv1.Lease) {}, ""},
	} {
		l := newLeased(t)
		r.change(l.lease)
		for _, live := range []bool{true, false} {
			w := l.reader(t, live)()
			c := facts.Trouble(facts.Derive(w))
			if isReported := strings.HasPrefix(c.Message, r.want) && strings.Contains(c.Message, command); r.want != "" && (!isReported || c.Reason != v1alpha1.ReasonForeignObject) {
				t.Errorf("%s: the condition is %s, %q", name, c.Reason, c.Message)
			}
			if isKnown := w.Fencing.Leases["rss-db-0"] != nil; isKnown != (r.want == "") || (len(w.Fencing.Foreign) == 0) != isKnown {
				t.Errorf("%s: the Leases are %v, those of others %v", name, w.Fencing.Leases, w.Fencing.Foreign)
			}
		}
	}
}

// TestLeasesAreWatchedWhileTheyAreUsed also checks when the policy on them is checked.
func TestLeasesAreWatchedWhileTheyAreUsed(t *testing.T) {
	l, without, ends := newLeased(t), false, 0
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if pods, isPods := list.(*corev1.PodList); isPods && without {
			pods.Items[0].Spec.Containers[0].Command = nil
		}
		if leases, isLeases := list.(*coordinationv1.LeaseList); isLeases && without {
			leases.Items = nil
		}
		return err
	}
	installed, binding := children.BuildLeaseGuard("operator", nil)
	api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(installed, binding).Build()
	l.policy = observe.NewPolicyChecker(api, "operator", nil)
	l.watch = leasewatch.New(time.Now, v1alpha1.LabelLease, func(context.Context, cache.Options, toolscache.ResourceEventHandler, ...client.Object) (context.CancelFunc, error) {
		return func() { ends++ }, nil
	}, nil)
	look := l.reader(t, false)
	for _, step := range []struct {
		without bool
		ends    int
	}{{false, 0}, {true, 0}, {true, 1}, {false, 1}} { // the pass in which the last one is seen to be gone, and the next one
		without = step.without
		if look(); ends != step.ends {
			t.Errorf("%d watches have ended, want %d", ends, step.ends)
		}
	}
	if err := api.Delete(t.Context(), installed); err != nil {
		t.Fatal(err)
	}
	without = true
	look()
	look()
	without = false
	if w := look(); w.Fencing.Problem.Reason != v1alpha1.ReasonPolicyNotInstalled {
		t.Errorf("the policy was deleted while no set used Leases, and the problem is %+v", w.Fencing.Problem)
	}
}

// TestTheWatchOfLeasesEndsWithTheSet deletes the set.
func TestTheWatchOfLeasesEndsWithTheSet(t *testing.T) {
	l, ends := newLeased(t), 0
	l.watch = leasewatch.New(time.Now, v1alpha1.LabelLease, func(context.Context, cache.Options, toolscache.ResourceEventHandler, ...client.Object) (context.CancelFunc, error) {
		return func() { ends++ }, nil
	}, nil)
	l.reader(t, false)()
	l.read.Forget(t.Context(), client.ObjectKeyFromObject(l.set))
	if ends != 1 {
		t.Errorf("%d watches have ended, want 1", ends)
	}
}

func TestFencingIsNotPermitted(t *testing.T) {
	l := newLeased(t)
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, isLeases := list.(*coordinationv1.LeaseList); isLeases {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
		}
		return c.List(ctx, list, opts...)
	}
	w := l.reader(t, true)()
	if w.Fencing.Problem.Reason != v1alpha1.ReasonFencingNotPermitted || !strings.Contains(w.Fencing.Problem.Message, "--serviceaccount=operator:") {
		t.Errorf("the problem is %+v", w.Fencing.Problem)
	}
	l = newLeased(t)
	l.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
		if _, isRole := into.(*rbacv1.Role); isRole {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, key.Name, nil)
		}
		return c.Get(ctx, key, into, opts...)
	}
	if w := l.reader(t, true)(); w.Fencing.Problem.Reason != v1alpha1.ReasonFencingNotPermitted {
		t.Errorf("without the right to read Roles, the problem is %+v", w.Fencing.Problem)
	}
}

// TestAGrantThatIsRecordedMeanwhileIsSeen changes the object right after it was read, before the Leases are read.
func TestAGrantThatIsRecordedMeanwhileIsSeen(t *testing.T) {
	l, changed := newLeased(t), false
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, isLeases := list.(*coordinationv1.LeaseList); isLeases && !changed {
			changed = true
			set := l.set.DeepCopy()
			if err := c.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
				return err
			}
			set.Status.Grants = []v1alpha1.Grant{{Pod: "rss-db-0", UID: l.pod.UID, LeaseEpoch: 5}}
			if err := c.Update(ctx, set); err != nil {
				return err
			}
		}
		return c.List(ctx, list, opts...)
	}
	if w := l.reader(t, true)(); len(w.Set.Status.Grants) != 1 {
		t.Error("the world has the object as it was before its Leases were read")
	}
}

func TestAFencedContainerHasEnded(t *testing.T) {
	for container, down := range map[string]bool{"c0": true, "c-former": false} {
		l := newLeased(t)
		l.lease.Annotations = map[string]string{v1alpha1.AnnotationFenced: container}
		w := l.reader(t, true)()
		if m := w.Members[0]; m.Down() != down || m.FencedSince.IsZero() == down {
			t.Errorf("container c0 is down: %t, although that of the Lease is %s; fenced since %s", m.Down(), container, m.FencedSince)
		}
	}
}

// TestAFencedContainerStaysEnded has no Lease any more, and then another container.
func TestAFencedContainerStaysEnded(t *testing.T) {
	l := newLeased(t)
	l.lease.Annotations = map[string]string{v1alpha1.AnnotationFenced: "c0"}
	deleted, restarted := false, false
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, isLeases := list.(*coordinationv1.LeaseList); isLeases && deleted {
			return nil
		}
		err := c.List(ctx, list, opts...)
		if pods, isPods := list.(*corev1.PodList); isPods && restarted {
			pods.Items[0].Status.ContainerStatuses[0].ContainerID = "c1"
		}
		return err
	}
	look := l.reader(t, true)
	since := look().Members[0].FencedSince
	deleted = true
	if m := look().Members[0]; !m.Down() || !m.FencedSince.Equal(since) {
		t.Errorf("without its Lease, the container is down: %t, fenced since %s, want %s", m.Down(), m.FencedSince, since)
	}
	restarted = true
	if m := look().Members[0]; m.Down() || !m.FencedSince.IsZero() {
		t.Errorf("another container is down: %t, fenced since %s", m.Down(), m.FencedSince)
	}
}

func TestAStartThatProcess1HasNotAdmitted(t *testing.T) {
	of := func(name string, outcome podexec.Outcome, code int) podexec.Result {
		return podexec.Result{Command: podexec.Command{Name: name, UID: "u0", ContainerID: "c0"}, Outcome: outcome, Code: code, Sent: true}
	}
	for name, r := range map[string]struct {
		result podexec.Result
		want   bool // it has not begun
	}{
		"not admitted":     {of("promote", podexec.Failed, 125), true},
		"failed":           {of("promote", podexec.Failed, 1), false},
		"another command":  {of("stop", podexec.Failed, 125), false},
		"its end unknown":  {of("promote", podexec.Unknown, 125), false},
		"a first primary":  {of("seed", podexec.Failed, 125), true},
		"it has succeeded": {of("promote", podexec.Succeeded, 0), false},
	} {
		l := newLeased(t)
		l.results = []podexec.Result{r.result}
		got := l.reader(t, true)().Members[0].Results[r.result.Name]
		if unsent := !got.Sent && strings.Contains(got.Why, "rss-db-0.member"); unsent != r.want || got.EndUnseen() != (r.result.Outcome == podexec.Unknown) {
			t.Errorf("%s: the result is %+v", name, got)
		}
	}
}

// TestLeasesThatNoMemberUsesAreRead recreates the last pod that has one without.
func TestLeasesThatNoMemberUsesAreRead(t *testing.T) {
	l, without := newLeased(t), false
	l.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		err := c.List(ctx, list, opts...)
		if pods, isPods := list.(*corev1.PodList); isPods && without {
			pods.Items[0].Spec.Containers[0].Command = nil
		}
		return err
	}
	look := l.reader(t, true)
	look()
	without = true
	if w := look(); w.Fencing.Leases["rss-db-0"] == nil || !w.Fencing.ReadRights {
		t.Errorf("read %+v", w.Fencing)
	}
}

// TestThePolicyOnLeasesIsMissing checks the problem of sets, in their namespace and in those without policies.
func TestThePolicyOnLeasesIsMissing(t *testing.T) {
	installed, binding := children.BuildLeaseGuard("operator", nil)
	for _, row := range []struct {
		name     string
		existing []client.Object
		own      string // namespace of the operator
		unused   bool   // the set uses no Leases
		problem  string // part of it
	}{
		{"it exists", []client.Object{installed, binding}, "operator", false, ""},
		{"it does not exist", nil, "operator", false, "does not have policy replicatedstatefulset-lease-guard-operator; the operator's installer creates it within seconds, or logs why it cannot: kubectl logs -n operator "},
		{"its binding does not exist", []client.Object{installed}, "operator", false, "does not have policy replicatedstatefulset-lease-guard-operator;"},
		{"it does not exist, and the set uses no Leases", nil, "operator", true, ""},
		{"the set is in a namespace without policies", nil, "ns", false, "use another namespace, or set spec.fencing.mode to Proof"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLeased(t)
			if row.unused {
				l.pod.Spec.Containers[0].Command = nil
			}
			api := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(row.existing...).Build()
			l.policy = observe.NewPolicyChecker(api, row.own, nil)
			look := l.reader(t, true)
			w := look()
			got, reason := w.Fencing.Problem, ""
			if row.problem != "" {
				reason = v1alpha1.ReasonPolicyNotInstalled
			}
			if got.Reason != reason || !strings.Contains(got.Message, row.problem) {
				t.Errorf("the problem is %+v, want %q", got, row.problem)
			}
			trusted := row.problem == "" && !row.unused
			if known := w.Fencing.Leases["rss-db-0"] != nil; known != trusted {
				t.Errorf("the Lease is read: %t", known)
			}
		})
	}
}

// TestAChangeOfThePolicyQueuesSetsWithLeases checks OnPolicy.
func TestAChangeOfThePolicyQueuesSetsWithLeases(t *testing.T) {
	set := func(name string, change func(*v1alpha1.ReplicatedStatefulSet)) *v1alpha1.ReplicatedStatefulSet {
		made := fixture.SetOf(2, 1)
		made.Name = name
		change(made)
		return made
	}
	l := newLeased(t)
	metav1.SetMetaDataAnnotation(&l.pod.ObjectMeta, v1alpha1.AnnotationContainer, "main")
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(l.pod,
		set("db", func(*v1alpha1.ReplicatedStatefulSet) {}),
		set("none", func(*v1alpha1.ReplicatedStatefulSet) {}),
		set("new", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Fencing = &v1alpha1.FencingPolicy{Mode: v1alpha1.FencingLease}
		}),
		set("granted", func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Status.Grants = []v1alpha1.Grant{{Pod: "rss-granted-0", LeaseEpoch: 1}}
		}),
	).Build()
	r := &observe.Reader{Cache: c}
	queued := map[string]bool{}
	for _, request := range r.OnPolicy(t.Context(), nil) {
		queued[request.Name] = true
	}
	if want := map[string]bool{"db": true, "new": true, "granted": true}; !reflect.DeepEqual(queued, want) {
		t.Errorf("queued %v, want %v", queued, want)
	}
}
