package observe

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
)

// readJobs reads the Jobs of the set, and the results of recorded Jobs that are missing.
func (r *Reader) readJobs(ctx context.Context, w *facts.World, from engine.View) error {
	var list batchv1.JobList
	if err := from.List(ctx, &list, OfSet(w.Set)...); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	w.Jobs = map[string]*batchv1.Job{}
	for i := range list.Items {
		if children.Controls(w.Set, &list.Items[i]) {
			w.Jobs[list.Items[i].Name] = &list.Items[i]
		}
	}
	if err := r.ReadNewJob(ctx, w); err != nil {
		return err
	}
	return r.ReadLostJobs(ctx, w)
}

// ReadNewJob reads the Job of the present phase if it is neither recorded nor listed. A policy may have
// removed the operator's label when the Job was created.
func (r *Reader) ReadNewJob(ctx context.Context, w *facts.World) error {
	status := &w.Set.Status
	wanted := facts.JobOfPhaseIn(w.Set, status)
	if !wanted.Due(status.Update) || wanted.Record != nil {
		return nil
	}
	name := w.JobName(wanted.Which, status)
	if w.Jobs[name] != nil {
		return nil
	}
	_, err := r.readUnlisted(ctx, w, name, "")
	return err
}

// readUnlisted reads a Job that the list lacks, and reports whether it exists. A Job without the
// operator's label is not listed: when the label is removed, the watch shows a deletion although the
// Job still exists. An empty UID matches any.
func (r *Reader) readUnlisted(ctx context.Context, w *facts.World, name string, uid types.UID) (exists bool, err error) {
	var job batchv1.Job
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: w.Set.Namespace, Name: name}, &job)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get Job %s: %w", name, err)
	case uid != "" && job.UID != uid, !children.Controls(w.Set, &job):
		return false, nil
	}
	w.Jobs[job.Name] = &job
	return true, nil
}

// ReadLostJobs determines the results of recorded Jobs that are missing. The watch may lag behind the
// list, so a result is unknown only after the Job was missing for LostJobTime.
func (r *Reader) ReadLostJobs(ctx context.Context, w *facts.World) error {
	key := client.ObjectKeyFromObject(w.Set)
	remembered := r.Of(w.Set)
	missing := map[types.UID]time.Time{}
	w.LostJobs = map[types.UID]v1alpha1.JobResult{}
	for _, record := range awaitedJobs(w.Set.Status.Update) {
		if job := w.Jobs[record.Name]; job != nil && job.UID == record.UID {
			continue
		}
		exists, err := r.readUnlisted(ctx, w, record.Name, record.UID)
		if err != nil {
			return err
		}
		if exists {
			r.Ends.Remove(key, record.UID)
			w.LostDue = w.Now.Add(spec.LostJobTime) // no watch event will follow
			continue
		}
		if result, seen := r.Ends.Get(key, record.UID); seen {
			w.LostJobs[record.UID] = result
			continue
		}
		since, again := remembered.jobsMissing[record.UID]
		if !again {
			since = w.Now
		}
		missing[record.UID] = since
		if due := since.Add(spec.LostJobTime); w.Now.Before(due) {
			w.LostDue = due
		} else {
			w.LostJobs[record.UID] = v1alpha1.JobUnknown
		}
	}
	remembered.jobsMissing = missing
	return nil
}

// awaitedJobs returns the recorded Jobs without a result.
func awaitedJobs(u *v1alpha1.UpdateStatus) (all []*v1alpha1.JobStatus) {
	if u == nil {
		return nil
	}
	for _, record := range []*v1alpha1.JobStatus{u.PreJob, u.CanaryJob, u.PostJob} {
		if record != nil && record.Result == "" {
			all = append(all, record)
		}
	}
	return all
}

// MaxEnds is how many results of deleted Jobs are kept for each object: the newest. An upgrade has at
// most three Jobs without a recorded result, and the pass that records a result follows immediately. If
// as many Jobs of the object are deleted before that pass, the result becomes JobUnknown.
const MaxEnds = 16

// jobEnds stores the results of deleted Jobs by object and UID.
type jobEnds = memory.Recent[types.NamespacedName, types.UID, v1alpha1.JobResult]

// KeepEnd stores the result of a deleted Job that an object in the cache controls. missed is true if the
// watch missed the deletion. Other Jobs are ignored, because anyone who may create Jobs can create any
// number with a reference to an object that does not exist.
func (r *Reader) KeepEnd(ctx context.Context, job *batchv1.Job, missed bool) {
	result := resultOfDeleted(job, missed)
	owner := metav1.GetControllerOfNoCopy(job)
	if result == "" || owner == nil {
		return
	}
	var set v1alpha1.ExtendedStatefulSet
	key := types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}
	if err := r.Cache.Get(ctx, key, &set, client.UnsafeDisableDeepCopy); err != nil || !children.Controls(&set, job) {
		return // without an object, there is no record of the Job
	}
	r.Ends.Put(key, job.UID, result, MaxEnds, r.Now())
}

// resultOfDeleted returns the result of a deleted Job; "" if it is unknown. A Job that was deleted before
// it completed has failed, unless the watch missed its final state.
func resultOfDeleted(job *batchv1.Job, missed bool) v1alpha1.JobResult {
	result := facts.EndOf(job)
	if result == "" && !missed {
		return v1alpha1.JobFailed
	}
	return result
}

// JobHandler is an event handler that stores the results of deleted Jobs.
type JobHandler struct {
	handler.EventHandler
	R *Reader
}

// Delete stores the result of the Job before the object is queued, so that the pass finds it.
func (h JobHandler) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if job, ok := e.Object.(*batchv1.Job); ok {
		h.R.KeepEnd(ctx, job, e.DeleteStateUnknown)
	}
	h.EventHandler.Delete(ctx, e, q)
}
