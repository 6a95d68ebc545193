package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	singletonv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// watchGrants starts a watch of the mailer's pods.
func (s shown) watchGrants(ctx context.Context) (watch.Interface, error) {
	return s.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(mailerKey.Namespace), client.MatchingLabels{"app": mailerKey.Name})
}

// tellGrants prints which pods were granted the start, in order, until the pod last is. It returns an
// error if two had a grant at the same time.
func tellGrants(seen watch.Interface, last string) error {
	granted := map[types.UID]string{}
	var order []string
	for late := time.After(time.Minute); ; {
		var event watch.Event
		select {
		case event = <-seen.ResultChan():
		case <-late:
			return fmt.Errorf("no grant of pod %s was observed", last)
		}
		pod, is := event.Object.(*corev1.Pod)
		if !is {
			return fmt.Errorf("watch the mailer's pods: %v", event.Object)
		}
		_, had := granted[pod.UID]
		ended := event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		switch {
		case ended:
			delete(granted, pod.UID)
		case !had && pod.Annotations[singletonv1.AnnotationGrant] != "":
			granted[pod.UID] = pod.Name
			order = append(order, pod.Name)
		}
		if len(granted) > 1 {
			return fmt.Errorf("two pods were granted the start at the same time: %v", granted)
		}
		if !ended && pod.Name == last && granted[pod.UID] == last {
			fmt.Printf("mailer: granted the start: %s; never two at the same time\n", strings.Join(order, ", then "))
			return nil
		}
	}
}
