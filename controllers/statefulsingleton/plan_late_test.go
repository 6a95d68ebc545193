package statefulsingleton

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/simulate"
	"github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/spec"
)

// until runs an operator until the story has that line, and pauses it there.
func (s *stage) until(o *simulate.Operator, line string) {
	for range 100 {
		if slices.Contains(s.Story, line) {
			return
		}
		o.Look()
		o.Step()
	}
	s.Fatal(s.t, "this line is missing in the story: "+line)
}

// TestAGrantThatComesLate checks an operator that names web-1-a as the holder and is paused
// before it grants it. No event after that may make another operator grant the next pod
// while the first grant is still possible.
func TestAGrantThatComesLate(t *testing.T) {
	const named = "  patch status of statefulsingleton db: Holder, web-1-a, epoch 1"
	onA := func(do func(*stage, *corev1.Pod)) func(*stage) {
		return func(s *stage) { do(s, s.Pods()[0]) }
	}
	for _, r := range []struct {
		name    string
		between func(*stage)
		after   func(*stage)
	}{
		{name: "nothing", between: func(*stage) {}},
		{name: "a rollout", between: rollTo("two").do},
		{name: "the image can no longer be pulled", between: onA(func(s *stage, p *corev1.Pod) {
			edit(s, p, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}
			})
		})},
		{name: "the pod is deleted", between: onA(func(s *stage, p *corev1.Pod) { s.Delete(p) })},
		{name: "the pod is force deleted", between: onA(func(s *stage, p *corev1.Pod) { s.DeleteNow(p) })},
		{name: "the pod is deleted while its node is disconnected", between: onA(func(s *stage, p *corev1.Pod) {
			cutOff.do(s)
			s.Delete(p)
		})},
		{name: "its Node is out of service temporarily", between: func(s *stage) {
			powerOff.do(s)
			taintNode.do(s)
		}, after: bootNode.do},
		{name: "its Node is missing temporarily", between: func(s *stage) {
			powerOff.do(s)
			deleteNode.do(s)
			react(s.operators[0]) // the time starts to count
			s.tick(spec.FenceAfter)
		}, after: bootNode.do},
		{name: "its Node is unreachable temporarily", between: cutOff.do, after: heal.do},
		{name: "the object is deleted", between: deleteObject.do},
	} {
		t.Run(r.name, func(t *testing.T) {
			s := newStage(t, 2)
			late := s.operators[1]
			s.operators = s.operators[:1] // the other operator acts only on request
			makeObject().do(s)
			react(late) // the object settles for this process too
			passes(spec.SettleAfter).do(s)
			makeDeployment(2, rolling).do(s)
			for range 60 {
				s.moveOne()
			}
			s.until(late, named)
			r.between(s)
			for range 60 { // but no moves that evict pods
				react(s.operators[0])
				if moves := append(s.OwnerMoves(), s.KubeletMoves()...); len(moves) > 0 {
					moves[0].Do()
				}
				s.Check(s.t)
			}
			late.Finish()
			if r.after != nil {
				r.after(s)
			}
			s.comeToRest()
		})
	}
}

// TestACacheThatStaysBehind checks a cache that shows a Node as out of service or missing
// long after its machine and its pods run again.
func TestACacheThatStaysBehind(t *testing.T) {
	for _, fence := range []act{taintNode, deleteNode} {
		t.Run(fence.what, func(t *testing.T) {
			s := newStage(t, 2)
			behind := s.operators[1]
			s.operators = s.operators[:1]
			for _, act := range []act{makeObject(), makeDeployment(2, rolling)} {
				act.do(s)
				s.settle(4 * time.Second)
			}
			powerOff.do(s)
			fence.do(s)
			behind.Look()
			bootNode.do(s)
			s.settle(4 * time.Second)
			deleteOne.do(s)
			for range 3 {
				behind.Finish()
				behind.Step()
				s.tick(spec.FenceAfter)
				s.Check(s.t)
			}
			behind.Finish()
			s.comeToRest()
		})
	}
}

// TestAStartThatWasNotSeen checks a pod that pod garbage collection ends after its program
// has started and before its kubelet has reported that.
func TestAStartThatWasNotSeen(t *testing.T) {
	s := newStage(t, 1)
	for _, act := range []act{makeObject(), passes(spec.SettleAfter), makeDeployment(1, rolling)} {
		act.do(s)
		react(s.operators[0])
	}
	play := func(kinds ...string) {
		for range 40 {
			react(s.operators[0])
			for _, m := range s.Moves() {
				if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(m.Key, kind) }) {
					m.Do()
				}
			}
			s.Check(s.t)
		}
	}
	play("roll", "replicate", "bind", "look", "report", "file")
	cutOff.do(s)
	play("start", "pass")
	if len(s.running()) != 1 {
		s.Fatal(s.t, "the program does not run")
	}
	collectOne.do(s)
	play("roll", "replicate", "bind")
	heal.do(s)
	s.comeToRest()
}
