package statefulsingleton

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

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
func crowd(t *testing.T, count, values, text int) (*counted, fixture.InCache) {
	t.Helper()
	live, cached := &counted{Objects: fixture.Only()}, fixture.InCache{}
	for i := range count {
		s := fixture.Singleton(fmt.Sprintf("s%03d", i)).MadeAt(0).Selecting(fixture.Labelled("app", fmt.Sprint(i)))
		s.Annotations = map[string]string{"example.com/text": strings.Repeat("x", text)}
		for j := range min(values, spec.MaxTerms) {
			e := fixture.Asking(fmt.Sprintf("tier%d", j), fixture.NotIn)
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
		cached.Items = append(cached.Items, *kept.(*v1.StatefulSingleton))
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
		small := fixture.Singleton("s000").MadeAt(0).Selecting(fixture.Labelled("app", "0"))
		live.All[objects.KeyOf(&small.StatefulSingleton)] = &small.StatefulSingleton
		r := &observe.Reader{Cache: cached, Live: live, Guard: &observe.Guard{}, Now: func() time.Time { return fixture.Noon }}
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
	r := &observe.Reader{Cache: cached, Live: live, Guard: &observe.Guard{}, Now: func() time.Time { return fixture.Noon }}
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
	large := fixture.Singleton("db").Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, append(values, "db")...)))
	if spec.Selects(&large.StatefulSingleton, labels.Set{"app": "db"}) || spec.RulerOf(labels.Set{"app": "db"}, fixture.All(large)) != nil {
		t.Error("the selector is compared with pods")
	}
	if len(spec.Conflicting(&fixture.Singleton("web").StatefulSingleton, fixture.All(large))) > 0 || len(spec.Conflicting(&large.StatefulSingleton, fixture.All(fixture.Singleton("web")))) > 0 {
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
	woken := func(count int, s *fixture.SingletonFixture) string {
		_, cached := crowd(t, count, 1, 0)
		to := mapper{&observe.Reader{Cache: cached}}
		var all []string
		for _, req := range to.neighbours(context.Background(), &s.StatefulSingleton) {
			all = append(all, req.Name)
		}
		return strings.Join(all, " ")
	}
	for _, r := range []struct {
		name  string
		count int
		s     *fixture.SingletonFixture
		want  string
	}{
		{"no object if no selector overlaps", 60, fixture.Singleton("new").MadeAt(5).Selecting(fixture.Labelled("app", "new")), ""},
		{"the object with an overlapping selector", 60, fixture.Singleton("new").MadeAt(5).Selecting(fixture.Labelled("app", "7")), "s007"},
		{"the objects at the limit of the namespace", 130, fixture.Singleton("new").MadeAt(5).Selecting(fixture.Labelled("app", "new")), "s099 s100"},
	} {
		if got := woken(r.count, r.s); got != r.want {
			t.Errorf("%s: requeued objects are %q, want %q", r.name, got, r.want)
		}
	}
}
