package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestProblemsAreLoggedOnce tests that an error is logged when it changes, and that a missing Lease has one text.
func TestProblemsAreLoggedOnce(t *testing.T) {
	var lines []string
	k := &keeper{lease: "shop/orders"}
	k.Log = NewLog(func(line string) { lines = append(lines, line) })
	missing := fmt.Errorf("%w: not found", errNoLease)
	for _, a := range []answer{
		{Get, Lease{}, missing},
		{Renew, Lease{}, missing},
		{Get, Lease{}, missing},
		{Get, Lease{}, nil},
		{Get, Lease{}, errors.New("refused")},
		{Renew, Lease{}, errors.New("refused")},
		{Renew, Lease{}, errors.New("refused")},
	} {
		k.logProblem(a, outcomeOf(a.err))
	}
	mark := make(chan struct{})
	k.Log.entries <- entry{mark: mark}
	<-mark
	want := []string{
		"cannot use Lease shop/orders: the operator's Lease does not exist: not found",
		"the API server responds again",
		"cannot read Lease shop/orders: refused",
		"cannot renew Lease shop/orders: refused",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("the log is\n%s", strings.Join(lines, "\n"))
	}
}

func TestAKeeperNeedsAnIdentityAndAServer(t *testing.T) {
	config := Config{Name: "orders", Label: LabelMember, Duration: 15 * time.Second, Folders: Folders{Fencing: t.TempDir()}}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	fails := func(text string) {
		t.Helper()
		if _, err := newKeeper(config, NewMember); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v, want %s", err, text)
		}
	}
	fails("identity of the pod")
	for _, file := range []string{namespaceFile, podNameFile, podUIDFile} {
		write(t, config.Folders.Fencing, file, "a")
	}
	fails("KUBERNETES_SERVICE_HOST")
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	fails("configure the client")
}

// TestARefusalIsRecorded tests that a conflict clears the deadline of the first renewal, and a lost response does not.
func TestARefusalIsRecorded(t *testing.T) {
	for err, want := range map[error]bool{
		apierrors.NewConflict(schema.GroupResource{Resource: resource}, "x", nil): false, context.Canceled: true,
	} {
		c := newMemberScript(t)
		c.reads(0, lease(1, self))
		c.sent(0, Renew)
		k := &keeper{holder: c.h}
		k.answered(answer{Renew, Lease{}, err})
		if got := c.h.Uncertain() > 0; got != want {
			t.Errorf("%v: a deadline remains: %v, want %v", err, got, want)
		}
	}
}
