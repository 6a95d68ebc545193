package extended

import (
	"context"
	"strings"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/scorecard/promises/kit"
)

// Restored is an ExtendedStatefulSet that is restored from a backup.
type Restored struct{ x *fixture }

// ToRestore creates an ExtendedStatefulSet of that name whose pods have data.
func ToRestore(ctx context.Context, c *kit.Cluster, name string) *Restored {
	x := newFixture(c, name, 2, onClaims, patiently)
	x.create(ctx)
	return &Restored{x}
}

// Forget clears the object, so that no field of an old status remains after a read.
func (b *Restored) Forget() {
	set := b.x.set
	b.x.set = &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
}

// ComesBack waits until the pods run on their previous data.
func (b *Restored) ComesBack(ctx context.Context) {
	x := b.x
	x.serves(ctx, 1)
	for name := range x.pods(ctx) {
		told := x.shell(ctx, name, "cat /data/diary")
		x.Expect(strings.Count(told, "begin 1")).To(BeNumerically(">", 1), "diary of %s: %q", name, told)
	}
}
