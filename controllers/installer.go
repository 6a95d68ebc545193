package controllers

import (
	"fmt"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stateful-operator/stateful-operator/controllers/internal/action"
	"github.com/stateful-operator/stateful-operator/controllers/internal/policy"
	"github.com/stateful-operator/stateful-operator/controllers/internal/requester"
	"github.com/stateful-operator/stateful-operator/controllers/internal/servingcert"
)

// The components of the operator. Each can be a process with its own account, so that a stolen
// token grants only the rights of that component.
const (
	// Controllers reconciles objects.
	Controllers = "controllers"
	// Webhooks serves admission requests.
	Webhooks = "webhooks"
	// Installer maintains the operator's objects for the API server: admission policies, and the CA
	// bundle of the webhooks.
	Installer = "installer"
)

var allComponents = []string{Controllers, Webhooks, Installer}

// makesCertificates reports whether this process creates the serving certificate for itself or for
// other processes.
func (o Options) makesCertificates() bool {
	mounted := o.runs(Webhooks) && servingcert.Mounted(o.WebhookCertDir)
	return o.runs(Installer) && o.MakeCertificates && !mounted
}

func (o Options) runs(component string) bool { return slices.Contains(o.Components, component) }

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,verbs=get;create;patch;delete,roleName=installer-role
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=statefulclusters.enge.me;replicatedstatefulsets.clusterlabs.org;extendedstatefulsets.fissile.cloudfoundry.org;statefulsingletons.apps.openshift.statefulsingleton.com,verbs=get,roleName=installer-role
// The API server requires that the author of a policy with parameters can read all parameters.
// +kubebuilder:rbac:groups=apps.openshift.statefulsingleton.com,resources=statefulsingletons,verbs=get;list,roleName=installer-role
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,roleName=installer-own-namespace-role,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,roleName=installer-own-namespace-role,resources=leases,resourceNames=stateful-operator-installer,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=system,roleName=installer-own-namespace-role,resources=events,verbs=create;patch

// setupInstaller adds the runnables that maintain policies and certificates.
func (o Options) setupInstaller(mgr ctrl.Manager) error {
	keeper := policy.Keeper{Live: mgr.GetAPIReader(),
		Runner: &action.Runner{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Lease: o.lease}}
	requesters := &requester.Guard{Keeper: keeper, Namespace: o.Namespace, Watched: o.WatchNamespaces}
	for _, k := range o.kinds() {
		requesters.Kinds = append(requesters.Kinds, k.requester())
		if k.installer == nil {
			continue
		}
		if err := k.installer(mgr, keeper, o); err != nil {
			return fmt.Errorf("set up the installer of %s: %w", k.name, err)
		}
	}
	if err := mgr.Add(requesters); err != nil {
		return fmt.Errorf("add the policies that check requesters: %w", err)
	}
	accounts := &accountGuard{Keeper: keeper, name: o.Name, namespace: o.Namespace,
		kinds: requesters.Kinds, watched: o.WatchNamespaces}
	if err := mgr.Add(accounts); err != nil {
		return fmt.Errorf("add the policies on the operator's own accounts: %w", err)
	}
	if err := o.paths.setup(mgr, o); err != nil {
		return fmt.Errorf("add the controller of the webhook paths: %w", err)
	}
	if !o.makesCertificates() {
		return nil
	}
	return o.authority.Setup(mgr, o.certificateNames())
}

// certificateNames returns the names that kustomize generates in config/.
func (o Options) certificateNames() servingcert.Names {
	names := servingcert.Names{
		Namespace:  o.Namespace,
		Authority:  o.Name + "-ca",
		Serving:    o.servingSecret(),
		Services:   []string{o.Name + "-webhook-service", o.Name + "-metrics-service"},
		Validating: o.Name + "-validating-webhook-configuration",
	}
	// If no kind with a mutating webhook is served, the configuration may have been removed.
	if o.serves(statefulSingleton) || o.serves(extendedStatefulSet) {
		names.Mutating = o.Name + "-mutating-webhook-configuration"
	}
	return names
}

// servingSecret returns the name of the Secret with the serving certificate and its key.
func (o Options) servingSecret() string { return o.Name + "-webhook-certs" }
