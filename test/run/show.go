package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

// show prints the running samples and suggestions, on one screen.
func (s shown) show(ctx context.Context) error {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(coderKey.Namespace),
		client.MatchingLabels{engev1alpha1.LabelCluster: coderKey.Name}); err != nil {
		return fmt.Errorf("list the members: %w", err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("the sample is Ready and has no pods")
	}
	var set v1alpha1.ReplicatedStatefulSet
	if err := s.Client.Get(ctx, s.replicatedKey(), &set); err != nil {
		return err
	}
	primary := append(set.Status.Members.Primary, "rss-"+set.Name+"-0")[0] // the user may have changed it
	other := pods.Items[len(pods.Items)-1]                                 // an earlier suggestion deletes the first
	fmt.Print(s.screen(pods.Items[0].Name, other.Spec.NodeName, primary))
	return nil
}

// screen returns the last screen. Its suggestions include a member of coder, the node of another one,
// and the primary of orders or ledger.
func (s shown) screen(member, node, primary string) string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	try := func(command, what string) { line("  %-50s # %s", command, what) }
	line("  stc/coder              members without an order, each with a unique name")
	line("  ssn/mailer             a Deployment whose pods run the program one at a time")
	line("  %-22s replicated applications: one primary, or as many as there are members", "rss/"+s.replicatedKey().Name+", example")
	line("  ests/shop              separate versions: the good one serves, the bad one was rolled back")
	line("\nTry next:")
	line("  export KUBECONFIG=%s", s.Kubeconfig)
	if s.Kubectl != "kubectl" {
		line("  alias kubectl=%s", s.Kubectl)
	}
	try("kubectl delete pod "+member, "a new member, name and claim")
	try("kubectl rollout restart deployment mailer", "one stops, then the next one starts")
	if s.Kind == place.Simulated {
		try("kubectl exec "+primary+" -- crash", "the primary fails, and another takes over")
	} else {
		try("kubectl delete pod "+primary+" --now", "the newest of the other copies takes over")
		try("kubectl exec "+primary+" -- psql -c 'select count(*) from orders'", "its rows")
	}
	try("kubectl describe ests shop", "why the bad version was rolled back")
	if s.Kind == place.Local {
		try("go run ./test/cluster/cmd/cluster cut "+node, "a node fails: new members in a minute")
		try("go run ./test/cluster/cmd/cluster heal "+node, "it returns")
	} else {
		try("kubectl get stc,ssn,rss,ests,pods -o wide", "all objects")
	}
	line("\nMore: docs/kinds%s", map[place.Kind]string{place.Local: ", make sample-postgres, make sample-redis"}[s.Kind])
	if s.Local == nil {
		line("Stop: kubectl delete stc/coder rss/example rss/orders secret/orders ests/shop deploy/mailer")
		line("      make undeploy")
	} else {
		line("Stop: make cluster-down")
	}
	return text.String()
}
