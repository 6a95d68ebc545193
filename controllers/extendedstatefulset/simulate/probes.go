package simulate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/rules"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// application is the application in the pods. It executes the probes, and implements observe.Board. A
// fixed number of its pods are active. If one of them is no longer Ready, another Ready pod becomes active.
type application struct {
	s *Simulation
	// most is the number of active pods; 0 means all.
	most    int
	active  map[types.UID]bool
	results map[types.UID]map[string]podexec.Result
}

// startApplication returns the application in the present pods. The pods with the label of active pods are
// active.
func startApplication(s *Simulation) *application {
	a := &application{s: s, active: map[types.UID]bool{}, results: map[types.UID]map[string]podexec.Result{}}
	ready := a.ready()
	for _, pod := range ready {
		if rules.IsActive(pod) {
			a.active[pod.UID] = true
		}
	}
	if a.most = max(1, len(a.active)); a.most > 1 && a.most == len(ready) {
		a.most = 0
	}
	return a
}

// ready returns the Ready pods of the object, sorted by name.
func (a *application) ready() []*corev1.Pod {
	return slices.DeleteFunc(a.s.pods(), func(p *corev1.Pod) bool { return !facts.Healthy(p) })
}

// elect makes a Ready pod active for each active pod that is no longer Ready.
func (a *application) elect() {
	ready := a.ready()
	maps.DeleteFunc(a.active, func(uid types.UID, _ bool) bool {
		return !slices.ContainsFunc(ready, func(p *corev1.Pod) bool { return p.UID == uid })
	})
	for _, pod := range ready {
		if a.most == 0 || len(a.active) < a.most {
			a.active[pod.UID] = true
		}
	}
}

// send executes a command. It has ended when send returns.
func (a *application) send(c podexec.Command) bool {
	r := podexec.Result{Command: c, Outcome: podexec.Failed, Code: 1, Sent: true, Began: a.s.Now, Ended: a.s.Now}
	if a.elect(); a.active[c.UID] {
		r.Outcome, r.Code = podexec.Succeeded, 0
	}
	was, known := a.results[c.UID][c.Name]
	if !known || was.Outcome != r.Outcome || was.ContainerID != r.ContainerID {
		a.s.acted = true
	}
	if a.results[c.UID] == nil {
		a.results[c.UID] = map[string]podexec.Result{}
	}
	a.results[c.UID][c.Name] = r
	return true
}

// Of returns the results of the probes of a pod.
func (a *application) Of(_ types.NamespacedName, pod types.UID) (*podexec.Command, []podexec.Result) {
	return nil, slices.Collect(maps.Values(a.results[pod]))
}

// Keep drops the results of all other pods.
func (a *application) Keep(_ types.NamespacedName, pods ...types.UID) {
	maps.DeleteFunc(a.results, func(uid types.UID, _ map[string]podexec.Result) bool { return !slices.Contains(pods, uid) })
}

// pods returns the pods with the label of the object, sorted by name.
func (s *Simulation) pods() []*corev1.Pod {
	return listed(s, &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items }, func(p *corev1.Pod) bool {
		return p.Labels[v1alpha1.LabelSet] == s.Key.Name
	})
}
