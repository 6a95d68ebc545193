package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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

// Lookout observes all changes of the pods of a namespace in their order, and records violations of
// rules.
type Lookout struct {
	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod
	rules []*Rule
	err   error
}

// Rule is a check that must pass after each change of a pod.
type Rule struct {
	lookout *Lookout
	check   func(map[types.UID]*corev1.Pod) error
	broken  error
	seen    int
}

// LookOut watches the pods of the namespace until the end. Violations that no call of Kept has
// returned are reported then.
func (c *Cluster) LookOut(ctx context.Context) *Lookout {
	ctx, stop := context.WithCancel(ctx)
	l := &Lookout{pods: map[types.UID]*corev1.Pod{}}
	c.Cleanup(func() {
		stop()
		c.Check(l.broken())
	})
	c.Check(Follow(ctx, c.Kube.CoreV1().RESTClient(), "pods", c.Namespace, l.see))
	return l
}

func (l *Lookout) broken() (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.rules {
		err = errors.Join(err, r.broken)
	}
	return err
}

func (l *Lookout) see(e watch.Event) {
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

func (r *Rule) look(after string) {
	r.seen++
	if r.broken != nil {
		return
	}
	if err := r.check(r.lookout.pods); err != nil {
		r.broken = fmt.Errorf("at %s, after %s: %w", time.Now().Format(time.StampMilli), after, err)
	}
}

// Hold adds a rule that is checked from now on.
func (l *Lookout) Hold(check func(map[types.UID]*corev1.Pod) error) *Rule {
	r := &Rule{lookout: l, check: check}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = append(l.rules, r)
	r.look("the begin")
	return r
}

// Kept ends the rule, and returns its violation.
func (r *Rule) Kept() error {
	l := r.lookout
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rules = slices.DeleteFunc(l.rules, func(other *Rule) bool { return other == r })
	if r.seen < 2 && r.broken == nil {
		return errors.Join(l.err, errors.New("no change of a pod was observed"))
	}
	return errors.Join(l.err, r.broken)
}

// Follow passes every object of a namespace to see, and then every change of them in order, until
// the context ends. An error is passed as an event of type Error.
func Follow(ctx context.Context, from rest.Interface, resource, namespace string, see func(watch.Event)) error {
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

// Made records the wanted pods from now on. It never fails.
func (l *Lookout) Made(wanted func(*corev1.Pod) bool) (names func() []string) {
	found := map[types.UID]string{}
	l.Hold(func(pods map[types.UID]*corev1.Pod) error {
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
