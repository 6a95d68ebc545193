package promises

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/test/faults/observer"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// application is what users have of which one program may run at a time. Its
// programs are witnesses, and what is said of them is what they did.
type application struct {
	*Cluster
	name   string
	folder *observer.Folder
	change []podChange
}

// application makes an application's folder; its objects come later.
func (c *Cluster) application(name string, change ...podChange) (*application, error) {
	folder, err := observer.Open(filepath.Join(c.Shared, c.Namespace, name))
	if err != nil {
		return nil, fmt.Errorf("making the folder of %s: %w", name, err)
	}
	a := &application{Cluster: c, name: name, folder: folder, change: change}
	c.applications = append(c.applications, a)
	return a, nil
}

// witnessed fails a promise also where two programs ran at the same time,
// whatever else it looked at.
func witnessed(keep func(context.Context, *Cluster) error) func(context.Context, *Cluster) error {
	return func(ctx context.Context, c *Cluster) error {
		err := keep(ctx, c)
		for _, a := range c.applications {
			a.folder.Close()
			err = errors.Join(err, a.faultless())
		}
		if err == nil && len(c.applications) == 0 {
			err = errors.New("no witness was asked")
		}
		return err
	}
}

// faultless tells of programs that ran at the same time.
func (a *application) faultless() error {
	runs, err := a.folder.Runs()
	if err != nil {
		return fmt.Errorf("the witness of %s: %w", a.name, err)
	}
	for _, o := range testimony.Overlaps(runs, testimony.Now()) {
		err = errors.Join(err, fmt.Errorf("in %s the programs of %s and %s ran together for %s: %s",
			a.name, o.First.Pod, o.Second.Pod, o.Length, story(runs)))
	}
	return err
}

// story tells runs by the time of the first one.
func story(runs []testimony.Run) string {
	words := make([]string, 0, len(runs))
	for _, r := range runs {
		since := func(at int64) string { return time.Duration(at - runs[0].Start).Round(time.Millisecond).String() }
		end := "now"
		if !r.Alive() {
			end = since(r.End)
		}
		words = append(words, fmt.Sprintf("%s on %s from %s to %s", r.Pod, r.Node, since(r.Start), end))
	}
	if most := 8; len(words) > most {
		words = append([]string{"…"}, words[len(words)-most:]...)
	}
	return strings.Join(words, ", ")
}

// one waits until exactly one program runs that is none of these.
func (a *application) one(ctx context.Context, before ...testimony.Run) (testimony.Run, error) {
	var found testimony.Run
	err := until(ctx, "one program of "+a.name+" to run", func(context.Context) error {
		runs, err := a.folder.Runs()
		if err != nil {
			return err
		}
		live := slices.DeleteFunc(slices.Clone(runs), func(r testimony.Run) bool { return !r.Alive() })
		if len(live) != 1 || slices.ContainsFunc(before, func(b testimony.Run) bool { return b.ID == live[0].ID }) {
			return fmt.Errorf("%d programs run: %s", len(live), story(runs))
		}
		found = live[0]
		return nil
	})
	return found, err
}

// none waits until a run has ended and no other lives.
func (a *application) none(ctx context.Context) error {
	return until(ctx, "no program of "+a.name+" to run", func(context.Context) error {
		live, err := a.living()
		if err == nil && len(live) > 0 {
			err = fmt.Errorf("%s runs", live[0].Pod)
		}
		return err
	})
}

// living are the programs that run now.
func (a *application) living() ([]testimony.Run, error) {
	runs, err := a.folder.Runs()
	return slices.DeleteFunc(runs, func(r testimony.Run) bool { return !r.Alive() }), err
}

// stays checks that a run lives, and is the only one.
func (a *application) stays(run testimony.Run) error {
	live, err := a.living()
	if err == nil && (len(live) != 1 || live[0].ID != run.ID) {
		runs, _ := a.folder.Runs()
		err = fmt.Errorf("only the program of %s should run: %s", run.Pod, story(runs))
	}
	return err
}

// handover does something, and waits until another program runs than before.
func (a *application) handover(ctx context.Context, what string, do func(old testimony.Run) error) (testimony.Run, error) {
	old, err := a.one(ctx)
	if err != nil {
		return old, err
	}
	if err := do(old); err != nil {
		return old, fmt.Errorf("%s: %w", what, err)
	}
	next, err := a.one(ctx, old)
	if err != nil {
		return next, fmt.Errorf("after %s: %w", what, err)
	}
	runs, err := a.folder.Runs()
	if gaps := testimony.Gaps(runs); err == nil && len(gaps) > 0 {
		a.Log("%s: the next program started %s after the last one had ended", what, gaps[len(gaps)-1].Length.Round(time.Millisecond))
	}
	return next, err
}

// The object and its pods.

// hold creates the StatefulSingleton of the application.
func (a *application) hold(ctx context.Context, change ...func(*v1.StatefulSingletonSpec)) error {
	s := &v1.StatefulSingleton{
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Namespace: a.Namespace},
		Spec: v1.StatefulSingletonSpec{
			Selector:               &metav1.LabelSelector{MatchLabels: a.labels()},
			TerminationGracePeriod: new(int64(0)), // the pods' own
		},
	}
	for _, f := range change {
		f(&s.Spec)
	}
	return a.Client.Create(ctx, s)
}

func (a *application) singleton(ctx context.Context) (*v1.StatefulSingleton, error) {
	var s v1.StatefulSingleton
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.name}, &s)
	return &s, err
}

// says waits until the status is as wanted.
func (a *application) says(ctx context.Context, what string, want func(*v1.StatefulSingleton) bool) (*v1.StatefulSingleton, error) {
	var s *v1.StatefulSingleton
	err := until(ctx, "the status to say "+what, func(ctx context.Context) error {
		var err error
		if s, err = a.singleton(ctx); err == nil && !want(s) {
			err = errors.New(tell(s))
		}
		return err
	})
	return s, err
}

// tell is a status in one line.
func tell(s *v1.StatefulSingleton) string {
	words := []string{fmt.Sprintf("phase %q, active pod %q, %d waiting, message %q", s.Status.Phase, s.Status.ActivePod, s.Status.WaitingCount, s.Status.Message)}
	for _, c := range s.Status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, "; ")
}

// isTrue asks for a condition with that reason.
func isTrue(condition, reason string) func(*v1.StatefulSingleton) bool {
	return func(s *v1.StatefulSingleton) bool {
		found := meta.FindStatusCondition(s.Status.Conditions, condition)
		return found != nil && found.Status == metav1.ConditionTrue && found.Reason == reason
	}
}

// active waits until the status says that this run's pod is the active one.
func (a *application) active(ctx context.Context, run testimony.Run) error {
	_, err := a.says(ctx, "that "+run.Pod+" runs", func(s *v1.StatefulSingleton) bool {
		return s.Status.ActivePod == run.Pod && s.Status.Phase == v1.PhaseRunning && s.Status.ObservedGeneration == s.Generation
	})
	return err
}

// told counts the events of a reason about the object, and gives a note.
func (a *application) told(ctx context.Context, reason string) (count int, note string, err error) {
	var events corev1.EventList
	if err := a.Client.List(ctx, &events, client.InNamespace(a.Namespace)); err != nil {
		return 0, "", err
	}
	for i := range events.Items {
		e := &events.Items[i]
		if e.InvolvedObject.Kind != "StatefulSingleton" || e.InvolvedObject.Name != a.name || e.Reason != reason {
			continue
		}
		times := max(1, int(e.Count))
		if e.Series != nil {
			times = max(times, int(e.Series.Count))
		}
		count, note = count+times, e.Message
	}
	return count, note, nil
}

// event waits until there is one of that reason.
func (a *application) event(ctx context.Context, reason string) (note string, err error) {
	err = until(ctx, "an event "+reason, func(ctx context.Context) error {
		var count int
		if count, note, err = a.told(ctx, reason); err == nil && count == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	return note, err
}

// pods lists the application's pods that have not ended, the oldest first.
func (a *application) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := a.Client.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingLabels(a.labels())); err != nil {
		return nil, err
	}
	live := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	slices.SortFunc(live, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return live, nil
}

// held waits until so many pods are at their gate, and gives them. A program has
// run by then, so that none of them is the first one.
func (a *application) held(ctx context.Context, want int) ([]corev1.Pod, error) {
	var found []corev1.Pod
	err := until(ctx, fmt.Sprintf("%d pods of %s to be at the gate", want, a.name), func(ctx context.Context) error {
		pods, err := a.pods(ctx)
		if err != nil {
			return err
		}
		runs, err := a.folder.Runs()
		found = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
			ran := slices.ContainsFunc(runs, func(r testimony.Run) bool { return r.UID == string(p.UID) })
			return ran || p.DeletionTimestamp != nil || !atGate(&p)
		})
		if err == nil && (len(found) != want || len(runs) == 0) {
			err = fmt.Errorf("%d are, and %d programs have run", len(found), len(runs))
		}
		return err
	})
	return found, err
}

// atGate tells whether the gate runs in a pod: as an init container, or in all
// of its containers.
func atGate(p *corev1.Pod) bool {
	running := func(c corev1.ContainerStatus) bool { return c.State.Running != nil }
	if slices.ContainsFunc(p.Status.InitContainerStatuses, func(c corev1.ContainerStatus) bool { return c.Name == v1.ContainerWait && running(c) }) {
		return true
	}
	return len(p.Status.ContainerStatuses) > 0 && !slices.ContainsFunc(p.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return !running(c) })
}

// podOf is the pod of a run.
func (a *application) podOf(ctx context.Context, run testimony.Run) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: run.Pod}, &pod)
	if err == nil && string(pod.UID) != run.UID {
		err = fmt.Errorf("pod %s is another one than that which runs", run.Pod)
	}
	return &pod, err
}
