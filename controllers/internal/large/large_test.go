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
	g.Expect(Enter(first)).To(Succeed(), "the request has a slot")
	ctx, stop := context.WithCancel(t.Context())
	second, nothing := Pass(ctx)
	stop()
	g.Expect(Enter(second)).To(MatchError(context.Canceled), "there is a single slot")
	nothing()
	leave()
	third, leave := Pass(t.Context())
	defer leave()
	g.Expect(Enter(third)).To(Succeed())
}
