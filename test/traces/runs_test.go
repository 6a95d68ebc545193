package main

import (
	"regexp"
	"testing"
	"time"
)

// frozen returns options with frozen Leases.
func frozen(pattern string) options {
	o := defaults()
	o.frozen = regexp.MustCompile(pattern)
	return o
}

func silent(r *recorder, d time.Duration) { r.pass(d) }

// runRows continue a trace with a holder.
var runRows = []struct {
	name    string
	options options
	next    func(r *recorder, p recordedPod)
	want    []rule
}{
	{"a program ends with its container, and no end is logged", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 11*time.Second)
		r.print(p, "a line that is late")
	}, nil},
	{"a program writes after its deadline", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 13*time.Second)
		r.print(p, "still here")
	}, []rule{endsItself}},
	{"a renewal after the deadline does not extend it", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 13*time.Second)
		r.renew(mailer, p)
		r.print(p, "still here")
	}, []rule{endsItself}},
	{"a renewal that was sent before the end arrives late", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 9900*time.Millisecond)
		r.log(p, "no renewal of the Lease has succeeded in time: ends the container")
		silent(r, 4*time.Second)
		r.renew(mailer, p)
	}, nil},
	{"the end is logged late", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 13*time.Second)
		r.log(p, "no renewal of the Lease has succeeded in time: ends the container")
	}, []rule{endsItself}},
	{"a program writes after its agent has ended the container", defaults(), func(r *recorder, p recordedPod) {
		r.log(p, "the Lease has another holder: ends the container")
		silent(r, 3*time.Second)
		r.print(p, "still here")
	}, []rule{endsItself}},
	{"a program runs without the Lease after a start grant", defaults(), func(r *recorder, p recordedPod) {
		r.log(p, "received start grant 4: runs the program without the Lease from now on")
		silent(r, time.Hour)
		r.print(p, "still here")
	}, nil},
	{"another pod has renewed before a start", defaults(), func(r *recorder, p recordedPod) {
		r.ends(p)
		other := r.newPod("")
		r.waits(mailer, other)
		r.assign(mailer, other)
		r.renew(mailer, p)
		r.log(other, "holds Lease app/%s (epoch 2) after 1s: starts the program", mailer)
	}, []rule{renewedByHolder, renewsFirst}},
	{"a start grant is received after the deadline", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 13*time.Second)
		r.log(p, "received start grant 4: runs the program without the Lease from now on")
	}, []rule{endsItself}},
	{"a frozen program continues after the takeover", frozen(`^app/mailer\.`), continuesAfterTakeover, nil},
	{"a program continues after the takeover, and others were frozen", frozen("^b/"), continuesAfterTakeover, []rule{endsItself, oneProgram}},
	{"a frozen program hands over after it has started the next one", frozen(`^app/mailer\.`), func(r *recorder, p recordedPod) {
		silent(r, 9*time.Second)
		r.ends(p)
		other := r.newPod("")
		r.waits(mailer, other)
		r.assign(mailer, other)
		r.starts(mailer, other)
		r.log(p, "no renewal of the Lease has succeeded in time: ends the container")
	}, []rule{oneProgram}},
	{"an agent hands over, and logs it after the next program has started", defaults(), func(r *recorder, p recordedPod) {
		handsOverWhile(r, p, "")
	}, nil},
	{"an agent hands over while its program writes", defaults(), func(r *recorder, p recordedPod) {
		handsOverWhile(r, p, "still here")
	}, []rule{oneProgram}},
	{"a program starts in the epoch of another pod", defaults(), func(r *recorder, _ recordedPod) {
		other := r.newPod("")
		r.waits(mailer, other)
		r.log(other, "holds Lease app/%s (epoch 1) after 1s: starts the program", mailer)
	}, []rule{heldAtStart}},
	{"a program starts long after the Lease has changed", defaults(), func(r *recorder, p recordedPod) {
		r.ends(p)
		r.free(mailer, "")
		r.restart(p)
		r.waits(mailer, p)
		silent(r, 3*time.Second)
		r.log(p, "holds Lease app/%s (epoch 1) after 1s: starts the program", mailer)
	}, []rule{heldAtStart}},
	{"a restarted container starts with the renewal of the former one", defaults(), func(r *recorder, p recordedPod) {
		silent(r, 3*time.Second)
		r.restart(p)
		r.waits(mailer, p)
		r.log(p, "holds Lease app/%s (epoch 1) after 1s: starts the program", mailer)
	}, []rule{renewsFirst}},
	{"a program starts with a Lease that is not in the audit log", defaults(), func(r *recorder, _ recordedPod) {
		other := r.newPod("")
		r.waits("unknown.singleton", other)
		r.log(other, "holds Lease app/unknown.singleton (epoch 1) after 1s: starts the program")
	}, []rule{heldAtStart}},
}

// TestRuns tests the logs of containers, apart from the seeded faults.
func TestRuns(t *testing.T) {
	for _, row := range runRows {
		t.Run(row.name, func(t *testing.T) {
			r, p := holder(t)
			row.next(r, p)
			r.expect(row.options, row.want...)
		})
	}
}

// continuesAfterTakeover lets a program write, and its agent end the container, after the next program has started.
func continuesAfterTakeover(r *recorder, p recordedPod) {
	r.pass(recordedSeconds * time.Second)
	next := r.newPod("")
	r.waits(mailer, next)
	r.assign(mailer, next)
	r.starts(mailer, next)
	r.pass(time.Second)
	r.print(p, "still here")
	r.log(p, "no renewal of the Lease has succeeded in time: ends the container")
}

// handsOverWhile hands over, and logs it after the next program has started. The first one writes meanwhile, unless the
// text is empty.
func handsOverWhile(r *recorder, p recordedPod, text string) {
	next := r.newPod("")
	r.waits(mailer, next)
	r.renewFor(mailer, p, 1)
	r.name(mailer, next.identity())
	r.handOver(mailer, p, next.identity())
	r.starts(mailer, next)
	r.aMoment()
	if text != "" {
		r.print(p, text)
	}
	r.log(p, "handed over Lease app/%s to %s (epoch %d)", mailer, next.identity(), r.epoch(mailer))
	r.ends(p)
}

// TestArmedMembers tests that an armed member must be disarmed, or its container must end.
func TestArmedMembers(t *testing.T) {
	for _, row := range []struct {
		name string
		next func(r *recorder, p recordedPod)
		want []rule
	}{
		{"it is disarmed, and its container continues", func(r *recorder, p recordedPod) {
			r.free(db, "")
			r.log(p, "disarmed: Lease app/%s (epoch 1) does not name this pod", db)
			r.pass(time.Minute)
			r.print(p, "secondary")
		}, nil},
		{"it is armed again before the deadline", func(r *recorder, p recordedPod) {
			r.arms(p)
			r.print(p, "primary")
		}, nil},
		{"it is armed with a higher epoch than it has renewed", func(r *recorder, p recordedPod) {
			r.assign(db, p)
			r.log(p, "armed with epoch 2 of Lease app/%s", db)
		}, []rule{renewsFirst}},
		{"it is armed with a lower epoch than it has renewed", func(r *recorder, _ recordedPod) {
			p := r.newPod("db-0")
			r.free(db, "")
			r.waits(db, p)
			r.assign(db, p)
			r.assign(db, p)
			r.renew(db, p)
			r.log(p, "armed with epoch 2 of Lease app/%s", db)
		}, []rule{renewsFirst}},
		{"it is armed again after the deadline", func(r *recorder, p recordedPod) {
			r.pass(13 * time.Second)
			r.arms(p)
		}, []rule{endsItself}},
		{"it stays armed", func(r *recorder, p recordedPod) {
			r.free(db, "")
			r.pass(13 * time.Second)
			r.print(p, "primary")
		}, []rule{endsItself}},
		{"it is disarmed late", func(r *recorder, p recordedPod) {
			r.free(db, "")
			r.pass(13 * time.Second)
			r.log(p, "disarmed: Lease app/%s (epoch 1) does not name this pod", db)
		}, []rule{endsItself}},
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
