package configuration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// twoKeys has a key in memory and a stored key.
type twoKeys struct{ mine, stored hashKey }

func (k *twoKeys) Current(_ context.Context, stored bool) ([]byte, error) {
	if stored {
		k.mine = k.stored
	}
	return k.mine, nil
}

const usesSecret = `containers: [{name: c, envFrom: [{secretRef: {name: creds}}]}]`

func secret(password string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "creds", Namespace: "ns", UID: "u"}, Data: map[string][]byte{"password": []byte(password)}}
}

func clusterOf(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
}

func stateOf(t *testing.T, r *Reader, rec *Record) State {
	t.Helper()
	s, err := r.StateOf(context.Background(), "ns", podOf(t, usesSecret), rec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNoStateIsOfAKeyThatIsStoredNowhere(t *testing.T) {
	all := clusterOf(secret("p"))
	r := &Reader{Cache: all, Live: all, Key: &twoKeys{mine: hashKey("ours"), stored: hashKey("theirs")}}
	if got, want := stateOf(t, r, nil).Key, hashKey("theirs").name(); got != want {
		t.Errorf("the state belongs to key %s, want the stored key %s", got, want)
	}
}

// The cache may contain an edit that was reverted, and results that were cached for its version.
func TestTheLiveStateIsNotThatOfTheCache(t *testing.T) {
	cache, live := clusterOf(secret("p")), clusterOf(secret("p"))
	r := &Reader{Cache: cache, Live: live, Key: &twoKeys{mine: oneKey, stored: oneKey}}
	first := stateOf(t, r, nil)
	rec := first.Record()
	edit := func(c client.Client, password string) {
		s := secret(password)
		if err := c.Update(context.Background(), s); err != nil {
			t.Fatal(err)
		}
	}
	edit(cache, "q")
	edit(live, "q")
	if !stateOf(t, r, &rec).Changed(&rec) {
		t.Fatal("an edit is missing")
	}
	edit(live, "p") // the cache does not contain it yet
	if !stateOf(t, r, &rec).Changed(&rec) {
		t.Fatal("the cache is newer than expected")
	}
	if s := r.LiveStateOf(context.Background(), "ns", podOf(t, usesSecret)); s.Changed(&rec) || !s.Complete() {
		t.Errorf("got %+v, was %+v", s, first)
	}
	if err := live.Delete(context.Background(), secret("")); err != nil {
		t.Fatal(err)
	}
	if s := r.LiveStateOf(context.Background(), "ns", podOf(t, usesSecret)); s.Complete() || len(s.Missing) != 1 {
		t.Errorf("got %+v after the Secret was deleted", s)
	}
}

func TestWhatIsTooLargeIsUnreadable(t *testing.T) {
	all := clusterOf(secret(strings.Repeat("x", 1<<20-len("password"))))
	r := &Reader{Cache: all, Live: all, Key: &twoKeys{mine: oneKey, stored: oneKey}, MaxBytes: 1 << 20}
	if s := stateOf(t, r, nil); !s.Complete() {
		t.Errorf("at the limit: %+v", s)
	}
	r.MaxBytes--
	if s := stateOf(t, r, nil); !strings.Contains(s.Unreadable, "in total") || s.Hash != "" {
		t.Errorf("beyond the limit: %+v", s)
	}
}
