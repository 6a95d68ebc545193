package replicatedstatefulset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/children"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// oneKey is a key that is never lost.
type oneKey struct{}

func (oneKey) Current(context.Context, bool) ([]byte, error) {
	return []byte("0123456789abcdef0123456789abcdef"), nil
}

// follows makes the set follow Secret creds, which is mounted, and an optional one that may be
// missing.
func follows(set *v1alpha1.ReplicatedStatefulSet) *v1alpha1.ReplicatedStatefulSet {
	set.Spec.UpdateOnEnvChange, set.Spec.Secrets = true, []string{"creds"}
	set.Spec.Pod.Containers[0].EnvFrom = []corev1.EnvFromSource{{
		SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "extra"}, Optional: ptr.To(true)}}}
	return set
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
	s := newStage(t, follows(setOf(3, 1)))
	secret("creds", text)(s)
	s.settle(30 * time.Second)
	return s
}

// same reports whether the pods are the same as before.
func (s *stage) same(before []*corev1.Pod) bool {
	return slices.EqualFunc(before, s.pods(), func(a, b *corev1.Pod) bool { return a.UID == b.UID })
}

func (s *stage) condition(kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(s.set().Status.Conditions, kind), metav1.Condition{})
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
			s.look()
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
			s.mark = s.pods()
			together(orphan, deleteStatefulSet)(s)
		}},
	} {
		t.Run(row.says, func(t *testing.T) {
			s := followed(t, "one")
			s.mark = s.pods()
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
	before := s.pods()
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
	before := s.pods()
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
	before := s.pods()
	s.r.Config.Live = forbidding{s.Cluster}
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
	s.r.Config.Live = s.Cluster
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
	before, hash := s.pods(), facts.StampOf(s.statefulSet())
	secret("creds", "two")(s)
	s.look()
	s.pass() // the batching window begins
	s.look()
	s.Now = s.Now.Add(configuration.Window)
	secret("creds", "one")(s) // the cache does not show it
	s.pass()
	if got := facts.StampOf(s.statefulSet()); got != hash {
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
		s.look()
		s.pass()
		for _, move := range slices.Concat(s.machines(), s.db.moves()) {
			move()
		}
		s.Now = s.Now.Add(200 * time.Millisecond)
		for _, p := range s.pods() {
			uids[p.UID] = true
		}
	}
	if len(uids) != 6 {
		t.Errorf("three members had %d pods, want two each", len(uids))
	}
}

func TestASetThatIsNotFollowedKeepsItsTemplate(t *testing.T) {
	set := spec.WithDefaults(setOf(3, 1))
	plain := children.BuildTemplate(set, children.Hashes{})
	if plain.Annotations[v1alpha1.AnnotationTemplate] != children.TemplateHash(set, &plain.Spec, children.Hashes{}) || plain.Annotations[v1alpha1.AnnotationConfigHash] != "" {
		t.Error("the template of a set without the field has a hash of its configuration")
	}
	set.Spec.UpdateOnEnvChange = true
	if followed := children.BuildTemplate(set, children.Hashes{}); followed.Annotations[v1alpha1.AnnotationTemplate] != plain.Annotations[v1alpha1.AnnotationTemplate] {
		t.Error("setting the field recreates the members")
	}
	if changed := children.BuildTemplate(set, children.Hashes{Config: "h"}); changed.Annotations[v1alpha1.AnnotationTemplate] == plain.Annotations[v1alpha1.AnnotationTemplate] {
		t.Error("a change recreates no member")
	}
}

func TestWhatIsFollowed(t *testing.T) {
	set := follows(setOf(3, 1))
	set.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "pull"}}
	set.Spec.TLS = &v1alpha1.TLSPolicy{Static: &v1alpha1.StaticTLS{OperatorSecret: "clients", Member: &v1alpha1.MemberTLS{PeerSecret: "peer", ServerSecret: "server"}}}
	set.Spec.Pod.Template = &runtime.RawExtension{Raw: []byte(`{"spec": {"volumes": [{"name": "v", "configMap": {"name": "conf"}}], "imagePullSecrets": [{"name": "pull2"}]}}`)}
	if got, want := fmt.Sprint(observe.UsesIndex(set)), "[ConfigMap conf Secret creds Secret extra Secret peer Secret server]"; got != want {
		t.Errorf("followed are %s, want %s", got, want)
	}
	set.Spec.UpdateOnEnvChange = false
	if got := observe.UsesIndex(set); got != nil {
		t.Errorf("followed are %v, want none", got)
	}
}

func TestMoreThanAreFollowedAreRefused(t *testing.T) {
	set := follows(setOf(3, 1))
	for i := range configuration.MaxSources {
		set.Spec.Pod.Containers[0].EnvFrom = append(set.Spec.Pod.Containers[0].EnvFrom, corev1.EnvFromSource{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprint("s", i)}}})
	}
	errs := spec.ValidateConfig(set, field.NewPath("spec", "updateOnEnvChange"))
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "at most 256") {
		t.Errorf("the errors are %v", errs)
	}
	set.Spec.UpdateOnEnvChange = false
	if errs := spec.ValidateConfig(set, nil); errs != nil {
		t.Errorf("a set that is not followed is refused: %v", errs)
	}
}

func TestTheNextStatefulSetComparesWhatPodsHave(t *testing.T) {
	complete := configuration.State{Key: "k", Seen: "s", Hash: "now"}
	for _, row := range []struct {
		says    string
		view    configuration.View
		adopts  bool
		hash    string
		records string // the hash of the record; "-" for no record
	}{
		{"a new set records its configuration", configuration.View{State: complete}, false, "now", "now"},
		{"a new set with missing configuration records nothing yet", configuration.View{State: configuration.State{Key: "k", Hash: "x", Missing: []string{"it"}}}, false, "", "-"},
		{"adopted pods without a hash keep none", configuration.View{State: complete}, true, "", "-"},
		{"adopted pods with a hash keep it, and it is compared", configuration.View{State: complete, Carried: configuration.Stamp{Hash: "old"}}, true, "old", "old"},
		{"adopted pods with a hash keep it while the configuration is unreadable", configuration.View{State: configuration.State{Key: "k", Unreadable: "no"}, Carried: configuration.Stamp{Hash: "old"}}, true, "old", "old"},
	} {
		got := facts.FirstTarget(&row.view, row.adopts, noon)
		records := "-"
		if r := configuration.ParseRecord(got.Record); r != nil && got.Record != "" {
			records = r.Hash
		}
		if row.adopts && row.view.Carried.Hash == "" {
			records = "-" // its record is the base, and the pods have none
		}
		if got.Hash != row.hash || records != row.records {
			t.Errorf("%s: hash %q, record of %q", row.says, got.Hash, records)
		}
	}
}

func TestARestartIsSeenInTheStatefulSetOfASet(t *testing.T) {
	begun := configuration.Record{Key: "k", Restarted: &metav1.Time{Time: noon}}
	for _, row := range []struct {
		says   string
		change func(*appsv1.StatefulSet)
		want   bool
	}{
		{"the spec was just written", func(s *appsv1.StatefulSet) { s.Generation = 2 }, true},
		{"a member has the previous template", func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 2 }, true},
		{"all members have the current template", func(*appsv1.StatefulSet) {}, false},
		{"the StatefulSet has 0 replicas", func(s *appsv1.StatefulSet) { s.Spec.Replicas, s.Generation = ptr.To(int32(0)), 2 }, false},
		{"the StatefulSet is terminating", func(s *appsv1.StatefulSet) { s.DeletionTimestamp, s.Generation = &metav1.Time{Time: noon}, 2 }, false},
		{"the restart has another reason", func(s *appsv1.StatefulSet) { s.Annotations, s.Generation = nil, 2 }, false},
	} {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{v1alpha1.AnnotationConfigRecord: begun.String()}},
			Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(3))}, Status: appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdatedReplicas: 3}}
		row.change(set)
		if got := !facts.RestartsSince(set).IsZero(); got != row.want {
			t.Errorf("%s: restarting is %v", row.says, got)
		}
	}
}

// TestReasonsOfConfigurationAreThoseOfTheAPI tests that the reasons of the shared reader equal
// those of the API.
func TestReasonsOfConfigurationAreThoseOfTheAPI(t *testing.T) {
	for said, want := range map[string]string{
		configuration.EventFollowed: v1alpha1.EventConfigFollowed, configuration.EventRestart: v1alpha1.EventConfigRestart,
		configuration.EventKeyChanged: v1alpha1.EventConfigKeyChanged, configuration.EventKeyLost: v1alpha1.EventConfigKeyLost,
		configuration.ReasonMissing: v1alpha1.ReasonConfigMissing, configuration.ReasonUnreadable: v1alpha1.ReasonConfigUnreadable,
		configuration.ReasonChanged: v1alpha1.ReasonConfigChanged, configuration.ReasonTurn: v1alpha1.ReasonConfigTurn,
	} {
		if said != want {
			t.Errorf("the reason is %s, want %s of the API", said, want)
		}
	}
}

// TestW20AMemberWithOldContentsIsTold tests W20: the kubelet keeps the contents of an immutable
// ConfigMap while a pod on its node uses it.
func TestW20AMemberWithOldContentsIsTold(t *testing.T) {
	w := &facts.World{Set: setOf(2, 1)}
	for name, hash := range map[string]string{"db-0": "old", "db-1": "new"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{v1alpha1.AnnotationConfigHash: hash}}}
		if pod.Spec.NodeName = "n1"; hash == "new" {
			pod.CreationTimestamp = metav1.NewTime(noon)
		}
		w.Members = append(w.Members, &facts.Member{Pod: pod})
	}
	r := configuration.Record{Key: "k", Hash: "new", Recreated: []string{"Secret creds"}}
	w.Config.Target = configuration.Target{Stamp: configuration.Stamp{Hash: "new", Record: r.String()}}
	facts.NoteCached(w)
	if got := configuration.ParseRecord(w.Config.Target.Record); len(got.Cached) != 1 || got.Cached[0] != "db-1" {
		t.Errorf("the record names %q", got.Cached)
	}
	if !strings.Contains(w.Config.Cached, "kubectl cordon n1 && kubectl -n "+w.Set.Namespace+" delete pod db-1 && kubectl uncordon n1") {
		t.Errorf("the message is %s", w.Config.Cached)
	}
}
