package main

import (
	"bytes"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

var byAdmin = authenticationv1.UserInfo{Username: "admin"}

// moveRows continue a trace with a holder.
var moveRows = []struct {
	name string
	next func(r *recorder, p recordedPod)
	want []rule
}{
	{"nothing", func(*recorder, recordedPod) {}, nil},
	{"another user changes a label", func(r *recorder, _ recordedPod) {
		r.patch(mailer, byAdmin, func(l *coordinationv1.Lease) { l.Labels["a"] = "b" })
	}, nil},
	{"the holder changes a label", func(r *recorder, p recordedPod) {
		r.patch(mailer, p.user(), func(l *coordinationv1.Lease) { l.Labels["a"] = "b" })
	}, []rule{itsFields}},
	{"the operator renews", func(r *recorder, p recordedPod) {
		r.patch(mailer, byOperator, func(l *coordinationv1.Lease) { l.Spec.RenewTime = nil })
	}, []rule{renewedByHolder}},
	{"an account of the same name that is no service account frees it", func(r *recorder, p recordedPod) {
		r.pass(time.Minute)
		r.patch(mailer, authenticationv1.UserInfo{Username: "a:stateful-operator-controller-manager"}, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = nil })
	}, []rule{writtenByOperator}},
	{"the holder names a successor", func(r *recorder, p recordedPod) {
		r.patch(mailer, p.user(), func(l *coordinationv1.Lease) {
			l.Annotations = map[string]string{"apps.statefulsingleton.com/next": "b_1"}
		})
	}, []rule{writtenByOperator}},
	{"the holder raises its epoch", func(r *recorder, p recordedPod) {
		r.patch(mailer, p.user(), func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(9)) })
	}, []rule{writtenByOperator}},
	{"the holder hands over without a successor", func(r *recorder, p recordedPod) { r.handOver(mailer, p, "b_1") }, []rule{handoverNamed}},
	{"a handover raises the epoch twice", func(r *recorder, p recordedPod) {
		r.name(mailer, "b_1")
		r.patch(mailer, p.user(), func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseTransitions, l.Annotations = ptr.To("b_1"), ptr.To(int32(3)), nil
		})
	}, []rule{epochsIncrease}},
	{"a handover keeps the successor", func(r *recorder, p recordedPod) {
		r.name(mailer, "b_1")
		r.patch(mailer, p.user(), func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To("b_1"), ptr.To(int32(2))
		})
	}, []rule{itsFields}},
	{"the operator lowers the epoch", func(r *recorder, p recordedPod) {
		r.patch(mailer, byOperator, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(0)) })
	}, []rule{epochsIncrease}},
	{"the operator assigns it to the same pod again and keeps the successor", func(r *recorder, p recordedPod) {
		r.name(mailer, "b_1")
		r.patch(mailer, byOperator, func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = ptr.To(int32(2)) })
	}, []rule{itsFields}},
	{"the write that names a successor renews", func(r *recorder, p recordedPod) {
		r.patch(mailer, byOperator, func(l *coordinationv1.Lease) {
			l.Spec.RenewTime, l.Annotations = nil, map[string]string{"apps.statefulsingleton.com/next": "b_1"}
		})
	}, []rule{itsFields}},
	{"another user has created it", func(r *recorder, p recordedPod) {
		r.audit = bytes.Replace(r.audit, []byte(recordedOperator), []byte("admin"), 1)
	}, []rule{writtenByOperator}},
	{"the operator assigns it to the same pod again", func(r *recorder, p recordedPod) { r.assign(mailer, p) }, nil},
	{"the operator takes it over at once", func(r *recorder, p recordedPod) { r.assign(mailer, r.newPod("")) }, []rule{watchesWholeTime}},
	{"the operator takes it over before the duration has passed", func(r *recorder, p recordedPod) {
		r.pass(recordedSeconds*time.Second - 100*time.Millisecond)
		r.free(mailer, "")
	}, []rule{watchesWholeTime}},
	{"the operator takes it over after the duration", func(r *recorder, p recordedPod) {
		r.pass(recordedSeconds * time.Second)
		r.free(mailer, "")
	}, nil},
	{"naming a successor in between is a change", func(r *recorder, p recordedPod) {
		r.pass(10 * time.Second)
		r.name(mailer, "b_1")
		r.pass(10 * time.Second)
		r.free(mailer, "")
	}, []rule{watchesWholeTime}},
	{"the pod has ended before the takeover", func(r *recorder, p recordedPod) {
		r.ends(p)
		r.free(mailer, "")
	}, nil},
	{"the pod ends after the takeover", func(r *recorder, p recordedPod) {
		r.free(mailer, "")
		r.ends(p)
	}, []rule{watchesWholeTime}},
	{"another pod of the same name has ended", func(r *recorder, p recordedPod) {
		r.ends(recordedPod{p.name, "another"})
		r.free(mailer, "")
	}, []rule{watchesWholeTime}},
	{"the kubelet deletes the pod", func(r *recorder, p recordedPod) {
		r.event("delete", "pods", "app", p.name, authenticationv1.UserInfo{Username: recordedKubelet}, map[string]any{"preconditions": map[string]any{"uid": p.uid}}, nil)
		r.free(mailer, "")
	}, nil},
	{"the kubelet deletes the pod, and the body is not logged", func(r *recorder, p recordedPod) {
		r.event("delete", "pods", "app", p.name, authenticationv1.UserInfo{Username: recordedKubelet}, nil, nil)
		r.free(mailer, "")
	}, nil},
	{"a pod of the same name in another namespace is deleted", func(r *recorder, p recordedPod) {
		r.event("delete", "pods", "other", p.name, authenticationv1.UserInfo{Username: recordedKubelet}, nil, nil)
		r.free(mailer, "")
	}, []rule{watchesWholeTime}},
	{"a user deletes the pod by force", func(r *recorder, p recordedPod) {
		r.event("delete", "pods", "app", p.name, byAdmin, nil, nil)
		r.free(mailer, "")
	}, []rule{watchesWholeTime}},
	{"the node is off", func(r *recorder, p recordedPod) { r.isOff(p) }, nil},
	{"the node was off before the last renewal", func(r *recorder, p recordedPod) {
		r.isOff(p)
		last := recordedPod{name: "mailer-2", uid: "00000000-0000-0000-0000-000000000002"}
		r.event("patch", "pods", "app", last.name, authenticationv1.UserInfo{Username: nodeAccount + "node-" + p.name}, map[string]any{"metadata": map[string]any{"uid": last.uid}}, nil)
		r.renewFor(mailer, last, 1)
		r.assign(mailer, r.newPod(""))
	}, []rule{watchesWholeTime}},
}

// TestMoves tests steps for which no fault is seeded.
func TestMoves(t *testing.T) {
	for _, row := range moveRows {
		t.Run(row.name, func(t *testing.T) {
			r, p := holder(t)
			row.next(r, p)
			r.expect(defaults(), row.want...)
		})
	}
}

// TestMembers tests the differences of members.
func TestMembers(t *testing.T) {
	for _, row := range []struct {
		name string
		next func(r *recorder, p recordedPod)
		want []rule
	}{
		{"a release", func(r *recorder, _ recordedPod) { r.free(db, "") }, nil},
		{"a takeover at once", func(r *recorder, _ recordedPod) { r.free(db, "containerd://1") }, []rule{watchesWholeTime}},
		{"a handover", func(r *recorder, p recordedPod) {
			r.name(db, "db-1_1")
			r.handOver(db, p, "db-1_1")
		}, []rule{handoverNamed}},
		{"a Lease that replaces a deleted one has its holder", func(r *recorder, p recordedPod) {
			former := r.leases[db].Spec
			r.create(db)
			r.rewrite(func(l *coordinationv1.Lease) { l.Spec = former })
		}, nil},
		{"a Lease that replaces a deleted one has another holder", func(r *recorder, p recordedPod) {
			r.create(db)
			r.rewrite(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = ptr.To("db-1_1") })
		}, []rule{createdFree}},
		{"a Lease that replaces a deleted one has a holder with a higher epoch", func(r *recorder, p recordedPod) {
			r.create(db)
			r.rewrite(func(l *coordinationv1.Lease) {
				l.Spec.HolderIdentity, l.Spec.LeaseTransitions = ptr.To(p.identity()), ptr.To(int32(2))
			})
		}, nil},
		{"the epochs of a member begin again", func(r *recorder, p recordedPod) {
			r.free(db, "")
			r.create(db)
			r.assign(db, p)
		}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRecorder(t, 1)
			r.create(db)
			p := r.newPod("db-0")
			r.waits(db, p)
			r.arms(p)
			row.next(r, p)
			r.expect(defaults(), row.want...)
		})
	}
}

// TestRecreated tests that the epochs of a StatefulSingleton increase although its Lease was recreated, and that those of
// another object of the same name begin again.
func TestRecreated(t *testing.T) {
	for owner, want := range map[string][]rule{"owner": {epochsIncrease}, "another": nil} {
		r, p := holder(t)
		r.ends(p)
		r.free(mailer, "")
		r.create(mailer)
		r.rewrite(func(l *coordinationv1.Lease) { l.OwnerReferences[0].UID = r.uid(owner) })
		next := r.newPod("")
		r.waits(mailer, next)
		r.assign(mailer, next)
		r.starts(mailer, next)
		r.expect(defaults(), want...)
	}
}

// TestGaps tests versions that are not in the audit log.
func TestGaps(t *testing.T) {
	r, p := holder(t)
	r.unlogged(func() { r.renew(mailer, p) })
	r.renewFor(mailer, p, 1)
	if c := r.expect(defaults()); c.missing != 1 {
		t.Errorf("%d versions are missing, want 1", c.missing)
	}
	r.unlogged(func() {
		r.ends(p)
		r.free(mailer, "")
	})
	next := r.newPod("")
	r.waits(mailer, next)
	r.assign(mailer, next)
	r.starts(mailer, next)
	if c := r.expect(defaults(), everyVersionLogged); c.missing != 2 {
		t.Errorf("%d versions are missing, want 2", c.missing)
	}
}
