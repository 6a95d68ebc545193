package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/owned"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/rejection"
	"github.com/stateful-operator/stateful-operator/controllers/internal/turns"
)

// Parallel is the max number of concurrent chains of a step.
const Parallel = 32

// Recorder is notified of every successful write. An example is the consistency tracker.
type Recorder interface {
	// Wrote is called with the object that the API server returned.
	Wrote(key types.NamespacedName, obj client.Object)
	// Deleted is called with the deleted object.
	Deleted(key types.NamespacedName, obj client.Object)
}

// maxStep is how long chains of a step that create or delete objects are started. The others are left to
// the next pass, which reads the object again: it may have been deleted or scaled meanwhile.
const maxStep = 10 * time.Second

// Limits of the concurrent writes of this process, for all kinds. Without them, the members of one
// namespace's large sets would keep the API server busy: it serves the requests of one account in order.
const (
	maxWrites = 96
	maxOfOne  = 48 // of one namespace: 48 that create or delete objects, and 48 others
	maxFirst  = 32 // in addition, for namespaces that have none
)

// writes are the turns of all runners of this process, by namespace.
var writes = turns.New(maxWrites, maxOfOne, maxFirst)

// Writer executes steps. It is a Runner, or a simulated cluster.
type Writer interface {
	// Run executes the steps for the object with the given key. It returns an outcome for each attempted action.
	Run(ctx context.Context, key types.NamespacedName, steps Steps) []Outcome
}

// Runner executes actions.
type Runner struct {
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Recorder is notified of writes, with the key of the reconciled object. It is nil for controllers
	// that decide only on live reads.
	Recorder Recorder
	// Commands starts commands in pods. It is nil for controllers that run none.
	Commands Commands
	// Lease is checked before each write and command.
	Lease *leadership.Lease
}

// Commands starts commands in the pods of an object; podexec.Board implements it.
type Commands interface {
	// Send starts a command. It returns false if another command runs in the pod, or if this process is
	// shutting down.
	Send(owner types.NamespacedName, c podexec.Command) bool
	// NotSent records that a command was not sent, although the object has recorded it.
	NotSent(owner types.NamespacedName, c podexec.Command, why string)
}

// ErrNotBegun is the error for a command that was not started.
var ErrNotBegun = errors.New("another command is running in the pod, or this process is shutting down")

// Run executes the steps for the object with the given key. It returns an outcome for each attempted
// action. If a chain fails, the other chains of the step still run, but no further step. After a failed
// Create, no further chain with a Create is started, because a quota or webhook would probably reject all
// of them. After maxStep, no further chain with a Create or Delete is started; the events of the written
// objects requeue the key.
func (r *Runner) Run(ctx context.Context, key types.NamespacedName, steps Steps) []Outcome {
	var all []Outcome
	for _, step := range steps {
		outcomes, failed := r.runStep(ctx, key, step)
		all = append(all, outcomes...)
		if failed {
			break
		}
	}
	return all
}

// runStep runs the chains of a step concurrently. It reports whether one failed.
func (r *Runner) runStep(ctx context.Context, key types.NamespacedName, step Step) ([]Outcome, bool) {
	results := make([][]Outcome, len(step))
	var refused, failed atomic.Bool
	var next atomic.Int64
	until := time.Now().Add(maxStep)
	var workers sync.WaitGroup
	for range min(Parallel, len(step)) {
		workers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(step) || ctx.Err() != nil {
					return
				}
				if time.Now().After(until) && has(step[i], Create, Delete) {
					failed.Store(true)
					continue
				}
				if refused.Load() && has(step[i], Create) {
					continue
				}
				results[i] = r.runChain(ctx, key, step[i])
				if n := len(results[i]); n > 0 && results[i][n-1].Err != nil {
					failed.Store(true)
					if results[i][n-1].Verb == Create {
						refused.Store(true)
					}
				}
			}
		})
	}
	workers.Wait()
	var all []Outcome
	for _, outcomes := range results {
		all = append(all, outcomes...)
	}
	return all, failed.Load() || ctx.Err() != nil
}

// has reports whether a chain contains one of the verbs.
func has(chain Chain, verbs ...Verb) bool {
	return slices.ContainsFunc(chain, func(a Action) bool { return slices.Contains(verbs, a.Verb) })
}

// runChain runs the actions of a chain until one fails.
func (r *Runner) runChain(ctx context.Context, key types.NamespacedName, chain Chain) []Outcome {
	var outcomes []Outcome
	for i, a := range chain {
		answer, err := r.do(ctx, key, a)
		outcomes = append(outcomes, Outcome{Action: a, Answer: answer, Err: err})
		if err != nil {
			done := chain[:i]
			if answer != nil { // it was made, and Verify returned the error
				done = chain[:i+1]
			}
			r.noteNotSent(key, done, chain[i+1:], err)
			return outcomes
		}
		level := 0
		if a.Verb == Exec {
			level = 1 // commands are frequent, and the status records those with effects
		}
		log.FromContext(ctx).V(level).Info("acted", "action", a.String())
	}
	return outcomes
}

// noteNotSent records that the commands among the actions left were not sent, if the object has recorded them: one of
// the actions done has written its status.
func (r *Runner) noteNotSent(key types.NamespacedName, done, left Chain, err error) {
	if !has(done, PatchStatus) {
		return
	}
	for _, a := range left {
		if a.Verb == Exec {
			r.Commands.NotSent(key, *a.Command, err.Error())
		}
	}
}

// peerOf returns whose turns a write takes. Objects that are created and deleted have turns of their own in
// each namespace, so that the records and labels of a failover do not wait for the members of large sets.
func peerOf(namespace string, a Action) string {
	if slices.Contains([]Verb{Create, Delete, Try}, a.Verb) {
		return namespace + "/objects"
	}
	return namespace
}

// do waits for a turn, checks the lease, runs one action, and returns the object in the response.
func (r *Runner) do(ctx context.Context, key types.NamespacedName, a Action) (client.Object, error) {
	if a.Verb != Exec { // podexec limits commands
		leave, err := writes.Enter(ctx, peerOf(key.Namespace, a), 0)
		if err != nil {
			return nil, fmt.Errorf("%s: wait for other writes: %w", a.what(), err)
		}
		defer leave()
	}
	// Without this check, a leader would write even after its lease has expired.
	if err := r.Lease.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", a.what(), err)
	}
	if a.Verb == Exec {
		if !r.Commands.Send(key, *a.Command) {
			return nil, fmt.Errorf("%s: %w", a.what(), ErrNotBegun)
		}
		return a.Object, nil
	}
	obj, unwritten, err := r.write(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.what(), err) // without a.Reason, because users read this error
	}
	switch {
	case unwritten: // there is no write to wait for
	case r.Recorder == nil:
	case a.Verb == Delete:
		r.Recorder.Deleted(key, a.Object)
	default:
		r.Recorder.Wrote(key, obj)
	}
	if a.Verify != nil {
		if err := a.Verify(obj); err != nil {
			if !errors.Is(err, rejection.ErrUnstored) {
				err = fmt.Errorf("%w: %w", rejection.ErrChanged, err)
			}
			return obj, fmt.Errorf("%s: %w", a.what(), err)
		}
	}
	return obj, nil
}

// write sends an action to the API server and returns the object in its response. unwritten is true for
// a create whose object already exists, and for a dry run.
func (r *Runner) write(ctx context.Context, a Action) (obj client.Object, unwritten bool, err error) {
	// The response is decoded into obj, so use a copy: the plan keeps the original.
	obj = a.Object.DeepCopyObject().(client.Object)
	switch a.Verb {
	case Create:
		unwritten, err = r.create(ctx, a, obj)
	case Try:
		unwritten, err = true, r.try(ctx, obj, a.From)
	case Patch:
		difference := client.StrategicMergeFrom(a.From)
		if a.Unchanged {
			difference = client.MergeFromWithOptions(a.From, client.MergeFromWithOptimisticLock{})
		}
		err = r.Client.Patch(ctx, obj, boundPatch{difference, a.From.GetUID()})
	case SetCondition:
		err = r.Client.Status().Patch(ctx, obj, boundPatch{client.StrategicMergeFrom(a.From), a.From.GetUID()})
	case Resize:
		difference := client.StrategicMergeFrom(a.From)
		if a.Unchanged {
			difference = client.StrategicMergeFrom(a.From, client.MergeFromWithOptimisticLock{})
		}
		err = r.Client.SubResource("resize").Patch(ctx, obj, boundPatch{difference, a.From.GetUID()})
	case PatchStatus:
		obj, err = r.patchStatus(ctx, a)
	case Delete:
		uid, rv := obj.GetUID(), obj.GetResourceVersion()
		pre := client.Preconditions{UID: &uid, ResourceVersion: &rv}
		// The default propagation would orphan the pods of a Job.
		err = r.Client.Delete(ctx, obj, pre, client.PropagationPolicy(metav1.DeletePropagationBackground))
	default:
		err = fmt.Errorf("unknown verb %q", a.Verb)
	}
	return obj, unwritten, err
}

// create creates an object. It adopts an existing object from an earlier create whose response was
// lost.
func (r *Runner) create(ctx context.Context, a Action, obj client.Object) (adopted bool, err error) {
	if a.Named {
		return false, r.apply(ctx, obj)
	}
	taken := r.Client.Create(ctx, obj)
	if !apierrors.IsAlreadyExists(taken) {
		return false, taken
	}
	if err := r.adopt(ctx, a.Object, taken); err != nil {
		return false, err
	}
	return true, nil
}

// passed contains the errors of a dry run that do not depend on the object itself: an object with one of
// them has passed all other checks, because the quota is the last admission check, and the name is
// checked after it.
var passed = []func(error) bool{apierrors.IsAlreadyExists, rejection.IsFullQuota, rejection.IsUntried}

// try returns an error if the API server would reject the creation of the object. The errors in passed are
// ignored, except an exceeded quota that would still reject the object after the deletion of pod goes.
func (r *Runner) try(ctx context.Context, obj, goes client.Object) error {
	err := r.Client.Create(ctx, obj, client.DryRunAll)
	if pod, isPod := goes.(*corev1.Pod); isPod && rejection.IsFullWithout(err, pod) {
		return err
	}
	if slices.ContainsFunc(passed, func(is func(error) bool) bool { return is(err) }) {
		return nil
	}
	return err
}

// maxRebases is the max number of retries of a status patch on newer versions of the object. It is
// sufficient even if the object is edited continuously.
const maxRebases = 10

// patchStatus patches the status and returns the object in the response of the API server.
func (r *Runner) patchStatus(ctx context.Context, a Action) (client.Object, error) {
	from, to := a.From, a.Object
	for try := 0; ; try++ {
		answer := to.DeepCopyObject().(client.Object)
		conflict := r.Client.Status().Patch(ctx, answer, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
		if !a.Rebase || try == maxRebases || !apierrors.IsConflict(conflict) {
			return answer, conflict
		}
		var err error
		if from, to, err = r.rebase(ctx, a); err != nil {
			return nil, err
		}
		if from == nil {
			return nil, conflict
		}
		if err := r.Lease.Check(); err != nil {
			return nil, err
		}
	}
}

// rebase reads the current object of a PatchStatus. It returns that object, and a copy of it with the
// wanted status. Both are nil if its status has changed, or if another object has the name.
func (r *Runner) rebase(ctx context.Context, a Action) (from, to client.Object, err error) {
	from = reflect.New(reflect.TypeOf(a.From).Elem()).Interface().(client.Object)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(a.From), from); err != nil {
		return nil, nil, err
	}
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.From)
	if err != nil {
		return nil, nil, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		return nil, nil, err
	}
	if from.GetUID() != a.From.GetUID() {
		return nil, nil, nil
	}
	// Without this check, the patch would overwrite the status of another process.
	if !reflect.DeepEqual(was["status"], is["status"]) {
		return nil, nil, nil
	}
	wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a.Object)
	if err != nil {
		return nil, nil, err
	}
	is["status"] = wanted["status"]
	to = reflect.New(reflect.TypeOf(a.From).Elem()).Interface().(client.Object)
	return from, to, runtime.DefaultUnstructuredConverter.FromUnstructured(is, to)
}

// fieldOwner is the field manager of server-side applies.
const fieldOwner = client.FieldOwner("stateful-operator")

// apply creates an object by server-side apply.
func (r *Runner) apply(ctx context.Context, obj client.Object) error {
	kind, err := r.Client.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(obj)
	if err != nil {
		return err
	}
	return r.Client.Patch(ctx, obj, client.RawPatch(types.ApplyPatchType, text), fieldOwner)
}

// adopt checks whether the existing object is the wanted one, from a create whose response was lost. If
// not, it returns the error taken.
func (r *Runner) adopt(ctx context.Context, want client.Object, taken error) error {
	have := want.DeepCopyObject().(client.Object)
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return errors.Join(taken, err)
	}
	if !owned.Alike(want, have) {
		return taken
	}
	labels := have.GetLabels()
	for k, v := range want.GetLabels() {
		if labels[k] != v {
			return taken
		}
	}
	return nil
}

// boundPatch adds the UID of the object to a patch. The API server returns a conflict if the object with
// the name has another UID.
type boundPatch struct {
	client.Patch
	uid types.UID
}

func (p boundPatch) Data(obj client.Object) ([]byte, error) {
	data, err := p.Patch.Data(obj)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
	meta, _ := patch["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		patch["metadata"] = meta
	}
	meta["uid"] = string(p.uid)
	return json.Marshal(patch)
}
