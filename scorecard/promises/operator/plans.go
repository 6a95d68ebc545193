package operator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/plugin"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/extended"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/replicated"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/singleton"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/statefulcluster"
)

// Plans lists the promises of kubectl stateful plan.
var Plans = []kit.Promise{
	kit.Long(kit.Promise{Name: "PL-1 random edits of objects of all kinds do what their plans contain", Site: kit.NodeSite, Faults: true, Run: plansAgree}),
	kit.Long(kit.Promise{Name: "PL-2 drains of nodes do what their plans contain", Site: kit.NodeSite, Faults: true, Run: drainsAgree}),
}

// atOnce is the number of objects that are edited at a time.
const atOnce = 4

// edits and drains are the numbers of edits and drains if the number of faulty runs is 1, the default.
const edits, drains = 8, 4

// quiet is how long nothing may change before an edit counts as carried out.
const quiet = 4 * time.Second

// quietDrain is how long nothing may change before a drain counts as ended. A command in a member takes seconds.
const quietDrain = 15 * time.Second

// editables are those of all kinds.
var editables = []func(context.Context, *kit.Cluster, *rand.Rand) kit.Editable{
	statefulcluster.Editable, replicated.Editable, extended.Editable, singleton.Editable,
}

// plansAgree makes random edits, and compares what happens with the plan that was made before.
func plansAgree(ctx context.Context, c *kit.Cluster) {
	compareEach(ctx, c, edits, atOnce, planAgrees)
}

// drainsAgree drains nodes, and compares what happens with the plan that was made before.
func drainsAgree(ctx context.Context, c *kit.Cluster) {
	compareEach(ctx, c, drains, 1, drainAgrees) // Nodes are shared
}

// compareEach makes a comparison for a number of random objects, each in a namespace of its own, and several at a time.
func compareEach(ctx context.Context, c *kit.Cluster, times, limit int, compare func(context.Context, *kit.Cluster, kit.Editable, *rand.Rand, uint64)) {
	c.PermitFencing(ctx)
	c.InTurns(limit, max(c.Faults, times), func(c *kit.Cluster, i int) {
		seed := c.Seed + uint64(i)
		random := rand.New(rand.NewPCG(seed, 0))
		create := editables[seed%uint64(len(editables))]
		own := c.Another(ctx)
		c.During(fmt.Sprintf("seed %d", seed), func() {
			if err := own.Caught(func() { compare(ctx, own, create(ctx, own, random), random, seed) }); err != nil {
				c.Log("seed %d: %v", seed, err)
				c.Check(err)
			}
		})
	})
}

// planAgrees makes a random edit or a delete of one object.
func planAgrees(ctx context.Context, c *kit.Cluster, e kit.Editable, random *rand.Rand, seed uint64) {
	e.Create()
	request := plugin.Request{Kind: e.Kind, Key: e.Key}
	name, object := "a delete", e.New()
	c.Check(c.Client.Get(ctx, e.Key, object))
	request.Delete = e.Kind != "StatefulSingleton" && random.IntN(len(e.Edits)+1) == 0
	settle, apply := e.Settle, func(client.Object, ...client.PatchOption) {}
	if !request.Delete {
		edit := e.Edits[random.IntN(len(e.Edits))]
		name, request.Approved = edit.Name, edit.Approved
		if edit.Settle != nil {
			settle = edit.Settle
		}
		patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
		edit.Do(random, object)
		apply = func(object client.Object, options ...client.PatchOption) {
			c.Check(c.Client.Patch(ctx, object, patch, options...))
		}
		dry := object.DeepCopyObject().(client.Object)
		apply(dry, client.DryRunAll)
		request.Put = []client.Object{dry}
	}
	p, err := plugin.Make(ctx, c.Client, request, time.Now())
	c.Check(err)
	observed := observe(ctx, c, e.Kind, e.Key)
	if request.Delete {
		c.Check(c.Client.Delete(ctx, object))
		c.Gone(ctx, object)
	} else {
		apply(object)
		observed.wait(ctx, c)
		settle()
	}
	observed.wait(ctx, c)
	approvals := len(p.Steps)
	p.Steps = slices.DeleteFunc(p.Steps, func(s plugin.Step) bool { return s.Action == plugin.Approve })
	approvals -= len(p.Steps)
	c.Expect(approvals == 1).To(Equal(request.Approved), "%d approvals are planned", approvals)
	agree(ctx, c, p, observed, fmt.Sprintf("seed %d, %s, %s", seed, e.Kind, name))
}

// drainAgrees drains the node of a random pod of one object.
func drainAgrees(ctx context.Context, c *kit.Cluster, e kit.Editable, random *rand.Rand, seed uint64) {
	e.Create()
	var pods corev1.PodList
	c.List(ctx, &pods, client.InNamespace(c.Namespace))
	node := pods.Items[random.IntN(len(pods.Items))].Spec.NodeName
	p, err := plugin.Make(ctx, c.Client, plugin.Request{Kind: e.Kind, Key: e.Key, Drain: node}, time.Now())
	c.Check(err)
	observed := observe(ctx, c, e.Kind, e.Key)
	uncordon := func() { c.Cordon(context.WithoutCancel(ctx), node, false) }
	c.Cleanup(uncordon)
	c.Cordon(ctx, node, true)
	var left []string
	c.Until(ctx, "the drain of "+node+" to end", func(ctx context.Context) {
		left = evict(ctx, c, node)
		c.Expect(observed.unchanged()).To(BeNumerically(">", quietDrain))
	})
	if p.State == plugin.Complete {
		e.Settle()
		observed.wait(ctx, c)
	}
	agree(ctx, c, p, observed, fmt.Sprintf("seed %d, %s, a drain", seed, e.Kind))
	c.Expect(left).To(HaveLen(len(p.Blocked)), "pods that are not evicted; planned: %v", p.Blocked)
	for _, name := range left {
		c.Expect(p.Blocked).To(ContainElement(ContainSubstring("pod " + name + " ")))
	}
}

// evict evicts the pods of a namespace on a node as far as their budgets allow it, and returns the names of those that
// are left. It fails while a pod ends or starts.
func evict(ctx context.Context, c *kit.Cluster, node string) (left []string) {
	var pods corev1.PodList
	c.List(ctx, &pods, client.InNamespace(c.Namespace))
	var busy []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		starts := pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending
		if starts || pod.DeletionTimestamp != nil {
			busy = append(busy, pod.Name)
		}
		if pod.Spec.NodeName != node {
			continue
		}
		left = append(left, pod.Name)
		if err := c.Evict(ctx, pod); !apierrors.IsTooManyRequests(err) && !apierrors.IsConflict(err) {
			c.Check(client.IgnoreNotFound(err))
		}
	}
	c.Expect(busy).To(BeEmpty(), "they end or start")
	return left
}

// agree compares a plan with what happened, and makes wrong plans, which must differ.
func agree(ctx context.Context, c *kit.Cluster, p *plugin.Plan, observed *observed, name string) {
	c.Expect(p.InProgress).To(BeEmpty(), "%s: steps of an object that was at rest:\n%s", name, sentences(p.InProgress))
	c.Until(ctx, "the state of the object to be as planned", func(context.Context) { // a pod that does not start is Stalled after a minute
		c.Expect(observed.State()).To(Equal(p.State), "%s: planned is %s: %s", name, p.Reason, p.Message)
	})
	happened, summary := observed.Steps()
	c.Log("%s: %d steps planned, %d happened", name, len(p.Steps), len(happened))
	differences := plugin.Differences(p, happened)
	c.Expect(differences).To(BeEmpty(), "%s: planned:\n%s\nhappened:\n%s", name, sentences(p.Steps), sentences(happened))
	c.Expect(summary.MinReady).To(BeNumerically(">=", p.Summary.MinReady), "%s: fewer pods were Ready than planned", name)
	for what, wrong := range wrongPlans(p) {
		c.Expect(plugin.Differences(wrong, happened)).NotTo(BeEmpty(), "a plan in which %s is not noticed", what)
	}
}

// wrongPlans returns copies of a plan that are made wrong.
func wrongPlans(p *plugin.Plan) map[string]*plugin.Plan {
	wrong := map[string]*plugin.Plan{}
	make := func(what string, change func([]plugin.Step) []plugin.Step) {
		other := *p
		other.Steps = change(slices.Clone(p.Steps))
		wrong[what] = &other
	}
	make("a pod is also recreated", func(s []plugin.Step) []plugin.Step {
		return append(s, plugin.Step{Action: plugin.RecreatePod, Name: "another"})
	})
	make("a claim is also deleted", func(s []plugin.Step) []plugin.Step {
		return append(s, plugin.Step{Action: plugin.DeleteClaim, Name: "another"})
	})
	make("a role also moves", func(s []plugin.Step) []plugin.Step {
		return append(s, plugin.Step{Action: plugin.Handover, Name: "one", To: "another", Role: "primary"})
	})
	if len(p.Steps) == 0 {
		return wrong
	}
	make("the first step is missing", func(s []plugin.Step) []plugin.Step { return s[1:] })
	make("the last step is missing", func(s []plugin.Step) []plugin.Step { return s[:len(s)-1] })
	make("the first step is repeated", func(s []plugin.Step) []plugin.Step { return append(s, s[0]) })
	if first, last := p.Steps[0], p.Steps[len(p.Steps)-1]; p.Drain == "" && recreates(first) && recreates(last) && first.Name != last.Name && first.Batch < last.Batch {
		make("the first pod is recreated last", func(s []plugin.Step) []plugin.Step {
			s[0].Name, s[len(s)-1].Name = last.Name, first.Name
			return s
		})
	}
	make("the last step does something else", func(s []plugin.Step) []plugin.Step {
		s[len(s)-1].Action = "Paint"
		return s
	})
	make("the first step concerns another object", func(s []plugin.Step) []plugin.Step {
		s[0].Action, s[0].Name = plugin.DeletePod, "another"
		return s
	})
	return wrong
}

func recreates(s plugin.Step) bool { return s.Action == plugin.RecreatePod }

func sentences(steps []plugin.Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%d %s %s %s %s", s.Batch, s.Action, s.Name, s.To, s.Role))
	}
	return strings.Join(all, "\n")
}

// observed observes an object with watches.
type observed struct {
	*plugin.Observer
	last atomic.Int64 // the time of the last change, in nanoseconds
}

// observe begins to observe an object.
func observe(ctx context.Context, c *kit.Cluster, kind string, key types.NamespacedName) *observed {
	observer, lists, err := plugin.Observe(ctx, c.Client, kind, key, time.Now())
	c.Check(err)
	o := &observed{Observer: observer}
	o.last.Store(time.Now().UnixNano())
	ctx, stop := context.WithCancel(ctx)
	c.Cleanup(stop)
	watching, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Client.Scheme()})
	c.Check(err)
	for _, list := range lists {
		about, err := meta.ListAccessor(list)
		c.Check(err)
		since := &client.ListOptions{Namespace: key.Namespace, Raw: &metav1.ListOptions{ResourceVersion: about.GetResourceVersion()}}
		changes, err := watching.Watch(ctx, list, since)
		c.Check(err)
		go o.follow(changes)
	}
	return o
}

// follow passes changes to the observer.
func (o *observed) follow(changes watch.Interface) {
	for e := range changes.ResultChan() {
		if object, isObject := e.Object.(client.Object); isObject && e.Type != watch.Bookmark && e.Type != watch.Error {
			o.See(object, e.Type == watch.Deleted, time.Now())
			if !changesAtRest(object) {
				o.last.Store(time.Now().UnixNano())
			}
		}
	}
}

// changesAtRest reports whether an object changes although nothing happens: kubelets and agents renew Leases.
func changesAtRest(object client.Object) bool {
	switch object.(type) {
	case *corev1.Node, *coordinationv1.Lease:
		return true
	}
	return false
}

// wait waits until nothing has changed for a while.
func (o *observed) wait(ctx context.Context, c *kit.Cluster) {
	c.Until(ctx, "the changes to end", func(context.Context) {
		c.Expect(o.unchanged()).To(BeNumerically(">", quiet))
	})
}

// unchanged returns how long nothing has changed.
func (o *observed) unchanged() time.Duration { return time.Since(time.Unix(0, o.last.Load())) }
