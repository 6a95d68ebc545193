package rules

import (
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/unstored"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/record"
)

// keepRecord writes changes of grants, commands, orders, maintenance and memberships before any
// decision uses them. Other changes wait for the next status update.
func keepRecord(f *facts.Facts, p *Plan) {
	s := &f.Set.Status
	same := apiequality.Semantic.DeepEqual
	sameCommands := sameGrants(s.Grants, f.Record.Granted) && same(s.Commands, f.Record.Commands)
	sameOrders := same(s.Maintenance, f.Record.Maintenance) && same(record.OrderBook(s.Orders), f.Record.Orders)
	if sameCommands && sameOrders && same(s.Memberships, f.Record.Memberships) {
		return
	}
	var texts []string
	for _, learned := range f.Record.Events {
		texts = append(texts, learned.Text)
	}
	p.Do(action.Chain{store(f.World, f.Record, facts.ReasonLearned, strings.Join(texts, "; "))})
}

// pinAgent records the agent of spec.application in the status before any pod has it.
func pinAgent(f *facts.Facts, p *Plan) {
	if !f.ManagesChildren() || f.Deleting() {
		return
	}
	agent := f.WantedAgent
	if apiequality.Semantic.DeepEqual(agent, f.Set.Status.Agent) {
		return
	}
	detail := "removed"
	if agent != nil {
		detail = agent.Image + " by " + string(agent.Mount)
	}
	pin := store(f.World, f.Record, facts.ReasonAgent, detail)
	pin.Object.(*v1alpha1.ReplicatedStatefulSet).Status.Agent = agent
	p.Do(action.Chain{pin})
}

// sameGrants reports whether two lists contain the same grants. It ignores Confirmed, which can be observed again
// at any time.
func sameGrants(a, b []v1alpha1.Grant) bool {
	return slices.EqualFunc(a, b, func(x, y v1alpha1.Grant) bool {
		x.Confirmed = y.Confirmed
		return apiequality.Semantic.DeepEqual(x, y)
	})
}

// store returns the patch that writes a record into the status, bound to the version that was read. No later
// action of its chain runs if the API server does not store the parts on which decisions depend.
func store(w *facts.World, r record.Record, reason, detail string) action.Action {
	set := w.Set.DeepCopy()
	r.Into(&set.Status)
	return action.Action{
		Verb:   action.PatchStatus,
		Object: set,
		From:   w.Set,
		Reason: reason,
		Detail: detail,
		Verify: func(answer metav1.Object) error {
			stored, is := answer.(*v1alpha1.ReplicatedStatefulSet)
			if !is {
				return nil
			}
			return unstored.Verify(decisive(&set.Status), decisive(&stored.Status))
		},
	}
}

// decisive returns the parts of a status that are stored before any decision uses them.
func decisive(s *v1alpha1.ReplicatedStatefulSetStatus) *v1alpha1.ReplicatedStatefulSetStatus {
	return &v1alpha1.ReplicatedStatefulSetStatus{Epoch: s.Epoch, Grants: s.Grants, Commands: s.Commands,
		Maintenance: s.Maintenance, Memberships: s.Memberships, Orders: s.Orders, Agent: s.Agent}
}
