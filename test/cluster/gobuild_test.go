package cluster

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestWhatIsWrongWithABuildIsPassedOn(t *testing.T) {
	g := NewWithT(t)
	var log strings.Builder
	build{}.follow(strings.NewReader("example.org/a\n# example.org/b\n./b.go:7:2: undefined: c\nexample.org/d\n"), &log)
	g.Expect(log.String()).To(Equal("# example.org/b\n./b.go:7:2: undefined: c\n"))
}

func TestALongBuildSaysWhatIsLeft(t *testing.T) {
	g := NewWithT(t)
	whole := build{compiled: 3000}
	g.Expect(whole.left(1000, 2*time.Minute)).To(Equal(" of about 3000, about 4m0s left"))
	g.Expect(whole.left(0, time.Minute)).To(BeEmpty())
	g.Expect(whole.left(3001, time.Minute)).To(BeEmpty(), "the estimate was wrong")
	g.Expect(build{}.left(10, time.Minute)).To(BeEmpty(), "a build without an estimate")
}
