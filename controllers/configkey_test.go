package controllers

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var keySecret = types.NamespacedName{Namespace: "operator", Name: "stateful-operator-config-key"}

func current(t *testing.T, k *configKey, stored bool) []byte {
	t.Helper()
	key, err := k.Current(context.Background(), stored)
	if err != nil || len(key) != configKeyBytes {
		t.Fatalf("key of %d bytes, error %v", len(key), err)
	}
	return key
}

func TestOperatorsOfOneClusterHaveOneKey(t *testing.T) {
	cluster := fake.NewClientBuilder().Build()
	one := &configKey{writer: cluster, live: cluster, secret: keySecret}
	first := current(t, one, false)
	if !bytes.Equal(first, current(t, &configKey{writer: cluster, live: cluster, secret: keySecret}, false)) {
		t.Error("a second operator has another key")
	}
	var secret corev1.Secret
	if err := cluster.Get(context.Background(), keySecret, &secret); err != nil || secret.Immutable == nil || !*secret.Immutable {
		t.Errorf("the Secret is not immutable: %+v, %v", secret.Immutable, err)
	}
	if err := cluster.Delete(context.Background(), &secret); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, current(t, one, true)) {
		t.Error("a Secret that was deleted is recreated with another key")
	}
	if !bytes.Equal(first, current(t, &configKey{writer: cluster, live: cluster, secret: keySecret}, false)) {
		t.Error("the key was not stored again")
	}
}

func TestOfTwoThatMakeAKeyTheLaterTakesTheOther(t *testing.T) {
	cluster := fake.NewClientBuilder().Build()
	var theirs []byte
	racing := interceptor.NewClient(cluster, interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		theirs = current(t, &configKey{writer: w, live: w, secret: keySecret}, false)
		return w.Create(ctx, o, opts...)
	}})
	if ours := current(t, &configKey{writer: racing, live: cluster, secret: keySecret}, false); !bytes.Equal(ours, theirs) {
		t.Error("two keys")
	}
}

func TestAKeyThatIsTooShortIsNotUsed(t *testing.T) {
	cluster := fake.NewClientBuilder().WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: keySecret.Namespace, Name: keySecret.Name}}).Build()
	_, err := (&configKey{writer: cluster, live: cluster, secret: keySecret}).Current(context.Background(), false)
	if err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("got error %v", err)
	}
}
