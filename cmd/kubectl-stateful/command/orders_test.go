package command

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
)

// aPrimary returns the recorded set with a primary that can be switched.
func aPrimary(t *testing.T) *terminal {
	x := at(t, "rss.yaml")
	x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) {
		o.Status.Members = rssv1alpha1.Members{Primary: []string{"rss-db-0"}, Secondary: []string{"rss-db-1", "rss-db-2"}}
	})
	return x
}

func (x *terminal) set(change func(*rssv1alpha1.ReplicatedStatefulSet)) {
	edit(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db", change)
}

func (x *terminal) says(reason, message string) {
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "said-", Namespace: "default"}, Reason: reason, Message: message,
		InvolvedObject: corev1.ObjectReference{UID: "rss-uid"}, ReportingController: "replicatedstatefulset", EventTime: metav1.NewMicroTime(x.now)}
	if err := x.c.Create(context.Background(), event); err != nil {
		x.t.Fatal(err)
	}
}

// orderOf returns the switchover annotation of the set.
func orderOf(x *terminal) string {
	return now(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db").Annotations[rssv1alpha1.AnnotationSwitchoverTo]
}

func TestSwitchoverWaitsUntilItIsDone(t *testing.T) {
	g := NewWithT(t)
	x := aPrimary(t)
	x.before = func(look int) {
		switch look {
		case 3:
			g.Expect(orderOf(x)).To(Equal("rss-db-2"))
			x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) {
				delete(o.Annotations, rssv1alpha1.AnnotationSwitchoverTo)
			})
		case 5: // the status is written after the annotation is removed
			x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Members.Primary = []string{"rss-db-2"} })
		}
	}
	code, out, stderr := x.run("switchover", "db", "--to=rss-db-2")
	g.Expect(code).To(BeZero(), stderr)
	g.Expect(out).To(Equal("rss-db-2 will be primary instead of rss-db-0\n" +
		"Waiting: WaitingForStop: waiting for members that may still be primary to stop: rss-db-1\n" +
		"rss-db-2 is primary, as requested\n"))
}

func TestSwitchoverTellsARefusal(t *testing.T) {
	g := NewWithT(t)
	x := aPrimary(t)
	x.says(rssv1alpha1.EventOverrideRefused, "rss-db-2 was not promoted: no such member")
	x.before = func(look int) {
		if look == 3 {
			x.says(rssv1alpha1.EventOverrideRefused, "rss-db-2 was not promoted: it is not running as secondary")
			x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) {
				delete(o.Annotations, rssv1alpha1.AnnotationSwitchoverTo)
			})
		}
	}
	code, _, stderr := x.run("switchover", "rss/db", "--to=rss-db-2")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(Equal("error: rss-db-2 was not promoted: it is not running as secondary\n"), "the result of an earlier switchover is not printed")
}

func TestSwitchoverWithoutAnAnswerEnds(t *testing.T) {
	g := NewWithT(t)
	x := aPrimary(t)
	x.before = func(look int) {
		if look == 3 {
			x.set(func(o *rssv1alpha1.ReplicatedStatefulSet) {
				delete(o.Annotations, rssv1alpha1.AnnotationSwitchoverTo)
			})
		}
		x.now = x.now.Add(5 * time.Second)
	}
	code, _, stderr := x.run("switchover", "db", "--to=rss-db-2")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(ContainSubstring("the switchover was cancelled, and rss-db-2 is not primary"))
}

func TestSwitchoverSaysHowToTakeItBack(t *testing.T) {
	g := NewWithT(t)
	x := aPrimary(t)
	code, _, stderr := x.run("switchover", "db", "--to=rss-db-2", "--timeout=20ms")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(Equal("error: timed out waiting for the condition; the switchover is still requested, and will be executed when possible. " +
		"To cancel it: kubectl -n default annotate rss db clusterlabs.org/switchover-to-\n"))
	g.Expect(orderOf(x)).To(Equal("rss-db-2"))
}

func TestSwitchoverIsRefusedWhereItCannotBe(t *testing.T) {
	for _, row := range []struct {
		says, to string
		change   func(*rssv1alpha1.ReplicatedStatefulSet)
		code     int
		wants    string
	}{
		{"the member is already primary", "rss-db-0", func(*rssv1alpha1.ReplicatedStatefulSet) {}, 0, "rss-db-0 is primary\n"},
		{"the member is not secondary", "rss-db-7", func(*rssv1alpha1.ReplicatedStatefulSet) {}, 1, "error: rss-db-7 does not run as secondary; secondaries: rss-db-1, rss-db-2\n"},
		{"paused", "rss-db-2", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Spec.Paused = true }, 1, "error: replicatedstatefulset \"db\" is paused"},
		{"another switchover is pending", "rss-db-2", func(o *rssv1alpha1.ReplicatedStatefulSet) {
			o.Annotations = map[string]string{rssv1alpha1.AnnotationSwitchoverTo: "rss-db-1"}
		}, 1, "error: another switchover, to rss-db-1, is already in progress"},
		{"no primary", "rss-db-2", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Members.Primary = nil }, 1, "error: no member is primary"},
		{"alone", "rss-db-2", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Members.Secondary = nil }, 1, "error: no member is secondary"},
	} {
		t.Run(row.says, func(t *testing.T) {
			g := NewWithT(t)
			x := aPrimary(t)
			x.set(row.change)
			before := orderOf(x)
			code, out, stderr := x.run("switchover", "db", "--to="+row.to)
			g.Expect(code).To(Equal(row.code))
			g.Expect(out + stderr).To(HavePrefix(row.wants))
			g.Expect(orderOf(x)).To(Equal(before))
		})
	}
	_, _, stderr := aPrimary(t).run("switchover", "stc/web", "--to=x")
	NewWithT(t).Expect(stderr).To(HavePrefix("error: only a ReplicatedStatefulSet has members that can switch roles"))
}

func taints(x *terminal, node string) []corev1.Taint {
	x.t.Helper()
	var n corev1.Node
	if err := x.c.Get(context.Background(), client.ObjectKey{Name: node}, &n); err != nil {
		x.t.Fatal(err)
	}
	return n.Spec.Taints
}

func TestFence(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml", "ssn.yaml", "stc.yaml")
	code, _, stderr := x.run("fence", "rss/db")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(Equal("error: node node-2 is unreachable, and rss-db-1 may be running on it, along with 0 other pods, which will be deleted too. " +
		"If its machine is off and stays off, add --yes\n"))
	g.Expect(taints(x, "node-2")).To(BeEmpty())

	code, out, stderr := x.run("fence", "rss/db", "--yes")
	g.Expect(code).To(BeZero(), stderr)
	g.Expect(out).To(Equal("node/node-2 is out of service\nWhen the machine is back, run: kubectl stateful unfence node-2\n"))
	g.Expect(taints(x, "node-2")).To(ConsistOf(corev1.Taint{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: "NoExecute"}))
	_, out, _ = x.run("fence", "rss/db", "--yes")
	g.Expect(out).To(Equal("node/node-2 is already out of service; this applies to rss-db-1\n"))

	_, out, _ = x.run("unfence", "node-2")
	g.Expect(out).To(Equal("node/node-2 is back in service\n"))
	g.Expect(taints(x, "node-2")).To(BeEmpty())
	_, _, stderr = x.run("unfence", "node-2")
	g.Expect(stderr).To(Equal("error: node node-2 is not out of service\n"))

	for args, wants := range map[string]string{
		"rss/db --node=node-1 --yes":  "error: node node-1 is Ready: its machine is not off",
		"rss/db --node=node-4 --yes":  "error: no member of replicatedstatefulset \"db\" is on node node-4",
		"stc/web --node=node-4 --yes": "error: node node-4 does not exist; one minute after its deletion the operator treats it as fenced",
		"ssn/mailer --yes":            "error: no member of statefulsingleton \"mailer\" is on an unreachable node",
	} {
		code, _, stderr := x.run(append([]string{"fence"}, strings.Fields(args)...)...)
		g.Expect(code).To(Equal(1))
		g.Expect(stderr).To(HavePrefix(wants))
	}
}

// A Node that becomes Ready between the read and the write is not marked as off.
func TestANodeThatComesBackIsNotFenced(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	x.c = interceptor.NewClient(x.c, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		var node corev1.Node
		g.Expect(c.Get(ctx, client.ObjectKey{Name: "node-2"}, &node)).To(Succeed())
		node.Status.Conditions[0].Status = corev1.ConditionTrue
		g.Expect(c.Update(ctx, &node)).To(Succeed())
		return c.Patch(ctx, o, patch, opts...)
	}})
	code, _, stderr := x.run("fence", "rss/db", "--yes")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(HavePrefix("Error from server (Conflict):"))
	g.Expect(taints(x, "node-2")).To(BeEmpty())
}

func TestWhoMayNotReadNodesFencesNone(t *testing.T) {
	g := NewWithT(t)
	x := atWith(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, node := o.(*corev1.Node); node {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, key.Name, nil)
		}
		return c.Get(ctx, key, o, opts...)
	}}, "rss.yaml")
	code, _, stderr := x.run("fence", "rss/db", "--yes")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(HavePrefix("error: you cannot read nodes"))
	_, out, _ := x.run("status", "rss/db")
	g.Expect(out).To(ContainSubstring("notes"))
	g.Expect(out).NotTo(ContainSubstring("(gone)"), "a Node that cannot be read is not reported as deleted")
}

func TestRelease(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "ssn.yaml", "rss.yaml")
	released := func() string {
		return now(x, &ssnv1.StatefulSingleton{}, "mailer").Annotations[ssnv1.AnnotationReleaseNow]
	}
	_, _, stderr := x.run("release", "ssn/mailer", "--yes")
	g.Expect(stderr).To(HavePrefix("error: statefulsingleton \"mailer\" is not being deleted"))
	g.Expect(released()).To(BeEmpty())

	edit(x, &ssnv1.StatefulSingleton{}, "mailer", func(o *ssnv1.StatefulSingleton) { o.Finalizers = []string{ssnv1.FinalizerSingleton} })
	g.Expect(x.c.Delete(context.Background(), now(x, &ssnv1.StatefulSingleton{}, "mailer"))).To(Succeed())
	_, _, stderr = x.run("release", "ssn/mailer")
	g.Expect(stderr).To(HavePrefix("error: the programs of all waiting pods would start at once, while another one may still be stopping: mailer-5fb99d9654-gvz4h; to continue anyway"))
	g.Expect(released()).To(BeEmpty())

	_, out, _ := x.run("release", "ssn/mailer", "--yes")
	g.Expect(out).To(Equal("statefulsingleton.apps.openshift.statefulsingleton.com/mailer is released: all waiting pods start now\n"))
	g.Expect(released()).To(Equal("true"))
	_, _, stderr = x.run("release", "rss/db", "--yes")
	g.Expect(stderr).To(HavePrefix("error: only pods of a StatefulSingleton wait for a handover."))
}
