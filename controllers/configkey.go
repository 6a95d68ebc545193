package controllers

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RBAC cannot limit create to a Secret's name, but it can limit get.
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,resourceNames=stateful-operator-config-key,verbs=get

const (
	// configKeyField is the key of the Secret's data that holds the key.
	configKeyField = "key"
	configKeyBytes = 32
)

// configKey is the key for hashes of configuration. It is stored in an immutable Secret of the
// operator, which is created if it is missing. If two operators create one, the second reads the
// Secret of the first. If the Secret is deleted while the operator runs, it is recreated with the
// same key. Otherwise the key is lost and replaced by a new one; pods are not restarted if their
// configuration has not changed meanwhile.
type configKey struct {
	// writer creates the Secret. live reads it without a cache.
	writer client.Writer
	live   client.Reader
	secret types.NamespacedName

	mu  sync.Mutex
	key []byte
}

// Current returns the key. If stored is true, it compares it with the Secret in the API server, and
// recreates the Secret if it is missing.
func (k *configKey) Current(ctx context.Context, stored bool) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.key != nil && !stored {
		return k.key, nil
	}
	var secret corev1.Secret
	err := k.live.Get(ctx, k.secret, &secret)
	if apierrors.IsNotFound(err) {
		secret, err = k.store(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("the key for hashes of configuration: %w", err)
	}
	found := secret.Data[configKeyField]
	if len(found) < configKeyBytes {
		return nil, fmt.Errorf("secret %s of namespace %s has no key of %d bytes in %q: delete it, and a new one is created",
			k.secret.Name, k.secret.Namespace, configKeyBytes, configKeyField)
	}
	k.key = found
	return found, nil
}

// store creates the Secret with the known key or a new one. If another process created it
// meanwhile, that Secret's key is used.
func (k *configKey) store(ctx context.Context) (corev1.Secret, error) {
	key := k.key
	if key == nil {
		key = make([]byte, configKeyBytes)
		_, _ = rand.Read(key) // it never fails
	}
	secret := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name, Annotations: map[string]string{
			"kubernetes.io/description": "The key of the hashes by which ExtendedStatefulSets and ReplicatedStatefulSets detect changes of ConfigMaps and Secrets. Do not delete it: without it, objects whose configuration was edited meanwhile are restarted once.",
		}},
		Immutable: ptr.To(true),
		Data:      map[string][]byte{configKeyField: key},
	}
	err := k.writer.Create(ctx, &secret)
	if apierrors.IsAlreadyExists(err) {
		secret = corev1.Secret{}
		err = k.live.Get(ctx, k.secret, &secret)
	}
	return secret, err
}
