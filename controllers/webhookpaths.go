package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extendedwebhooks "github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/webhooks"
	"github.com/stateful-operator/stateful-operator/controllers/internal/follow"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	replicatedwebhooks "github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/webhooks"
	singletonwebhooks "github.com/stateful-operator/stateful-operator/controllers/statefulsingleton/webhooks"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=validatingwebhookconfigurations,resourceNames=stateful-operator-validating-webhook-configuration,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,roleName=installer-role,resources=mutatingwebhookconfigurations,resourceNames=stateful-operator-mutating-webhook-configuration,verbs=get;update

// webhookPaths has the path of each webhook of config/webhook by its name. The manifests of
// config/default have no paths: the token in front of them is created at run time, and a tool that
// continuously applies manifests, such as Argo CD, would remove it from a path in a manifest.
var webhookPaths = map[string]string{
	"mpod.kb.io": singletonwebhooks.PodPath,
	"pods.extendedstatefulsets.fissile.cloudfoundry.org":      extendedwebhooks.PodPath,
	"replicas.extendedstatefulsets.fissile.cloudfoundry.org":  extendedwebhooks.ReplicasPath,
	"extendedstatefulsets.fissile.cloudfoundry.org":           "/validate-fissile-cloudfoundry-org-v1alpha1-extendedstatefulset",
	"replicatedstatefulsets.clusterlabs.org":                  "/validate-clusterlabs-org-v1alpha1-replicatedstatefulset",
	"statefulclusters.enge.me":                                "/validate-enge-me-v1alpha1-statefulcluster",
	"statefulsingletons.apps.openshift.statefulsingleton.com": "/validate-apps-openshift-statefulsingleton-com-v1-statefulsingleton",
}

// podPaths are the paths of the webhooks that are called for the pods of all tenants.
var podPaths = []string{singletonwebhooks.PodPath, extendedwebhooks.PodPath, replicatedwebhooks.EvictionPath}

// pathKeeper maintains the paths in the configurations of the webhooks.
type pathKeeper struct {
	live   client.Reader
	writer client.Writer
	// validating and mutating are the names of the configurations.
	validating, mutating string
	// isOfOthers is true if the operator makes no certificate. The Operator Lifecycle Manager then
	// creates the configurations under other names, and grants no right to these.
	isOfOthers bool
	// prefix returns the prefix of the paths, and false while it is unknown.
	prefix func() (string, bool)
	kept   atomic.Bool
}

// pathRetry is the delay after a failed attempt.
const pathRetry = time.Second

// setup adds the keeper to the manager on each replica. Concurrent writes are safe, because a write
// has the resourceVersion that was read.
func (k *pathKeeper) setup(mgr ctrl.Manager, o Options) error {
	names := o.certificateNames()
	k.live, k.writer, k.validating, k.mutating = mgr.GetAPIReader(), mgr.GetClient(), names.Validating, names.Mutating
	k.prefix, k.isOfOthers = func() (string, bool) { return "", true }, !o.makesCertificates()
	if o.makesCertificates() {
		k.prefix = func() (string, bool) {
			token := o.certificate.Caller().Token
			return "/" + token, token != ""
		}
	}
	return mgr.Add(follow.Everywhere(func(ctx context.Context) error {
		policy.Look(ctx, "The paths of the webhooks", policy.Interval, pathRetry, func() string { return policy.Problem(k.keep(ctx)) })
		return nil
	}))
}

// Check returns an error until the API server has the paths.
func (k *pathKeeper) Check(*http.Request) error {
	if !k.kept.Load() {
		return errors.New("the webhook configurations do not have the paths yet")
	}
	return nil
}

// keep writes the paths if they differ. A configuration that does not exist is skipped.
func (k *pathKeeper) keep(ctx context.Context) error {
	prefix, known := k.prefix()
	if !known {
		return errors.New("no serving certificate yet")
	}
	for name, configuration := range map[string]client.Object{
		k.validating: &admissionv1.ValidatingWebhookConfiguration{}, k.mutating: &admissionv1.MutatingWebhookConfiguration{},
	} {
		if err := k.update(ctx, name, configuration, prefix); err != nil {
			return err
		}
	}
	k.kept.Store(true)
	return nil
}

// update reads a configuration, and writes it if its paths differ.
func (k *pathKeeper) update(ctx context.Context, name string, configuration client.Object, prefix string) error {
	if name == "" {
		return nil
	}
	err := k.live.Get(ctx, types.NamespacedName{Name: name}, configuration)
	refused := k.isOfOthers && apierrors.IsForbidden(err)
	if apierrors.IsNotFound(err) || refused {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the webhook configuration %s: %w", name, err)
	}
	if !setPaths(configuration, prefix) {
		return nil
	}
	if err := k.writer.Update(ctx, configuration); err != nil {
		return fmt.Errorf("write the webhook configuration %s: %w", name, err)
	}
	return nil
}

// setPaths sets the paths of the webhooks of a configuration, and reports whether one changed.
func setPaths(configuration client.Object, prefix string) (changed bool) {
	switch c := configuration.(type) {
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range c.Webhooks {
			changed = setPath(prefix, c.Webhooks[i].Name, &c.Webhooks[i].ClientConfig) || changed
		}
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range c.Webhooks {
			changed = setPath(prefix, c.Webhooks[i].Name, &c.Webhooks[i].ClientConfig) || changed
		}
	}
	return changed
}

// setPath sets the path of one of the operator's webhooks, and reports whether it changed.
func setPath(prefix, name string, at *admissionv1.WebhookClientConfig) bool {
	path, ours := webhookPaths[name]
	if !ours || at.Service == nil || ptr.Deref(at.Service.Path, "") == prefix+path {
		return false
	}
	at.Service.Path = ptr.To(prefix + path)
	return true
}
