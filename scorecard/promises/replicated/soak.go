package replicated

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
)

// trial is one run: a set of ledgers or of a database, and random faults.
type trial struct {
	*replica
	chance   *rand.Rand
	trials   *trials
	database *database // nil for ledgers
}

// trials are concurrent runs: at most three together with other tests, and five alone. With more,
// the test would measure this machine.
type trials struct {
	*kit.Cluster
	// fault is held while a shared resource is disturbed. api is read-locked by everything that
	// needs one request to the API server, and write-locked by faults that stop the API server.
	fault sync.Mutex
	api   sync.RWMutex

	mu      sync.Mutex // guards reports
	reports []ledgercheck.Report
}

// fault is a kind of fault.
type fault struct {
	name string
	// shared is true if it disturbs a resource that other trials need too. silent is true if the
	// API server is unreachable during the fault.
	shared, silent bool
	// of is the programs for which the fault exists.
	of programs
	do func(context.Context, *trial)
}

// programs are programs in the members.
type programs int

const (
	allPrograms programs = iota
	onlyLedgers          // the fault needs a knob of the ledger
	onlyDatabases
	durablePrograms // an acknowledged entry is on the disks
	onePrimary
)

func (p programs) include(d *database) bool {
	switch p {
	case onlyLedgers:
		return d == nil
	case onlyDatabases:
		return d != nil
	case durablePrograms:
		return d == nil || d.durable
	case onePrimary:
		return d == nil || !d.many
	}
	return true
}

var faults = []fault{
	{name: "the primary's process is killed", do: func(ctx context.Context, t *trial) { t.onPrimary(ctx, t.kill) }},
	{name: "the primary's pod is deleted", do: func(ctx context.Context, t *trial) { t.onPrimary(ctx, t.removePod) }},
	{name: "a pod is deleted", do: func(ctx context.Context, t *trial) { t.onMember(ctx, t.removePod) }},
	{name: "lights out", do: func(ctx context.Context, t *trial) { t.removeAll(ctx) }},
	{name: "the primary is evicted from a cordoned node", shared: true, do: drainFault},
	{name: "a command fails", of: onlyLedgers, do: badCommand},
	{name: "a start takes effect at its timeout", of: onlyLedgers, do: lateStart},
	{name: "a start returns 0 and takes effect later", of: onlyLedgers, do: earlyEnd},
	{name: "a command fails while the operator is killed", of: onlyLedgers, shared: true, do: func(ctx context.Context, t *trial) {
		badCommand(ctx, t)
		t.KillOperators(ctx)
	}},
	{name: "the operator is killed", shared: true, do: operatorDiesInFailover},
	{name: "the primary's node is cut off", shared: true, do: nodeIsCut},
	{name: "the primary's kubelet is stopped", shared: true, do: kubeletStops},
	{name: "no API server", shared: true, silent: true, do: noAPIServer},
	{name: "a disk is lost, and all pods are deleted", of: durablePrograms, do: diskLost},
	{name: "only the lagging member stays", of: onlyLedgers, do: behind(staysAlone)},
	{name: "only the lagging member keeps running", of: onlyLedgers, do: behind(runsOnAlone)},
	{name: "only the lagging member stays, and the others end", of: onlyLedgers, do: behind(func(ctx context.Context, t *trial, first string) {
		staysAlone(ctx, t, first)
		runsOnAlone(ctx, t, first)
	})},
	{name: "the lagging member returns first", of: onlyLedgers, do: behind(comesFirst)},
	{name: "all servers are killed", of: durablePrograms, do: killAll},
	{name: "the primary's server hangs", of: onlyDatabases, do: serverHangs},
	{name: "the image is changed", of: onlyDatabases, do: imageChanges},
	{name: "a switchover is requested", of: onePrimary, do: switchoverFault},
}

// drainFault cordons the primary's node and tries to evict the primary for 10 seconds. It ignores
// failures, because an earlier fault may interfere.
func drainFault(ctx context.Context, t *trial) {
	t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) error {
		var n corev1.Node
		if err := t.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &n); err != nil {
			return err
		}
		defer t.CordonAll(context.WithoutCancel(ctx), []corev1.Node{n}, false)
		t.CordonAll(ctx, []corev1.Node{n}, true)
		for began := time.Now(); time.Since(began) < 10*time.Second; {
			if err := t.Evict(ctx, pod); !apierrors.IsTooManyRequests(err) {
				return err
			}
			kit.Sleep(ctx, 500*time.Millisecond)
		}
		return nil
	})
}

func operatorDiesInFailover(ctx context.Context, t *trial) {
	t.onPrimary(ctx, t.kill)
	t.pause(ctx, 1500*time.Millisecond)
	t.KillOperators(ctx)
}

// soak is `make soak-replicated`. With few runs it is a part of every test.
func soak(ctx context.Context, c *kit.Cluster) {
	s := &trials{Cluster: c}
	c.WriteInterval = 50 * time.Millisecond // the denser the writes, the more of them meet a fault
	chance := rand.New(rand.NewPCG(c.Seed, 56))
	c.Log("seed %d: %d runs", c.Seed, c.Faults)
	deck := draw(chance, wantedFaults(c, nil), 3*c.Faults)
	runs := make([]*trial, c.Faults)
	for i := range runs {
		runs[i] = &trial{trials: s, chance: rand.New(rand.NewPCG(chance.Uint64(), 0))}
	}
	atOnce := 3
	if long(c) {
		atOnce = 5
	}
	defer s.report()
	c.InTurns(atOnce, c.Faults, func(own *kit.Cluster, i int) {
		err := own.Kept(func(own *kit.Cluster) { runs[i].run(ctx, own, fmt.Sprint("run-", i), deck[3*i:3*i+3]) })
		if err != nil {
			c.Log("%v", err) // log it at once: a soak takes hours, and may be aborted
		}
		own.Check(err)
	})
}

// wantedFaults returns the faults for a program.
func wantedFaults(c *kit.Cluster, d *database) []fault {
	wanted := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !f.of.include(d) || !strings.Contains(f.name, c.Fault) })
	c.Expect(wanted).NotTo(BeEmpty(), "no fault has %q in its name", c.Fault)
	return wanted
}

// draw returns n faults. Each is drawn once before any is drawn again. Even for a small n, the
// operator is killed at least once (RS-43).
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

// long reports whether this is `make soak-replicated`, which does not share the machine.
func long(c *kit.Cluster) bool { return c.Faults > 20 }

func (t *trial) run(ctx context.Context, own *kit.Cluster, name string, acts []fault) {
	own.Check(ctx.Err())
	own.During(name, func() {
		t.trials.asking(func() { t.replica = createLedger(ctx, own, name, 3, lively(name)) })
		for _, f := range acts {
			t.During(f.name, func() { t.suffer(ctx, f) })
		}
		t.recovers(ctx)
		t.trials.asking(func() {
			report, err := t.judgement(ctx)
			t.trials.mu.Lock()
			t.trials.reports = append(t.trials.reports, report)
			t.trials.mu.Unlock()
			t.Check(err)
			t.removed(ctx)
		})
	})
}

// asking calls do, which needs the API server.
func (s *trials) asking(do func()) {
	s.api.RLock()
	defer s.api.RUnlock()
	do()
}

// lively sets a short interval, so that a knob that changes a command meets one. Members can share
// a node if necessary: otherwise a member with a new volume on a node could keep another member,
// whose volume is on that node, Pending forever.
func lively(name string) func(*v1alpha1.ReplicatedStatefulSetSpec) {
	return func(s *v1alpha1.ReplicatedStatefulSetSpec) {
		s.ReconcileInterval, s.Pod.AntiAffinity = "10s", false
		apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{v1alpha1.LabelApp: name}}}
		s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}}}}
	}
}

// suffer injects one fault. It does not always wait for the recovery, so that the next fault
// happens in the middle of it.
func (t *trial) suffer(ctx context.Context, f fault) {
	if f.shared {
		t.trials.fault.Lock()
		defer t.trials.fault.Unlock()
	}
	t.Log("%s: %s", t.set.Name, f.name)
	t.act(ctx, f)
	// An acknowledged entry that is only in memory survives one fault.
	waits := t.database != nil && !t.database.durable
	if !waits && t.chance.IntN(3) == 0 {
		t.pause(ctx, 3*time.Second)
		return
	}
	t.recovers(ctx)
}

func (t *trial) act(ctx context.Context, f fault) {
	if !f.silent {
		t.trials.asking(func() { f.do(ctx, t) })
		return
	}
	t.trials.api.Lock()
	defer t.trials.api.Unlock()
	f.do(ctx, t)
}

// recovers waits until the set is whole and the client writes. If the newest copy is lost, it
// selects a copy like a user.
func (t *trial) recovers(ctx context.Context) {
	t.Until(ctx, "the set to recover", func(ctx context.Context) {
		t.Read(ctx, t.set)
		if meta.IsStatusConditionTrue(t.set.Status.Conditions, v1alpha1.ConditionDataLossRisk) && len(t.set.Annotations) == 0 {
			if newest := t.newestCopy(ctx); newest != "" {
				t.Log("%s: a user takes the copy of %s: %s", t.set.Name, newest, t.set.Status.Reason)
				t.ask(ctx, v1alpha1.AnnotationSeedFrom, newest)
				t.Fail("it is about to")
			}
		}
		s := t.set.Status
		primaries := 1
		if t.database != nil && t.database.many {
			primaries = 3
		}
		t.Expect(s.Members.Primary).To(HaveLen(primaries), "%s", describe(t.set))
		t.Expect(s.Members.Secondary).To(HaveLen(3-primaries), "%s", describe(t.set))
		t.Expect(meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeTrue(), "%s", describe(t.set))
	})
	if t.database != nil {
		t.database.grows(ctx)
		return
	}
	t.goesOnWriting(ctx)
}

// newestCopy returns the member with the highest sequence, or "" if any member is unreachable.
func (t *trial) newestCopy(ctx context.Context) (newest string) {
	best := ""
	for i := range 3 {
		name := fmt.Sprintf("rss-%s-%d", t.set.Name, i)
		container, command := "ledger", []string{"/ledger", "sequence"}
		if t.database != nil {
			container, command = t.database.container, t.database.sequence
		}
		out, err := t.TryExec(ctx, client.ObjectKey{Namespace: t.Namespace, Name: name}, container, command...)
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
	kit.Sleep(ctx, time.Duration(t.chance.Int64N(int64(most))))
}

// find returns a pod, or an error if an earlier fault has removed it.
func (r *replica) find(ctx context.Context, name string) (*corev1.Pod, error) {
	var pod corev1.Pod
	return &pod, r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &pod)
}

func (t *trial) onMember(ctx context.Context, do func(context.Context, *corev1.Pod) error) {
	pod, err := t.find(ctx, fmt.Sprintf("rss-%s-%d", t.set.Name, t.chance.IntN(3)))
	if !apierrors.IsNotFound(err) {
		t.Check(err)
		t.Check(do(ctx, pod))
	}
}

// onPrimary acts on the primary, or on some member if there is none now.
func (t *trial) onPrimary(ctx context.Context, do func(context.Context, *corev1.Pod) error) {
	t.Read(ctx, t.set)
	m := t.set.Status.Members.Primary
	if len(m) == 0 {
		t.onMember(ctx, func(ctx context.Context, pod *corev1.Pod) error {
			_ = do(ctx, pod) // a missing program cannot be killed
			return nil
		})
		return
	}
	pod, err := t.find(ctx, m[0])
	if err == nil {
		err = do(ctx, pod)
	}
	t.Check(client.IgnoreNotFound(err))
}

// kill kills the program of a member.
func (t *trial) kill(ctx context.Context, pod *corev1.Pod) error {
	if t.database == nil {
		return t.replica.kill(ctx, pod)
	}
	return t.database.signal(ctx, pod.Name, "-9")
}

// kill kills the ledger of a member. It retries while the node is disturbed by another trial.
func (r *replica) kill(ctx context.Context, pod *corev1.Pod) error {
	var told exec.CodeExitError
	r.Until(ctx, "the node of "+pod.Name+" to respond", func(ctx context.Context) {
		now, err := r.find(ctx, pod.Name)
		if err == nil && now.UID == pod.UID {
			_, err = r.TryExec(ctx, client.ObjectKeyFromObject(pod), "ledger", "/ledger", "kill")
		}
		if !errors.As(err, &told) {
			r.Check(client.IgnoreNotFound(err))
		}
	})
	if told.Err != nil {
		return told
	}
	return nil
}

func (t *trial) removePod(ctx context.Context, pod *corev1.Pod) error {
	var options []client.DeleteOption
	if t.chance.IntN(3) == 0 {
		options = append(options, client.GracePeriodSeconds(0))
	}
	return client.IgnoreNotFound(t.Client.Delete(ctx, pod, options...))
}

// Ways in which commands fail, and the commands that can fail.
var (
	misdeeds = []string{"hang", "exit 1", "exit 9", "garbage", "flood", "late 4s", "kill", "crash", "then hang", "then exit 1", "lag 3s"}
	commands = []string{"sequence", "status", "stop", "promote", "secondary", "demote", "seed"}
)

// badCommand makes commands fail once, and kills the primary so that they are needed.
func badCommand(ctx context.Context, t *trial) {
	for range 2 {
		command, misdeed := commands[t.chance.IntN(len(commands))], misdeeds[t.chance.IntN(len(misdeeds))]
		t.Log("%s: %s will: %s", t.set.Name, command, misdeed)
		t.turn(command, "once\n"+misdeed)
	}
	if t.chance.IntN(2) == 0 {
		t.onPrimary(ctx, t.kill)
		return
	}
	t.onPrimary(ctx, t.removePod)
}

// nodeIsCut disconnects the primary's node. In some runs that is long enough for the node to be
// reported unreachable: 25 s in a local cluster.
func nodeIsCut(ctx context.Context, t *trial) {
	t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) (err error) {
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

func kubeletStops(ctx context.Context, t *trial) {
	t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) (err error) {
		if err := t.Nodes.StopKubelet(pod.Spec.NodeName); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, t.Nodes.StartKubelet(pod.Spec.NodeName)) }()
		err = t.removePod(ctx, pod)
		t.pause(ctx, 15*time.Second)
		return err
	})
}

func noAPIServer(ctx context.Context, t *trial) {
	if t.chance.IntN(2) == 0 {
		t.onPrimary(ctx, t.kill) // a command may be in flight
	}
	t.Check(t.Nodes.StopAPIServer())
	length := 10 * time.Second
	if long(t.Cluster) {
		length = time.Minute
	}
	t.pause(ctx, length)
	t.Check(t.Nodes.StartAPIServer())
}

// diskLost deletes the volume of one member, and all pods with it.
func diskLost(ctx context.Context, t *trial) {
	t.recovers(ctx) // a majority cannot survive two lost disks
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: fmt.Sprintf("data-rss-%s-%d", t.set.Name, t.chance.IntN(3))}}
	t.Check(client.IgnoreNotFound(t.Client.Delete(ctx, claim)))
	t.removeAll(ctx)
}

// killAll kills the programs of all members. Those that do not run cannot be killed.
func killAll(ctx context.Context, t *trial) {
	t.recovers(ctx)
	for _, pod := range t.pods(ctx) {
		_ = t.kill(ctx, &pod)
	}
}

// serverHangs stops the primary's server for up to 30 s. The container may be replaced meanwhile.
func serverHangs(ctx context.Context, t *trial) {
	t.onPrimary(ctx, func(ctx context.Context, pod *corev1.Pod) error {
		_ = t.database.signal(ctx, pod.Name, "-STOP")
		t.pause(ctx, 30*time.Second)
		_ = t.database.signal(ctx, pod.Name, "-CONT")
		return nil
	})
}

// imageChanges recreates all members, in an order that the operator selects.
func imageChanges(ctx context.Context, t *trial) {
	t.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) {
		main, images := &s.Spec.Pod.Containers[0], t.database.images
		main.Image = images[(slices.Index(images, main.Image)+1)%len(images)]
	})
}

// switchoverFault requests a switchover, which may be refused.
func switchoverFault(ctx context.Context, t *trial) {
	t.ask(ctx, v1alpha1.AnnotationSwitchoverTo, fmt.Sprintf("rss-%s-%d", t.set.Name, t.chance.IntN(3)))
	t.pause(ctx, 5*time.Second)
}

// report prints the totals of all trials.
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
	s.Log("seed %d: %d runs of %d judged: %d appends acknowledged, %d failovers (median %s without a write), %d violated promises",
		s.Seed, len(s.reports), s.Faults, appends, failovers, middle.Round(time.Millisecond), broken)
}
