package promises

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// trial is one run: a set of ledgers, and faults chosen by chance.
type trial struct {
	*replica
	chance *rand.Rand
	trials *trials
}

// trials go on at the same time, three at most beside other tests, and five alone:
// more would measure this machine.
type trials struct {
	*Cluster
	// fault is held while something is disturbed that others need too; api by all
	// that ask the API server once, and by those alone who take it away.
	fault sync.Mutex
	api   sync.RWMutex

	mu      sync.Mutex // guards reports
	reports []ledgercheck.Report
}

// fault is a kind of fault.
type fault struct {
	name string
	// shared is true if it disturbs what other trials need too; silent if nobody
	// can ask the API server then.
	shared, silent bool
	do             func(context.Context, *trial) error
}

var faults = []fault{
	{name: "the primary's process is killed", do: func(ctx context.Context, t *trial) error { return t.onPrimary(ctx, t.kill) }},
	{name: "the primary's pod is deleted", do: func(ctx context.Context, t *trial) error { return t.onPrimary(ctx, t.removePod) }},
	{name: "a pod is deleted", do: func(ctx context.Context, t *trial) error { return t.onMember(ctx, t.removePod) }},
	{name: "lights out", do: func(ctx context.Context, t *trial) error { return t.removeAll(ctx) }},
	{name: "a command fails", do: badCommand},
	{name: "a start takes effect when its time is up", do: lateStart},
	{name: "a start says 0, and takes effect later", do: earlyEnd},
	{name: "a command fails while the operator is killed", shared: true, do: func(ctx context.Context, t *trial) error {
		return errors.Join(badCommand(ctx, t), t.killOperators(ctx))
	}},
	{name: "the operator is killed", shared: true, do: operatorDiesInFailover},
	{name: "the primary's node is cut off", shared: true, do: nodeIsCut},
	{name: "the primary's kubelet is stopped", shared: true, do: kubeletStops},
	{name: "no API server", shared: true, silent: true, do: noAPIServer},
	{name: "a disk is lost, and all pods are deleted", do: diskLost},
	{name: "only the member that is behind stays", do: behind(staysAlone)},
	{name: "only the member that is behind runs on", do: behind(runsOnAlone)},
	{name: "only the member that is behind stays, and the others end", do: behind(func(ctx context.Context, t *trial, first string) error {
		return errors.Join(staysAlone(ctx, t, first), runsOnAlone(ctx, t, first))
	})},
	{name: "the member that is behind comes back first", do: behind(comesFirst)},
}

func operatorDiesInFailover(ctx context.Context, t *trial) error {
	err := t.onPrimary(ctx, t.kill)
	t.pause(ctx, 1500*time.Millisecond)
	return errors.Join(err, t.killOperators(ctx))
}

// soakReplicated is `make soak-replicated`, and with few runs a part of every
// test.
func soakReplicated(ctx context.Context, c *Cluster) error {
	s := &trials{Cluster: c}
	chance := rand.New(rand.NewPCG(c.Seed, 56))
	c.Log("seed %d: %d runs", c.Seed, c.Faults)
	wanted := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !strings.Contains(f.name, c.Fault) })
	if len(wanted) == 0 {
		return fmt.Errorf("no fault has %q in its name", c.Fault)
	}
	deck := draw(chance, wanted, 3*c.Faults)
	errs := make([]error, c.Faults)
	var all sync.WaitGroup
	atOnce := 3
	if c.long() {
		atOnce = 5
	}
	turns := make(chan struct{}, atOnce)
	for i := range c.Faults {
		t := &trial{trials: s, chance: rand.New(rand.NewPCG(chance.Uint64(), 0))}
		all.Go(func() {
			turns <- struct{}{}
			if errs[i] = t.run(ctx, fmt.Sprint("run-", i), deck[3*i:3*i+3]); errs[i] != nil {
				c.Log("%v", errs[i]) // at once: a soak takes hours, and may be ended
			}
			<-turns
		})
	}
	all.Wait()
	s.report()
	return errors.Join(errs...)
}

// draw are so many of those faults: each is drawn once before any is again, and however
// few they are, the operator is killed once (RS-43).
func draw(chance *rand.Rand, wanted []fault, n int) (deck []fault) {
	for len(deck) < n {
		for _, i := range chance.Perm(len(wanted)) {
			deck = append(deck, wanted[i])
		}
	}
	deck = deck[:n]
	if kills := slices.IndexFunc(wanted, killsOperator); n > 0 && kills >= 0 && !slices.ContainsFunc(deck, killsOperator) {
		deck[chance.IntN(n)] = wanted[kills]
	}
	return deck
}

func killsOperator(f fault) bool { return strings.Contains(f.name, "the operator is killed") }

// long tells whether this is `make soak-replicated`, which has the machine for itself.
func (c *Cluster) long() bool { return c.Faults > 20 }

func (t *trial) run(ctx context.Context, name string, acts []fault) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.trials.api.RLock()
	t.replica, err = t.trials.ledger(ctx, name, 3, lively(name))
	t.trials.api.RUnlock()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, f := range acts {
		if err := t.suffer(ctx, f); err != nil {
			return fmt.Errorf("%s, %s: %w", name, f.name, err)
		}
	}
	if err := t.recovers(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	t.trials.api.RLock()
	defer t.trials.api.RUnlock()
	report, err := t.judge(ctx)
	t.trials.mu.Lock()
	t.trials.reports = append(t.trials.reports, report)
	t.trials.mu.Unlock()
	return errors.Join(err, t.removed(ctx))
}

// lively looks often, so that a knob that changes a command meets one. Members
// share a node where they must: one that gets a new volume on the node that has the
// volume of another would keep that one Pending for ever.
func lively(name string) func(*v1alpha1.ReplicatedStatefulSetSpec) {
	return func(s *v1alpha1.ReplicatedStatefulSetSpec) {
		s.ReconcileInterval, s.Pod.AntiAffinity = "5s", false
		apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{v1alpha1.LabelApp: name}}}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}}}}
	}
}

// suffer makes one fault. Some are not waited for, so that the next one meets
// what it left on the way.
func (t *trial) suffer(ctx context.Context, f fault) error {
	if f.shared {
		t.trials.fault.Lock()
		defer t.trials.fault.Unlock()
	}
	t.Log("%s: %s", t.set.Name, f.name)
	if err := t.act(ctx, f); err != nil {
		return err
	}
	if t.chance.IntN(3) == 0 {
		t.pause(ctx, 3*time.Second)
		return nil
	}
	return t.recovers(ctx)
}

func (t *trial) act(ctx context.Context, f fault) error {
	if f.silent {
		t.trials.api.Lock()
		defer t.trials.api.Unlock()
	} else {
		t.trials.api.RLock()
		defer t.trials.api.RUnlock()
	}
	return f.do(ctx, t)
}

// recovers waits until all is whole and the client writes. Where the newest copy
// is gone for good, a person says which one to take.
func (t *trial) recovers(ctx context.Context) error {
	err := until(ctx, "the set to recover", func(ctx context.Context) error {
		if err := t.get(ctx); err != nil {
			return err
		}
		if meta.IsStatusConditionTrue(t.set.Status.Conditions, v1alpha1.ConditionDataLossRisk) && len(t.set.Annotations) == 0 {
			if newest := t.newestCopy(ctx); newest != "" {
				t.Log("%s: a person takes the copy of %s: %s", t.set.Name, newest, t.set.Status.Reason)
				return errors.Join(t.ask(ctx, v1alpha1.AnnotationSeedFrom, newest), errors.New("it is about to"))
			}
		}
		s := t.set.Status
		if len(s.Members.Primary) != 1 || len(s.Members.Secondary) != 2 || !meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing) {
			return errors.New(tellSet(t.set))
		}
		return nil
	})
	return errors.Join(err, t.goesOnWriting(ctx))
}

// newestCopy asks all members; "" while one does not answer.
func (t *trial) newestCopy(ctx context.Context) (newest string) {
	best := ""
	for i := range 3 {
		name := fmt.Sprintf("rss-%s-%d", t.set.Name, i)
		out, err := t.exec(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, "ledger", "/ledger", "sequence")
		if err != nil {
			return ""
		}
		if out = fmt.Sprintf("%20s", strings.TrimSpace(out)); out > best {
			best, newest = out, name
		}
	}
	return newest
}

func (t *trial) pause(ctx context.Context, most time.Duration) {
	_ = sleep(ctx, time.Duration(t.chance.Int64N(int64(most))))
}

func (t *trial) onMember(ctx context.Context, do func(context.Context, *corev1.Pod) error) error {
	pod, err := t.pod(ctx, fmt.Sprintf("rss-%s-%d", t.set.Name, t.chance.IntN(3)))
	if apierrors.IsNotFound(err) {
		return nil // an earlier fault has it
	}
	return errors.Join(err, do(ctx, pod))
}

// onPrimary acts on the primary, or on some member if there is none now.
func (t *trial) onPrimary(ctx context.Context, do func(context.Context, *corev1.Pod) error) error {
	if err := t.get(ctx); err != nil {
		return err
	}
	if m := t.set.Status.Members.Primary; len(m) > 0 {
		pod, err := t.pod(ctx, m[0])
		if err == nil {
			err = do(ctx, pod)
		}
		return client.IgnoreNotFound(err)
	}
	return t.onMember(ctx, func(ctx context.Context, pod *corev1.Pod) error {
		_ = do(ctx, pod) // what is not there cannot be killed
		return nil
	})
}

// kill kills the program of a member. Its node may be disturbed for another trial.
func (t *trial) kill(ctx context.Context, pod *corev1.Pod) error {
	var told exec.CodeExitError
	err := until(ctx, "the node of "+pod.Name+" to answer", func(ctx context.Context) error {
		now, err := t.pod(ctx, pod.Name)
		if err == nil && now.UID == pod.UID {
			err = t.killServer(ctx, pod)
		}
		if errors.As(err, &told) {
			err = nil
		}
		return client.IgnoreNotFound(err)
	})
	if err == nil && told.Err != nil {
		return told
	}
	return err
}

func (t *trial) removePod(ctx context.Context, pod *corev1.Pod) error {
	var options []client.DeleteOption
	if t.chance.IntN(3) == 0 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	return client.IgnoreNotFound(t.Client.Delete(ctx, pod, options...))
}

func (t *trial) removeAll(ctx context.Context) error {
	return t.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(t.Namespace), client.MatchingLabels{v1alpha1.LabelApp: t.set.Name})
}

// Ways in which commands go wrong, and the commands that may.
var (
	misdeeds = []string{"hang", "exit 1", "exit 9", "garbage", "flood", "late 4s", "kill", "crash", "then hang", "then exit 1", "lag 3s"}
	commands = []string{"sequence", "status", "stop", "promote", "secondary", "demote", "seed"}
)

// badCommand has commands go wrong once, and kills the primary so that they are
// needed.
func badCommand(ctx context.Context, t *trial) error {
	for range 2 {
		command, misdeed := commands[t.chance.IntN(len(commands))], misdeeds[t.chance.IntN(len(misdeeds))]
		t.Log("%s: %s will: %s", t.set.Name, command, misdeed)
		if err := t.turn(command, "once\n"+misdeed); err != nil {
			return err
		}
	}
	if t.chance.IntN(2) == 0 {
		return t.onPrimary(ctx, t.kill)
	}
	return t.onPrimary(ctx, t.removePod)
}

// nodeIsCut has the primary go on alone, unheard, at times for so long that its
// node is said to be unreachable: 25 s in a local cluster.
func nodeIsCut(ctx context.Context, t *trial) error {
	return t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) (err error) {
		if err := t.Nodes.Cut(pod.Spec.NodeName); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Nodes.Heal(pod.Spec.NodeName)) }()
		if t.chance.IntN(2) == 0 {
			err = t.removePod(ctx, pod)
		}
		t.pause(ctx, time.Minute)
		return err
	})
}

func kubeletStops(ctx context.Context, t *trial) error {
	return t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) (err error) {
		if err := t.Nodes.StopKubelet(pod.Spec.NodeName); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Nodes.StartKubelet(pod.Spec.NodeName)) }()
		err = t.removePod(ctx, pod)
		t.pause(ctx, 15*time.Second)
		return err
	})
}

func noAPIServer(ctx context.Context, t *trial) (err error) {
	if t.chance.IntN(2) == 0 {
		err = t.onPrimary(ctx, t.kill) // a command may be on its way
	}
	if err := errors.Join(err, t.Nodes.StopAPIServer()); err != nil {
		return err
	}
	length := 10 * time.Second
	if t.long() {
		length = time.Minute
	}
	t.pause(ctx, length)
	return t.Nodes.StartAPIServer()
}

// diskLost takes the volume of one member away, and all pods with it.
func diskLost(ctx context.Context, t *trial) error {
	if err := t.recovers(ctx); err != nil {
		return err // two disks lost at once are more than a majority can bear
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: fmt.Sprintf("data-rss-%s-%d", t.set.Name, t.chance.IntN(3))}}
	return errors.Join(client.IgnoreNotFound(t.Client.Delete(ctx, claim)), t.removeAll(ctx))
}

// report prints what all trials came to.
func (s *trials) report() {
	var appends, failovers, broken int
	var pauses []time.Duration
	for _, r := range s.reports {
		appends, failovers, broken = appends+r.Appends, failovers+len(r.Failovers), broken+len(r.Faults)
		for _, f := range r.Failovers {
			pauses = append(pauses, f.Pause)
		}
	}
	slices.Sort(pauses)
	middle := time.Duration(0)
	if len(pauses) > 0 {
		middle = pauses[len(pauses)/2]
	}
	s.Log("seed %d: %d runs of %d judged: %d appends acknowledged, %d failovers (median %s without a write), %d broken promises",
		s.Seed, len(s.reports), s.Faults, appends, failovers, middle.Round(time.Millisecond), broken)
}
