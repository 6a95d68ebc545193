package status_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes"
	"github.com/stateful-operator/stateful-operator/controllers/internal/causes/causestest"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulcluster/observe"
)

// W7: a pod that stays terminating and that the set does not wait for is named in condition
// Degraded, which stays False.
func TestW7ADepartedPodThatDoesNotGoIsNamed(t *testing.T) {
	w := fixture.Seen(fixture.Set("db").Replicas(2), fixture.A(), fixture.B(), fixture.Pod("x").On("n3").Going())
	w.Members[2].Pod.Finalizers = []string{"example.com/hold"}
	w.Members[2].Pod.Spec.NodeName = ""
	w.Members[2].Pod.DeletionTimestamp.Time = fixture.Noon.Add(-time.Hour)
	w.Retired = map[types.UID]bool{w.Members[2].Pod.UID: true}
	known := causes.Known{}
	w.Causes = known.Read(context.Background(), causestest.Events(), fixture.Noon, observe.CausesOf(w))
	const want = "False Healthy: no problems detected; pod db-x is not deleted: Terminating: it has finalizer example.com/hold; check which client set the finalizer: kubectl -n ns get pod db-x -o jsonpath='{.metadata.finalizers}'"
	if got := fixture.Says(fixture.Told(w), v1alpha1.ConditionDegraded); got != want {
		t.Errorf("condition Degraded is %s, want %s", got, want)
	}
}

// A member that is not Ready is named with the reason if it needs an action by the user.
func TestWhyMembersAreNotReady(t *testing.T) {
	waits := func(reasons ...string) []fixture.Thing {
		return []fixture.Thing{fixture.Starting("c").Waiting(reasons...)}
	}
	init := fixture.Starting("c").Waiting("PodInitializing")
	init.Pod.Status.InitContainerStatuses = fixture.Waiting("CrashLoopBackOff")
	bound := fixture.Starting("c").UnschedulableFor(time.Minute)
	for _, r := range []struct {
		name    string
		unready []fixture.Thing
		want    string
	}{
		{"no status of the container", waits(), "db-c"},
		{"the container is being created", waits("ContainerCreating"), "db-c"},
		{"the image cannot be pulled", waits("ImagePullBackOff"), "db-c (ImagePullBackOff)"},
		{"the image pull failed just now", waits("ErrImagePull"), "db-c (ImagePullBackOff)"},
		{"the registry is unreachable", waits("RegistryUnavailable"), "db-c (ImagePullBackOff)"},
		{"the signature of the image is invalid", waits("SignatureValidationFailed"), "db-c (ImagePullBackOff)"},
		{"the image name is invalid", waits("InvalidImageName"), "db-c (InvalidImageName)"},
		{"the ConfigMap is missing", waits("CreateContainerConfigError"), "db-c (CreateContainerConfigError)"},
		{"the container cannot be created", waits("CreateContainerError"), "db-c (CreateContainerError)"},
		{"the container crashes", waits("CrashLoopBackOff"), "db-c (CrashLoopBackOff)"},
		{"the command does not exist", waits("RunContainerError"), "db-c (CrashLoopBackOff)"},
		{"the init container crashes", []fixture.Thing{init}, "db-c (CrashLoopBackOff)"},
		{"an image that cannot be pulled is reported before a crash", waits("CrashLoopBackOff", "ErrImagePull"), "db-c (ImagePullBackOff)"},
		{"the pod is unschedulable", []fixture.Thing{fixture.Pod("c").UnschedulableFor(time.Minute)}, "db-c (Unschedulable)"},
		{"the pod was unschedulable and is now scheduled", []fixture.Thing{bound}, "db-c"},
		{"members that need an action by the user come first, others are sorted by name", []fixture.Thing{fixture.Starting("c"), fixture.Starting("b"), fixture.Starting("d").Waiting("InvalidImageName")},
			"db-d (InvalidImageName), db-b, db-c"},
		{"three members are named", []fixture.Thing{fixture.Starting("f"), fixture.Starting("e"), fixture.Starting("b"), fixture.Starting("d"), fixture.Starting("c")}, "db-b, db-c, db-d and 2 more"},
	} {
		w := fixture.Seen(fixture.Set("db").Replicas(int32(1+len(r.unready))), append(r.unready, fixture.A())...)
		if _, got, _ := strings.Cut(fixture.Says(fixture.Told(w), v1alpha1.ConditionProgressing), "; not Ready: "); got != r.want {
			t.Errorf("%s: %q, want %q", r.name, got, r.want)
		}
	}
}
