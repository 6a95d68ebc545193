package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

// answerWithin is the max time to wait for the result of a switchover after the removal of its
// annotation: events and status are written one after another.
const answerWithin = 20 * time.Second

// switching is a switchover that was requested.
type switching struct {
	*Plugin
	site
	name, member string
	uid          types.UID
	before       []snapshot.Decision
	said         string
	gone         time.Time
}

func (p *Plugin) switchover() *cobra.Command {
	to, wait, timeout := "", true, 10*time.Minute
	c := &cobra.Command{
		Use: "switchover (NAME | rss NAME | rss/NAME) --to=MEMBER", Short: "Make a secondary of a ReplicatedStatefulSet primary",
		Long: "Make a secondary of a ReplicatedStatefulSet primary instead of the current primary. The switchover waits while a\n" +
			"member is missing, and the secondary must have all data of the primary. The command sets annotation\n" +
			rssv1alpha1.AnnotationSwitchoverTo + ", and waits until the operator has executed or refused the switchover.",
		Example: "  kubectl stateful switchover db --to=rss-db-2",
		Args:    cobra.MaximumNArgs(2), DisableFlagsInUseLine: true,
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return p.names(c.Context(), kinds.ReplicatedStatefulSet), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			name, err := replicatedName(args)
			if err != nil {
				return err
			}
			s, err := p.Connect()
			if err != nil {
				return err
			}
			return p.switchTo(c.Context(), s, name, to, wait, timeout)
		},
	}
	c.Flags().StringVar(&to, "to", "", "The member to make primary: the name of a pod.")
	c.Flags().BoolVar(&wait, "wait", wait, "Wait for the result.")
	c.Flags().DurationVar(&timeout, "timeout", timeout, "How long to wait for the result; zero means forever. The switchover stays requested after the timeout.")
	_ = c.MarkFlagRequired("to") // the flag exists
	return c
}

// replicatedName parses the name of a ReplicatedStatefulSet. The kind is optional.
func replicatedName(args []string) (string, error) {
	if len(args) == 1 && !strings.Contains(args[0], "/") {
		return args[0], nil
	}
	kind, name, err := kinds.ParseArgs(args)
	if err != nil {
		return "", err
	}
	if !kind.Is(kinds.ReplicatedStatefulSet) {
		return "", fmt.Errorf("only a ReplicatedStatefulSet has members that can switch roles, not a %s", kind.Kind)
	}
	return name, nil
}

func (p *Plugin) switchTo(ctx context.Context, s site, name, member string, wait bool, timeout time.Duration) error {
	set, err := replicated(ctx, s, name)
	if err != nil {
		return err
	}
	if slices.Contains(set.Status.Members.Primary, member) {
		p.say("%s is primary", member)
		return nil
	}
	if err := maySwitch(set, member); err != nil {
		return err
	}
	to := set.DeepCopy()
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[rssv1alpha1.AnnotationSwitchoverTo] = member
	before, err := snapshot.Decisions(ctx, s, set)
	if err != nil {
		return err
	}
	if err := s.patch(ctx, set, to); err != nil {
		return err
	}
	p.say("%s will be primary instead of %s", member, strings.Join(set.Status.Members.Primary, ", "))
	if !wait {
		return nil
	}
	w := &switching{Plugin: p, site: s, name: name, member: member, uid: set.UID, before: before}
	err = p.poll(ctx, timeout, true, w.look)
	if err != nil && ctx.Err() == nil && !errors.Is(err, errTimeout) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w; the switchover is still requested, and will be executed when possible. To cancel it: kubectl -n %s annotate rss %s %s-", err, s.Namespace, name, rssv1alpha1.AnnotationSwitchoverTo)
	}
	return nil
}

func replicated(ctx context.Context, s site, name string) (*rssv1alpha1.ReplicatedStatefulSet, error) {
	object, err := snapshot.Get(ctx, s, kinds.ReplicatedStatefulSet, s.Namespace, name)
	if err != nil {
		return nil, err
	}
	return object.(*rssv1alpha1.ReplicatedStatefulSet), nil
}

// maySwitch returns why a switchover would be refused, or would need manual intervention.
func maySwitch(set *rssv1alpha1.ReplicatedStatefulSet, member string) error {
	secondaries := set.Status.Members.Secondary
	for _, check := range []struct {
		wrong bool
		why   string
	}{
		{set.DeletionTimestamp != nil, fmt.Sprintf("replicatedstatefulset %q is being deleted", set.Name)},
		{set.Spec.Paused, fmt.Sprintf("replicatedstatefulset %q is paused, and no command is run; resume it first: kubectl stateful rollout resume rss/%s", set.Name, set.Name)},
		{othersOrder(set, member) != "", fmt.Sprintf("another switchover, to %s, is already in progress", othersOrder(set, member))},
		{len(set.Status.Members.Primary) == 0, "no member is primary, so there is no primary to replace; see: kubectl stateful status rss/" + set.Name},
		{len(secondaries) == 0, "no member is secondary, so none can take over; see: kubectl stateful status rss/" + set.Name},
		{!slices.Contains(secondaries, member), fmt.Sprintf("%s does not run as secondary; secondaries: %s", member, strings.Join(secondaries, ", "))},
	} {
		if check.wrong {
			return errors.New(check.why)
		}
	}
	return nil
}

// othersOrder returns the member of another switchover request, or "" if there is none.
func othersOrder(set *rssv1alpha1.ReplicatedStatefulSet, member string) string {
	if ordered := set.Annotations[rssv1alpha1.AnnotationSwitchoverTo]; ordered != member {
		return ordered
	}
	return ""
}

// look checks once whether the switchover is done.
func (w *switching) look(ctx context.Context) (bool, error) {
	set, err := replicated(ctx, w.site, w.name)
	if err != nil {
		return false, err
	}
	if set.UID != w.uid {
		return true, fmt.Errorf("replicatedstatefulset %q was deleted and recreated", w.name)
	}
	if _, ordered := set.Annotations[rssv1alpha1.AnnotationSwitchoverTo]; ordered {
		w.gone = time.Time{}
		w.tell(set)
		return false, nil
	}
	if slices.Contains(set.Status.Members.Primary, w.member) {
		w.say("%s is primary, as requested", w.member)
		return true, nil
	}
	if refusal, err := w.refusal(ctx, set); err != nil || refusal != "" {
		return err == nil, errors.Join(err, refused(refusal))
	}
	if w.gone.IsZero() {
		w.gone = w.Now()
	}
	if w.Now().Sub(w.gone) > answerWithin {
		return true, fmt.Errorf("the switchover was cancelled, and %s is not primary; see: kubectl stateful why rss/%s", w.member, w.name)
	}
	return false, nil
}

func refused(why string) error {
	if why == "" {
		return nil
	}
	return errors.New(tree.Printable(why))
}

// tell prints the reason to wait when it changes.
func (w *switching) tell(set *rssv1alpha1.ReplicatedStatefulSet) {
	for _, c := range set.Status.Conditions {
		text := c.Reason + ": " + tree.Printable(c.Message)
		if c.Type == rssv1alpha1.ConditionProgressing && c.Status == "True" && text != w.said {
			w.said = text
			w.say("Waiting: %s", text)
		}
	}
}

// refusal returns the operator's reason if it refused the switchover.
func (w *switching) refusal(ctx context.Context, set *rssv1alpha1.ReplicatedStatefulSet) (string, error) {
	decisions, err := snapshot.Decisions(ctx, w.site, set)
	if err != nil {
		return "", err
	}
	for _, d := range slices.Backward(decisions) {
		mine := d.Reason == rssv1alpha1.EventOverrideRefused && strings.HasPrefix(d.Message, w.member+" ")
		if mine && !slices.Contains(w.before, d) { // a repeated event differs in its count or time; clocks may differ
			return d.Message, nil
		}
	}
	return "", nil
}
