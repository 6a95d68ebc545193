package replicated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgercheck"
	"github.com/stateful-operator/stateful-operator/test/faults/ledgerset"
)

// replica is an application that a ReplicatedStatefulSet manages. Its members are ledgers.
// Assertions use the records of the members and their client.
type replica struct {
	*kit.Cluster
	set    *v1alpha1.ReplicatedStatefulSet
	folder string // for journals, knobs and histories
}

// createLedger creates a set of ledgers and a client that continuously writes to the primary, and waits
// until both work.
func createLedger(ctx context.Context, c *kit.Cluster, name string, replicas int32, change ...func(*v1alpha1.ReplicatedStatefulSetSpec)) *replica {
	r := newLedger(c, name, replicas, change...)
	c.Put(ctx, r.set)
	r.whole(ctx)
	r.writes(ctx)
	return r
}

// newLedger returns a set of ledgers that has not been created, with its folder.
func newLedger(c *kit.Cluster, name string, replicas int32, change ...func(*v1alpha1.ReplicatedStatefulSetSpec)) *replica {
	r := &replica{Cluster: c, folder: filepath.Join(c.Shared, c.Namespace, name)}
	c.Check(ledgerset.MakeFolder(r.folder))
	r.set = &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.Namespace}, Spec: ledgerset.Spec(c.Ledger, r.folder, replicas)}
	if c.Scribe != "" {
		r.overNetwork(&r.set.Spec)
	}
	for _, f := range change {
		f(&r.set.Spec)
	}
	return r
}

// overNetwork makes the members write to the scribe. They may share a node, because the number of
// nodes is unknown.
func (r *replica) overNetwork(spec *v1alpha1.ReplicatedStatefulSetSpec) {
	spec.Pod.AntiAffinity, spec.Pod.Volumes = false, nil
	member := &spec.Pod.Containers[0]
	member.VolumeMounts = slices.DeleteFunc(member.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == ledgerset.Evidence })
	member.Env = slices.DeleteFunc(member.Env, func(e corev1.EnvVar) bool { return e.Name == "LEDGER_KNOBS" || e.Name == "LEDGER_JOURNAL" })
	member.Env = append(member.Env, corev1.EnvVar{Name: "LEDGER_JOURNAL", Value: r.AtScribe(r.journals())})
}

func (r *replica) journals() string { return ledgerset.Journals(r.folder) }

// The client.

// clientPod returns the client's pod. It prefers nodes without members, so that faults of these
// nodes do not affect the client.
func (r *replica) clientPod() *corev1.Pod {
	apart := corev1.WeightedPodAffinityTerm{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
		TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelApp: r.set.Name}}}}
	history := r.history(ledgerset.Evidence)
	if r.Scribe != "" {
		history = r.AtScribe(r.history(r.folder))
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: r.set.Name + "-client", Namespace: r.Namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(20)),
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{apart}}},
			Containers: []corev1.Container{{
				Name: "client", Image: r.Ledger,
				// The short name needs only one DNS query: the pod's own namespace is searched
				// first.
				Command: []string{"/ledger", "client", fmt.Sprintf("%s-primary:%d", r.set.Name, ledgerset.Port),
					"-history", history, "-every", cmp.Or(r.WriteInterval, 250*time.Millisecond).String()},
				Env:          []corev1.EnvVar{{Name: "LEDGER_MEMBERS", Value: "1"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "evidence", MountPath: ledgerset.Evidence}},
			}},
			Volumes: []corev1.Volume{ledgerset.Volume(r.folder)},
		},
	}
	if r.Scribe != "" {
		pod.Spec.Volumes, pod.Spec.Containers[0].VolumeMounts = nil, nil
	}
	return pod
}

func (r *replica) history(folder string) string { return filepath.Join(folder, "client.history") }

// writes starts the client, and waits until its first append is acknowledged.
func (r *replica) writes(ctx context.Context) {
	r.Put(ctx, r.clientPod())
	r.acknowledged(ctx, 1)
}

// acknowledged waits until at least that many appends of the client are acknowledged, and returns
// their number.
func (r *replica) acknowledged(ctx context.Context, least int) (have int) {
	r.Until(ctx, fmt.Sprintf("%d appends to be acknowledged", least), func(context.Context) {
		ops, err := record.ReadHistory(r.history(r.folder))
		if !errors.Is(err, fs.ErrNotExist) {
			r.Check(err)
		}
		have = len(slices.DeleteFunc(ops, func(o record.Op) bool { return o.Kind != record.Append || o.Outcome != record.OK }))
		r.Expect(have).To(BeNumerically(">=", least), "%d are", have)
	})
	return have
}

// goesOnWriting waits until three more appends are acknowledged.
func (r *replica) goesOnWriting(ctx context.Context) {
	r.acknowledged(ctx, r.acknowledged(ctx, 0)+3)
}

// The set.

// whole waits until all members run in their roles, and the status reports that no operation is in
// progress.
func (r *replica) whole(ctx context.Context) {
	r.Until(ctx, r.set.Name+" to be whole", func(ctx context.Context) {
		r.Read(ctx, r.set)
		s, want := r.set.Status, int(*r.set.Spec.Replicas)
		r.Expect(s.ObservedGeneration != r.set.Generation || len(s.Members.Primary) != int(s.PrimariesWanted) ||
			len(s.Members.Primary)+len(s.Members.Secondary) != want || int(s.ReadyReplicas) != want ||
			!meta.IsStatusConditionFalse(s.Conditions, v1alpha1.ConditionProgressing)).To(BeFalse(), "%s", describe(r.set))
	})
}

// describe formats a status as one line.
func describe(set *v1alpha1.ReplicatedStatefulSet) string {
	s := set.Status
	words := []string{fmt.Sprintf("phase %q (%s), %d ready, members %+v, sequences %+v, grants %+v, commands %+v, failures %+v",
		s.Phase, s.Reason, s.ReadyReplicas, s.Members, s.Sequences, s.Grants, s.Commands, s.Failures)}
	for _, c := range s.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, "; ")
}

// primary returns the pod of the primary in the status.
func (r *replica) primary(ctx context.Context) *corev1.Pod {
	r.whole(ctx)
	return r.pod(ctx, r.set.Status.Members.Primary[0])
}

func (r *replica) pod(ctx context.Context, name string) *corev1.Pod {
	var pod corev1.Pod
	r.Check(r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, &pod))
	return &pod
}

func (r *replica) edit(ctx context.Context, f func(*v1alpha1.ReplicatedStatefulSet)) {
	kit.Change(ctx, r.Cluster, r.set, f)
}

// ask sets an annotation with which a user requests a single action.
func (r *replica) ask(ctx context.Context, annotation, pod string) {
	r.edit(ctx, func(s *v1alpha1.ReplicatedStatefulSet) { metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotation, pod) })
}

// log returns a member's log.
func (r *replica) log(ctx context.Context, pod *corev1.Pod) string {
	return r.Exec(ctx, client.ObjectKeyFromObject(pod), "ledger", "/ledger", "log")
}

// killServer kills a member's program, but not its container.
func (r *replica) killServer(ctx context.Context, pod *corev1.Pod) {
	r.Exec(ctx, client.ObjectKeyFromObject(pod), "ledger", "/ledger", "kill")
}

// turn makes a command of all members, or of one (pod/command), fail in a certain way. See
// test/faults/ledger for the words. Empty words end the failure.
func (r *replica) turn(knob, words string) {
	path := filepath.Join(ledgerset.Knobs(r.folder), knob)
	if words == "" {
		r.Check(os.RemoveAll(path)) // a knob for one use may already be removed
		return
	}
	r.Check(os.MkdirAll(filepath.Dir(path), 0o777))
	r.Check(os.WriteFile(path, []byte(words), 0o666))
}

// on returns the same application for another goroutine.
func (r *replica) on(own *kit.Cluster) *replica {
	other := *r
	other.Cluster = own
	return &other
}

// judge ends the client, and fails if an append was lost or executed twice.
func (r *replica) judge(ctx context.Context) ledgercheck.Report {
	report, err := r.judgement(ctx)
	r.Check(err)
	return report
}

// judgement is judge, but returns the failure.
func (r *replica) judgement(ctx context.Context) (ledgercheck.Report, error) {
	r.goesOnWriting(ctx)
	r.stopClient(ctx)
	var journals ledgercheck.Journals
	var text string
	// A status may name a missing primary until the operator has observed it. If it names a wrong
	// one, the journals have more information.
	wrong := r.Kept(func(own *kit.Cluster) {
		r := r.on(own)
		r.Until(ctx, "the last primary to return its log", func(ctx context.Context) {
			last := r.primary(ctx)
			text = r.log(ctx, last)
			var err error
			journals, err = ledgercheck.ReadJournals(r.journals())
			r.Check(err)
			journals.FinalPod = last.Name
			if reigns := r.reigns(); len(reigns) > 0 {
				r.Expect(reigns[len(reigns)-1].Pod).To(Equal(last.Name), "the status lists the second as primary, and the first was the last one")
			}
		})
	})
	if text == "" {
		r.Check(wrong)
	}
	var err error
	journals.Final, _, err = record.Lines[record.Entry]([]byte(text))
	r.Check(err)
	history, err := record.ReadHistory(r.history(r.folder))
	r.Check(err)
	report, err := ledgercheck.Check(journals, [][]record.Op{history})
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", r.set.Name, err, report)
	}
	r.Log("%s: %d appends acknowledged, %d reigns, longest pause %s, %d faults", r.set.Name, report.Appends, len(report.Reigns), report.MaxPause, len(report.Faults))
	return report, errors.Join(wrong, err)
}

// stopClient ends the client and waits until it has written its last entry.
func (r *replica) stopClient(ctx context.Context) {
	pod := r.pod(ctx, r.clientPod().Name)
	r.Remove(ctx, pod)
	r.Gone(ctx, pod)
}
