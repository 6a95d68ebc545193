package replicatedstatefulset

import (
	"strings"
	"testing"
	"time"
)

func TestCreate(t *testing.T) {
	s := newStage(t, toySet(3, 1))
	s.settle(10 * time.Second)
	s.tell()
	t.Log("\n" + strings.Join(s.Story, "\n"))
}
