package large

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
)

func TestFewPassesReadMuchAtOneTime(t *testing.T) {
	g := NewWithT(t)
	first, leave := Pass(t.Context())
	g.Expect(Enter(first)).To(Succeed())
	g.Expect(Enter(first)).To(Succeed(), "it has its place")
	ctx, stop := context.WithCancel(t.Context())
	second, nothing := Pass(ctx)
	stop()
	g.Expect(Enter(second)).To(MatchError(context.Canceled), "there is one place")
	nothing()
	leave()
	third, leave := Pass(t.Context())
	defer leave()
	g.Expect(Enter(third)).To(Succeed())
}
