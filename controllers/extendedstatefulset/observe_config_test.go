package extendedstatefulset

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
	reader *configReader
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
		WithIndex(&appsv1.StatefulSet{}, configuration.IndexRestarts, configuration.RestartIndex(restartsSince)).Build()
	c := &ctlOfTest{t: t, client: inner, key: []byte("0123456789abcdef0123456789abcdef"), now: noon,
		set:   &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "set"}},
		child: carrying(nil, "")}
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
	c.reader = &configReader{
		Reader: configuration.Reader{Cache: c.client, Live: live, Key: c},
		turns: configuration.Turns{
			Limiter: configuration.Limiter{Most: 10}, Cache: c.client, Kind: v1alpha1.Kind, Began: restartsSince,
			Wake: func(n types.NamespacedName) { c.woken = append(c.woken, n.Name) },
		},
	}
}

// pass observes the configuration, writes the target, and returns its event or reason and the number of
// reads.
func (c *ctlOfTest) pass() string {
	c.t.Helper()
	c.reads = 0
	l, err := c.reader.observe(context.Background(), c.set, []*appsv1.StatefulSet{c.child}, func(*appsv1.StatefulSet) string { return "" }, nil, c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	w := l.views[c.child.UID].Target(c.now)
	moved := w.Restarts(stampOf(c.child))
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
	c.want("first look", "ConfigFollowed, 2 read")
	c.want("at rest", ", 0 read")
	c.restartOperator(nil)
	c.want("at rest after a restart of the operator", ", 0 read")
	m := conf("1")
	m.Labels = map[string]string{"a": "b"}
	c.update(m)
	c.want("metadata was edited", ", 2 read") // the other object was not read since the restart either
	c.want("and again at rest", ", 0 read")
	c.update(creds("p", "y"))
	c.want("a key that is not used was edited", ", 1 read")
	c.update(creds("q", "y"))
	c.want("a key that is used was edited", "ConfigChanged, 1 read")
	c.now = c.now.Add(time.Second)
	c.update(conf("2"))
	c.want("another edit in the window", "ConfigChanged, 1 read")
	c.now = c.now.Add(time.Second)
	c.want("the window is over", "ConfigRestart moved, 0 read")
	c.want("and again at rest", ", 0 read")
}

func TestAnEditThatIsTakenBackInTheWindowRestartsNothing(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.want("an edit", "ConfigChanged, 1 read")
	c.update(conf("1"))
	c.now = c.now.Add(time.Hour)
	c.want("taken back", ", 1 read")
	c.update(conf("3"))
	c.want("the next edit has a window of its own", "ConfigChanged, 1 read")
}

func TestE14AnEditWhileTheOperatorIsDownIsFoundAtItsStart(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.restartOperator(nil)
	c.want("at its start", "ConfigChanged, 2 read")
	c.restartOperator(nil)
	c.now = c.now.Add(time.Minute)
	c.want("down again inside the window", "ConfigChanged, 2 read")
	c.now = c.now.Add(configuration.Window)
	c.want("one restart", "ConfigRestart moved, 0 read")
}

func TestE18WhatCannotBeReadIsNotEmpty(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.fails = errors.New("forbidden")
	c.want("it is forbidden", "ConfigUnreadable, 1 read")
	c.now = c.now.Add(time.Hour)
	c.want("for long", "ConfigUnreadable, 1 read")
	c.fails = nil
	c.update(conf("1"))
	c.want("allowed again, and as it was", ", 1 read")
}

func TestE18AMissingOneIsWaitedFor(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	if err := c.client.Delete(context.Background(), creds("", "")); err != nil {
		t.Fatal(err)
	}
	c.want("it went", "ConfigMissing, 0 read")
	c.restartOperator(nil)
	c.want("it went, and the operator too", "ConfigMissing, 1 read")
	again := creds("p", "x")
	again.UID = "another"
	if err := c.client.Create(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	c.want("another of the same contents came", ", 1 read")
}

func TestE18AnOptionalOneThatComesIsAChange(t *testing.T) {
	c := newCtl(t, `containers: [{name: web, envFrom: [{configMapRef: {name: conf, optional: true}}]}]`)
	c.want("it is not there", "ConfigFollowed, 1 read") // read live, to be sure
	c.want("and need not be", ", 0 read")
	if err := c.client.Create(context.Background(), conf("1")); err != nil {
		t.Fatal(err)
	}
	c.want("it comes", "ConfigChanged, 1 read")
}

func TestALostKeyRestartsOnlyWhatWasEdited(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.key = []byte("ffffffffffffffffffffffffffffffff")
	c.want("nothing was edited", "ConfigKeyChanged, 2 read")
	c.want("and again at rest", ", 0 read")
	c.update(conf("2"))
	c.now = c.now.Add(time.Second)
	c.want("the next edit is found", "ConfigChanged, 1 read")
	if c.keys < 3 {
		t.Errorf("a hash was written %d times with a key that is stored, want 3", c.keys)
	}
}

// nameOfKey returns the name of a key in records.
func nameOfKey(t *testing.T, key []byte) string {
	t.Helper()
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.key = key
	c.pass()
	return recordOf(c.child).Key
}

// anotherMay reports whether another set may restart its pods now.
func anotherMay(c *ctlOfTest) bool {
	return c.reader.turns.Ask(types.NamespacedName{Namespace: "ns", Name: "another"}, noon, c.now, nil).Granted
}

// TestNoHashIsWrittenWithAKeyThatIsStoredNowhere verifies ES07: two operators start at the same time,
// and the other one stores its key first. A hash with this process's key would change in the next pass
// and restart the pods.
func TestNoHashIsWrittenWithAKeyThatIsStoredNowhere(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.stored = []byte("ffffffffffffffffffffffffffffffff")
	c.want("the other operator's key is the one that is stored", "ConfigFollowed, 4 read")
	if got, want := recordOf(c.child).Key, nameOfKey(t, c.stored); got != want {
		t.Errorf("the record is of key %s, want %s, which is stored", got, want)
	}
	c.want("and at rest", ", 0 read")

	c = newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.noKey = errors.New("the API server is away")
	c.want("it is not known which key is stored", "ConfigUnreadable, 2 read")
	if recordOf(c.child) != nil {
		t.Error("a record was written with a key that may be stored nowhere")
	}
}

func TestManyThatUseTheSameShareOneRead(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.child = carrying(recordOf(c.child), "")
	c.child.UID, c.child.Spec.Template.Spec = "another", *podSpec(t, usesTwo)
	c.want("another StatefulSet that uses the same", "ConfigChanged, 0 read")
}

func TestAnotherThatRestartsIsCounted(t *testing.T) {
	other := carrying(&configuration.Record{Key: "k", Seen: "s", Hash: "h", Restarted: &metav1.Time{Time: noon}}, "h")
	other.Name = "other-v1"
	other.Status.CurrentRevision, other.Status.UpdateRevision = "a", "b"
	other.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: "other", UID: "other", Controller: ptr.To(true)}}
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"), other)
	c.reader.turns.Most = 1
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.now = c.now.Add(time.Minute)
	c.want("another restarts", "ConfigRestartWaits, 0 read")
	other.Status.CurrentRevision = "b"
	other.ResourceVersion = ""
	if err := c.client.Status().Update(context.Background(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reader.observe(context.Background(), &v1alpha1.ExtendedStatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "ns"}}, nil, nil, nil, c.now); err != nil {
		t.Fatal(err)
	}
	if strings.Join(c.woken, " ") != "db" {
		t.Errorf("woke %v when the other was ready, want db", c.woken)
	}
	c.want("it is its turn", "ConfigRestart moved, 0 read")
}

// TestV10APlaceIsHeldWhileOnlyTheLiveStatefulSetRestarts verifies that a restart keeps its slot while
// only live reads show it. The live read right before the write shows the record that was written; the
// cache may show it much later.
func TestV10APlaceIsHeldWhileOnlyTheLiveStatefulSetRestarts(t *testing.T) {
	c := newCtl(t, usesTwo, conf("1"), creds("p", "x"))
	c.reader.turns.Most = 1
	c.pass()
	c.update(conf("2"))
	c.pass()
	c.now = c.now.Add(time.Minute)
	c.want("it is its turn", "ConfigRestart moved, 0 read")
	c.child.Status.CurrentRevision, c.child.Status.UpdateRevision = "a", "b"
	c.want("it restarts, and the cache does not show it", ", 0 read")
	if anotherMay(c) {
		t.Error("two restart")
	}
	c.child.Status.CurrentRevision = "b"
	c.want("it has restarted", ", 0 read")
	if !anotherMay(c) {
		t.Error("the place is lost")
	}
}
