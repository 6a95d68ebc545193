package replicatedstatefulset

import (
	"errors"
	"fmt"
	"math/rand"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest"
	"github.com/stateful-operator/stateful-operator/controllers/internal/simtest/kubelet"
)

// scramble lets anything happen in any order for a while.
func (s *stage) scramble(chance *rand.Rand, steps int) {
	s.t.Helper()
	for range steps {
		s.tick()
		switch n := chance.Intn(100); {
		case n < 25:
			s.any(chance, s.machines())
		case n < 45:
			s.anyCommand(chance)
		case n < 70:
			s.hasty = chance.Intn(10) == 0
			if chance.Intn(4) == 0 {
				s.race = func() { s.any(chance, s.machines()) }
			}
			s.pass()
			s.hasty, s.race = false, nil
		case n < 85:
			s.look()
		case n < 92:
			s.Now = s.Now.Add(time.Duration(chance.Intn(3000)) * time.Millisecond)
		case n < 96:
			write(s)
		case n < 98:
			s.any(chance, s.toy.late)
		case n < 99:
			s.Say("! the operator restarts")
			s.restart()
		default:
			crash(chance.Intn(3))(s)
		}
		s.check()
	}
}

func (s *stage) any(chance *rand.Rand, moves []func()) {
	if len(moves) > 0 {
		moves[chance.Intn(len(moves))]()
	}
}

// anyCommand lets one go on, or end in one of the ways that there are.
func (s *stage) anyCommand(chance *rand.Rand) {
	keys := sortedKeys(s.toy.running)
	if len(keys) == 0 {
		return
	}
	c := s.toy.running[keys[chance.Intn(len(keys))]]
	switch n := chance.Intn(100); {
	case !c.arrived && n < 50:
		s.toy.arrive(c)
	case s.toy.hangs[c.Pod.Name+" "+c.Name]:
		s.any(chance, s.toy.moves())
	case n < 80:
		s.toy.end(c, "")
	default:
		s.toy.end(c, []string{"not sent", "answer lost", "late", "fails"}[n%4])
	}
}

// meddle lets some writes fail, or their answers be lost, or the operator die.
func (s *stage) meddle(chance *rand.Rand) {
	s.Interfere = func(int, action.Action) (before, after error) {
		err := apierrors.NewInternalError(errors.New("meddled with"))
		switch chance.Intn(60) {
		case 0, 1:
			return err, nil
		case 2, 3:
			return nil, err
		case 4:
			return simtest.ErrKilled, nil
		case 5:
			return nil, simtest.ErrKilled
		}
		return nil, nil
	}
}

// heal ends all that is wrong, and lets what is on its way arrive.
func (s *stage) heal() {
	s.Say("! all is well again")
	s.Interfere, s.toy.hangs, s.toy.fails = nil, map[string]bool{}, map[string]int{}
	for i := range s.nodes {
		if name := fmt.Sprintf("n%d", i+1); !s.up(name) && s.moved[name] == "" {
			kubelet.Turn(s.Cluster, name, true)
		}
	}
	for _, late := range s.toy.late {
		late()
		s.check()
	}
	s.toy.late = nil
}
