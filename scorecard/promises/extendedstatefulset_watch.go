package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// lookout observes all changes of the pods of a namespace in their order, and records violations of
// rules.
type lookout struct {
	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod
	rules []*podRule
	err   error
}

// podRule is a check that must pass after each change of a pod.
type podRule struct {
	lookout *lookout
	check   func(map[types.UID]*corev1.Pod) error
	broken  error
	seen    int
}

// lookOut watches the pods of the namespace until the end. Violations that no call of kept has
// returned are reported then.
func (c *Cluster) lookOut(ctx context.Context) *lookout {
	ctx, stop := context.WithCancel(ctx)
	l := &lookout{pods: map[types.UID]*corev1.Pod{}}
	c.Cleanup(func() {
		stop()
		c.check(l.broken())
	})
	c.check(follow(ctx, c.Kube.CoreV1().RESTClient(), "pods", c.Namespace, l.see))
	return l
}

func (l *lookout) broken() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rules {
		err = errors.Join(err, r.broken)
	}
	return err
}

func (l *lookout) see(e watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, ok := e.Object.(*corev1.Pod)
	if !ok {
		l.err = errors.Join(l.err, fmt.Errorf("the watch on pods failed: %w", apierrors.FromObject(e.Object)))
		return
	}
	if l.pods[pod.UID] = pod; e.Type == watch.Deleted {
		delete(l.pods, pod.UID)
	}
	for _, r := range l.rules {
		r.look(fmt.Sprintf("%s %s of version %s", strings.ToLower(string(e.Type)), pod.Name, pod.Labels[v1alpha1.LabelVersion]))
	}
}

func (r *podRule) look(after string) {
	r.seen++
	if r.broken != nil {
		return
	}
	if err := r.check(r.lookout.pods); err != nil {
		r.broken = fmt.Errorf("at %s, after %s: %w", time.Now().Format(time.StampMilli), after, err)
	}
}

// hold adds a rule that is checked from now on.
func (l *lookout) hold(check func(map[types.UID]*corev1.Pod) error) *podRule {
	r := &podRule{lookout: l, check: check}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, r)
	r.look("the begin")
	return r
}

// kept ends the rule, and returns its violation.
func (r *podRule) kept() error {
	l := r.lookout
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = slices.DeleteFunc(l.rules, func(other *podRule) bool { return other == r })
	if r.seen < 2 && r.broken == nil {
		return errors.Join(l.err, errors.New("no change of a pod was observed"))
	}
	return errors.Join(l.err, r.broken)
}

// follow passes every object of a namespace to see, and then every change of them in order, until
// the context ends. An error is passed as an event of type Error.
func follow(ctx context.Context, from rest.Interface, resource, namespace string, see func(watch.Event)) error {
	source := cache.NewListWatchFromClient(from, resource, namespace, fields.Everything())
	list, err := source.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	for _, o := range objects {
		see(watch.Event{Type: watch.Added, Object: o})
	}
	changes, err := watchtools.NewRetryWatcherWithContext(ctx, about.GetResourceVersion(), source)
	if err != nil {
		return err
	}
	go func() {
		for e := range changes.ResultChan() {
			if e.Type != watch.Bookmark {
				see(e)
			}
		}
	}()
	return nil
}

// Rules that hold for the pods of a set at any moment.

// serving reports whether a pod of the set counts for its capacity.
func serving(p *corev1.Pod, set string) bool {
	return ofSet(p, set) && p.DeletionTimestamp == nil && podCondition(p, corev1.PodReady)
}

func ofSet(p *corev1.Pod, set string) bool {
	return p.Labels[v1alpha1.LabelSet] == set && p.Labels[batchv1.JobNameLabel] == ""
}

// least returns a check that at least that many pods of the set are Ready.
func least(set string, want int) func(map[types.UID]*corev1.Pod) error {
	return func(pods map[types.UID]*corev1.Pod) error {
		have := 0
		for _, p := range pods {
			if serving(p, set) {
				have++
			}
		}
		if have < want {
			return fmt.Errorf("%d pods of %s are Ready, want at least %d: %s", have, set, want, roll(pods, set))
		}
		return nil
	}
}

// roll describes the pods of a set.
func roll(pods map[types.UID]*corev1.Pod, set string) string {
	var words []string
	for _, p := range pods {
		if !ofSet(p, set) {
			continue
		}
		word := p.Name + " " + string(p.Status.Phase)
		if podCondition(p, corev1.PodReady) {
			word += " Ready"
		}
		if p.DeletionTimestamp != nil {
			word += " deleted"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// claimsApart checks that no claim has two pods that have not ended.
func claimsApart(pods map[types.UID]*corev1.Pod) error {
	holder := map[string]string{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil {
				continue
			}
			claim := v.PersistentVolumeClaim.ClaimName
			if other := holder[claim]; other != "" {
				return fmt.Errorf("%s and %s hold claim %s", other, p.Name, claim)
			}
			holder[claim] = p.Name
		}
	}
	return nil
}

// count returns the number of pods for which is returns true.
func count(pods map[types.UID]*corev1.Pod, is func(*corev1.Pod) bool) int {
	n := 0
	for _, p := range pods {
		if is(p) {
			n++
		}
	}
	return n
}

// made records the wanted pods from now on. It never fails.
func (l *lookout) made(wanted func(*corev1.Pod) bool) (names func() []string) {
	found := map[types.UID]string{}
	l.hold(func(pods map[types.UID]*corev1.Pod) error {
		for uid, p := range pods {
			if wanted(p) {
				found[uid] = p.Name
			}
		}
		return nil
	})
	return func() []string {
		l.mu.Lock()
		defer l.mu.Unlock()
		all := make([]string, 0, len(found))
		for _, name := range found {
			all = append(all, name)
		}
		slices.Sort(all)
		return all
	}
}
