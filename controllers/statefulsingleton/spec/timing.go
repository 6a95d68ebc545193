package spec

import "time"

// The durations of this kind, in the order in which a user encounters them. timing_test.go
// checks the relations between them.
const (
	// SettleAfter is the min age of an object that starts pods. By then the webhook and the
	// guard of every API server know the object, so no unseen pod without a gate can still
	// be created. Measured: they need 15 ms.
	SettleAfter = 2 * time.Second

	// GateSteadyAfter is how long a gate must have been running before another pod is deleted
	// for its pod. A kubelet that has just synced a pod syncs it again only after it has
	// relisted the containers of its node, which happens every second (pod_workers.go:
	// GetNewerThan). An earlier grant would wait for the relist while no program runs.
	GateSteadyAfter = 1500 * time.Millisecond

	// RemindAfter is the delay after a grant until the pod is patched again. It is longer
	// than a kubelet needs to show a grant that it did not miss.
	RemindAfter = 2 * time.Second

	// NewestPatience is how long a waiting pod of an older revision yields to a pod of the
	// newest one that has not reached its gate. The older pod would be superseded right
	// after its start.
	NewestPatience = 10 * time.Second

	// UnknownOwnerPatience is how long a pod with an unknown owner waits at its gate before
	// a condition reports that it may never replace the running pod.
	UnknownOwnerPatience = time.Minute

	// ReplacedIsKept is how long no pod of an owner and revision must exist before
	// onTimeout may delete another pod for them again. A competing owner recreates its pod
	// at once; a pod that is created after this time is a rollback.
	ReplacedIsKept = time.Hour

	// FenceAfter is how long a Node must be missing before its machine counts as off. A
	// Node that was deleted by mistake is registered again when its kubelet restarts.
	FenceAfter = time.Minute

	// MirrorReturns is how long no pod starts after the mirror of a static pod has
	// disappeared. Deleting a static pod through the API deletes only its mirror. The
	// program keeps running, and the kubelet recreates the mirror at its next sync of that
	// pod, after 60 to 90 seconds (pod_workers.go: the resync interval, with jitter). 80
	// seconds were observed.
	MirrorReturns = 2 * time.Minute

	// DetachedReview is the interval for checking the Deployment of a detached pod. No
	// watched object changes when the Deployment is scaled to 0.
	DetachedReview = 10 * time.Second

	// GuardInterval is the interval for checking the policy, and GuardRetry the interval
	// while it is missing or wrong. GuardReview is the interval at which an object checks
	// whether it still is.
	GuardInterval = 15 * time.Second
	GuardRetry    = 2 * time.Second
	GuardReview   = 2 * GuardInterval

	// BackOffReset is how long a container must run until its kubelet restarts it again without a
	// pause (kuberuntime: backOff is reset after twice its max of 5 min). A container that has been
	// restarted is in a crash loop until then.
	BackOffReset = 10 * time.Minute

	// Again is the requeue delay after a write that failed with a conflict.
	Again = 100 * time.Millisecond

	// AfterActs is the requeue delay after a successful write, in case its watch event is lost.
	AfterActs = 5 * time.Second

	// OrphanLook is the delay before the pods of a deleted object are listed again. It doubles
	// each time.
	OrphanLook = time.Second

	// FirstOwnerLook is the delay before owners whose pods were refused are listed again;
	// it doubles each time, up to MaxOwnerLook.
	FirstOwnerLook = 5 * time.Second
	MaxOwnerLook   = 8 * time.Minute

	// OwnerPatience is the min age of a StatefulSet that counts as blocked. A StatefulSet
	// does not report refused pods, and a new one lacks its pods for a moment.
	OwnerPatience = 10 * time.Second

	// OrphanListRetry is the retry interval after the start of the operator, for listing pods
	// that may wait for an object that was deleted meanwhile.
	OrphanListRetry = time.Second
)
