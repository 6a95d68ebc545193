package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
)

// desk is a Runner with a fake API server. It records the calls of both.
type desk struct {
	Runner
	mu    sync.Mutex
	noted []string
}

func (d *desk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noted = append(d.noted, fmt.Sprintf(format, args...))
}

func (d *desk) Wrote(_ types.NamespacedName, obj client.Object) { d.note("wrote %s", obj.GetName()) }
func (d *desk) Deleted(_ types.NamespacedName, obj client.Object) {
	d.note("deleted %s", obj.GetName())
}

func newDesk(funcs interceptor.Funcs, have ...client.Object) *desk {
	d := &desk{}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(have...).WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(funcs).Build()
	d.Client, d.Live, d.Recorder = c, c, d
	return d
}

func (d *desk) run(steps ...Step) []string {
	var told []string
	for _, o := range d.Run(context.Background(), types.NamespacedName{Namespace: "ns", Name: "key"}, steps) {
		ending := "done"
		if o.Err != nil {
			ending = string(apierrors.ReasonForError(o.Err))
		}
		told = append(told, o.Object.GetName()+" "+ending)
	}
	slices.Sort(told)
	return told
}

func making(names ...string) (chain Chain) {
	for _, n := range names {
		chain = append(chain, Action{Verb: Create, Object: pod(n), Reason: "Missing"})
	}
	return chain
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// refuses rejects creates of the given name.
func refuses(name string) interceptor.Funcs {
	return interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
		if obj.GetName() == name {
			return apierrors.NewForbidden(corev1.Resource("pods"), name, errors.New("quota"))
		}
		return c.Create(ctx, obj, opts...)
	}}
}

func TestRunInOrder(t *testing.T) {
	d := newDesk(interceptor.Funcs{})
	expect(t, "every step succeeds", d.run(Step{making("a", "b")}, Step{making("c")}), "a done", "b done", "c done")
	expect(t, "all writes of all chains are recorded in order", d.noted, "wrote a", "wrote b", "wrote c")
}

func TestAFailureEnds(t *testing.T) {
	d := newDesk(refuses("b"))
	expect(t, "an error skips the rest of its chain and all later steps", d.run(Step{making("a", "b", "c")}, Step{making("d")}), "a done", "b Forbidden")

	x := pod("x")
	x.ResourceVersion = "7"
	d = newDesk(refuses("a"), x)
	deletes := Chain{{Verb: Delete, Object: x, Reason: "Retired"}}
	expect(t, "an error does not stop other chains of the same step", d.run(Step{making("a"), deletes}), "a Forbidden", "x done")

	step := Step{}
	for i := range 200 {
		step = append(step, making(fmt.Sprintf("p%d", i)))
	}
	d = newDesk(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("quota"))
	}})
	if n := len(d.run(step)); n < 1 || n > 2*Parallel {
		t.Errorf("%d of 200 creates were sent although the first was refused", n)
	}
}

func TestACancelledContextEnds(t *testing.T) {
	d := newDesk(interceptor.Funcs{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := d.Run(ctx, types.NamespacedName{}, Steps{{making("a")}}); len(got) > 0 {
		t.Errorf("actions with unexpected results: %v", got)
	}
}

func TestACreateWhoseAnswerWasLost(t *testing.T) {
	owned := func(uid types.UID, label string) *corev1.Pod {
		p := pod("a")
		p.Labels = map[string]string{"member": label}
		p.OwnerReferences = []metav1.OwnerReference{{UID: uid, Controller: ptr.To(true)}}
		return p
	}
	create := func(p *corev1.Pod) Step { return Step{{{Verb: Create, Object: p, Reason: "Missing"}}} }
	more := owned("me", "a")
	more.Labels["users"] = "own"
	forged := owned("me", "a")
	forged.OwnerReferences[0].APIVersion = "x.example/v1"
	for _, r := range []struct {
		name       string
		have, want *corev1.Pod
		ending     string
	}{
		{"the same owner and labels", owned("me", "a"), owned("me", "a"), "a done"},
		{"more labels than requested", more, owned("me", "a"), "a done"},
		{"another owner", owned("you", "a"), owned("me", "a"), "a AlreadyExists"},
		{"an owner with that UID and another group", forged, owned("me", "a"), "a AlreadyExists"},
		{"no owner", pod("a"), owned("me", "a"), "a AlreadyExists"},
		{"an owner where none is expected", owned("you", "a"), pod("a"), "a AlreadyExists"},
		{"another label", owned("me", "b"), owned("me", "a"), "a AlreadyExists"},
	} {
		d := newDesk(interceptor.Funcs{}, r.have)
		expect(t, r.name, d.run(create(r.want)), r.ending)
		expect(t, r.name+": no write is recorded", d.noted)
	}
}

// Permission to create cannot be restricted to a name; permission to apply can.
func TestANamedCreateIsAnApply(t *testing.T) {
	asked := ""
	d := newDesk(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		text, err := patch.Data(obj)
		asked = fmt.Sprintf("%s %s %v", patch.Type(), text, err)
		return nil
	}})
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "ns"}, Data: map[string]string{"a": "b"}}
	expect(t, "a named create", d.run(Step{{{Verb: Create, Named: true, Object: m}}}), "one done")
	if want := `application/apply-patch+yaml {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"one","namespace":"ns"},"data":{"a":"b"}} <nil>`; asked != want {
		t.Errorf("sent\n  %s\nwant\n  %s", asked, want)
	}
	if m.Kind != "" {
		t.Error("the object of the plan was modified")
	}
}

func TestWritesAreBound(t *testing.T) {
	var sent []string
	note := func(obj client.Object, patch client.Patch) {
		data, err := patch.Data(obj)
		if err != nil {
			t.Fatal(err)
		}
		sent = append(sent, string(data))
	}
	have := pod("a")
	have.UID, have.ResourceVersion = "uid-a", "7"
	d := newDesk(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, _ ...client.PatchOption) error {
			note(obj, patch)
			return nil
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, sub string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
			sent = append(sent, sub)
			note(obj, patch)
			return nil
		},
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
			p, _ := json.Marshal((&client.DeleteOptions{}).ApplyOptions(opts).Preconditions)
			sent = append(sent, string(p))
			return nil
		},
	})
	labelled, running := have.DeepCopy(), have.DeepCopy()
	labelled.Labels = map[string]string{"x": "y"}
	running.Status.Phase = corev1.PodRunning
	d.run(Step{{
		{Verb: Patch, Object: labelled, From: have},
		{Verb: Patch, Object: have, From: have},
		{Verb: Resize, Object: labelled, From: have},
		{Verb: PatchStatus, Object: running, From: have},
		{Verb: Delete, Object: have},
	}})
	expect(t, "sent writes", sent,
		`{"metadata":{"labels":{"x":"y"},"uid":"uid-a"}}`,
		`{"metadata":{"uid":"uid-a"}}`,
		"resize", `{"metadata":{"labels":{"x":"y"},"uid":"uid-a"}}`,
		"status", `{"metadata":{"resourceVersion":"7"},"status":{"phase":"Running"}}`,
		`{"uid":"uid-a","resourceVersion":"7"}`)
	expect(t, "recorded writes", d.noted, "wrote a", "wrote a", "wrote a", "wrote a", "deleted a")
}

func TestErrorsSayWhatWasTried(t *testing.T) {
	d := newDesk(refuses("a"))
	o := d.Run(context.Background(), types.NamespacedName{}, Steps{{making("a")}})[0]
	if want := `create pod a: pods "a" is forbidden: quota`; o.Err.Error() != want || o.Answer != nil {
		t.Errorf("message %v with action %v, want %s", o.Err, o.Answer, want)
	}
	if !apierrors.IsForbidden(o.Err) {
		t.Error("the API server's response is not available from the error")
	}
	o = d.Run(context.Background(), types.NamespacedName{}, Steps{{{{Verb: "paint", Object: pod("a"), Reason: "Whim"}}}})[0]
	if want := `paint pod a: unknown verb "paint"`; o.Err == nil || o.Err.Error() != want {
		t.Errorf("an unknown verb returns %v, want %s", o.Err, want)
	}
}

func TestAnAnswerIsVerified(t *testing.T) {
	x := pod("x")
	x.ResourceVersion = "7"
	to := x.DeepCopy()
	to.Labels = map[string]string{"wanted": "yes"}
	d := newDesk(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		err := c.Patch(ctx, obj, patch, opts...)
		obj.SetLabels(map[string]string{"wanted": "no"}) // as a policy may change it
		return err
	}}, x)
	verified := Action{Verb: Patch, Object: to, From: x, Reason: "Kept", Verify: func(answer metav1.Object) error {
		if answer.GetLabels()["wanted"] != "yes" {
			return errors.New("not wanted")
		}
		return nil
	}}
	outcomes := d.Run(context.Background(), types.NamespacedName{}, Steps{{append(Chain{verified}, making("a")...)}})
	if len(outcomes) != 1 || !errors.Is(outcomes[0].Err, rejection.ErrChanged) {
		t.Fatalf("the chain continues although the response does not meet its condition: %+v", outcomes)
	}
	if outcomes[0].Answer.GetLabels()["wanted"] != "no" || !slices.Contains(d.noted, "wrote x") {
		t.Errorf("a successful write was not recorded: %+v, %q", outcomes[0], d.noted)
	}
}

func TestThePlanIsNotChanged(t *testing.T) {
	d, mine := newDesk(interceptor.Funcs{}), pod("a")
	d.Run(context.Background(), types.NamespacedName{}, Steps{{{{Verb: Create, Object: mine, Reason: "Missing"}}}})
	if mine.ResourceVersion != "" {
		t.Error("the response was decoded into the object of the plan")
	}
}

// sender is a fake Board that records commands.
type sender struct {
	busy          bool
	sent, notSent []string
}

func (s *sender) NotSent(_ types.NamespacedName, c podexec.Command, why string) {
	s.notSent = append(s.notSent, c.Name+": "+why)
}

func (s *sender) Send(owner types.NamespacedName, c podexec.Command) bool {
	if !s.busy {
		s.sent = append(s.sent, owner.Name+": "+c.Name)
	}
	return !s.busy
}

func TestCommandsAreSentAfterTheirRecord(t *testing.T) {
	begun := pod("a")
	begun.Status.Message = "begun"
	record := Action{Verb: PatchStatus, Object: begun, From: pod("a"), Reason: "Record"}
	command := Action{Verb: Exec, Object: pod("a"), Command: &podexec.Command{Name: "seed"}, Reason: "Seed", Detail: "alone"}
	if want := "exec in pod a: Seed, alone"; command.String() != want {
		t.Errorf("log line %q, want %q", command.String(), want)
	}
	refused := interceptor.Funcs{SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
		return apierrors.NewConflict(corev1.Resource("pods"), "a", errors.New("another client updated it"))
	}}
	for _, r := range []struct {
		name   string
		funcs  interceptor.Funcs
		board  *sender
		ending []string
		sent   []string
	}{
		{"the record is stored", interceptor.Funcs{}, &sender{}, []string{"a done", "a done"}, []string{"key: seed"}},
		{"nothing is sent without a record", refused, &sender{}, []string{"a Conflict"}, nil},
		{"another command is running", interceptor.Funcs{}, &sender{busy: true}, []string{"a ", "a done"}, nil},
	} {
		d := newDesk(r.funcs, pod("a"))
		d.Commands = r.board
		if err := d.Live.Get(context.Background(), client.ObjectKeyFromObject(record.Object), record.From); err != nil {
			t.Fatal(err)
		}
		expect(t, r.name, d.run(Step{{record, command}}), r.ending...)
		expect(t, r.name+": sent commands", r.board.sent, r.sent...)
	}
}

func TestACommandIsNotSentAfterAFailedWrite(t *testing.T) {
	record := Action{Verb: PatchStatus, Object: pod("a"), From: pod("a"), Reason: "Record"}
	lease := Action{Verb: Patch, Object: pod("b"), From: pod("b"), Unchanged: true, Reason: "Lease"}
	command := Action{Verb: Exec, Object: pod("a"), Command: &podexec.Command{Name: "seed"}, Reason: "Seed"}
	d, board := newDesk(interceptor.Funcs{}, pod("a")), &sender{}
	d.Commands = board
	if err := d.Live.Get(context.Background(), client.ObjectKeyFromObject(record.Object), record.From); err != nil {
		t.Fatal(err)
	}
	record.Object = record.From.DeepCopyObject().(client.Object)
	d.run(Step{{record, lease, command}})
	if len(board.sent) != 0 || len(board.notSent) != 1 || !strings.HasPrefix(board.notSent[0], "seed: patch pod b") {
		t.Errorf("sent %q, not sent %q", board.sent, board.notSent)
	}
	board.notSent = nil
	d.run(Step{{lease, command}}) // nothing was recorded
	if len(board.notSent) != 0 {
		t.Errorf("without a record, not sent is %q", board.notSent)
	}
	if err := d.Live.Get(context.Background(), client.ObjectKeyFromObject(record.Object), record.From); err != nil {
		t.Fatal(err)
	}
	record.Object = record.From.DeepCopyObject().(client.Object)
	record.Verify = func(metav1.Object) error { return errors.New("a field is not stored") }
	d.run(Step{{record, command}}) // other fields were recorded
	if len(board.sent) != 0 || len(board.notSent) != 1 || !strings.HasPrefix(board.notSent[0], "seed: patch status of pod a") {
		t.Errorf("after a record with a missing field, sent is %q, not sent %q", board.sent, board.notSent)
	}
}

// meanwhile runs another write right before each of the first status patches.
func meanwhile(times int, write func(context.Context, client.Client) error) interceptor.Funcs {
	return interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if times--; times >= 0 {
			if err := write(ctx, c); err != nil {
				return err
			}
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}
}

func TestV7AStatusIsWrittenThoughTheSpecIsEdited(t *testing.T) {
	label := func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, pod("a"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"edited":"%s"}}}`, rand.String(8))))
	}
	status := func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, pod("a"), client.RawPatch(types.MergePatchType, []byte(`{"status":{"message":"theirs"}}`)))
	}
	for _, r := range []struct {
		name   string
		funcs  interceptor.Funcs
		rebase bool
		ending string
		want   string // the message in the status afterwards
	}{
		{"no concurrent edit", meanwhile(0, label), true, "a done", "observed"},
		{"one concurrent edit", meanwhile(1, label), true, "a done", "observed"},
		{"one concurrent edit, with the write bound to the resourceVersion", meanwhile(1, label), false, "a Conflict", "before"},
		{"unlimited concurrent edits", meanwhile(1000, label), true, "a Conflict", "before"},
		{"another client wrote the status", meanwhile(1, status), true, "a Conflict", "theirs"},
	} {
		have := pod("a")
		have.UID, have.Status.Message = "uid-a", "before"
		d := newDesk(r.funcs, have)
		from := d.read(t)
		to := from.DeepCopy()
		to.Status.Message = "observed"
		expect(t, r.name, d.run(Step{{{Verb: PatchStatus, Object: to, From: from, Rebase: r.rebase, Reason: "Observed"}}}), r.ending)
		after := d.read(t)
		if after.Status.Message != r.want {
			t.Errorf("%s: status %q, want %q", r.name, after.Status.Message, r.want)
		}
		if edited := after.Labels["edited"] != ""; edited == (r.name == "no concurrent edit" || r.want == "theirs") {
			t.Errorf("%s: labels %v", r.name, after.Labels)
		}
	}
}

// read returns pod a from the API server.
func (d *desk) read(t *testing.T) *corev1.Pod {
	t.Helper()
	var found corev1.Pod
	if err := d.Live.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: "a"}, &found); err != nil {
		t.Fatal(err)
	}
	return &found
}

func TestV7AStatusIsNotForAnObjectOfTheSameName(t *testing.T) {
	have := pod("a")
	have.UID = "old"
	d := newDesk(meanwhile(1, func(ctx context.Context, c client.Client) error {
		young := pod("a")
		young.UID = "young"
		return errors.Join(c.Delete(ctx, pod("a")), c.Create(ctx, young),
			c.Patch(ctx, pod("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	}), have)
	from := d.read(t)
	to := from.DeepCopy()
	to.Status.Message = "observed"
	expect(t, "the object was replaced", d.run(Step{{{Verb: PatchStatus, Object: to, From: from, Rebase: true, Reason: "Observed"}}}), "a Conflict")
	if got := d.read(t).Status.Message; got != "" {
		t.Errorf("the replacement has status %q", got)
	}
}

// A dry run creates nothing. It fails for the same reasons as the create.
func TestTry(t *testing.T) {
	pods := corev1.Resource("pods")
	forbidden := func(text string) error { return apierrors.NewForbidden(pods, "a", errors.New(text)) }
	for _, r := range []struct {
		name   string
		answer error
		want   string
	}{
		{"the create would succeed", nil, "a done"},
		{"the name is in use", apierrors.NewAlreadyExists(pods, "a"), "a done"},
		{"a quota is exceeded", forbidden("exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3"), "a done"},
		{"a webhook does not support dry run", apierrors.NewBadRequest(`admission webhook "w" does not support dry run`), "a done"},
		{"a quota requires limits", forbidden("failed quota: q: must specify limits.cpu for: main"), "a Forbidden"},
		{"a policy denies the create", forbidden("no PriorityClass with name none was found"), "a Forbidden"},
		{"a webhook denies the create", apierrors.NewBadRequest("admission webhook \"w\" denied the request: no"), "a BadRequest"},
		{"a timeout", apierrors.NewTimeoutError("a timeout", 1), "a Timeout"},
	} {
		d := newDesk(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
			if o := (&client.CreateOptions{}).ApplyOptions(opts); !slices.Equal(o.DryRun, []string{metav1.DryRunAll}) {
				t.Errorf("%s: the create is not a dry run", r.name)
			}
			return r.answer
		}})
		expect(t, r.name, d.run(Step{{{Verb: Try, Object: pod("a"), Reason: "Trial"}}}), r.want)
		expect(t, r.name+": recorded writes", d.noted)
	}
	for quota, want := range map[string]string{
		"requested: pods=1, used: pods=3, limited: pods=3": "a done",
		"requested: pods=1, used: pods=3, limited: pods=2": "a Forbidden",
	} {
		d := newDesk(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return forbidden("exceeded quota: q, " + quota)
		}})
		expect(t, "W10 a quota has no room for the pod and its replacement: "+quota, d.run(Step{{{Verb: Try, Object: pod("a"), From: pod("a"), Reason: "Trial"}}}), want)
	}
}

func TestWritesOfOneNamespaceLeaveTurnsForOthers(t *testing.T) {
	held, inFlight := make(chan struct{}), make(chan struct{}, 10*Parallel)
	d := newDesk(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
		if obj.GetNamespace() == "greedy" {
			inFlight <- struct{}{}
			<-held
		}
		return nil
	}, Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return nil
	}})
	create := func(namespace string, times int) {
		var step Step
		for i := range times {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i)}}
			step = append(step, Chain{{Verb: Create, Object: pod}})
		}
		for _, o := range d.Run(t.Context(), types.NamespacedName{Namespace: namespace, Name: "key"}, Steps{step}) {
			if o.Err != nil {
				t.Errorf("namespace %s: %v", namespace, o.Err)
			}
		}
	}
	var all sync.WaitGroup
	for range 4 { // reconciles of one namespace
		all.Go(func() { create("greedy", 2*Parallel) })
	}
	for range maxOfOne {
		<-inFlight
	}
	create("other", 1) // does not end if all turns are taken
	label := Chain{{Verb: Patch, Object: &corev1.Pod{}, From: &corev1.Pod{}}}
	d.Run(t.Context(), types.NamespacedName{Namespace: "greedy", Name: "another"}, Steps{{label}}) // nor does this
	if n := len(inFlight); n > 0 {
		t.Errorf("%d writes of one namespace run at the same time, want at most %d", maxOfOne+n, maxOfOne)
	}
	close(held)
	all.Wait()
}

func TestLongStepsEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var created, patched atomic.Int64
		d := newDesk(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				created.Add(1)
				time.Sleep(maxStep / 2)
				return nil
			},
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				patched.Add(1)
				return nil
			},
		})
		var step Step
		for range 5 * Parallel {
			step = append(step, Chain{{Verb: Create, Object: &corev1.Pod{}}})
		}
		last := Chain{{Verb: Patch, Object: &corev1.Pod{}, From: &corev1.Pod{}}}
		outcomes := d.Run(t.Context(), types.NamespacedName{}, Steps{append(step, last), {last}})
		if n := created.Load(); n != 3*Parallel {
			t.Errorf("%d objects were created, want %d, which start within %s", n, 3*Parallel, maxStep)
		}
		if n := patched.Load(); n != 1 {
			t.Errorf("%d patches were sent, want that of the first step", n)
		}
		if len(outcomes) != 3*Parallel+1 {
			t.Errorf("%d outcomes, want one for each action that was tried", len(outcomes))
		}
	})
}
