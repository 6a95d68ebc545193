package statefulsingleton

import "time"

// All times of the kind, in the order in which a user meets them. What has to hold
// between them is in timing_test.go.
const (
	// settleAfter is how old an object is before it starts a pod: only then do the
	// webhook and the guard of every API server know it, so that no pod is on its
	// way that has no gate and was not seen. They were measured to need 15 ms.
	settleAfter = 2 * time.Second

	// restsAfter is how long a gate has been seen to run before another pod is
	// deleted for it. A kubelet that has just looked after a pod does so again only
	// when it has listed the containers of its node once more, which it does every
	// second (pod_workers.go: GetNewerThan). A grant that comes sooner waits for that,
	// while no program runs.
	restsAfter = 1500 * time.Millisecond

	// remindAfter is how long after its grant a pod is changed once more. It is
	// longer than a kubelet takes to show a grant that it has not missed.
	remindAfter = 2 * time.Second

	// newestPatience is for how long a pod of an older revision lets one of the
	// newest come as far as its gate. It would be superseded in a moment.
	newestPatience = 10 * time.Second

	// unknownOwnerPatience is how long a pod waits at its gate before a condition says that
	// its owner is unknown, and may never replace the pod that runs.
	unknownOwnerPatience = time.Minute

	// replacedIsKept is for how long no pod of an owner and revision has to exist before
	// onTimeout deletes another pod for one of them again. An owner that competes recreates
	// its pod at once; one that is created so much later is a rollback.
	replacedIsKept = time.Hour

	// fenceAfter is for how long a Node must be gone before its machine counts as
	// off: one that is deleted by mistake comes back when its kubelet restarts.
	fenceAfter = time.Minute

	// mirrorReturns is for how long no pod starts after a static pod is not shown any
	// more. Whoever deletes it by the API deletes its mirror alone: the program runs
	// on, and its kubelet shows it again when it looks after that pod next: after 60
	// to 90 seconds (pod_workers.go: the resync interval, with jitter); 80 were seen.
	mirrorReturns = 2 * time.Minute

	// detachedReview is how often the Deployment of a pod is looked at that was taken from
	// its ReplicaSet: no event tells that it wants no pod any more.
	detachedReview = 10 * time.Second

	// guardInterval is how often the policy is looked at, guardRetry how often while
	// something is wrong with it, and guardReview how often an object looks whether it
	// is still.
	guardInterval = 15 * time.Second
	guardRetry    = 2 * time.Second
	guardReview   = 2 * guardInterval

	// again is when to look after a write that another one overtook, and afterActs
	// after one whose event gets lost.
	again     = 100 * time.Millisecond
	afterActs = 5 * time.Second

	// orphanLook is when the pods of an object that is gone are looked for once more;
	// the time doubles with each look.
	orphanLook = time.Second

	// firstOwnerLook is when owners whose pods were refused are looked for once more;
	// the time doubles with each look, up to longestOwnerLook.
	firstOwnerLook   = 5 * time.Second
	longestOwnerLook = 8 * time.Minute

	// ownerPatience is how old a StatefulSet is before it counts as hindered: it
	// does not say what was refused, and a new one lacks its pods for a moment.
	ownerPatience = 10 * time.Second

	// makersRetry is how often pods that may wait for an object that is gone are listed
	// until that succeeds.
	makersRetry = time.Second
)
