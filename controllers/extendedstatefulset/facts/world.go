package facts

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/internal/engine"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/internal/undone"
)

// World has all input of a decision. Package observe fills it, and nothing changes it afterwards, except
// that the reporter updates Refused and Undone after the writes.
type World struct {
	Now time.Time
	// Watch is the time during which this process watched the cluster. Only that time counts for
	// deadlines.
	Watch leadership.Watch
	Live  bool // read from the API server, not from the cache
	Set   *v1alpha1.ExtendedStatefulSet
	// Invalid is the reason why the spec cannot be served; "" if it can.
	Invalid string
	// Digest is the digest of the template.
	Digest   string
	Replicas int32
	Zones    []children.Zone // wanted zones, in the order of the spec

	Children Siblings
	// Rivals are StatefulSets that the object no longer controls, but whose pods get its claims. Their
	// names and labels are those of versions.
	Rivals Siblings
	// RecoveredZones are zones that are in labels but not in the status, because the status was lost.
	RecoveredZones []v1alpha1.ZoneStatus
	// Pods are the pods with the name of a version's pod. Their StatefulSets may be missing.
	Pods []PodOfOrdinal
	// ForeignPods are pods with the operator's labels that belong to no version, at most MaxForeign.
	ForeignPods []ForeignPod
	// Claims are the claims that the object may use, by name.
	Claims map[string]*corev1.PersistentVolumeClaim
	// ForeignClaims are claims of other owners that have the names of claims of this object, by name.
	ForeignClaims map[string]*corev1.PersistentVolumeClaim
	// Claimants are unrelated StatefulSets whose claims would have the same names, by claim name
	// without the ordinal. They are read only if claims are missing.
	Claimants map[string]string
	// FirstUnread maps a zone index to the first ordinal whose pods and claims were not read by name.
	FirstUnread map[int32]int32
	Services    map[string]*corev1.Service
	// Budgets are the PodDisruptionBudgets that the object controls, and those of other owners with the
	// same names.
	Budgets map[string]*policyv1.PodDisruptionBudget
	Jobs    map[string]*batchv1.Job // Jobs that the object controls
	// LostJobs are the results of recorded Jobs that are missing, by UID. A missing Job without an
	// entry is undecided until LostDue; zero if there is none.
	LostJobs map[types.UID]v1alpha1.JobResult
	LostDue  time.Time
	Config   ConfigFacts
	// Tracking is nil if there are no owner references to manage.
	Tracking *Tracking
	// Untracked is the error if the API server forbids listing the objects that may have owner
	// references; else "".
	Untracked string

	// Probes has the state of the probes, by pod UID.
	Probes map[types.UID]Probed

	// Refused is the last write error; "" if there is none.
	Refused string
	// Undone has the writes that an admission webhook or policy reverted.
	Undone undone.Held
	// Refusals are the known reasons why pods are missing, by pod name. RefusalsDue is when to read
	// them again.
	Refusals    map[string]string
	RefusalsDue time.Time
	// Causes are the reasons why pods of the current version do not run.
	Causes causes.Hindrances
}

// Ignored reports whether nothing is done for the object: it is terminating, or its spec cannot be
// served.
func (w *World) Ignored() bool { return w.Set.DeletionTimestamp != nil || w.Invalid != "" }

// Probed is the state of the active/passive probes of one pod. It may be lost: the label does not change
// until the next result.
type Probed struct {
	// Busy is true while a command runs in the pod.
	Busy bool
	// Results are the latest results, by container name.
	Results map[string]podexec.Result
}

// ConfigInput is what was read of the configuration of an object's StatefulSets. Configure derives
// ConfigFacts from it.
type ConfigInput struct {
	// Views are the views of existing StatefulSets, by UID. It is empty if pods are not restarted for
	// changes.
	Views map[types.UID]*configuration.View
	// Fresh is for StatefulSets that do not exist yet; nil if there are none.
	Fresh *configuration.State
}

// ConfigFacts is the effect of the configuration on the StatefulSets of an object.
type ConfigFacts struct {
	// Stamps are the wanted stamps by StatefulSet name, including StatefulSets that do not exist yet. A
	// StatefulSet without an entry keeps its stamp.
	Stamps map[string]children.ConfigStamp
	// Missing has the required configuration that is missing or unreadable, by StatefulSet name, with a
	// reason of condition ConfigMissing.
	Missing map[string]Notice
	// Restart is the reason why pods still have to be restarted for a configuration change.
	Restart Notice
	// Cached lists the pods that may have old content of an immutable ConfigMap or Secret.
	Cached Notice
	// Wait is the time until the next configuration check; 0 means never.
	Wait time.Duration
}

// Notice is the reason and the message of a condition; empty if there is none.
type Notice = engine.Notice
