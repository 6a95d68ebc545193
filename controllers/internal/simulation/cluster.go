// Package simulation simulates a cluster. It stores objects as an API server does, executes actions, moves pods as the
// scheduler and kubelets do, and records each event as a line of a story. Nothing happens in the background, and only
// the caller moves the clock.
package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/patch"
)

// ErrKilled is returned by Interfere when the acting process is killed.
var ErrKilled = errors.New("killed")

// Cluster is a simulated cluster.
type Cluster struct {
	objects.Objects
	Now   time.Time
	Story []string
	// Shuffle randomizes the order of the chains of a step; nil keeps the order.
	Shuffle *rand.Rand
	// Interfere is called for each write with its number, starting at 1. If it returns before, the
	// write does not happen. If it returns after, the write happens but its response is lost.
	Interfere func(n int, a action.Action) (before, after error)
	// Send receives the commands for pods. It returns false if it does not start a command.
	Send func(podexec.Command) bool
	// Changed is called after each change of an object. was is nil for a new object, and is is nil for
	// a deleted one. act is nil if the change was not caused by an action.
	Changed func(act *action.Action, was, is client.Object)

	// UIDPrefix is the prefix of the UIDs of new objects, if the cluster contains objects of another one.
	UIDPrefix string
	// Unlisted are the kinds whose objects are not in the cluster because they could not be listed.
	Unlisted map[string]bool

	writes, versions, uids int
	removed                map[types.UID]bool
	act                    *action.Action
}

// New returns an empty cluster with the given time.
func New(now time.Time) *Cluster {
	return &Cluster{Objects: objects.Objects{All: map[objects.Key]client.Object{}}, Now: now, removed: map[types.UID]bool{}}
}

// Say adds a line to the story.
func (c *Cluster) Say(format string, args ...any) {
	c.Story = append(c.Story, fmt.Sprintf(format, args...))
}

// HideStatus removes the line of a successful write of the observed state. lines is the length of the story before the
// steps with these outcomes. Stories have the observed state only at rest.
func (c *Cluster) HideStatus(lines int, outcomes []action.Outcome) {
	if len(outcomes) == 1 && outcomes[0].Reason == "Observed" && outcomes[0].Err == nil && len(c.Story) == lines+1 {
		c.Story = c.Story[:lines]
	}
}

// Put stores an object unchanged, as its author would.
func (c *Cluster) Put(obj client.Object) {
	obj = objects.Clone(obj)
	was := c.All[objects.KeyOf(obj)]
	c.versions++
	obj.SetResourceVersion(strconv.Itoa(c.versions))
	if obj.GetUID() == "" {
		c.uids++
		obj.SetUID(types.UID(fmt.Sprintf("%suid-%d", c.UIDPrefix, c.uids)))
		obj.SetCreationTimestamp(metav1.NewTime(c.Now.Truncate(time.Second)))
		obj.SetGeneration(1)
	}
	c.All[objects.KeyOf(obj)] = obj
	c.told(was, obj)
}

// Remove removes an object. It also removes terminating claims that the object was the last pod to
// mount.
func (c *Cluster) Remove(obj client.Object) {
	obj = c.All[objects.KeyOf(obj)]
	delete(c.All, objects.KeyOf(obj))
	c.removed[obj.GetUID()] = true
	c.told(obj, nil)
	for _, claim := range c.Claims(obj) {
		if claim.DeletionTimestamp != nil && !c.mounted(claim) {
			c.Remove(claim)
		}
	}
}

// Delete deletes an object as the API server does: a pod terminates, a claim waits for its pods, an
// object with finalizers waits for their removal, and all other objects are removed.
func (c *Cluster) Delete(obj client.Object) {
	grace := int64(0)
	pod, isPod := c.All[objects.KeyOf(obj)].(*corev1.Pod)
	if isPod && podstate.Scheduled(pod) && !podstate.Ended(pod) {
		grace = ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 30)
	}
	c.end(obj, grace)
}

// DeleteNow deletes an object without a grace period, as the last delete of a kubelet or a forced
// delete does.
func (c *Cluster) DeleteNow(obj client.Object) { c.end(obj, 0) }

func (c *Cluster) end(obj client.Object, grace int64) {
	obj = objects.Clone(c.All[objects.KeyOf(obj)])
	was, pod := obj.GetDeletionTimestamp(), &corev1.Pod{}
	if p, isPod := obj.(*corev1.Pod); isPod {
		pod = p
	}
	if was == nil || grace < ptr.Deref(pod.DeletionGracePeriodSeconds, 0) {
		at := metav1.NewTime(cmp.Or(podstate.DeletedAt(pod), c.Now.Truncate(time.Second)).Add(time.Duration(grace) * time.Second))
		pod.DeletionGracePeriodSeconds = &grace
		obj.SetDeletionTimestamp(&at)
		if was == nil {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
	}
	switch {
	case c.mayGo(obj):
		c.Remove(obj)
	case !apiequality.Semantic.DeepEqual(obj, c.All[objects.KeyOf(obj)]):
		c.Put(obj)
	}
}

// mayGo reports whether a terminating object can be removed.
func (c *Cluster) mayGo(obj client.Object) bool {
	if obj.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	claim, isClaim := c.All[objects.KeyOf(obj)].(*corev1.PersistentVolumeClaim)
	return ptr.Deref(obj.GetDeletionGracePeriodSeconds(), 0) == 0 && (!isClaim || !c.mounted(claim))
}

// Claims returns the existing claims that a pod mounts.
func (c *Cluster) Claims(obj client.Object) (claims []*corev1.PersistentVolumeClaim) {
	pod, isPod := obj.(*corev1.Pod)
	for i := 0; isPod && i < len(pod.Spec.Volumes); i++ {
		if v := pod.Spec.Volumes[i].PersistentVolumeClaim; v != nil {
			if claim, exists := c.All[objects.Key{Kind: "PersistentVolumeClaim", Namespace: pod.Namespace, Name: v.ClaimName}].(*corev1.PersistentVolumeClaim); exists {
				claims = append(claims, claim)
			}
		}
	}
	return claims
}

func (c *Cluster) mounted(claim *corev1.PersistentVolumeClaim) bool {
	for _, obj := range c.All {
		if slices.Contains(c.Claims(obj), claim) {
			return true
		}
	}
	return false
}

func (c *Cluster) told(was, is client.Object) {
	if c.Changed != nil {
		c.Changed(c.act, was, is)
	}
}

// Apply carries out the steps as a Runner does, but one action at a time. alive is false if the acting
// process was killed.
func (c *Cluster) Apply(steps action.Steps) (outcomes []action.Outcome, alive bool) {
	for _, step := range steps {
		step = slices.Clone(step)
		if c.Shuffle != nil {
			c.Shuffle.Shuffle(len(step), func(i, j int) { step[i], step[j] = step[j], step[i] })
		}
		failed, refused := false, false
		for _, chain := range step {
			for _, a := range chain {
				if refused && slices.ContainsFunc(chain, func(a action.Action) bool { return a.Verb == action.Create }) {
					break
				}
				answer, err := c.try(a)
				if errors.Is(err, ErrKilled) {
					return nil, false
				}
				outcomes = append(outcomes, action.Outcome{Action: a, Answer: answer, Err: err})
				if err != nil {
					failed, refused = true, refused || a.Verb == action.Create
					break
				}
			}
		}
		if failed {
			break
		}
	}
	return outcomes, true
}

// Writes returns the number of attempted writes.
func (c *Cluster) Writes() int { return c.writes }

func (c *Cluster) try(a action.Action) (answer client.Object, err error) {
	c.writes++
	var after error
	if c.Interfere != nil {
		if err, after = c.Interfere(c.writes, a); err != nil {
			c.Say("! %v: %s", err, a)
			return nil, err
		}
	}
	c.act = &a
	answer, err = c.do(a)
	c.act = nil
	if err != nil {
		c.Say("! %v: %s", apierrors.ReasonForError(err), a)
		return nil, err
	}
	c.Say("  %s", a)
	if after != nil {
		c.Say("! %v after it", after)
		return nil, after
	}
	return answer, nil
}

func (c *Cluster) do(a action.Action) (client.Object, error) {
	if a.Verb == action.Exec {
		if !c.Send(*a.Command) {
			return nil, action.ErrNotBegun
		}
		return a.Object, nil
	}
	if a.Verb == action.Try {
		return a.Object, nil
	}
	have, what := c.All[objects.KeyOf(a.Object)], schema.GroupResource{Resource: objects.KindOf(a.Object)}
	if a.Verb == action.Create {
		if have == nil {
			c.Put(a.Object)
			return objects.Clone(c.All[objects.KeyOf(a.Object)]), nil
		}
		if adopts(a.Object, have) {
			return a.Object, nil
		}
		return nil, apierrors.NewAlreadyExists(what, a.Object.GetName())
	}
	switch base := cmp.Or(a.From, a.Object); {
	case have == nil:
		return nil, apierrors.NewNotFound(what, a.Object.GetName())
	case have.GetUID() != base.GetUID(),
		(a.Unchanged || a.Verb == action.PatchStatus || a.Verb == action.Delete) && have.GetResourceVersion() != base.GetResourceVersion():
		return nil, apierrors.NewConflict(what, a.Object.GetName(), errors.New("the object was replaced"))
	}
	if a.Verb == action.Delete {
		c.Delete(have)
		return have, nil
	}
	next, err := patch.Apply(a, have)
	switch {
	case err != nil:
		return nil, err
	case next == have, a.Verb != action.PatchStatus && apiequality.Semantic.DeepEqual(have, next):
		return objects.Clone(have), nil
	case len(have.GetFinalizers()) > 0 && len(next.GetFinalizers()) == 0 && c.mayGo(next):
		c.Remove(next)
		return next, nil
	}
	c.Put(next)
	return objects.Clone(c.All[objects.KeyOf(a.Object)]), nil
}

// adopts reports whether have is the result of an earlier create of want.
func adopts(want, have client.Object) bool {
	a, b := metav1.GetControllerOfNoCopy(want), metav1.GetControllerOfNoCopy(have)
	switch {
	case (a == nil) != (b == nil):
		return false
	case a != nil && a.UID != b.UID:
		return false
	}
	for k, v := range want.GetLabels() {
		if have.GetLabels()[k] != v {
			return false
		}
	}
	return true
}
