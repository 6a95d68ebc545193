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

// A Secret's create cannot be limited to a name; its get can.
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,verbs=create
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=secrets,resourceNames=stateful-operator-config-key,verbs=get

const (
	// configKeyField is the key of the Secret's data that holds the key.
	configKeyField = "key"
	configKeyBytes = 32
)

// configKey is the key that hashes of configuration are made with. It lies in an
// immutable Secret of the operator's, which is made where there is none: of two
// operators that make one, the later reads the other's. A Secret that somebody
// deletes is made again with the same key while the operator runs. Else it is lost,
// and another takes its place; what was not edited meanwhile is not restarted then.
type configKey struct {
	// writer creates the Secret; live reads it past any cache.
	writer client.Writer
	live   client.Reader
	secret types.NamespacedName

	mu  sync.Mutex
	key []byte
}

// Current is the key. With stored it asks the API server whether that is the one
// that is stored, and stores it again if there is none.
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
		return nil, fmt.Errorf("secret %s of namespace %s has no key of %d bytes in %q: delete it, and another is made",
			k.secret.Name, k.secret.Namespace, configKeyBytes, configKeyField)
	}
	k.key = found
	return found, nil
}

// store makes the Secret, with the key that is known or a new one. If somebody else
// made it meanwhile, theirs is the key.
func (k *configKey) store(ctx context.Context) (corev1.Secret, error) {
	key := k.key
	if key == nil {
		key = make([]byte, configKeyBytes)
		_, _ = rand.Read(key) // it never fails
	}
	secret := corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.secret.Namespace, Name: k.secret.Name, Annotations: map[string]string{
			"kubernetes.io/description": "The key of the hashes by which ExtendedStatefulSets and ReplicatedStatefulSets find changes of ConfigMaps and Secrets. Keep it: without it, those edited meanwhile are restarted once.",
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
