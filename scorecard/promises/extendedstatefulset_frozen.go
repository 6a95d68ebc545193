package promises

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
)

// An operator that is stopped in the middle of an upgrade, and goes on later.

// frozenCanary stops all operators when the canary has a pod, for longer than the
// canary may take, and lets it become Ready after they were woken.
func frozenCanary(ctx context.Context, c *Cluster) (err error) {
	const watchTime = 40 * time.Second
	pods, err := c.lookOut(ctx)
	if err != nil {
		return err
	}
	defer pods.stop()
	x := c.extended("frozen", 2, coexist, patiently, minReady(probation))
	if err := x.create(ctx); err != nil {
		return err
	}
	capacity := pods.hold(least("frozen", 2))
	waits := probed("test -e /tmp/go")
	if err := errors.Join(x.edit(ctx, inVersion("2"), waits, watchFor(watchTime, patience)), x.triesNext(ctx), x.get(ctx)); err != nil {
		return err
	}
	if u := x.set.Status.Update; u == nil || u.CanaryAt == nil {
		return errors.New(tellExtended(x.set))
	}
	began := x.set.Status.Update.CanaryAt.Time
	wake, err := c.freezeOperators(ctx)
	if err == nil {
		err = sleep(ctx, time.Until(began.Add(watchTime+5*time.Second)))
	}
	if err := errors.Join(err, wake()); err != nil {
		return err
	}
	if err := c.operatorActs(ctx); err != nil {
		return err
	}
	// One that looks at the spec as it is now has decided about the canary.
	if err := x.edit(ctx, watchFor(watchTime, patience+time.Second)); err != nil {
		return err
	}
	if err := x.says(ctx, "something", func(v1alpha1.ExtendedStatefulSetStatus) bool { return true }); err != nil {
		return err
	}
	for i := range 2 {
		if err := x.letGo(ctx, fmt.Sprintf("%s-%d", x.child(2), i)); err != nil {
			return errors.Join(err, errors.New(tellExtended(x.set)))
		}
	}
	return errors.Join(x.serves(ctx, 2), capacity.kept())
}

// letGo makes a pod of version 2 Ready.
func (x *extended) letGo(ctx context.Context, pod string) error {
	return until(ctx, pod+" to be told to be Ready", func(ctx context.Context) error {
		if err := x.get(ctx); err != nil {
			return err
		}
		if x.set.Status.Phase == v1alpha1.PhaseStale {
			return fmt.Errorf("it was given up: %s", tellExtended(x.set))
		}
		_, err := x.shell(ctx, pod, "touch /tmp/go")
		return err
	})
}

// freezeOperators stops the programs of all operators (SIGSTOP) until wake (SIGCONT).
// They run on this machine, in containers of its nodes.
func (c *Cluster) freezeOperators(ctx context.Context) (wake func() error, err error) {
	var stopped []int
	wake = func() (err error) {
		for _, pid := range stopped {
			// One that a kubelet ended meanwhile is gone.
			if e := syscall.Kill(pid, syscall.SIGCONT); e != nil && !errors.Is(e, syscall.ESRCH) {
				err = errors.Join(err, fmt.Errorf("waking process %d: %w", pid, e))
			}
		}
		return err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(c.Operator.Namespace), client.MatchingLabels{"control-plane": "controller-manager"}); err != nil {
		return wake, err
	}
	for i := range pods.Items {
		for _, s := range pods.Items[i].Status.ContainerStatuses {
			_, id, _ := strings.Cut(s.ContainerID, "://")
			pids, err := processesOf(id)
			if err != nil {
				return wake, err
			}
			for _, pid := range pids {
				if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
					return wake, fmt.Errorf("stopping process %d of %s: %w", pid, pods.Items[i].Name, err)
				}
				stopped = append(stopped, pid)
			}
		}
	}
	if len(stopped) == 0 {
		return wake, fmt.Errorf("no process of %d operators was found", len(pods.Items))
	}
	c.Log("processes %v are stopped", stopped)
	return wake, nil
}

// processesOf are those of a container: its id is in the names of their cgroups.
func processesOf(container string) (pids []int, err error) {
	if container == "" {
		return nil, nil
	}
	all, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), container) {
			continue // it may just have ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
