package statefulsingleton

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stateful-operator/stateful-operator/controllers/internal/podstate"
)

// together are the pods whose programs may be running now, where that is more
// than one. Of pods with the gate that cannot be, unless a person let them go.
func together(p *plan) []*member {
	running := mayBeRunning(p)
	if len(running) < 2 {
		return nil
	}
	return running
}

func mayBeRunning(p *plan) []*member {
	return slices.DeleteFunc(slices.Clone(p.blockers), func(m *member) bool { return !m.mayBeAtWork() })
}

// mayBeAtWork reports whether the program of a pod that may run has been
// started, as far as anybody knows: where no kubelet answers, it may have been.
func (m *member) mayBeAtWork() bool {
	unheard := podstate.Scheduled(m.pod) && podstate.Silent(m.pod) && (!m.node.Ready || podstate.Ended(m.pod))
	return m.begun() || unheard
}

func severalRun(p *plan) string {
	found := together(p)
	return fmt.Sprintf("%d pods may be running the program at the same time, and one at most should: %s", len(found), standing(found))
}

// allButOne says how to stop all pods that may be running but one: the holder,
// or the oldest that nobody has deleted.
func allButOne(w *world, p *plan) string {
	stay := slices.DeleteFunc(together(p), (*member).terminating)
	if i := slices.IndexFunc(stay, w.isHolder); i > 0 {
		stay[0], stay[i] = stay[i], stay[0]
	}
	if len(stay) < 2 {
		return "Wait until those that are being deleted have stopped"
	}
	return "Stop all but one: " + howToStop(stay[1:])
}

// howToStop is the command that stops pods. A static pod is stopped at its Node.
func howToStop(members []*member) string {
	var ways, names []string
	for _, m := range members {
		switch {
		case isMirror(m.pod):
			ways = append(ways, fmt.Sprintf("take the manifest of static pod %s out of the kubelet's folder on Node %s", m.name(), m.pod.Spec.NodeName))
		case !m.terminating() && len(names) < mostNamed:
			names = append(names, m.name())
		}
	}
	if len(names) > 0 {
		ways = slices.Insert(ways, 0, fmt.Sprintf("kubectl -n %s delete pod %s", members[0].pod.Namespace, strings.Join(names, " ")))
	}
	return strings.Join(ways[:min(len(ways), mostNamed)], "; ")
}
