package replicatedstatefulset

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/fixture"
)

// oneKey is a key that is never lost.
type oneKey struct{}

func (oneKey) Current(context.Context, bool) ([]byte, error) {
	return []byte("0123456789abcdef0123456789abcdef"), nil
}

// secret writes the text into a Secret. gone deletes it.
func secret(name, text string) func(*stage) {
	return func(s *stage) {
		s.Say("# the data of Secret %s is set to %s", name, text)
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string][]byte{"a": []byte(text)}}
		made.UID = types.UID("uid of " + name)
		s.Put(made)
	}
}

func gone(name string) func(*stage) {
	return func(s *stage) {
		s.Say("# Secret %s is deleted", name)
		s.Remove(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}})
	}
}

// followed returns a stage at rest with a set that follows Secret creds.
func followed(t *testing.T, text string) *stage {
	t.Helper()
	s := newStage(t, fixture.Follows(fixture.SetOf(3, 1)))
	secret("creds", text)(s)
	s.settle(30 * time.Second)
	return s
}

// same reports whether the pods are the same as before.
func (s *stage) same(before []*corev1.Pod) bool {
	return slices.EqualFunc(before, s.Pods(), func(a, b *corev1.Pod) bool { return a.UID == b.UID })
}

func (s *stage) condition(kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(s.Set().Status.Conditions, kind), metav1.Condition{})
}

func TestRS96WhatRestartsNobody(t *testing.T) {
	for _, row := range []struct {
		says string
		does func(*stage)
	}{
		{"the field is set", func(s *stage) {
			s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.UpdateOnEnvChange = false })
			s.settle(30 * time.Second)
			secret("creds", "two")(s)
			s.settle(30 * time.Second)
			s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.UpdateOnEnvChange = true })
		}},
		{"metadata of the Secret changes", func(s *stage) { secret("creds", "one")(s) }},
		{"the operator restarts", func(s *stage) { s.restart() }},
		{"another Secret changes", func(s *stage) { secret("other", "two")(s) }},
		{"an edit is reverted within the batching window", func(s *stage) {
			secret("creds", "two")(s)
			s.Look()
			s.pass()
			secret("creds", "one")(s)
		}},
		{"the Secret is deleted and recreated with the same contents", func(s *stage) {
			gone("creds")(s)
			s.settle(30 * time.Second)
			secret("creds", "one")(s)
		}},
		{"the Secret changes while the set is paused", func(s *stage) {
			s.change(func(set *v1alpha1.ReplicatedStatefulSet) { set.Spec.Paused = true })
			secret("creds", "two")(s)
		}},
		{"the StatefulSet is recreated and adopts the pods", together(orphan, deleteStatefulSet)},
		{"the StatefulSet is recreated and adopts the pods after a restart for a change", func(s *stage) {
			secret("creds", "two")(s)
			s.settle(30 * time.Second)
			s.mark = s.Pods()
			together(orphan, deleteStatefulSet)(s)
		}},
	} {
		t.Run(row.says, func(t *testing.T) {
			s := followed(t, "one")
			s.mark = s.Pods()
			row.does(s)
			s.settle(30 * time.Second)
			if !s.same(s.mark) {
				t.Errorf("members are recreated:\n%s", strings.Join(s.Story, "\n"))
			}
		})
	}
}

func TestRS97AMissingSecretRestartsNobodyAndIsSaid(t *testing.T) {
	s := followed(t, "one")
	before := s.Pods()
	gone("creds")(s)
	s.settle(30 * time.Second)
	bad := s.condition(v1alpha1.ConditionDegraded)
	if bad.Reason != v1alpha1.ReasonConfigMissing || !strings.Contains(bad.Message, "Secret creds does not exist") {
		t.Errorf("the condition is %s: %s", bad.Reason, bad.Message)
	}
	image("two")(s) // a member that is recreated now would not start
	s.settle(30 * time.Second)
	if !s.same(before) {
		t.Error("members are recreated")
	}
	secret("creds", "two")(s)
	s.settle(30 * time.Second)
	if s.same(before) || s.condition(v1alpha1.ConditionDegraded).Reason != v1alpha1.ReasonHealthy {
		t.Error("the rollout does not continue")
	}
}

// TestRS96AnOptionalSecretThatComesIsAChange tests that the creation of an optional Secret counts
// as a change.
func TestRS96AnOptionalSecretThatComesIsAChange(t *testing.T) {
	s := followed(t, "one")
	before := s.Pods()
	secret("extra", "new")(s)
	s.settle(30 * time.Second)
	if s.same(before) {
		t.Error("no member is recreated")
	}
}

// forbidding is an API server that forbids reading Secrets.
type forbidding struct{ client.Reader }

func (f forbidding) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if _, is := into.(*corev1.Secret); is {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no"))
	}
	return f.Reader.Get(ctx, key, into, opts...)
}

func TestRS97ASecretThatMayNotBeReadIsSaidWithTheCommand(t *testing.T) {
	s := followed(t, "one")
	before := s.Pods()
	s.Reader.Config.Live = forbidding{s.Cluster}
	secret("creds", "two")(s)
	s.settle(30 * time.Second)
	bad := s.condition(v1alpha1.ConditionDegraded)
	for _, want := range []string{"cannot be read", "--verb=get --resource=secrets --resource-name=creds", "--serviceaccount=system:operator"} {
		if bad.Reason != v1alpha1.ReasonConfigUnreadable || !strings.Contains(bad.Message, want) {
			t.Errorf("the condition is %s: %s", bad.Reason, bad.Message)
		}
	}
	if !s.same(before) {
		t.Error("members are recreated")
	}
	s.Reader.Config.Live = s.Cluster
	s.Now = s.Now.Add(configuration.Retry)
	s.settle(30 * time.Second)
	if s.same(before) {
		t.Error("the Secret is not followed once it can be read")
	}
}

// TestRS98ARestartIsBegunOnWhatIsThereNow tests that no restart begins from cached contents, which
// may have been reverted.
func TestRS98ARestartIsBegunOnWhatIsThereNow(t *testing.T) {
	s := followed(t, "one")
	before, hash := s.Pods(), facts.StampOf(s.StatefulSet())
	secret("creds", "two")(s)
	s.Look()
	s.pass() // the batching window begins
	s.Look()
	s.Now = s.Now.Add(configuration.Window)
	secret("creds", "one")(s) // the cache does not show it
	s.pass()
	if got := facts.StampOf(s.StatefulSet()); got != hash {
		t.Errorf("the hash on the StatefulSet is %v, was %v", got, hash)
	}
	s.settle(30 * time.Second)
	if !s.same(before) {
		t.Error("members are recreated")
	}
}

// TestOneRestartIsEnoughForBoth tests that a change of the spec and one of a Secret cause one
// restart.
func TestOneRestartIsEnoughForBoth(t *testing.T) {
	s := followed(t, "one")
	uids := map[types.UID]bool{}
	secret("creds", "two")(s)
	image("two")(s)
	for range 400 {
		s.Look()
		s.pass()
		for _, move := range slices.Concat(s.Machines(), s.db.Moves()) {
			move()
		}
		s.Now = s.Now.Add(200 * time.Millisecond)
		for _, p := range s.Pods() {
			uids[p.UID] = true
		}
	}
	if len(uids) != 6 {
		t.Errorf("three members had %d pods, want two each", len(uids))
	}
}
