package plan

import (
	"time"
)

// Action is what happens to an object in a step.
type Action string

const (
	// CreatePod creates a pod with a new name, or one that is missing.
	CreatePod Action = "CreatePod"
	// DeletePod deletes a pod that is not created again.
	DeletePod Action = "DeletePod"
	// RecreatePod deletes a pod, and creates one of the same name.
	RecreatePod Action = "RecreatePod"
	// UpdatePod changes images or resources of a pod in place. Containers with a new image restart.
	UpdatePod Action = "UpdatePod"
	// Handover moves the role of a primary or holder from one pod to another one.
	Handover Action = "Handover"
	// CreateClaim and DeleteClaim create and delete a PersistentVolumeClaim.
	CreateClaim Action = "CreateClaim"
	DeleteClaim Action = "DeleteClaim"
	// CreateVersion and DeleteVersion create and delete a StatefulSet.
	CreateVersion Action = "CreateVersion"
	DeleteVersion Action = "DeleteVersion"
	// RunJob starts a Job.
	RunJob Action = "RunJob"
	// Approve is the approval of a revision. Plans contain it if approvals are assumed.
	Approve Action = "Approve"
)

// Step is one step of a plan.
type Step struct {
	// Batch numbers the steps. Steps of one batch begin at the same time, in any order.
	Batch  int    `json:"batch"`
	Action Action `json:"action"`
	// Name is the name of the object. A name that is random is NEW-1, NEW-2 and so on. The name of a Handover
	// is the pod that loses the role; it is empty if no pod had it.
	Name string `json:"name"`
	// To is the pod that gets the role in a Handover; it is empty if no pod gets it.
	To string `json:"to,omitempty"`
	// Role is the role of a pod at the beginning of the step, or the role that a Handover moves.
	Role string `json:"role,omitempty"`
	// Node is the Node of a pod that is deleted.
	Node string `json:"node,omitempty"`
	// Changes are the changed fields of a pod.
	Changes []Field `json:"changes,omitempty"`
	// Reason is the reason of the operator. It is empty for steps of other controllers.
	Reason string `json:"reason,omitempty"`
	// Ready is the number of Ready pods of the object when the step ends.
	Ready int `json:"ready"`
	// EvictionsBlocked is true if, after the step begins and before the next one, there is a time when budgets allow
	// no eviction of any Ready pod of the object. It is false if they also allowed none before the change.
	EvictionsBlocked bool `json:"evictionsBlocked,omitempty"`

	at   time.Time
	gone bool // a deleted pod does not exist any more
}

// number sets the batches of steps.
func number(steps []Step) []Step {
	batch := 0
	for i := range steps {
		if i == 0 || !steps[i].at.Equal(steps[i-1].at) {
			batch++
		}
		steps[i].Batch = batch
	}
	return steps
}
