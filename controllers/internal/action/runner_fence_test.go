package action

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
	"github.com/stateful-operator/stateful-operator/controllers/internal/podexec"
)

// lock is a lock that this process acquires and can release.
type lock struct{ resourcelock.Interface }

func (lock) Identity() string                                                { return "me" }
func (lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }
func (lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

func TestV2AStatusIsNotWrittenAgainWithoutALease(t *testing.T) {
	lease, err := leadership.New(&rest.Config{}, "ns", "lease", resourcelock.ResourceLockConfig{Identity: "me"},
		leadership.Timing{LeaseDuration: time.Hour, RenewDeadline: time.Hour, RetryPeriod: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	lease.Interface = lock{}
	if err := lease.Create(context.Background(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
		t.Fatal(err)
	}
	have := pod("a")
	have.UID = "uid-a"
	d := newDesk(meanwhile(1, func(ctx context.Context, c client.Client) error {
		return errors.Join(lease.Update(ctx, resourcelock.LeaderElectionRecord{}), // the lease is released while the write is in flight
			c.Patch(ctx, pod("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	}), have)
	d.Lease = lease
	from := d.read(t)
	to := from.DeepCopy()
	to.Status.Message = "observed"
	o := d.Run(context.Background(), types.NamespacedName{}, Steps{{{{Verb: PatchStatus, Object: to, From: from, Rebase: true, Reason: "Observed"}}}})
	if !errors.Is(o[0].Err, leadership.ErrNotLeading) || d.read(t).Status.Message != "" {
		t.Errorf("run returned %v and the status is %q", o[0].Err, d.read(t).Status.Message)
	}
}

func TestV2NothingIsWrittenWithoutALease(t *testing.T) {
	d := newDesk(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("a create request was sent")
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			t.Error("a status request was sent")
			return nil
		},
	}, pod("a"))
	board := &sender{}
	d.Lease, d.Commands = &leadership.Lease{}, board // it never led
	record := Action{Verb: PatchStatus, Object: pod("a"), From: pod("a"), Reason: "Record"}
	command := Action{Verb: Exec, Object: pod("a"), Command: &podexec.Command{Name: "seed"}, Reason: "Seed"}
	for _, o := range d.Run(context.Background(), types.NamespacedName{}, Steps{{making("b"), {record}, {command}}}) {
		if !errors.Is(o.Err, leadership.ErrNotLeading) {
			t.Errorf("%s returned %v", o.Action, o.Err)
		}
	}
	if len(board.sent) > 0 {
		t.Errorf("request %q was sent", board.sent)
	}
	expect(t, "recorded writes", d.noted)
}
