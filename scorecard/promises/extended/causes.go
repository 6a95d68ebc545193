package extended

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Messages about pods that cannot be created or are not Ready.

// cause is a bad revision, and the words with which conditions must report it.
type cause struct {
	name, words string
	make        specChange
}

// causes returns the bad revisions whose cause is visible at once, and revisions that the API
// server refuses because of a policy.
func causes() []cause {
	all := []cause{
		{"large", "maximum memory usage per Container is 64Mi, but limit is 1Gi", inKeeper(func(k *corev1.Container) {
			k.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		})},
		{"runtime", `RuntimeClass "there-is-no-such-class" not found`, func(s *v1alpha1.ExtendedStatefulSetSpec) {
			s.Template.Spec.Template.Spec.RuntimeClassName = new("there-is-no-such-class")
		}},
		{"priority", "no PriorityClass with name there-is-no-such-class was found", func(s *v1alpha1.ExtendedStatefulSetSpec) {
			s.Template.Spec.Template.Spec.PriorityClassName = "there-is-no-such-class"
		}},
	}
	words := map[string]string{
		"image": "(ImagePullBackOff: image localhost/there-is-no-such-image:1", "crash": "(CrashLoopBackOff: container keeper ended with code 1)",
		"never": "(it is running, and its readiness probe does not succeed)", "nowhere": "(Unschedulable: 0/",
		"quota": "(it cannot be created: exceeded quota: scarce, ", "denied": `(it cannot be created: violates PodSecurity "baseline:`,
		"config": `(CreateContainerConfigError: configmap "there-is-no-such-configmap" not found)`, "command": " (StartError))",
	}
	for _, bad := range badRevisions {
		if bad.name == "never" { // its cause is visible only with a command
			bad.make = inKeeper(func(k *corev1.Container) {
				k.ReadinessProbe = &corev1.Probe{PeriodSeconds: 5, FailureThreshold: 1, TimeoutSeconds: 5,
					ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "false"}}}}
			})
		}
		if words[bad.name] != "" {
			all = append(all, cause{bad.name, words[bad.name], bad.make})
		}
	}
	return all
}

// saysWhy rolls out eleven bad revisions, each in its own set. It reads the messages
// during and after the rollout. A set that never had a good version must report the cause
// too.
func saysWhy(ctx context.Context, c *kit.Cluster) {
	limit := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: c.Namespace}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}}
	c.Narrow(ctx)
	c.Put(ctx, limit)
	bad := causes()
	said := make([]string, len(bad))
	c.AtOnce(len(bad)+1, func(own *kit.Cluster, i int) {
		if i < len(bad) {
			x := newFixture(own, bad[i].name, 1, coexist, patiently, minReady(probation))
			own.During(fmt.Sprintf("revision %q", bad[i].name), func() { said[i] = x.saysWhy(ctx, bad[i]) })
			return
		}
		x := newFixture(own, "unbound", 1, onClaims, func(s *v1alpha1.ExtendedStatefulSetSpec) {
			s.Template.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = new("there-is-no-such-class")
		})
		x.Put(ctx, x.set)
		x.conditionSays(ctx, v1alpha1.ConditionAvailable, `claim data-unbound-0 of StorageClass "there-is-no-such-class" is not bound`)
	})
	slices.Sort(said)
	left := slices.Compact(slices.Clone(said))
	c.Expect(len(left)).To(Equal(len(bad)), "%d of %d causes are distinguished: %q", len(bad), len(left), said)
}

// reportsObstacles has the pod of the first version of each set kept from running.
func reportsObstacles(ctx context.Context, c *kit.Cluster) {
	c.ReportsAll(ctx, c.Situations(), func(own *kit.Cluster, s kit.Situation) kit.Obstructed {
		x := newFixture(own, "w17-"+s.Name, 1)
		pod := &x.set.Spec.Template.Spec.Template.Spec
		good := *pod
		*pod = kit.Edited(good, s.Edit)
		own.Put(ctx, x.set)
		return kit.Obstructed{Object: x.set, Correct: func(ctx context.Context) {
			x.edit(ctx, func(s *v1alpha1.ExtendedStatefulSetSpec) {
				s.Template.Spec.Template.Spec, s.UpdateStrategy.UpdateNotReady = good, true
			})
			x.serves(ctx, 2)
		}}
	})
}

// saysWhy returns the reported cause of a bad revision, without the names in it.
func (x *fixture) saysWhy(ctx context.Context, bad cause) string {
	x.create(ctx)
	x.edit(ctx, inVersion("bad"), bad.make, watchFor(40*time.Second, time.Minute))
	x.conditionSays(ctx, v1alpha1.ConditionProgressing, bad.words)
	x.takenBack(ctx, v1alpha1.PhaseStale, 1)
	x.conditionSays(ctx, v1alpha1.ConditionStale, bad.words)
	text := meta.FindStatusCondition(x.set.Status.Conditions, v1alpha1.ConditionStale).Message
	x.Log("%s: %s", bad.name, text)
	_, why, _ := strings.Cut(text, "not Ready: ")
	why, _, _ = strings.Cut(why, ". Version 1 serves.")
	return strings.ReplaceAll(why, x.set.Name, "web")
}

// conditionSays waits until a condition has those words in its message.
func (x *fixture) conditionSays(ctx context.Context, kind, words string) {
	x.says(ctx, fmt.Sprintf("%q in condition %s", words, kind), func(s v1alpha1.ExtendedStatefulSetStatus) bool {
		c := meta.FindStatusCondition(s.Conditions, kind)
		return c != nil && strings.Contains(c.Message, words)
	})
}
