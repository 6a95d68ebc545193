package steps

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheTimeLeftIsThatOfTheLastRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "times.json")
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		takes := func(d time.Duration, err error) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return err }
		}
		run := func(all ...Step) (string, error) {
			var out strings.Builder
			err := Run(t.Context(), &out, file, all)
			return out.String(), err
		}
		boot := Step{"Booting", "boot", 2 * time.Minute, takes(21*time.Second, nil)}
		deploy := Step{"Deploying", "", 80 * time.Second, takes(time.Second, nil)}
		g.Expect(run(boot, deploy)).To(Equal("\n==> Booting (about 3 min left)\n\n==> Deploying (about 80 s left)\n"), "an estimate")
		g.Expect(run(boot, deploy)).To(Equal("\n==> Booting (about 20 s left)\n\n==> Deploying (about 5 s left)\n"))
		unbuilt := boot
		unbuilt.Key = "boot of programs that are not built"
		g.Expect(run(unbuilt, deploy)).To(HavePrefix("\n==> Booting (about 2 min left)\n"), "another step")

		broken := deploy
		broken.Do = takes(time.Hour, errors.New("broken"))
		_, err := run(broken, boot)
		g.Expect(err).To(MatchError("broken"))
		g.Expect(run(deploy)).To(ContainSubstring("about 5 s left"), "a failed step has no time")
		g.Expect(os.WriteFile(file, []byte("torn"), 0o644)).To(Succeed())
		g.Expect(run(deploy)).To(ContainSubstring("about 80 s left"))
	})
}
