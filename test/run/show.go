package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	engev1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
)

// show prints the members of the StatefulCluster, and what to try.
func (s shown) show(ctx context.Context) error {
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.InNamespace(coderKey.Namespace),
		client.MatchingLabels{engev1alpha1.LabelCluster: coderKey.Name}); err != nil {
		return fmt.Errorf("listing the members: %w", err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("the sample is Ready and has no pods")
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tNODE\tCLAIMS")
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(table, "%s\t%s\t%s\n", pod.Name, pod.Spec.NodeName, strings.Join(claims(pod), ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	s.suggest(&pods.Items[0])
	return nil
}

func claims(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

func (s shown) suggest(member *corev1.Pod) {
	fmt.Printf("\nTry next:\n  export KUBECONFIG=%s\n", s.Kubeconfig)
	if s.Local != nil {
		fmt.Printf("  alias kubectl=%s\n", s.Kubectl)
	}
	fmt.Printf(`  kubectl get stc,ssn,rss,ests,pods,pvc -o wide
  kubectl describe stc coder                  # conditions and events say what happened
  kubectl delete pod %s         # a new member, with a new name and new claims
  kubectl scale stc coder --replicas=5
  kubectl describe ssn mailer
  kubectl rollout restart deployment mailer   # one program stops, then the next starts
  kubectl delete pod -l app=mailer --force    # even so
  kubectl describe rss ledger
  kubectl scale rss ledger --replicas=5       # and back: roles are handed over first
  kubectl annotate rss ledger clusterlabs.org/switchover-to=rss-ledger-2
  kubectl delete pod -l app=ledger --now      # all at once: the newest copy comes first
  kubectl delete pod rss-example-0 --now
  kubectl describe ests shop                  # the bad version was given up, and why
  kubectl scale ests shop --replicas=4        # what serves is scaled
  kubectl patch ests shop --type=json -p '[{"op":"replace","path":"/spec/template/spec/template/spec/containers/0/image","value":"%s"}]'
  kubectl get ests shop -w                    # that was the cure: the next version takes over
`, member.Name, s.shopImage())
	if s.Local == nil {
		fmt.Print("\nStop:\n  kubectl delete stc/coder rss/example rss/ledger ests/shop deployment/mailer && make undeploy\n")
		return
	}
	fmt.Printf(`  cat %[2]s   # what the mailers did
  make sample-postgres                        # a PostgreSQL, rolled out three times
  make sample-redis                           # a Redis that fails over, with a client that counts
  go run ./test/cluster/cmd/cluster cut %[1]s    # off the network: NotReady after about 45 s, replaced 30 s later
  go run ./test/cluster/cmd/cluster heal %[1]s   # it returns; the lost member does not

Stop:
  make cluster-down
`, member.Spec.NodeName, s.witnessFolder()+"/diary")
}
