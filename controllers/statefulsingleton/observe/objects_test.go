package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/observe"
)

// TestPodsAreNotLeftToAnObjectThatIsGone checks that no pod is left to a rival that is gone
// but still in the cache.
func TestPodsAreNotLeftToAnObjectThatIsGone(t *testing.T) {
	db, rival := fixture.Singleton("db").Goes(), fixture.Singleton("other")
	p := fixture.Pod().With(func(p *corev1.Pod) { p.UID, p.Finalizers = "one", []string{v1.FinalizerPod} })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}
	for name, r := range map[string]*observe.Reader{
		"the rival exists":     {Cache: fixture.InCache{Items: fixture.All(db, rival)}, Live: fixture.Only(&db.StatefulSingleton, &rival.StatefulSingleton, &p.Pod, namespace)},
		"the rival is deleted": {Cache: fixture.InCache{Items: fixture.All(db, rival)}, Live: fixture.Only(&db.StatefulSingleton, &p.Pod, namespace)},
	} {
		r.Guard, r.Now = &observe.Guard{}, func() time.Time { return fixture.Noon }
		w, err := r.Observe(context.Background(), fixture.Key)
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
	live := &inPages{Objects: fixture.Only()}
	add := func(obj client.Object) { live.All[objects.KeyOf(obj)] = obj }
	for i := range 250 {
		name := fmt.Sprintf("p%03d", i)
		add(&fixture.Pod().With(func(p *corev1.Pod) {
			p.Name, p.UID, p.Labels = name, types.UID(name), map[string]string{"app": fmt.Sprint(i)}
			if i%50 == 49 { // other objects select 99, 149 and 199
				p.Labels[v1.LabelSingleton] = "db"
			}
		}).Pod)
	}
	for i := range 40 {
		add(&fixture.Singleton(fmt.Sprintf("s%03d", i)).Selecting(fixture.Expressions(fixture.Asking("app", fixture.In, fmt.Sprint(i), fmt.Sprint(i+80), fmt.Sprint(i+120), fmt.Sprint(i+160)))).StatefulSingleton)
	}
	pods, err := (&observe.Reader{Live: live}).ReadOrphans(context.Background(), fixture.Key)
	var found []string
	for i := range pods {
		found = append(found, pods[i].Name)
	}
	if got := strings.Join(found, " "); err != nil || got != "p049 p249" || live.most > observe.PodsPerPage {
		t.Errorf("found %q in pages of %d, error %v", got, live.most, err)
	}
}
