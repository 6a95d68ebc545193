package extendedstatefulset

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
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/memory"
)

// readJobs reads the Jobs of the set, and the results of recorded Jobs that are missing.
func (r *reader) readJobs(ctx context.Context, w *world, from engine.View) error {
	var list batchv1.JobList
	if err := from.List(ctx, &list, ofSet(w.set)...); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	w.jobs = map[string]*batchv1.Job{}
	for i := range list.Items {
		if controls(w.set, &list.Items[i]) {
			w.jobs[list.Items[i].Name] = &list.Items[i]
		}
	}
	if err := r.readNewJob(ctx, w); err != nil {
		return err
	}
	return r.readLostJobs(ctx, w)
}

// readNewJob reads the Job of the present phase if it is neither recorded nor listed. A policy may have
// removed the operator's label when the Job was created.
func (r *reader) readNewJob(ctx context.Context, w *world) error {
	status := &w.set.Status
	asked := askedIn(w.set, status)
	if !asked.due(status.Update) || asked.record != nil {
		return nil
	}
	name := w.jobName(asked.which, status)
	if w.jobs[name] != nil {
		return nil
	}
	_, err := r.readUnlisted(ctx, w, name, "")
	return err
}

// readUnlisted reads a Job that the list lacks, and reports whether it exists. A Job without the
// operator's label is not listed: when the label is removed, the watch shows a deletion although the
// Job still exists. An empty UID matches any.
func (r *reader) readUnlisted(ctx context.Context, w *world, name string, uid types.UID) (exists bool, err error) {
	var job batchv1.Job
	err = r.live.Get(ctx, types.NamespacedName{Namespace: w.set.Namespace, Name: name}, &job)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get Job %s: %w", name, err)
	case uid != "" && job.UID != uid, !controls(w.set, &job):
		return false, nil
	}
	w.jobs[job.Name] = &job
	return true, nil
}

// readLostJobs determines the results of recorded Jobs that are missing. The watch may lag behind the
// list, so a result is unknown only after the Job was missing for lostJobTime.
func (r *reader) readLostJobs(ctx context.Context, w *world) error {
	key := client.ObjectKeyFromObject(w.set)
	known := r.of(w.set)
	missing := map[types.UID]time.Time{}
	w.lostJobs = map[types.UID]v1alpha1.JobResult{}
	for _, record := range awaitedJobs(w.set.Status.Update) {
		if job := w.jobs[record.Name]; job != nil && job.UID == record.UID {
			continue
		}
		exists, err := r.readUnlisted(ctx, w, record.Name, record.UID)
		if err != nil {
			return err
		}
		if exists {
			r.ends.Remove(key, record.UID)
			w.lostDue = w.now.Add(lostJobTime) // no watch event will follow
			continue
		}
		if result, seen := r.ends.Get(key, record.UID); seen {
			w.lostJobs[record.UID] = result
			continue
		}
		since, again := known.jobsMissing[record.UID]
		if !again {
			since = w.now
		}
		missing[record.UID] = since
		if due := since.Add(lostJobTime); w.now.Before(due) {
			w.lostDue = due
		} else {
			w.lostJobs[record.UID] = v1alpha1.JobUnknown
		}
	}
	known.jobsMissing = missing
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

// maxEnds is how many results of deleted Jobs are kept for each object: the newest. An update has at
// most three Jobs without a recorded result, and the pass that records a result follows immediately. If
// as many Jobs of the object are deleted before that pass, the result becomes JobUnknown.
const maxEnds = 16

// jobEnds stores the results of deleted Jobs by object and UID.
type jobEnds = memory.Recent[types.NamespacedName, types.UID, v1alpha1.JobResult]

// learnEnd stores the result of a deleted Job that an object in the cache controls. Anyone who may
// create Jobs can create any number with a reference to an object that does not exist.
func (r *reader) learnEnd(ctx context.Context, job *batchv1.Job, missed bool) {
	result := resultOfDeleted(job, missed)
	owner := metav1.GetControllerOfNoCopy(job)
	if result == "" || owner == nil {
		return
	}
	var set v1alpha1.ExtendedStatefulSet
	key := types.NamespacedName{Namespace: job.Namespace, Name: owner.Name}
	if err := r.cache.Get(ctx, key, &set, client.UnsafeDisableDeepCopy); err != nil || !controls(&set, job) {
		return // without an object, there is no record of the Job
	}
	r.ends.Put(key, job.UID, result, maxEnds, r.now())
}

// resultOfDeleted returns the result of a deleted Job; "" if it is unknown. A Job that was deleted before
// it completed has failed, unless the watch missed its final state.
func resultOfDeleted(job *batchv1.Job, missed bool) v1alpha1.JobResult {
	result := endOf(job)
	if result == "" && !missed {
		return v1alpha1.JobFailed
	}
	return result
}

// jobHandler is an event handler that stores the results of deleted Jobs.
type jobHandler struct {
	handler.EventHandler
	r *reader
}

func (h jobHandler) Delete(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	if job, ok := e.Object.(*batchv1.Job); ok {
		h.r.learnEnd(ctx, job, e.DeleteStateUnknown)
	}
	h.EventHandler.Delete(ctx, e, q)
}
