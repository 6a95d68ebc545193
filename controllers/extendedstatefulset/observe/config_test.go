package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/fixture"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/observe"
	"github.com/stateful-operator/stateful-operator/controllers/internal/configuration"
)

// ctlOfTest is a cluster with one object. It counts the reads of content.
type ctlOfTest struct {
	t      *testing.T
	client client.WithWatch
	reads  int
	fails  error  // error of reads of content
	key    []byte // the key that this process has in memory
	stored []byte // the key on the API server; nil means the same
	keys   int    // number of reads of the stored key
	noKey  error  // error of reads of the stored key
	reader *observe.ConfigReader
	set    *v1alpha1.ExtendedStatefulSet
	child  *appsv1.StatefulSet
	now    time.Time
	woken  []string
}

func (c *ctlOfTest) Current(_ context.Context, stored bool) ([]byte, error) {
	if !stored {
		return c.key, nil
	}
	if c.keys++; c.noKey != nil {
		return nil, c.noKey
	}
	if c.stored != nil {
		c.key = c.stored
	}
	return c.key, nil
}

// podSpec parses a pod template in YAML.
func podSpec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	var pod corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

const usesTwo = `
containers:
- name: web
  envFrom: [{configMapRef: {name: conf}}]
  env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: creds, key: password}}}]`

func newCtl(t *testing.T, pod string, objects ...client.Object) *ctlOfTest {
	t.Helper()
	inner := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
		WithIndex(&appsv1.StatefulSet{}, configuration.IndexRestarts, configuration.RestartIndex(facts.RestartsSince)).Build()
	c := &ctlOfTest{t: t, client: inner, key: []byte("0123456789abcdef0123456789abcdef"), now: fixture.Noon,
		set:   &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "set"}},
		child: fixture.Carrying(nil, "")}
	c.set.Spec.UpdateOnEnvChange = true
	c.child.Spec.Template.Spec = *podSpec(t, pod)
	live := interceptor.NewClient(inner, interceptor.Funcs{Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		c.reads++
		if c.fails != nil {
			return c.fails
		}
		return w.Get(ctx, key, o, opts...)
	}})
	c.restartOperator(live)
	return c
}

// restartOperator clears the state that is kept in memory.
func (c *ctlOfTest) restartOperator(live client.Reader) {
	if live == nil {
		live = c.reader.Live
	}
	c.reader = &observe.ConfigReader{
		Reader: configuration.Reader{Cache: c.client, Live: live, Key: c},
		Turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: 10}, Cache: c.client, Kind: v1alpha1.Kind, Began: facts.RestartsSince,
			Wake: func(n types.NamespacedName) { c.woken = append(c.woken, n.Name) },
		},
	}
}

// pass observes the configuration, writes the target, and returns its event or reason and the number of
// reads.
func (c *ctlOfTest) pass() string {
	c.t.Helper()
	c.reads = 0
	l, err := c.reader.Observe(context.Background(), c.set, []*appsv1.StatefulSet{c.child}, func(*appsv1.StatefulSet) string { return "" }, nil, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	w := l.Views[c.child.UID].Target(c.now)
	moved := w.Restarts(facts.StampOf(c.child))
	c.child = c.child.DeepCopy()
	metav1.SetMetaDataAnnotation(&c.child.ObjectMeta, v1alpha1.AnnotationConfigRecord, w.Record)
	if w.Hash != "" {
		metav1.SetMetaDataAnnotation(&c.child.Spec.Template.ObjectMeta, v1alpha1.AnnotationConfigHash, w.Hash)
	}
	said := w.Event + w.Reason
	if moved {
		said += " moved"
	}
	return fmt.Sprintf("%s, %d read", said, c.reads)
}

func (c *ctlOfTest) want(sentence, want string) {
	c.t.Helper()
	if got := c.pass(); got != want {
		c.t.Errorf("%s: %q, want %q", sentence, got, want)
	}
}

func (c *ctlOfTest) update(o client.Object) {
	c.t.Helper()
	o.SetResourceVersion("")
	if err := c.client.Update(context.Background(), o); err != nil {
		c.t.Fatal(err)
	}
}

func conf(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conf", Namespace: "ns", UID: "conf"}, Data: map[string]string{"a": value}}
}

func creds(password, other string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds", Namespace: "ns", UID: "creds"},
		Data: map[string][]byte{"password": []byte(password), "other": []byte(other)}}
}

func TestE14ContentsAreReadWhenTheyMayHaveChanged(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.want("first pass", "ConfigFollowed, 2 read")
	c.want("no edit", ", 0 read")
	c.restartOperator(nil)
	c.want("no edit after a restart of the operator", ", 0 read")
	m := conf("1")
	m.Labels = map[string]string{"a": "b"}
	c.update(m)
	c.want("edit of metadata", ", 2 read") // the other object was not read since the restart either
	c.want("no further edit", ", 0 read")
	c.update(creds("p", "y"))
	c.want("edit of an unused key", ", 1 read")
	c.update(creds("q", "y"))
	c.want("edit of a used key", "ConfigChanged, 1 read")
	c.now = c.now.Add(time.Second)
	c.update(conf("2"))
	c.want("second edit in the window", "ConfigChanged, 1 read")
	c.now = c.now.Add(time.Second)
	c.want("end of the window", "ConfigRestart moved, 0 read")
	c.want("no further edit", ", 0 read")
}

func TestAnEditThatIsTakenBackInTheWindowRestartsNothing(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.want("edit", "ConfigChanged, 1 read")
	c.update(conf("1"))
	c.now = c.now.Add(time.Hour)
	c.want("reverted edit", ", 1 read")
	c.update(conf("3"))
	c.want("edit after a reverted one starts a new window", "ConfigChanged, 1 read")
}

func TestE14AnEditWhileTheOperatorIsDownIsFoundAtItsStart(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.restartOperator(nil)
	c.want("start of the operator", "ConfigChanged, 2 read")
	c.restartOperator(nil)
	c.now = c.now.Add(time.Minute)
	c.want("restart of the operator in the window", "ConfigChanged, 2 read")
	c.now = c.now.Add(configuration.Window)
	c.want("end of the window after the restart", "ConfigRestart moved, 0 read")
}

func TestE18WhatCannotBeReadIsNotEmpty(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.fails = errors.New("forbidden")
	c.want("forbidden read", "ConfigUnreadable, 1 read")
	c.now = c.now.Add(time.Hour)
	c.want("forbidden read for a long time", "ConfigUnreadable, 1 read")
	c.fails = nil
	c.update(conf("1"))
	c.want("allowed read of unchanged contents", ", 1 read")
}

func TestE18AMissingOneIsWaitedFor(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	if err := c.client.Delete(context.Background(), creds("", "")); err != nil {
		t.Fatal(err)
	}
	c.want("deleted object", "ConfigMissing, 0 read")
	c.restartOperator(nil)
	c.want("deleted object after a restart of the operator", "ConfigMissing, 1 read")
	again := creds("p", "x")
	again.UID = "another"
	if err := c.client.Create(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	c.want("recreated object with the same contents", ", 1 read")
}

func TestE18AnOptionalOneThatComesIsAChange(t *testing.T) {
	c := newCtl(t, `containers: [{name: web, envFrom: [{configMapRef: {name: conf, optional: true}}]}]`)
	c.want("missing optional object", "ConfigFollowed, 1 read") // read live, to be sure
	c.want("missing optional object without a change", ", 0 read")
	if err := c.client.Create(context.Background(), conf("1")); err != nil {
		t.Fatal(err)
	}
	c.want("created optional object", "ConfigChanged, 1 read")
}

func TestALostKeyRestartsOnlyWhatWasEdited(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.key = []byte("ffffffffffffffffffffffffffffffff")
	c.want("new key without an edit", "ConfigKeyChanged, 2 read")
	c.want("no further edit", ", 0 read")
	c.update(conf("2"))
	c.now = c.now.Add(time.Second)
	c.want("edit after the new key", "ConfigChanged, 1 read")
	if c.keys < 3 {
		t.Errorf("the key was read from the API server %d times before a hash was written, want at least 3", c.keys)
	}
}

// nameOfKey returns the name of a key in records.
func nameOfKey(t *testing.T, key []byte) string {
	t.Helper()
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.key = key
	c.pass()
	return facts.RecordOf(c.child).Key
}

// anotherMay reports whether another set may restart its pods now.
func anotherMay(c *ctlOfTest) bool {
	return c.reader.Turns.Ask(types.NamespacedName{Namespace: "ns", Name: "another"}, fixture.Noon, c.now, nil).Granted
}

// TestNoHashIsWrittenWithAKeyThatIsStoredNowhere verifies ES07: two operators start at the same time,
// and the other one stores its key first. A hash with this process's key would change in the next pass
// and restart the pods.
func TestNoHashIsWrittenWithAKeyThatIsStoredNowhere(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.stored = []byte("ffffffffffffffffffffffffffffffff")
	c.want("key stored by another operator", "ConfigFollowed, 4 read")
	if got, want := facts.RecordOf(c.child).Key, nameOfKey(t, c.stored); got != want {
		t.Errorf("got a record of key %s, want stored key %s", got, want)
	}
	c.want("no edit", ", 0 read")

	c = newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.noKey = errors.New("the API server is unreachable")
	c.want("unknown stored key", "ConfigUnreadable, 2 read")
	if facts.RecordOf(c.child) != nil {
		t.Error("a record was written with a key that may not be stored")
	}
}

func TestManyThatUseTheSameShareOneRead(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.child = fixture.Carrying(facts.RecordOf(c.child), "")
	c.child.UID, c.child.Spec.Template.Spec = "another", *podSpec(t, usesTwo)
	c.want("another StatefulSet with the same configuration", "ConfigChanged, 0 read")
}

func TestAnotherThatRestartsIsCounted(t *testing.T) {
	other := fixture.Carrying(&configuration.Record{Key: "k", Seen: "s", Hash: "h", Restarted: &metav1.Time{Time: fixture.Noon}}, "h")
	other.Name = "other-v1"
	other.Status.CurrentRevision, other.Status.UpdateRevision = "a", "b"
	other.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: "other", UID: "other", Controller: ptr.To(true)}}
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"), other)
	c.reader.Turns.Most = 1
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.now = c.now.Add(time.Minute)
	c.want("restart of another set", "ConfigRestartWaits, 0 read")
	other.Status.CurrentRevision = "b"
	other.ResourceVersion = ""
	if err := c.client.Status().Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reader.Observe(context.Background(), &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns"}}, nil, nil, nil, c.now); err != nil {
		t.Fatal(err)
	}
	if strings.Join(c.woken, " ") != "db" {
		t.Errorf("enqueued %v when the other set was ready, want db", c.woken)
	}
	c.want("free slot for a restart", "ConfigRestart moved, 0 read")
}

// TestV10APlaceIsHeldWhileOnlyTheLiveStatefulSetRestarts verifies that a restart keeps its slot while
// only live reads show it. The live read right before the write shows the record that was written; the
// cache may show it much later.
func TestV10APlaceIsHeldWhileOnlyTheLiveStatefulSetRestarts(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.reader.Turns.Most = 1
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.now = c.now.Add(time.Minute)
	c.want("free slot for a restart", "ConfigRestart moved, 0 read")
	c.child.Status.CurrentRevision, c.child.Status.UpdateRevision = "a", "b"
	c.want("restart that the cache does not show yet", ", 0 read")
	if anotherMay(c) {
		t.Error("two sets restart")
	}
	c.child.Status.CurrentRevision = "b"
	c.want("completed restart", ", 0 read")
	if !anotherMay(c) {
		t.Error("the slot was not released")
	}
}
