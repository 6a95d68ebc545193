package replicated

import (
	"context"
	"os"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Restored is a ReplicatedStatefulSet that is restored from a backup.
type Restored struct {
	ledger *replica
	// written is the content of the primary from before the backup.
	written string
}

// ToRestore creates a ReplicatedStatefulSet that is written to.
func ToRestore(ctx context.Context, c *kit.Cluster) *Restored {
	return &Restored{ledger: createLedger(ctx, c, "db", 3)}
}

// Quiesce ends the client, so that nothing is written any more.
func (b *Restored) Quiesce(ctx context.Context) {
	b.ledger.goesOnWriting(ctx)
	b.ledger.stopClient(ctx)
	b.written = b.ledger.log(ctx, b.ledger.primary(ctx))
}

// Forget clears the object, so that no field of an old status remains after a read.
func (b *Restored) Forget() {
	set := b.ledger.set
	b.ledger.set = &v1alpha1.ReplicatedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
}

// ComesBack waits until the set has its previous data and is written to again.
func (b *Restored) ComesBack(ctx context.Context) {
	r := b.ledger
	r.Expect(r.log(ctx, r.primary(ctx))).To(HavePrefix(b.written), "entries acknowledged before the backup exist")
	r.Check(os.Rename(r.history(r.folder), r.history(r.folder)+".before"))
	r.writes(ctx)
}
