package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

// machineOff is the taint with which an administrator confirms that the machine of a Node is off.
var machineOff = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

func (p *Plugin) fence() *cobra.Command {
	yes, node := false, ""
	c := p.object(&cobra.Command{
		Use: "fence", Short: "Declare that the machine of a member is off, so that another member can replace it",
		Long: "Declare that the unreachable machine of a member is off. The program of the member\n" +
			"then counts as stopped, and another member can replace it.\n\n" +
			"Use it only for a machine that is off, or isolated from everything that the program could harm, and stays so:\n" +
			"the operator cannot check this, and a mistake can lead to two primaries or two running programs.\n" +
			"The command adds a taint to the Node: " + machineOff.Key + ". The taint applies to all pods on the Node:\n" +
			"Kubernetes deletes them, and detaches their volumes. It takes effect while the Node is not Ready.",
		Example: "  kubectl stateful fence rss/db --yes",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		return p.fenceMember(ctx, s, kind, name, node, yes)
	})
	yesFlag(c, &yes)
	c.Flags().StringVar(&node, "node", "", "The Node, if members on several Nodes are unreachable.")
	return c
}

func (p *Plugin) fenceMember(ctx context.Context, s site, kind kinds.Kind, name, wanted string, yes bool) error {
	snap, err := snapshot.Load(ctx, s, kind, s.Namespace, name)
	if err != nil {
		return err
	}
	if !snap.Read("nodes") || !snap.Read("pods") {
		return errors.New(strings.Join(snap.Unread, "; "))
	}
	node, err := nodeToFence(snap, wanted)
	if err != nil {
		return err
	}
	members := membersOn(snap, node.Name)
	if tree.Fenced(node) {
		p.say("node/%s is already out of service; this applies to %s", node.Name, strings.Join(members, ", "))
		return nil
	}
	if !yes {
		return fmt.Errorf("node %s is unreachable, and %s may be running on it%s. If its machine is off and stays off, add --yes",
			node.Name, strings.Join(members, ", "), p.alsoOn(ctx, s, node.Name, len(members)))
	}
	to := node.DeepCopy()
	to.Spec.Taints = append(to.Spec.Taints, machineOff)
	if err := s.patch(ctx, node, to); err != nil { // it conflicts if the kubelet has updated the Node since
		return err
	}
	p.say("node/%s is out of service", node.Name)
	p.say("When the machine is back, run: kubectl stateful unfence %s", node.Name)
	return nil
}

// nodeToFence returns the unreachable Node of a member: the only one, or the one that the user
// specifies.
func nodeToFence(s *snapshot.Snapshot, wanted string) (*corev1.Node, error) {
	var silent []string
	named := map[string]bool{}
	for i := range s.Pods {
		name := s.Pods[i].Spec.NodeName
		if name == "" || named[name] {
			continue
		}
		named[name] = true
		node := s.Node(name)
		if node != nil && !tree.NodeReady(node) {
			silent = append(silent, name)
		}
		if name == wanted && node == nil {
			return nil, fmt.Errorf("node %s does not exist; one minute after its deletion the operator treats it as fenced", name)
		}
	}
	slices.Sort(silent)
	of := fmt.Sprintf("%s %q", s.Kind.Singular(), s.Object.GetName())
	switch {
	case wanted != "" && !named[wanted]:
		return nil, fmt.Errorf("no member of %s is on node %s", of, wanted)
	case wanted != "" && !slices.Contains(silent, wanted):
		return nil, fmt.Errorf("node %s is Ready: its machine is not off, and the taint would have no effect", wanted)
	case wanted != "":
		return s.Node(wanted), nil
	case len(silent) == 0:
		return nil, fmt.Errorf("no member of %s is on an unreachable node", of)
	case len(silent) > 1:
		return nil, fmt.Errorf("members of %s are on several unreachable nodes: %s; specify one with --node", of, strings.Join(silent, ", "))
	}
	return s.Node(silent[0]), nil
}

func membersOn(s *snapshot.Snapshot, node string) []string {
	var names []string
	for i := range s.Pods {
		if s.Pods[i].Spec.NodeName == node {
			names = append(names, s.Pods[i].Name)
		}
	}
	return names
}

// alsoOn returns how many other pods are on a Node, or "" if they are forbidden to read.
func (p *Plugin) alsoOn(ctx context.Context, s site, node string, ours int) string {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return ""
	}
	return fmt.Sprintf(", along with %d other pods, which will be deleted too", max(len(pods.Items)-ours, 0))
}

func (p *Plugin) unfence() *cobra.Command {
	return &cobra.Command{
		Use: "unfence NODE", Short: "Declare that the machine of a Node is back",
		Long:    "Declare that the machine of a Node is back: remove taint " + machineOff.Key + ".",
		Example: "  kubectl stateful unfence node-3",
		Args:    cobra.ExactArgs(1), DisableFlagsInUseLine: true, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := p.Connect()
			if err != nil {
				return err
			}
			var node corev1.Node
			if err := s.Get(c.Context(), client.ObjectKey{Name: args[0]}, &node); err != nil {
				return err
			}
			if !tree.Fenced(&node) {
				return fmt.Errorf("node %s is not out of service", node.Name)
			}
			to := node.DeepCopy()
			to.Spec.Taints = slices.DeleteFunc(to.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machineOff.Key })
			if err := s.patch(c.Context(), &node, to); err != nil {
				return err
			}
			p.say("node/%s is back in service", node.Name)
			return nil
		},
	}
}

func (p *Plugin) release() *cobra.Command {
	yes := false
	c := p.object(&cobra.Command{
		Use: "release", Short: "Start all waiting pods of a StatefulSingleton that is being deleted, without a handover",
		Long: "Start all waiting pods of a StatefulSingleton that is being deleted at the same time, and remove\n" +
			"all finalizers, with annotation " + ssnv1.AnnotationReleaseNow + ". Several of their programs can then run at the same time.",
		Example: "  kubectl delete ssn mailer --wait=false\n  kubectl stateful release ssn/mailer --yes",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		if !kind.Is(kinds.StatefulSingleton) {
			return fmt.Errorf("only pods of a StatefulSingleton wait for a handover. If a %s waits for an unreachable machine that is off, run: kubectl stateful fence %s/%s", kind.Kind, kind.Short, name)
		}
		return p.releaseNow(ctx, s, name, yes)
	})
	yesFlag(c, &yes)
	return c
}

func (p *Plugin) releaseNow(ctx context.Context, s site, name string, yes bool) error {
	object, err := snapshot.Get(ctx, s, kinds.StatefulSingleton, s.Namespace, name)
	if err != nil {
		return err
	}
	one := object.(*ssnv1.StatefulSingleton)
	if one.DeletionTimestamp == nil {
		return fmt.Errorf("statefulsingleton %q is not being deleted, and until then its pods start one after another. To delete it: kubectl -n %s delete ssn %s --wait=false", name, s.Namespace, name)
	}
	if one.Annotations[ssnv1.AnnotationReleaseNow] == ssnv1.True {
		p.say("statefulsingleton.%s/%s is already being released", ssnv1.GroupVersion.Group, name)
		return nil
	}
	if !yes {
		return fmt.Errorf("the programs of all waiting pods would start at once, while another one may still be stopping: %s; to continue anyway, add --yes",
			strings.Join(one.Status.Waiting, ", "))
	}
	to := one.DeepCopy()
	if to.Annotations == nil {
		to.Annotations = map[string]string{}
	}
	to.Annotations[ssnv1.AnnotationReleaseNow] = ssnv1.True
	if err := s.patch(ctx, one, to); err != nil && !apierrors.IsNotFound(err) { // it has already been deleted
		return err
	}
	p.say("statefulsingleton.%s/%s is released: all waiting pods start now", ssnv1.GroupVersion.Group, name)
	return nil
}
