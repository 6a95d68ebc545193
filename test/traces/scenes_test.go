package main

import (
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	mailer = "mailer.singleton"
	db     = "db-0.member"
)

// handsOver lets a program end, and its agent hand over to a pod that the operator has named.
func (r *recorder) handsOver(from recordedPod) recordedPod {
	next := r.newPod("")
	r.waits(mailer, next)
	r.pass(time.Second)
	r.name(mailer, "another-successor_1")
	r.renewFor(mailer, from, 1)
	r.name(mailer, "")
	r.name(mailer, next.identity())
	r.renewFor(mailer, from, 1)
	r.print(from, "bye")
	r.aMoment()
	r.handOver(mailer, from, next.identity())
	r.log(from, "handed over Lease app/%s to %s (epoch %d)", mailer, next.identity(), r.epoch(mailer))
	r.starts(mailer, next)
	r.ends(from)
	return next
}

// isCutOff lets the agent of a holder end its container, because it cannot renew the Lease.
func (r *recorder) isCutOff(from recordedPod) recordedPod {
	next := r.newPod("")
	r.waits(mailer, next)
	r.renewFor(mailer, from, 1)
	renewed := r.now
	r.pass(9 * time.Second)
	r.print(from, "still here")
	r.now = renewed.Add(9990 * time.Millisecond)
	r.log(from, "no renewal of the Lease has succeeded in time: ends the container")
	r.restart(from)
	r.pass(time.Second)
	r.waits(mailer, from)
	r.now = renewed.Add(recordedSeconds*time.Second + time.Millisecond)
	r.aMoment()
	r.assign(mailer, next)
	r.starts(mailer, next)
	return next
}

// isDeleted lets a pod end whose agent logs no end, and the operator free the Lease.
func (r *recorder) isDeleted(from recordedPod) recordedPod {
	r.renewFor(mailer, from, 1)
	r.pass(time.Second)
	r.print(from, "bye")
	r.aMoment()
	r.ends(from)
	r.aMoment()
	next := r.newPod("")
	if r.IntN(2) == 0 {
		r.free(mailer, "")
	}
	r.waits(mailer, next)
	r.aMoment()
	r.assign(mailer, next)
	r.starts(mailer, next)
	return next
}

// crashes lets the container of a pod restart.
func (r *recorder) crashes(p recordedPod) recordedPod {
	r.pass(2 * time.Second)
	r.restart(p)
	r.waits(mailer, p)
	r.starts(mailer, p)
	return p
}

// keepsUp lets the operator change the owner of the Lease.
func (r *recorder) keepsUp(p recordedPod) recordedPod {
	r.patch(mailer, byOperator, func(l *coordinationv1.Lease) { l.OwnerReferences[0].Name += "-2" })
	r.renewFor(mailer, p, 2)
	return p
}

// isOff lets an administrator state that the node of a pod is off.
func (r *recorder) isOff(from recordedPod) recordedPod {
	r.event("patch", "pods", "app", from.name, authenticationv1.UserInfo{Username: nodeAccount + "node-" + from.name},
		map[string]any{"metadata": map[string]any{"uid": from.uid}, "status": map[string]any{"phase": "Running"}}, nil)
	r.renewFor(mailer, from, 1)
	r.pass(2 * time.Second)
	r.event("patch", "nodes", "", "node-"+from.name, authenticationv1.UserInfo{Username: "admin"},
		map[string]any{"spec": map[string]any{"taints": []map[string]any{{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}}}}, nil)
	next := r.newPod("")
	r.waits(mailer, next)
	r.assign(mailer, next)
	r.starts(mailer, next)
	return next
}

// runMailers records a StatefulSingleton in which each scene follows the former one.
func (r *recorder) runMailers(count int) {
	r.create(mailer)
	p := r.newPod("")
	r.waits(mailer, p)
	r.assign(mailer, p)
	r.starts(mailer, p)
	scenes := []func(recordedPod) recordedPod{r.handsOver, r.isCutOff, r.isDeleted, r.crashes, r.keepsUp, r.isOff, r.handsOver}
	for i := range count {
		scene := scenes[i%len(scenes)]
		if i >= len(scenes) {
			scene = scenes[r.IntN(len(scenes))]
		}
		p = scene(p)
	}
	r.renewFor(mailer, p, 1)
}

// arms lets the operator assign the Lease of a member, which is armed then.
func (r *recorder) arms(p recordedPod) {
	r.aMoment()
	r.assign(db, p)
	r.aMoment()
	r.renew(db, p)
	r.aMoment()
	r.log(p, "armed with epoch %d of Lease app/%s", r.epoch(db), db)
	r.renewFor(db, p, 2)
}

// runMember records a member of a ReplicatedStatefulSet.
func (r *recorder) runMember() {
	r.create(db)
	p := r.newPod("db-0")
	r.waits(db, p)
	r.arms(p)
	r.arms(p) // with a higher epoch
	r.free(db, "")
	r.aMoment()
	r.log(p, "disarmed: Lease app/%s (epoch %d) does not name this pod", db, r.epoch(db))
	r.arms(p)
	renewed := r.now
	r.pass(9990 * time.Millisecond)
	r.log(p, "no renewal of the Lease has succeeded in time: ends the container")
	r.now = renewed.Add(recordedSeconds*time.Second + 10*time.Millisecond)
	r.free(db, "containerd://1")
	r.restart(p)
	r.waits(db, p)
	r.arms(p)
	r.ends(p)
	p = r.newPod("db-0")
	r.waits(db, p)
	r.arms(p)
}

// record returns a good trace with a StatefulSingleton and a member.
func record(t *testing.T, seed uint64) *recorder {
	r := newRecorder(t, seed)
	r.runMailers(10 + r.IntN(8))
	r.runMember()
	return r
}

// recorded returns the good trace as the program reads it.
func recorded(t *testing.T, seed uint64) *trace {
	t.Helper()
	read, err := load([]string{record(t, seed).save()})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// checked returns the result of the check of the recorded trace.
func (r *recorder) checked(o options) *checker {
	r.t.Helper()
	read, err := load([]string{r.save()})
	if err != nil {
		r.t.Fatal(err)
	}
	return check(read, o)
}

// expect tests that a trace breaks exactly these rules.
func (r *recorder) expect(o options, want ...rule) *checker {
	r.t.Helper()
	c := r.checked(o)
	broken := c.broken()
	same := len(broken) == len(want)
	for _, w := range want {
		same = same && broken[w]
	}
	if !same {
		r.t.Errorf("the trace breaks %v, want %v: %v", broken, want, c.violations)
	}
	return c
}

// holder records a Lease with a holder that runs its program.
func holder(t *testing.T) (*recorder, recordedPod) {
	r := newRecorder(t, 1)
	r.create(mailer)
	p := r.newPod("")
	r.waits(mailer, p)
	r.assign(mailer, p)
	r.starts(mailer, p)
	return r, p
}
