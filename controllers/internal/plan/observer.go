package plan

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simulation/objects"
)

// Observer records what happens to an object in a real cluster, in the same form as a plan. It is safe for
// concurrent use.
type Observer struct {
	mu      sync.Mutex
	mirror  *simulation.Cluster
	records *recorder
	began   before
}

// Observe returns an Observer that starts with live objects.
func Observe(kind simulation.Kind, key types.NamespacedName, live []client.Object, now time.Time) *Observer {
	mirror := simulation.New(now)
	for _, object := range live {
		mirror.Put(object)
	}
	o := &Observer{mirror: mirror, records: &recorder{kind: kind, key: key, cluster: mirror}}
	o.began = o.records.begin()
	mirror.Changed = o.records.record
	return o
}

// See records a new state of an object, or that it is gone.
func (o *Observer) See(object client.Object, gone bool, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	have := o.mirror.All[objects.KeyOf(object)]
	o.mirror.Now = now
	switch {
	case gone && have != nil && have.GetUID() == object.GetUID():
		o.mirror.Remove(object)
	case !gone:
		if have != nil && have.GetUID() != object.GetUID() {
			o.mirror.Remove(have)
		}
		o.mirror.Put(object)
	}
}

// State returns the present state of the object.
func (o *Observer) State() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	state, _, _ := stateOf(o.records.present(), true)
	return state
}

// Steps returns what has happened, and its numbers.
func (o *Observer) Steps() ([]Step, Summary) {
	o.mu.Lock()
	defer o.mu.Unlock()
	steps := o.records.end()
	return steps, o.records.summary(steps, o.began)
}
