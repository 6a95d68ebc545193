package rules

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podresize"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// progress describes the pending steps of an in-place update. It is stored in an annotation of the
// pod while the update runs.
type progress struct {
	// Containers are the containers whose image changed, with their state before the change.
	Containers map[string]before `json:"containers,omitempty"`
	// Resize is true if resources changed.
	Resize bool `json:"resize,omitempty"`
}

// before is the state of a container before its image was changed.
type before struct {
	Restarts int32  `json:"restarts"`
	ImageID  string `json:"imageID,omitempty"`
	Image    string `json:"image,omitempty"` // the image in the pod's spec
}

// swap records that the image of a container changes.
func (t *progress) swap(pod *corev1.Pod, container, from, to string) {
	was, runs := statusBefore(pod, container)
	was.Image = from
	if p, pending := t.Containers[container]; pending && p.Restarts == was.Restarts && p.ImageID == was.ImageID {
		was = p // the kubelet has not yet acted on the previous patch
	}
	if was.Image == to && runs { // the running image is wanted again, so no restart follows
		delete(t.Containers, container)
		return
	}
	if t.Containers == nil {
		t.Containers = map[string]before{}
	}
	t.Containers[container] = was
}

// statusBefore returns the state of a container from the status of its pod, and whether it is running.
func statusBefore(pod *corev1.Pod, name string) (was before, runs bool) {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == name {
			return before{Restarts: s.RestartCount, ImageID: s.ImageID}, s.State.Running != nil
		}
	}
	return before{}, false
}

// progressOf decodes the in-place update annotation of a pod. It returns false if the annotation
// cannot be decoded.
func progressOf(pod *corev1.Pod) (todo progress, readable bool) {
	err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationInPlace]), &todo)
	return todo, err == nil
}

// done reports whether the kubelet has completed the update: it has seen the patch, each changed
// container was restarted after the patch and is running, no resize is in progress, and the pod is
// Ready. Ready alone is not enough, because it stays True during the image change. A container
// whose image an admission policy changed back keeps running, so no restart follows.
func (t progress) done(pod *corev1.Pod) bool {
	if podresize.Unseen(pod) {
		return false
	}
	if !podstate.Ready(pod) || podresize.Resizing(pod) {
		return false
	}
	for name, was := range t.Containers {
		i := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
		if i < 0 || pod.Status.ContainerStatuses[i].State.Running == nil {
			return false
		}
		if !was.swapped(pod.Status.ContainerStatuses[i]) && !was.keptImage(pod, name) {
			return false
		}
	}
	return true
}

// swapped reports whether a running container was started after the patch.
func (b before) swapped(s corev1.ContainerStatus) bool {
	return s.RestartCount > b.Restarts || s.ImageID != b.ImageID
}

// keptImage reports whether the container has the image that it had before the update, because an
// admission policy reverted it or because an earlier template is wanted again.
func (b before) keptImage(pod *corev1.Pod, container string) bool {
	c := podresize.Container(pod, container)
	return c != nil && b.Image != "" && c.Image == b.Image
}
