package statefulsingleton

import "time"

// The durations of this kind, in the order in which a user encounters them. timing_test.go
// checks the relations between them.
const (
	// settleAfter is the min age of an object that starts pods. By then the webhook and the
	// guard of every API server know the object, so no unseen pod without a gate can still
	// be created. Measured: they need 15 ms.
	settleAfter = 2 * time.Second

	// restsAfter is how long a gate must have been running before another pod is deleted
	// for it. A kubelet that has just synced a pod syncs it again only after it has
	// relisted the containers of its node, which happens every second (pod_workers.go:
	// GetNewerThan). An earlier grant would wait for the relist while no program runs.
	restsAfter = 1500 * time.Millisecond

	// remindAfter is the delay after a grant until the pod is patched again. It is longer
	// than a kubelet needs to show a grant that it did not miss.
	remindAfter = 2 * time.Second

	// newestPatience is how long a waiting pod of an older revision yields to a pod of the
	// newest one that has not reached its gate. The older pod would be superseded right
	// after its start.
	newestPatience = 10 * time.Second

	// unknownOwnerPatience is how long a pod with an unknown owner waits at its gate before
	// a condition reports that it may never replace the running pod.
	unknownOwnerPatience = time.Minute

	// replacedIsKept is how long no pod of an owner and revision must exist before
	// onTimeout may delete another pod for them again. A competing owner recreates its pod
	// at once; a pod that is created after this time is a rollback.
	replacedIsKept = time.Hour

	// fenceAfter is how long a Node must be missing before its machine counts as off. A
	// Node that was deleted by mistake is registered again when its kubelet restarts.
	fenceAfter = time.Minute

	// mirrorReturns is how long no pod starts after the mirror of a static pod has
	// disappeared. Deleting a static pod through the API deletes only its mirror. The
	// program keeps running, and the kubelet recreates the mirror at its next sync of that
	// pod, after 60 to 90 seconds (pod_workers.go: the resync interval, with jitter). 80
	// seconds were observed.
	mirrorReturns = 2 * time.Minute

	// detachedReview is the interval for checking the Deployment of a detached pod. No
	// watched object changes when the Deployment is scaled to 0.
	detachedReview = 10 * time.Second

	// guardInterval is the interval for checking the policy, and guardRetry the interval
	// while it is missing or wrong. guardReview is the interval at which an object checks
	// whether it still is.
	guardInterval = 15 * time.Second
	guardRetry    = 2 * time.Second
	guardReview   = 2 * guardInterval

	// again is the delay after a conflict. afterActs is a safety net after a write, in case
	// its watch event is lost.
	again     = 100 * time.Millisecond
	afterActs = 5 * time.Second

	// orphanLook is the delay before the pods of a deleted object are listed again; it
	// doubles each time.
	orphanLook = time.Second

	// firstOwnerLook is the delay before owners whose pods were refused are listed again;
	// it doubles each time, up to maxOwnerLook.
	firstOwnerLook = 5 * time.Second
	maxOwnerLook   = 8 * time.Minute

	// ownerPatience is the min age of a StatefulSet that counts as blocked. A StatefulSet
	// does not report refused pods, and a new one lacks its pods for a moment.
	ownerPatience = 10 * time.Second

	// makersRetry is the retry interval for listing pods that may wait for a deleted
	// object.
	makersRetry = time.Second
)
