package statefulsingleton

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// inCache returns objects as the manager's cache does: without a copy if the caller asks
// for that.
type inCache struct {
	client.Reader
	items []v1.StatefulSingleton
}

func (h inCache) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	list := into.(*v1.StatefulSingletonList)
	list.Items = append(list.Items, h.items...)
	if !ptr.Deref(options.UnsafeDisableDeepCopy, false) {
		*list = *list.DeepCopy()
	}
	return nil
}

// counted counts the lists of objects, and records the page size of the last one.
type counted struct {
	*objects.Objects
	lists int
	most  int64
}

func (c *counted) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*v1.StatefulSingletonList); ok {
		c.lists++
		c.most = (&client.ListOptions{}).ApplyOptions(opts).Limit
	}
	return c.Objects.List(ctx, into, opts...)
}

// crowd returns that many objects with distinct selectors, each with that many values and
// that much text in an annotation.
func crowd(t *testing.T, count, values, text int) (*counted, inCache) {
	t.Helper()
	live, cached := &counted{Objects: only()}, inCache{}
	for i := range count {
		s := singleton(fmt.Sprintf("s%03d", i)).madeAt(0).selecting(labelled("app", fmt.Sprint(i)))
		s.Annotations = map[string]string{"example.com/text": strings.Repeat("x", text)}
		for j := range min(values, spec.MaxTerms) {
			e := asking(fmt.Sprintf("tier%d", j), notIn)
			for k := range min(values, spec.MaxValues) {
				e.Values = append(e.Values, strings.Repeat("v", 60)+fmt.Sprint(k))
			}
			s.Spec.Selector.MatchExpressions = append(s.Spec.Selector.MatchExpressions, e)
		}
		live.All[objects.KeyOf(&s.StatefulSingleton)] = &s.StatefulSingleton
		kept, err := slimObject(s.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		cached.items = append(cached.items, *kept.(*v1.StatefulSingleton))
	}
	return live, cached
}

// allocated returns how much memory a function allocates, including memory that it frees.
// Other goroutines allocate memory too, so it returns the min of several runs.
func allocated(do func()) uint64 {
	least := ^uint64(0)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// TestAPassDoesNotGrowWithOtherObjects checks that a hundred other objects of 300 kB each,
// which fill a namespace, cost a pass no more than a hundred small ones.
func TestAPassDoesNotGrowWithOtherObjects(t *testing.T) {
	measure := func(values, text int) uint64 {
		live, cached := crowd(t, spec.MaxPerNamespace, values, text)
		small := singleton("s000").madeAt(0).selecting(labelled("app", "0"))
		live.All[objects.KeyOf(&small.StatefulSingleton)] = &small.StatefulSingleton
		r := &observe.Reader{Cache: cached, Live: live, Guard: &observe.Guard{}, Now: func() time.Time { return noon }}
		return allocated(func() {
			w, err := r.Observe(context.Background(), types.NamespacedName{Namespace: "ns", Name: "s000"})
			if err != nil || w.Object == nil || len(w.Rivals) > 0 || live.lists > 0 {
				t.Fatalf("the pass observed %+v, with %d live lists of objects, error %v", w, live.lists, err)
			}
		})
	}
	small, large := measure(1, 0), measure(32, 200_000)
	if large > small+small/2 {
		t.Errorf("a pass allocates %d bytes with small other objects, and %d with large ones", small, large)
	}
}

func BenchmarkAPassBesideAHundredLargeObjects(b *testing.B) {
	t := &testing.T{}
	live, cached := crowd(t, spec.MaxPerNamespace, 32, 200_000)
	r := &observe.Reader{Cache: cached, Live: live, Guard: &observe.Guard{}, Now: func() time.Time { return noon }}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Observe(context.Background(), types.NamespacedName{Namespace: "ns", Name: "s000"}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestASelectorThatIsTooLargeIsNotKept checks that an oversized selector, created before
// the schema had limits, is neither compared with pods nor kept in the cache.
func TestASelectorThatIsTooLargeIsNotKept(t *testing.T) {
	values := make([]string, spec.MaxValues+1)
	large := singleton("db").selecting(expressions(asking("app", in, append(values, "db")...)))
	if spec.Selects(&large.StatefulSingleton, labels.Set{"app": "db"}) || spec.RulerOf(labels.Set{"app": "db"}, all(large)) != nil {
		t.Error("the selector is compared with pods")
	}
	if len(spec.Conflicting(&singleton("web").StatefulSingleton, all(large))) > 0 || len(spec.Conflicting(&large.StatefulSingleton, all(singleton("web")))) > 0 {
		t.Error("the selector is compared with other selectors")
	}
	kept, err := slimObject(&large.StatefulSingleton)
	if err != nil || kept.(*v1.StatefulSingleton).Spec.Selector != nil {
		t.Errorf("the cache keeps %v, error %v", kept, err)
	}
	if got := spec.Problem(spec.WithDefaults(&large.StatefulSingleton)); got != "spec.selector.matchExpressions[0].values: Too many: 34: must have at most 32 items" {
		t.Errorf("the problem is %q", got)
	}
}

// TestANewObjectWakesFew checks that a new object wakes only the objects that it affects.
func TestANewObjectWakesFew(t *testing.T) {
	woken := func(count int, s *singletonFixture) string {
		_, cached := crowd(t, count, 1, 0)
		r := newReconciler(&observe.Reader{Cache: cached}, nil, nil)
		var all []string
		for _, req := range r.neighbours(context.Background(), &s.StatefulSingleton) {
			all = append(all, req.Name)
		}
		return strings.Join(all, " ")
	}
	for _, r := range []struct {
		name  string
		count int
		s     *singletonFixture
		want  string
	}{
		{"no object if no selector overlaps", 60, singleton("new").madeAt(5).selecting(labelled("app", "new")), ""},
		{"the object with an overlapping selector", 60, singleton("new").madeAt(5).selecting(labelled("app", "7")), "s007"},
		{"the objects at the limit of the namespace", 130, singleton("new").madeAt(5).selecting(labelled("app", "new")), "s099 s100"},
	} {
		if got := woken(r.count, r.s); got != r.want {
			t.Errorf("%s: requeued objects are %q, want %q", r.name, got, r.want)
		}
	}
}

// TestPodsAreNotLeftToAnObjectThatIsGone checks that no pod is left to a rival that is gone
// but still in the cache.
func TestPodsAreNotLeftToAnObjectThatIsGone(t *testing.T) {
	db, rival := singleton("db").goes(), singleton("other")
	p := pod().with(func(p *corev1.Pod) { p.UID, p.Finalizers = "one", []string{v1.FinalizerPod} })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	for name, r := range map[string]*observe.Reader{
		"the rival exists":     {Cache: inCache{items: all(db, rival)}, Live: only(&db.StatefulSingleton, &rival.StatefulSingleton, &p.Pod, namespace)},
		"the rival is deleted": {Cache: inCache{items: all(db, rival)}, Live: only(&db.StatefulSingleton, &p.Pod, namespace)},
	} {
		r.Guard, r.Now = &observe.Guard{}, func() time.Time { return noon }
		w, err := r.Observe(context.Background(), key)
		if err == nil && len(w.Pods) == 1 {
			if got := w.IsAlsoOfAnother(w.Pods[0]); got != (name == "the rival exists") {
				t.Errorf("%s: the pod belongs to the rival: %v", name, got)
			}
			continue
		}
		t.Fatalf("%s: %+v, %v", name, w, err)
	}
}

// inPages lists in pages as the API server does.
type inPages struct {
	*objects.Objects
	most int
}

func (p *inPages) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	limit, from := int(options.Limit), 0
	if _, err := fmt.Sscan(options.Continue, &from); options.Continue != "" && err != nil {
		return err
	}
	if err := p.Objects.List(ctx, into, client.InNamespace(options.Namespace)); err != nil {
		return err
	}
	all, err := meta.ExtractList(into)
	if err != nil {
		return err
	}
	p.most = max(p.most, limit)
	until := min(from+limit, len(all))
	if until < len(all) {
		into.SetContinue(fmt.Sprint(until))
	}
	return meta.SetList(into, all[from:until])
}

// TestOrphansAreFoundInPages checks that the pods of other users are read in pages.
func TestOrphansAreFoundInPages(t *testing.T) {
	live := &inPages{Objects: only()}
	add := func(obj client.Object) { live.All[objects.KeyOf(obj)] = obj }
	for i := range 250 {
		name := fmt.Sprintf("p%03d", i)
		add(&pod().with(func(p *corev1.Pod) {
			p.Name, p.UID, p.Labels = name, types.UID(name), map[string]string{"app": fmt.Sprint(i)}
			if i%50 == 49 { // other objects select 99, 149 and 199
				p.Labels[v1.LabelSingleton] = "db"
			}
		}).Pod)
	}
	for i := range 40 {
		add(&singleton(fmt.Sprintf("s%03d", i)).selecting(expressions(asking("app", in, fmt.Sprint(i), fmt.Sprint(i+80), fmt.Sprint(i+120), fmt.Sprint(i+160)))).StatefulSingleton)
	}
	pods, err := (&observe.Reader{Live: live}).ReadOrphans(context.Background(), key)
	var found []string
	for i := range pods {
		found = append(found, pods[i].Name)
	}
	if got := strings.Join(found, " "); err != nil || got != "p049 p249" || live.most > observe.PodsPerPage {
		t.Errorf("found %q in pages of %d, error %v", got, live.most, err)
	}
}
