package facts

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// Peers returns the DNS names of the primaries.
func (f *Facts) Peers() (names []string) {
	for _, m := range f.Primaries() {
		names = append(names, m.Name()+"."+spec.ServiceName(f.Set))
	}
	return names
}

// Command returns a command for a member, with an epoch and the names of the primaries as
// arguments. If the spec has no command of that name, it runs the program of the command named by
// instead. For example, if there is no seed, it runs that of primary. A start as primary of a member
// with a Lease begins only with the next epoch of the Lease.
func (f *Facts) Command(m *Member, name, instead string, epoch int64) *podexec.Command {
	configured, ok := f.Set.Spec.Pod.Commands[name]
	if !ok {
		configured = f.Set.Spec.Pod.Commands[instead]
	}
	keep := 0
	if name == v1alpha1.CommandSequence {
		keep = spec.MaxSequence
	}
	argv := append(spec.WithEpoch(configured.Command, f.Set.CreationTimestamp, epoch), f.Peers()...)
	if spec.StartsPrimary(name) && m.IsLeased() {
		argv = application.Fenced(children.AgentOf(m.Pod, m.CommandsIn), f.Observed.LeaseEpoch(m.Identity()), argv)
	}
	return &podexec.Command{
		Name:        name,
		Keep:        keep,
		Pod:         types.NamespacedName{Namespace: m.Pod.Namespace, Name: m.Pod.Name},
		UID:         m.Pod.UID,
		Container:   m.CommandsIn,
		ContainerID: m.Running(),
		Argv:        argv,
		Timeout:     spec.TimeoutOf(configured),
	}
}

// StatusCommandLine returns a shell command that shows the output of status. It changes nothing.
func (f *Facts) StatusCommandLine(m *Member) string {
	return f.CommandLine(m, v1alpha1.CommandStatus)
}

// CommandLine returns a shell command that runs a command of the spec and shows its output.
func (f *Facts) CommandLine(m *Member, name string) string {
	c := f.Command(m, name, name, f.Record.Epoch)
	return fmt.Sprintf(
		"kubectl -n %s exec %s -c %s -- %s; echo $?",
		m.Pod.Namespace, m.Name(), c.Container, Quoted(c.Argv, name),
	)
}

// Quoted quotes the arguments of a command for a shell. It replaces a script that is too long for a
// message by the name of the command.
func Quoted(argv []string, name string) string {
	var words []string
	for _, a := range argv {
		if !plainWord.MatchString(a) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	if line := strings.Join(words, " "); len(line) <= maxShown {
		return line
	}
	return "(command " + name + " of the spec)"
}

// maxShown is the max length in bytes of a command in a message.
const maxShown = 300

// plainWord matches words that a shell does not interpret.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)
