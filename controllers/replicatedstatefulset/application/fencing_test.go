package application_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/application"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// byLease is fencing by a Lease. 0 seconds are the default.
func byLease(seconds int32) change {
	return func(s *v1alpha1.ReplicatedStatefulSet) {
		s.Spec.Fencing = &v1alpha1.FencingPolicy{Mode: v1alpha1.FencingLease}
		if seconds != 0 {
			s.Spec.Fencing.LeaseDurationSeconds = &seconds
		}
	}
}

func TestInvalidFencing(t *testing.T) {
	both := func(changes ...change) change {
		return func(s *v1alpha1.ReplicatedStatefulSet) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	checkInvalid(t, []invalid{
		{"by a Lease", "", byLease(0)},
		{"by a Lease of Redis", "", both(ofRedis(v1alpha1.RedisPolicy{}), byLease(600))},
		{"too short", "spec.fencing.leaseDurationSeconds: Invalid value: 9: must be from 10 to 600", byLease(9)},
		{"too long", "spec.fencing.leaseDurationSeconds: Invalid value: 601: must be from 10 to 600", byLease(601)},
		{"all members are primaries", `spec.fencing.mode: Invalid value: "Lease": all members of Etcd are primaries`, both(ofEtcd(nil), byLease(0))},
		{"a program of the user", `spec.fencing.mode: Invalid value: "Lease": the command in spec.pod.containers`,
			both(main(func(c *corev1.Container) { c.Command = []string{"/init"} }), byLease(0))},
	})
	set := fixture.SetOf(3, 1)
	byLease(0)(set)
	if errs := spec.Validate(spec.WithDefaults(set)); len(errs) != 1 || errs[0].Field != "spec.fencing.mode" {
		t.Errorf("without spec.application: %v", errs)
	}
	set.Spec.Fencing.Mode = v1alpha1.FencingProof
	if errs := spec.Validate(spec.WithDefaults(set)); len(errs) != 0 {
		t.Errorf("mode Proof without spec.application: %v", errs)
	}
}

func TestTheDurationOfALease(t *testing.T) {
	of := func(command ...string) time.Duration {
		return application.LeaseDuration(&corev1.Container{Command: command})
	}
	for _, r := range []struct {
		command []string
		want    time.Duration
	}{
		{filled(fixture.PostgreSQL(byLease(0))).Spec.Pod.Containers[0].Command, 30 * time.Second},
		{filled(fixture.PostgreSQL(byLease(45))).Spec.Pod.Containers[0].Command, 45 * time.Second},
		{filled(fixture.PostgreSQL()).Spec.Pod.Containers[0].Command, 0},
		{[]string{"/agent", "redis", "idle", "--lease=$(POD_NAME).member", "--duration=9s"}, 0},
		{[]string{"/agent", "redis", "idle", "--lease=other", "--duration=30s"}, 0},
		{[]string{"/agent", "redis", "seed", "--lease=$(POD_NAME).member", "--duration=30s"}, 0},
	} {
		if got := of(r.command...); got != r.want {
			t.Errorf("the duration in %q is %s, want %s", r.command, got, r.want)
		}
	}
	c := filled(fixture.PostgreSQL(byLease(0))).Spec.Pod.Containers[0]
	if c.Args = []string{"--duration=600s"}; application.LeaseDuration(&c) != 0 {
		t.Error("a container with arguments, which can change the flags, has a Lease")
	}
}

func TestAFencedCommand(t *testing.T) {
	want := []string{"/agent", "fenced", "--epoch=12", "--", "/agent", "redis", "seed"}
	if got := application.Fenced("/agent", 12, []string{"/agent", "redis", "seed"}); !slices.Equal(got, want) {
		t.Errorf("the command is %q, want %q", got, want)
	}
}

func TestTheEpochOfACommand(t *testing.T) {
	command := []string{"/agent", "redis", "seed"}
	for _, row := range []struct {
		argv  []string
		epoch int64
		rest  []string
	}{
		{application.Fenced("/agent", 12, command), 12, command},
		{command, 0, command},
		{[]string{"/agent", "fenced", "--epoch=x", "--", "a"}, 0, []string{"/agent", "fenced", "--epoch=x", "--", "a"}},
		{[]string{"/agent", "fenced", "12", "--", "a"}, 0, []string{"/agent", "fenced", "12", "--", "a"}},
	} {
		if epoch, rest := application.Unfenced(row.argv); epoch != row.epoch || !slices.Equal(rest, row.rest) {
			t.Errorf("%q has epoch %d and command %q", row.argv, epoch, rest)
		}
	}
}

func TestAWarningAboutFencingOfOneMember(t *testing.T) {
	for replicas, want := range map[int32]int{1: 1, 2: 0} {
		set := filled(fixture.PostgreSQL(byLease(0)))
		set.Spec.Replicas = &replicas
		if got := application.Warnings(set); len(got) != want {
			t.Errorf("%d replicas: %q", replicas, got)
		}
	}
}
