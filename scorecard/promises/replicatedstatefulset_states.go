package promises

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// often looks often: a status that has to be asked decides what happens.
func often(s *v1alpha1.ReplicatedStatefulSetSpec) { s.ReconcileInterval = "2s" }

// idleCommands has demote end with 0 and do nothing, and then stop.
func idleCommands(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "idle", 3, often)
	if err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	heir := r.set.Status.Members.Secondary[0]
	if err := r.turn(old.Name+"/demote", "exit 0"); err != nil {
		return err
	}
	// Entries that come in meanwhile may have the order refused before that: it is given again.
	err = until(ctx, "the order to be refused for demote", func(ctx context.Context) error {
		told := r.tells(ctx, v1alpha1.EventOverrideRefused, "demote of "+old.Name+" failed: it ended with 0")
		if told == nil || r.get(ctx) != nil || len(r.set.Annotations) > 0 {
			return told
		}
		return errors.Join(told, r.ask(ctx, v1alpha1.AnnotationSwitchoverTo, heir))
	})
	if err := errors.Join(err, r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersFailed), r.turn(old.Name+"/demote", "")); err != nil {
		return err
	}
	last := "rss-idle-2"
	if err := errors.Join(r.turn(last+"/stop", "exit 0"), r.turn(last+"/demote", "exit 0")); err != nil {
		return err
	}
	if err := r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Replicas = new(int32(2)) }); err != nil {
		return err
	}
	if err := errors.Join(r.told(ctx, v1alpha1.EventMemberFailed, "stop of "+last+" failed: it ended with 0"),
		r.told(ctx, v1alpha1.EventMemberReplaced, "starts or stops failed")); err != nil {
		return err
	}
	if err := errors.Join(r.turn(last+"/stop", ""), r.turn(last+"/demote", ""), r.resize(ctx, 2)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// tells says whether there is such an event now.
func (r *replica) tells(ctx context.Context, reason, words string) error {
	var events corev1.EventList
	if err := r.Client.List(ctx, &events, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	if slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return e.InvolvedObject.UID == r.set.UID && e.Reason == reason && strings.Contains(e.Message, words)
	}) {
		return nil
	}
	return errors.New("there is none")
}

// mutePrimary has the primary's status hang, as that of a frozen server does.
func mutePrimary(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "mute", 3, often)
	if err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	if err := r.turn(old.Name+"/status", "hang"); err != nil {
		return err
	}
	if err := errors.Join(r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersDegraded), r.isUnavailable(ctx)); err != nil {
		return err
	}
	if err := errors.Join(r.turn(old.Name+"/status", ""), r.whole(ctx), r.untouched(ctx, before, old.Name)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

func (r *replica) isUnavailable(ctx context.Context) error {
	return until(ctx, "Available to be false: NotServing", func(ctx context.Context) error {
		err := r.get(ctx)
		if c := meta.FindStatusCondition(r.set.Status.Conditions, v1alpha1.ConditionAvailable); err == nil && (c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonNotServing) {
			err = errors.New(tellSet(r.set))
		}
		return err
	})
}

// fromManifest is the original's manifest with an image that there is.
func (c *Cluster) fromManifest() (*replica, error) {
	text, err := os.ReadFile(c.DummySample)
	if err != nil {
		return nil, err
	}
	set := &v1alpha1.ReplicatedStatefulSet{}
	if err := yaml.UnmarshalStrict(text, set); err != nil {
		return nil, err
	}
	set.Namespace, set.Spec.Pod.Containers[0].Image = c.Namespace, c.Dummy
	return &replica{Cluster: c, set: set}, nil
}

// originalManifest applies the original's manifest as it is, and then with 7 members of
// which 3 are primary; there are four nodes, so these may share one. A primary is lost
// while 5 of them go, and another while they come back.
func originalManifest(ctx context.Context, c *Cluster) error {
	r, err := c.fromManifest()
	if err != nil {
		return err
	}
	if err := errors.Join(c.Client.Create(ctx, r.set), r.whole(ctx)); err != nil {
		return err
	}
	if m := r.set.Status.Members; len(m.Primary) != 3 {
		return fmt.Errorf("all three should be primary: %s", tellSet(r.set))
	}
	if r, err = c.fromManifest(); err != nil {
		return err
	}
	r.set.Name, r.set.Spec.Replicas, r.set.Spec.Primaries, r.set.Spec.Pod.AntiAffinity = "seven", new(int32(7)), new(int32(3)), false
	if err := errors.Join(c.Client.Create(ctx, r.set), r.staffed(ctx, 7, 3)); err != nil {
		return err
	}
	for _, size := range []struct{ replicas, primaries int32 }{{2, 2}, {7, 3}} {
		if _, err := r.deletePod(ctx, r.set.Status.Members.Primary[0]); err != nil {
			return err
		}
		err := r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
			s.Spec.Replicas, s.Spec.Primaries = &size.replicas, &size.primaries
		})
		if err := errors.Join(err, r.staffed(ctx, int(size.replicas), int(size.primaries))); err != nil {
			return err
		}
	}
	return nil
}

// staffed waits until that many members run, so many of them as primary: the original's
// sample has no command for secondaries.
func (r *replica) staffed(ctx context.Context, members, primaries int) error {
	return until(ctx, fmt.Sprintf("%d members, %d of them primary", members, primaries), func(ctx context.Context) error {
		if err := r.get(ctx); err != nil {
			return err
		}
		s := r.set.Status
		if len(s.Grants) > 3 {
			return fmt.Errorf("more than three may be primary: %s", tellSet(r.set))
		}
		if s.ObservedGeneration != r.set.Generation || len(s.Members.Ready) != members || len(s.Members.Unready) > 0 || len(s.Members.Primary) != primaries ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing) || !meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionAvailable) {
			return errors.New(tellSet(r.set))
		}
		return nil
	})
}

// newestCannotBeSeeded deletes all pods when member 0 is behind, and lets the seed of the
// others fail: member 0 could be seeded, and is not.
func newestCannotBeSeeded(ctx context.Context, c *Cluster) error {
	r, err := c.ledger(ctx, "unseeded", 3)
	if err != nil {
		return err
	}
	if err := errors.Join(r.switchTo(ctx, "rss-unseeded-2"), r.turn("rss-unseeded-0/replicate", "hang"), r.goesOnWriting(ctx)); err != nil {
		return err
	}
	others := []string{"rss-unseeded-1", "rss-unseeded-2"}
	for _, name := range others {
		if err := r.turn(name+"/seed", "exit 1"); err != nil {
			return err
		}
	}
	at := testimony.Now()
	if err := c.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(r.Namespace), client.MatchingLabels{v1alpha1.LabelApp: r.set.Name}); err != nil {
		return err
	}
	if err := errors.Join(r.told(ctx, v1alpha1.EventMemberFailed, "seed of rss-unseeded-"), r.told(ctx, v1alpha1.EventMemberReplaced, "starts or stops failed"),
		r.says(ctx, v1alpha1.ConditionDegraded, v1alpha1.ReasonMembersFailed)); err != nil {
		return err
	}
	all, err := r.reigns()
	if n := len(all); err == nil && n > 0 && all[n-1].Start > at {
		err = fmt.Errorf("%s became primary, and those with the newest copy could not be seeded", all[n-1].Pod)
	}
	for _, name := range others {
		err = errors.Join(err, r.turn(name+"/seed", ""))
	}
	if err := errors.Join(err, r.turn("rss-unseeded-0/replicate", ""), r.whole(ctx)); err != nil {
		return err
	}
	_, err = r.judge(ctx)
	return err
}

// majorityLost cuts the nodes of both secondaries off: the primary is left alone, and they
// join again.
func majorityLost(ctx context.Context, c *Cluster) (err error) {
	r, err := c.ledger(ctx, "majority", 3)
	if err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	before, err := r.lives(ctx)
	if err != nil {
		return err
	}
	var cut []string
	heal := func() (err error) {
		for _, node := range cut {
			err = errors.Join(err, c.Nodes.Heal(node))
		}
		cut = nil
		return err
	}
	defer func() { err = errors.Join(err, heal()) }()
	for _, name := range r.set.Status.Members.Secondary {
		pod, err := r.pod(ctx, name)
		if err != nil {
			return err
		}
		cut = append(cut, pod.Spec.NodeName)
		if err := c.Nodes.Cut(pod.Spec.NodeName); err != nil {
			return err
		}
	}
	err = until(ctx, "both secondaries to be unready", func(ctx context.Context) error {
		err := r.get(ctx)
		if m := r.set.Status.Members; err == nil && (len(m.Unready) != 2 || !slices.Equal(m.Primary, []string{old.Name})) {
			err = errors.New(tellSet(r.set))
		}
		return err
	})
	if err := errors.Join(err, r.untouched(ctx, before, old.Name), heal(), r.whole(ctx), r.goesOnWriting(ctx), r.untouched(ctx, before, old.Name)); err != nil {
		return err
	}
	report, err := r.judge(ctx)
	if err == nil && len(report.Reigns) != 1 {
		err = fmt.Errorf("nobody should have taken over: %s", report)
	}
	return err
}

// operatorDiesInStates kills all processes of the operator in the states of which the
// original's could not recover.
func operatorDiesInStates(ctx context.Context, c *Cluster) error {
	r, err := c.newLedger("states", 3)
	if err != nil {
		return err
	}
	if err := errors.Join(r.turn("seed", "lag 5s"), c.Client.Create(ctx, r.set)); err != nil {
		return err
	}
	reaches := func(what string, is func(*v1alpha1.ReplicatedStatefulSetStatus) bool) error {
		return until(ctx, what, func(ctx context.Context) error {
			if err := r.get(ctx); err != nil {
				return err
			}
			if !is(&r.set.Status) {
				return errors.New(tellSet(r.set))
			}
			return nil
		})
	}
	if err := errors.Join(reaches("phase Creating", func(s *v1alpha1.ReplicatedStatefulSetStatus) bool { return s.Phase == v1alpha1.PhaseCreating }), c.killOperators(ctx)); err != nil {
		return err
	}
	seeding := func(s *v1alpha1.ReplicatedStatefulSetStatus) bool {
		return len(s.Commands) > 0 && s.Commands[0].Name == v1alpha1.CommandSeed && len(s.Members.Primary) == 0
	}
	if err := errors.Join(reaches("a seed on its way", seeding), c.killOperators(ctx), r.turn("seed", ""), r.whole(ctx), r.writes(ctx)); err != nil {
		return err
	}
	old, err := r.primary(ctx)
	if err != nil {
		return err
	}
	pause := func(paused bool, interval v1alpha1.Duration) error {
		return r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { s.Spec.Paused, s.Spec.ReconcileInterval = paused, interval })
	}
	if err := errors.Join(pause(true, "20s"), r.says(ctx, v1alpha1.ConditionPaused, v1alpha1.ReasonPausedByUser), c.killOperators(ctx), r.killServer(ctx, old)); err != nil {
		return err
	}
	told, err := r.lastCommand(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(pause(true, "10s"), reaches("a new operator to have looked", func(s *v1alpha1.ReplicatedStatefulSetStatus) bool { return s.ObservedGeneration == r.set.Generation })); err != nil {
		return err
	}
	if now, err := r.commands(); err != nil || now != told {
		return errors.Join(err, fmt.Errorf("%d commands were run in a paused set, and %d before", now, told))
	}
	if err := errors.Join(pause(false, "10s"), r.whole(ctx), r.goesOnWriting(ctx)); err != nil {
		return err
	}
	report, err := r.judge(ctx)
	if err == nil && len(report.Reigns) != 2 {
		err = fmt.Errorf("two should have been primary, one before the pause and one after: %s", report)
	}
	return err
}
