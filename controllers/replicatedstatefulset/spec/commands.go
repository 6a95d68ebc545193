package spec

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/bounds"
)

var (
	// NeededCommands are the commands that a spec must have. Without an optional command, another
	// one is used or the task is skipped (see facts.Facts.Command).
	NeededCommands   = []string{v1alpha1.CommandSequence, v1alpha1.CommandStatus, v1alpha1.CommandStop, v1alpha1.CommandPrimary}
	OptionalCommands = []string{v1alpha1.CommandSeed, v1alpha1.CommandSecondary, v1alpha1.CommandPromote, v1alpha1.CommandDemote, v1alpha1.CommandLeave, v1alpha1.CommandPreStop}
	// commandPurposes end the message about a missing command.
	commandPurposes = map[string]string{
		v1alpha1.CommandSequence: "prints how new the data of a member is",
		v1alpha1.CommandStatus:   "says by its exit code whether a member runs",
		v1alpha1.CommandStop:     "stops a member",
		v1alpha1.CommandPrimary:  "starts a member as primary",
	}
)

// SentCommands returns the commands that the operator sends. The kubelet runs the others.
func SentCommands() []string {
	return slices.DeleteFunc(slices.Concat(NeededCommands, OptionalCommands), func(name string) bool { return name == v1alpha1.CommandPreStop })
}

// Asks reports whether a command is a query that changes nothing.
func Asks(name string) bool {
	return name == v1alpha1.CommandStatus || name == v1alpha1.CommandSequence
}

// StartsPrimary reports whether a command may make a primary.
func StartsPrimary(name string) bool {
	return name == v1alpha1.CommandSeed || name == v1alpha1.CommandPrimary || name == v1alpha1.CommandPromote
}

// Starts reports whether a command starts a member or makes a running one primary. If it fails, the
// member must be stopped before its next start.
func Starts(name string) bool { return StartsPrimary(name) || name == v1alpha1.CommandSecondary }

// MaxContainers is higher than a member can have. A foreign pod with our labels may have some ten
// thousand containers.
const MaxContainers = 4 * bounds.Containers

// CommandsIn returns the name of the container in which commands run.
func CommandsIn(pod *v1alpha1.PodPolicy) string { return pod.Containers[pod.CommandContainer()].Name }

// HasPreStop reports whether a container has a preStop hook of any type.
func HasPreStop(c *corev1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }

// MaxSequence is the max number of bytes that are kept of the output of sequence. A number has at
// most 20 digits. The output of other commands is not kept.
const MaxSequence = 64

// Placeholders in a command: the epoch, and when the object was created, in seconds since 1970. As in
// the command of a container, $$ escapes them.
const (
	epochWord   = "$(RSS_EPOCH)"
	createdWord = "$(RSS_CREATED)"
)

// WithEpoch returns a command of the spec with the placeholders substituted.
func WithEpoch(argv []string, created metav1.Time, epoch int64) []string {
	words := strings.NewReplacer("$"+epochWord, epochWord, epochWord, strconv.FormatInt(epoch, 10),
		"$"+createdWord, createdWord, createdWord, strconv.FormatInt(created.Unix(), 10))
	substituted := make([]string, 0, len(argv))
	for _, arg := range argv {
		substituted = append(substituted, words.Replace(arg))
	}
	return substituted
}
