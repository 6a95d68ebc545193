package command

import (
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	rssv1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	stcv1alpha1 "github.com/stateful-operator/stateful-operator/apis/enge/v1alpha1"
	estsv1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/rollout"
)

// edit changes a recorded object and its status.
func edit[T client.Object](x *terminal, object T, name string, change func(T)) {
	x.t.Helper()
	ctx := context.Background()
	if err := x.c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		x.t.Fatal(err)
	}
	change(object)
	status := object.DeepCopyObject().(T)
	if err := x.c.Update(ctx, object); err != nil {
		x.t.Fatal(err)
	}
	status.SetResourceVersion(object.GetResourceVersion())
	if err := x.c.Status().Update(ctx, status); err != nil {
		x.t.Fatal(err)
	}
}

// now returns the present state of a recorded object.
func now[T client.Object](x *terminal, object T, name string) T {
	x.t.Helper()
	if err := x.c.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		x.t.Fatal(err)
	}
	return object
}

func set(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) {
	for i := range conditions {
		if conditions[i].Type == kind {
			conditions[i].Status, conditions[i].Reason = status, reason
		}
	}
}

func rest(conditions []metav1.Condition) {
	set(conditions, "Available", metav1.ConditionTrue, "Fine")
	set(conditions, "Progressing", metav1.ConditionFalse, "Fine")
	set(conditions, "Degraded", metav1.ConditionFalse, "Healthy")
	set(conditions, "Stale", metav1.ConditionFalse, "Healthy")
}

// rolloutRow is a state, and the output of rollout status for it.
type rolloutRow struct {
	says, object string
	world        func(*terminal)
	code         int
	wants        string
}

func tryRollouts(t *testing.T, rows []rolloutRow) {
	for _, row := range rows {
		t.Run(row.says, func(t *testing.T) {
			x := at(t, strings.Split(row.object, "/")[0]+".yaml")
			if row.world != nil {
				row.world(x)
			}
			code, out, stderr := x.run("rollout", "status", row.object, "--watch=false")
			if code != row.code || !strings.HasPrefix(out+stderr, row.wants) {
				t.Errorf("exit code %d, wrote %q %q; wanted %d, %q", code, out, stderr, row.code, row.wants)
			}
		})
	}
}

func TestRolloutStatusOfStatefulClusters(t *testing.T) {
	stc := func(change func(*stcv1alpha1.StatefulCluster)) func(*terminal) {
		return func(x *terminal) { edit(x, &stcv1alpha1.StatefulCluster{}, "web", change) }
	}
	tryRollouts(t, []rolloutRow{
		{"a bad template fails", "stc/web", nil, 1, "error: members do not become Ready"},
		{"the rollout replaces members of an earlier template", "stc/web",
			stc(func(o *stcv1alpha1.StatefulCluster) { o.Status.UpdateRevision = "web-another" }), 0, "Waiting for statefulcluster \"web\": Updating: 1 of 3 members"},
		{"all members are updated", "stc/web", stc(func(o *stcv1alpha1.StatefulCluster) { rest(o.Status.Conditions) }), 0, "statefulcluster \"web\" successfully rolled out\n"},
		{"a partition keeps some members", "stc/web", stc(func(o *stcv1alpha1.StatefulCluster) {
			rest(o.Status.Conditions)
			o.Spec.UpdateStrategy.RollingUpdate = &stcv1alpha1.RollingUpdate{Partition: 2}
		}), 0, "partitioned roll out complete: 1 members have the current template, and spec.updateStrategy.rollingUpdate.partition keeps 2"},
		{"OnDelete has no rollout", "stc/web", stc(func(o *stcv1alpha1.StatefulCluster) { o.Spec.UpdateStrategy.Type = stcv1alpha1.OnDeleteStrategy }), 1,
			"error: rollout status is only available for updateStrategy RollingUpdate"},
		{"an invalid spec", "stc/web", stc(func(o *stcv1alpha1.StatefulCluster) {
			set(o.Status.Conditions, "Degraded", metav1.ConditionTrue, "InvalidSpec")
		}), 1, "error: members"},
		{"the operator has not reconciled the spec", "stc/web", stc(func(o *stcv1alpha1.StatefulCluster) { o.Status.ObservedGeneration = 3 }), 0, "Waiting for the operator to reconcile the current spec..."},
	})
}

func TestRolloutStatusOfReplicatedStatefulSets(t *testing.T) {
	rss := func(change func(*rssv1alpha1.ReplicatedStatefulSet)) func(*terminal) {
		return func(x *terminal) { edit(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db", change) }
	}
	tryRollouts(t, []rolloutRow{
		{"a primary has to stop", "rss/db", nil, 0, "Waiting for replicatedstatefulset \"db\": WaitingForStop: waiting for members that may still be primary to stop"},
		{"a pod has an earlier template", "rss/db", rss(func(o *rssv1alpha1.ReplicatedStatefulSet) { rest(o.Status.Conditions) }), 0, "Waiting for replicatedstatefulset \"db\": rss-db-2 still have an earlier template"},
		{"paused", "rss/db", rss(func(o *rssv1alpha1.ReplicatedStatefulSet) {
			set(o.Status.Conditions, "Paused", metav1.ConditionTrue, "PausedByUser")
		}), 1, "error: the set is not paused"},
		{"failed", "rss/db", rss(func(o *rssv1alpha1.ReplicatedStatefulSet) {
			o.Status.Phase, o.Status.Reason = rssv1alpha1.PhaseFailed, "invalid configuration"
		}), 1, "error: invalid configuration"},
		{"stopped on purpose", "rss/db", rss(func(o *rssv1alpha1.ReplicatedStatefulSet) {
			set(o.Status.Conditions, "Available", metav1.ConditionFalse, "Stopped")
			set(o.Status.Conditions, "Progressing", metav1.ConditionFalse, "Steady")
		}), 0, "replicatedstatefulset \"db\" successfully rolled out"},
	})
}

func TestRolloutStatusOfExtendedStatefulSets(t *testing.T) {
	ests := func(change func(*estsv1alpha1.ExtendedStatefulSet)) func(*terminal) {
		return func(x *terminal) { edit(x, &estsv1alpha1.ExtendedStatefulSet{}, "shop", change) }
	}
	tryRollouts(t, []rolloutRow{
		{"stale, for an earlier spec", "ests/shop", nil, 0, "Waiting for the operator to reconcile the current spec..."},
		{"stale", "ests/shop", ests(func(o *estsv1alpha1.ExtendedStatefulSet) { o.Status.ObservedGeneration = 6 }), 1, "error: CanaryFailed: version 3 was marked stale"},
		{"a canary", "ests/shop", ests(func(o *estsv1alpha1.ExtendedStatefulSet) {
			rest(o.Status.Conditions)
			o.Status.ObservedGeneration, o.Status.Phase = 6, estsv1alpha1.PhaseCanary
			set(o.Status.Conditions, "Progressing", metav1.ConditionTrue, "Upgrading")
		}), 0, "Waiting for extendedstatefulset \"shop\": Upgrading: no operation in progress (phase Canary)"},
		{"a canary whose phase is in the condition", "ests/shop", ests(func(o *estsv1alpha1.ExtendedStatefulSet) {
			rest(o.Status.Conditions)
			o.Status.ObservedGeneration, o.Status.Phase = 6, estsv1alpha1.PhaseCanary
			set(o.Status.Conditions, "Progressing", metav1.ConditionTrue, "Upgrading")
			meta.FindStatusCondition(o.Status.Conditions, "Progressing").Message = "version 1 to 2, attempt 1, phase Canary"
		}), 0, "Waiting for extendedstatefulset \"shop\": Upgrading: version 1 to 2, attempt 1, phase Canary\n"},
		{"stable", "ests/shop", ests(func(o *estsv1alpha1.ExtendedStatefulSet) {
			rest(o.Status.Conditions)
			o.Status.ObservedGeneration, o.Status.Phase = 6, estsv1alpha1.PhaseStable
		}), 0, "extendedstatefulset \"shop\" successfully rolled out"},
	})
}

func TestRolloutStatusOfStatefulSingletons(t *testing.T) {
	tryRollouts(t, []rolloutRow{
		{"a handover", "ssn/mailer", nil, 0, "Waiting for statefulsingleton \"mailer\": WaitingForStop: pod mailer-746789d98b-c8qc7"},
		{"the Deployment controller has not reconciled", "ssn/mailer", func(x *terminal) {
			edit(x, &appsv1.Deployment{}, "mailer", func(o *appsv1.Deployment) { o.Status.ObservedGeneration = 1 })
		}, 0, "Waiting for the template of deployment/mailer to be observed..."},
		{"pods of the Deployment", "ssn/mailer", func(x *terminal) {
			edit(x, &appsv1.Deployment{}, "mailer", func(o *appsv1.Deployment) { o.Status.UpdatedReplicas = 0 })
		}, 0, "Waiting for deployment/mailer: 0 out of 1 new replicas have been updated..."},
		{"a rollout that is blocked", "ssn/mailer", func(x *terminal) {
			edit(x, &ssnv1.StatefulSingleton{}, "mailer", func(o *ssnv1.StatefulSingleton) {
				o.Status.Conditions = append(o.Status.Conditions, metav1.Condition{Type: "RolloutHeld", Status: "True", Reason: "StandbysNotReady", Message: "set maxUnavailable"})
			})
		}, 1, "error: RolloutHeld: set maxUnavailable"},
	})
}

// conditionsOf changes the conditions of an object of any kind.
func conditionsOf(x *terminal, object string, change func([]metav1.Condition) []metav1.Condition) {
	switch object {
	case "stc/web":
		edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) { o.Status.Conditions = change(o.Status.Conditions) })
	case "rss/db":
		edit(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Status.Conditions = change(o.Status.Conditions) })
	case "ests/shop":
		edit(x, &estsv1alpha1.ExtendedStatefulSet{}, "shop", func(o *estsv1alpha1.ExtendedStatefulSet) {
			o.Status.ObservedGeneration, o.Status.Phase = 6, estsv1alpha1.PhaseCanary
			o.Status.Conditions = change(o.Status.Conditions)
		})
	case "ssn/mailer":
		edit(x, &ssnv1.StatefulSingleton{}, "mailer", func(o *ssnv1.StatefulSingleton) { o.Status.Conditions = change(o.Status.Conditions) })
	}
}

// with returns conditions in which these replace those of the same types.
func with(conditions []metav1.Condition, others ...metav1.Condition) []metav1.Condition {
	for _, c := range others {
		conditions = slices.DeleteFunc(conditions, func(old metav1.Condition) bool { return old.Type == c.Type })
		conditions = append(conditions, c)
	}
	return conditions
}

func TestRolloutStatusTellsOfRefusedWrites(t *testing.T) {
	refused := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "WriteRefused", Message: "create pod x: a quota"}
	}
	updating := func(old []metav1.Condition) []metav1.Condition {
		rest(old)
		return with(old, metav1.Condition{Type: "Progressing", Status: metav1.ConditionTrue, Reason: "Updating", Message: "1 of 3"}, refused("Degraded"))
	}
	for _, object := range []string{"stc/web", "rss/db", "ests/shop", "ssn/mailer"} {
		t.Run(object, func(t *testing.T) {
			g := NewWithT(t)
			x := at(t, strings.Split(object, "/")[0]+".yaml")
			conditionsOf(x, object, updating)
			code, out, stderr := x.run("rollout", "status", object, "--timeout=50ms")
			g.Expect(code).To(Equal(1))
			g.Expect(stderr).To(Equal("WriteRefused: create pod x: a quota\nerror: timed out waiting for the condition\n"), "the error is printed once and the wait continues")
			g.Expect(out).To(HavePrefix("Waiting for "))

			conditionsOf(x, object, func(old []metav1.Condition) []metav1.Condition { return with(old, refused("Stalled")) })
			code, _, stderr = x.run("rollout", "status", object)
			g.Expect(code).To(Equal(1))
			g.Expect(stderr).To(Equal("error: WriteRefused: create pod x: a quota\n"), "a condition that requires manual intervention ends the wait")
		})
	}
}

// A rollout may fix problems of members of an earlier template.
func TestRolloutStatusWaitsForWhatTheRolloutMends(t *testing.T) {
	stalled := func(reason string) func([]metav1.Condition) []metav1.Condition {
		return func(old []metav1.Condition) []metav1.Condition {
			return with(old, metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: "no member is Ready; previously Ready: web-sw2arrnz5y"})
		}
	}
	g := NewWithT(t)
	x := at(t, "stc.yaml")
	edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) { o.Status.UpdateRevision = "web-another" })
	conditionsOf(x, "stc/web", stalled("MembersNotReady"))
	code, out, stderr := x.run("rollout", "status", "stc/web", "--watch=false")
	g.Expect(code).To(BeZero(), stderr)
	g.Expect(out).To(HavePrefix("Waiting for "))
	conditionsOf(x, "stc/web", stalled("ClaimResizeRefused"))
	code, _, stderr = x.run("rollout", "status", "stc/web", "--watch=false")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(HavePrefix("error: ClaimResizeRefused: "))

	x = at(t, "rss.yaml") // rss-db-2 is of an earlier template
	conditionsOf(x, "rss/db", stalled("NotServing"))
	code, _, stderr = x.run("rollout", "status", "rss/db", "--watch=false")
	g.Expect(code).To(BeZero(), stderr)
	conditionsOf(x, "rss/db", stalled("NodeUnreachable"))
	code, _, _ = x.run("rollout", "status", "rss/db", "--watch=false")
	g.Expect(code).To(Equal(1))
}

func TestRolloutStatusWaitsUntilTheEnd(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "ssn.yaml")
	x.before = func(look int) {
		if look == 3 {
			edit(x, &ssnv1.StatefulSingleton{}, "mailer", func(o *ssnv1.StatefulSingleton) { rest(o.Status.Conditions) })
		}
	}
	code, out, stderr := x.run("rollout", "status", "ssn/mailer")
	g.Expect(code).To(BeZero(), stderr)
	g.Expect(strings.Split(strings.TrimSpace(out), "\n")).To(HaveExactElements(HavePrefix("Waiting for"), HaveSuffix("successfully rolled out")), "each line is printed once")
}

func TestRolloutStatusEndsWithItsTime(t *testing.T) {
	g := NewWithT(t)
	code, _, stderr := at(t, "ssn.yaml").run("rollout", "status", "ssn/mailer", "--timeout=20ms")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(Equal("error: timed out waiting for the condition\n"))
}

func TestRolloutStatusIsOfOneObject(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "ssn.yaml")
	x.before = func(look int) {
		if look == 2 {
			other := now(x, &ssnv1.StatefulSingleton{}, "mailer")
			g.Expect(x.c.Delete(context.Background(), other)).To(Succeed())
			other.UID, other.ResourceVersion = "another", ""
			g.Expect(x.c.Create(context.Background(), other)).To(Succeed())
		}
	}
	code, _, stderr := x.run("rollout", "status", "ssn/mailer")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(ContainSubstring("was deleted and recreated"))
}

func TestRolloutStatusOutlivesABusyAPIServer(t *testing.T) {
	g := NewWithT(t)
	failures := 0
	x := atWith(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, ours := o.(*ssnv1.StatefulSingleton); ours && failures < 2 {
			failures++
			return apierrors.NewTooManyRequestsError("busy")
		}
		return c.Get(ctx, key, o, opts...)
	}}, "ssn.yaml")
	x.before = func(look int) {
		if look == 4 {
			edit(x, &ssnv1.StatefulSingleton{}, "mailer", func(o *ssnv1.StatefulSingleton) { rest(o.Status.Conditions) })
		}
	}
	code, _, stderr := x.run("rollout", "status", "ssn/mailer")
	g.Expect(code).To(BeZero())
	g.Expect(strings.Count(stderr, "retrying")).To(Equal(1), "the same error is printed once")
}

func TestRestart(t *testing.T) {
	g := NewWithT(t)
	at1200 := HaveKeyWithValue(rollout.AnnotationRestartedAt, "2026-11-25T12:00:00Z")

	x := at(t, "stc.yaml", "rss.yaml", "ests.yaml", "ssn.yaml")
	_, out, stderr := x.run("rollout", "restart", "stc/web")
	g.Expect(out).To(Equal("statefulcluster.enge.me/web restarted\n"), stderr)
	g.Expect(now(x, &stcv1alpha1.StatefulCluster{}, "web").Spec.Template.Annotations).To(at1200)

	_, out, stderr = x.run("rollout", "restart", "rss/db")
	g.Expect(out).To(Equal("replicatedstatefulset.clusterlabs.org/db restarted\n"), stderr)
	g.Expect(now(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db").Spec.Pod.Annotations).To(at1200)

	_, out, stderr = x.run("rollout", "restart", "ests/shop")
	g.Expect(out).To(Equal("extendedstatefulset.fissile.cloudfoundry.org/shop restarted, as an upgrade to a new version\n"), stderr)
	g.Expect(now(x, &estsv1alpha1.ExtendedStatefulSet{}, "shop").Spec.Template.Annotations).To(at1200)

	_, out, stderr = x.run("rollout", "restart", "ssn/mailer")
	g.Expect(out).To(Equal("deployment.apps/mailer restarted\n"), stderr)
	g.Expect(now(x, &appsv1.Deployment{}, "mailer").Spec.Template.Annotations).To(at1200)
}

func TestRestartIsRefusedWhereItWouldDoSomethingElse(t *testing.T) {
	for _, row := range []struct {
		says, object string
		world        func(*terminal)
		wants        string
	}{
		{"an annotation is updated in place", "stc/web", func(x *terminal) {
			edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) { o.Spec.UpdateStrategy.InPlace = stcv1alpha1.InPlaceIfPossible })
		}, `set it to Never first: kubectl -n default patch stc web --type=merge -p '{"spec":{"updateStrategy":{"inPlace":"Never"}}}'`},
		{"no pod is restarted", "stc/web", func(x *terminal) {
			edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) { o.Spec.UpdateStrategy.Type = stcv1alpha1.OnDeleteStrategy })
		}, "delete the pod of a member"},
		{"all claims are recreated", "stc/web", surge, "every member is replaced by one with a new name and empty claims; to continue anyway, add --yes"},
		{"a paused set", "rss/db", func(x *terminal) {
			edit(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Spec.Paused = true })
		}, "(run rollout resume first)"},
		{"an upgrade is in progress", "ests/shop", func(x *terminal) {
			edit(x, &estsv1alpha1.ExtendedStatefulSet{}, "shop", func(o *estsv1alpha1.ExtendedStatefulSet) { o.Status.Phase = estsv1alpha1.PhaseCanary })
		}, "an upgrade is in progress (phase Canary), and a restart would supersede it"},
		{"a paused Deployment", "ssn/mailer", func(x *terminal) {
			edit(x, &appsv1.Deployment{}, "mailer", func(o *appsv1.Deployment) { o.Spec.Paused = true })
		}, `deployments.apps "mailer" can't restart paused deployment (run rollout resume first)`},
	} {
		t.Run(row.says, func(t *testing.T) {
			g := NewWithT(t)
			wrote := false
			x := atWith(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				wrote = true
				return nil
			}}, strings.Split(row.object, "/")[0]+".yaml")
			row.world(x)
			code, _, stderr := x.run("rollout", "restart", row.object)
			g.Expect(code).To(Equal(1))
			g.Expect(stderr).To(ContainSubstring(row.wants))
			g.Expect(wrote).To(BeFalse())
		})
	}
}

func surge(x *terminal) {
	one := intstr.FromInt32(1)
	edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) {
		o.Spec.UpdateStrategy.RollingUpdate = &stcv1alpha1.RollingUpdate{MaxSurge: &one}
	})
}

func TestASurgeIsRestartedOnRequest(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "stc.yaml")
	surge(x)
	code, _, stderr := x.run("rollout", "restart", "stc/web", "--yes")
	g.Expect(code).To(BeZero(), stderr)
}

// A change is not written if the object was changed after it was read.
func TestWhatChangedMeanwhileIsNotOverwritten(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "rss.yaml")
	first := true
	x.c = interceptor.NewClient(x.c, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if first {
			first = false
			edit(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db", func(o *rssv1alpha1.ReplicatedStatefulSet) { o.Spec.Paused = true })
		}
		return c.Patch(ctx, o, patch, opts...)
	}})
	code, _, stderr := x.run("rollout", "restart", "rss/db")
	g.Expect(code).To(Equal(1))
	g.Expect(stderr).To(HavePrefix("Error from server (Conflict):"))
	g.Expect(now(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db").Spec.Pod.Annotations).To(BeEmpty())
}

func TestUndo(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "stc.yaml", "rss.yaml", "ests.yaml", "ssn.yaml")
	_, out, stderr := x.run("rollout", "undo", "stc/web")
	g.Expect(out).To(Equal("statefulcluster.enge.me/web rolled back to revision 1\n"), stderr)
	g.Expect(now(x, &stcv1alpha1.StatefulCluster{}, "web").Spec.Template.Spec.Containers[0].Image).To(Equal("registry.example/web:1"))

	for _, row := range []struct{ args, wants string }{
		{"stc/web --to-revision=1", "error: skipped rollback (current template already matches revision 1)"},
		{"stc/web --to-revision=7", "error: unable to find specified revision 7 in history"},
		{"rss/db", "error: ReplicatedStatefulSet keeps no revisions. Apply the previous manifest, or edit it: kubectl -n default edit rss db."},
		{"ests/shop", "error: ExtendedStatefulSet keeps no template of a version that could be restored. Apply the manifest of version 2, which serves"},
		{"ssn/mailer", "error: the rollout belongs to the owner of the pods: kubectl -n default rollout undo deployment/mailer"},
	} {
		code, _, stderr := x.run(append([]string{"rollout", "undo"}, strings.Fields(row.args)...)...)
		g.Expect(code).To(Equal(1))
		g.Expect(stderr).To(HavePrefix(row.wants))
	}
	edit(x, &stcv1alpha1.StatefulCluster{}, "web", func(o *stcv1alpha1.StatefulCluster) { o.Status.ObservedGeneration = 1 })
	_, _, stderr = x.run("rollout", "undo", "stc/web")
	g.Expect(stderr).To(ContainSubstring("the previous revision is unknown"))
}

func TestPause(t *testing.T) {
	g := NewWithT(t)
	x := at(t, "stc.yaml", "rss.yaml", "ests.yaml", "ssn.yaml")
	paused := func() bool { return now(x, &rssv1alpha1.ReplicatedStatefulSet{}, "db").Spec.Paused }
	_, out, _ := x.run("rollout", "pause", "rss/db")
	g.Expect(out).To(Equal("replicatedstatefulset.clusterlabs.org/db paused\n"))
	g.Expect(paused()).To(BeTrue())
	_, _, stderr := x.run("rollout", "pause", "rss/db")
	g.Expect(stderr).To(Equal("error: replicatedstatefulsets.clusterlabs.org \"db\" is already paused\n"))
	_, out, _ = x.run("rollout", "resume", "rss/db")
	g.Expect(out).To(Equal("replicatedstatefulset.clusterlabs.org/db resumed\n"))
	g.Expect(paused()).To(BeFalse())
	for object, wants := range map[string]string{
		"stc/web":    "error: StatefulCluster has no pause. To hold an update, keep members at the previous revision: kubectl -n default patch stc web",
		"ests/shop":  "error: ExtendedStatefulSet has no pause. To end an upgrade, apply the template of version 2, which serves",
		"ssn/mailer": "error: the rollout belongs to the owner of the pods: kubectl -n default rollout pause deployment/mailer",
	} {
		code, _, stderr := x.run("rollout", "pause", object)
		g.Expect(code).To(Equal(1))
		g.Expect(stderr).To(HavePrefix(wants))
	}
}
