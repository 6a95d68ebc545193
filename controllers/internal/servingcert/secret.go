package servingcert

import (
	"context"
	"crypto/tls"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// followSecret serves what a Secret holds.
func (s *Source) followSecret(mgr manager.Manager, secret types.NamespacedName) error {
	return watchSecret(mgr, secret, func(_ context.Context, secret *corev1.Secret) {
		if len(secret.Data[certFile]) == 0 {
			return
		}
		certificate, err := tls.X509KeyPair(secret.Data[certFile], secret.Data[keyFile])
		if err != nil {
			// The authority finds the same and replaces it.
			mgr.GetLogger().Error(err, "The Secret holds no usable certificate", "secret", secret.Name)
			return
		}
		s.certificate.Store(&certificate)
	})
}

// watchSecret calls do with each state of a Secret. It has a cache of its own, which holds
// that Secret alone: the manager's may be bound to other namespaces.
func watchSecret(mgr manager.Manager, secret types.NamespacedName, do func(context.Context, *corev1.Secret)) error {
	one := cache.ByObject{Namespaces: map[string]cache.Config{
		secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name)},
	}}
	secrets, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme:   mgr.GetScheme(),
		Mapper:   mgr.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: one},
	})
	if err != nil {
		return fmt.Errorf("making the cache of Secret %s: %w", secret.Name, err)
	}
	return mgr.Add(everywhere(func(ctx context.Context) error {
		see := func(object any) {
			if secret, ok := object.(*corev1.Secret); ok {
				do(ctx, secret)
			}
		}
		informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching Secret %s: %w", secret.Name, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    see,
			UpdateFunc: func(_, changed any) { see(changed) },
		})
		if err != nil {
			return fmt.Errorf("watching Secret %s: %w", secret.Name, err)
		}
		return secrets.Start(ctx)
	}))
}
