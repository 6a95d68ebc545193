package replicated

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// life identifies a pod and its container, to check that a member was not changed.
type life struct {
	uid       types.UID
	container string
}

// pods returns all pods of the set, also those that are terminating.
func (r *replica) pods(ctx context.Context) []corev1.Pod {
	var pods corev1.PodList
	r.List(ctx, &pods, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name})
	return pods.Items
}

func (r *replica) lives(ctx context.Context) map[string]life {
	pods := r.pods(ctx)
	lives := map[string]life{}
	for _, p := range pods {
		l := life{uid: p.UID}
		for _, s := range p.Status.ContainerStatuses {
			l.container += s.ContainerID
		}
		lives[p.Name] = l
	}
	return lives
}

func (r *replica) untouched(ctx context.Context, before map[string]life, names ...string) {
	now := r.lives(ctx)
	var err error
	for _, name := range names {
		if now[name] != before[name] {
			err = errors.Join(err, fmt.Errorf("%s is %v and was %v: it was changed without a reason", name, now[name], before[name]))
		}
	}
	r.Check(err)
}

// resize sets the replicas, and waits until the members match.
func (r *replica) resize(ctx context.Context, size int32) {
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = &size })
	if size > 0 {
		r.whole(ctx)
	}
	r.Until(ctx, fmt.Sprintf("%d pods", size), func(ctx context.Context) {
		lives := r.lives(ctx)
		r.Expect(len(lives)).To(Equal(int(size)), "there are %d: %s", len(lives), describe(r.set))
	})
}

// deletePod deletes a member with a grace period of one second, like kubectl delete --now.
func (r *replica) deletePod(ctx context.Context, name string) *corev1.Pod {
	pod := r.pod(ctx, name)
	r.Remove(ctx, pod, client.GracePeriodSeconds(1))
	return pod
}

// anotherPod waits until a different pod with this name runs.
func (r *replica) anotherPod(ctx context.Context, old *corev1.Pod) {
	r.Until(ctx, old.Name+" to be back", func(ctx context.Context) {
		pod := r.pod(ctx, old.Name)
		r.Expect(pod.UID).NotTo(Equal(old.UID), "pod %s is %s, and was %s", pod.UID, pod.Status.Phase, old.UID)
		r.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning), "pod %s is %s, and was %s", pod.UID, pod.Status.Phase, old.UID)
	})
}

// startedAgain waits until the program of a member runs and the set is whole.
func (r *replica) startedAgain(ctx context.Context, name string) {
	r.Until(ctx, "the program of "+name+" to be started", func(ctx context.Context) {
		pod := r.pod(ctx, name)
		r.Expect(pod.Labels[v1alpha1.LabelActive]).To(Equal(v1alpha1.True), "labels %v", pod.Labels)
	})
	r.whole(ctx)
}

// replacedMember deletes a member and waits until it is recreated and started.
func (r *replica) replacedMember(ctx context.Context, name string) {
	r.anotherPod(ctx, r.deletePod(ctx, name))
	r.startedAgain(ctx, name)
}

// newPrimary waits until a ledger reports that it became primary after that time.
func (r *replica) newPrimary(ctx context.Context, since int64) {
	r.Until(ctx, "a new primary", func(context.Context) {
		all := r.reigns()
		r.Expect(all).NotTo(BeEmpty(), "the last of %d became it before", len(all))
		r.Expect(all[len(all)-1].Start).To(BeNumerically(">=", since), "the last of %d became it before", len(all))
	})
}

// removeAll deletes all pods at once.
func (r *replica) removeAll(ctx context.Context) {
	r.Check(r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name}))
}

// switchTo requests a switchover, and waits until it is done. While clients write, the new primary
// may lack the last entries when the old one is demoted. The switchover is then refused (event
// OverrideRefused) and requested again, as a user would do.
func (r *replica) switchTo(ctx context.Context, name string) {
	r.Until(ctx, name+" to be primary", func(ctx context.Context) {
		r.Read(ctx, r.set)
		now, told := r.set.Status.Members.Primary, fmt.Sprintf("annotations %v, %s", r.set.Annotations, describe(r.set))
		if asked := len(r.set.Annotations) > 0; asked || !slices.Equal(now, []string{name}) {
			if !asked && len(now) == 1 {
				r.ask(ctx, v1alpha1.AnnotationSwitchoverTo, name)
			}
			r.Fail("%s", told)
		}
	})
}

// removed deletes the object, and waits until it and its pods are deleted.
func (r *replica) removed(ctx context.Context) {
	r.Check(client.IgnoreNotFound(r.Client.Delete(ctx, r.set)))
	r.Gone(ctx, r.set)
}

// says waits until a condition is True with that reason.
func (r *replica) says(ctx context.Context, condition, reason string) {
	r.Until(ctx, condition+" to be true: "+reason, func(ctx context.Context) {
		r.Read(ctx, r.set)
		found := meta.FindStatusCondition(r.set.Status.Conditions, condition)
		r.Expect(found).NotTo(BeNil(), "%s", describe(r.set))
		r.Expect(found.Status).To(BeEquivalentTo("True"), "%s", describe(r.set))
		r.Expect(found.Reason).To(Equal(reason), "%s", describe(r.set))
	})
}

// conditionSays waits until the message of a condition contains the words.
func (r *replica) conditionSays(ctx context.Context, condition, words string) {
	r.Until(ctx, condition+" to contain "+words, func(ctx context.Context) {
		r.Read(ctx, r.set)
		found := meta.FindStatusCondition(r.set.Status.Conditions, condition)
		r.Expect(found).NotTo(BeNil(), "%s", describe(r.set))
		r.Expect(found.Message).To(ContainSubstring(words), "%s", describe(r.set))
	})
}

func (r *replica) reigns() []ledgercheck.Reign {
	all, err := ledgercheck.ReadReigns(r.journals())
	r.Check(err)
	return all
}

// commands counts the commands that the members received.
func (r *replica) commands() (n int) {
	journals, err := ledgercheck.ReadJournals(r.journals())
	r.Check(err)
	for _, l := range journals.Lines {
		if l.What == record.Command || l.What == record.Asked {
			n++
		}
	}
	return n
}

// lastCommand waits until all commands sent before a pause have arrived, and returns their number.
func (r *replica) lastCommand(ctx context.Context) int {
	last := -1
	r.Until(ctx, "the last command to have arrived", func(ctx context.Context) {
		if now := r.commands(); now != last {
			last = now
			kit.Sleep(ctx, time.Second)
			r.Fail("%d were run", now)
		}
	})
	return last
}
