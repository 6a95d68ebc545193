package servingcert

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
)

// followSecret serves the certificate in a Secret, and follows its changes.
func (s *Source) followSecret(mgr manager.Manager, secret types.NamespacedName) error {
	return follow.Object(mgr, &corev1.Secret{}, secret, func(_ context.Context, secret *corev1.Secret) {
		if len(secret.Data[certFile]) == 0 {
			return
		}
		certificate, err := tls.X509KeyPair(secret.Data[certFile], secret.Data[keyFile])
		if err != nil {
			// The authority detects this too and replaces the certificate.
			mgr.GetLogger().Error(err, "The Secret has no usable certificate", "secret", secret.Name)
			return
		}
		token := sha256.Sum256(append([]byte("caller "), secret.Data[keyFile]...))
		s.setCaller(&Caller{Authority: secret.Data[caFile], Token: hex.EncodeToString(token[:])})
		s.certificate.Store(&certificate)
	})
}
