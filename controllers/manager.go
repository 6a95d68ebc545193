package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/stateful-operator/stateful-operator/controllers/internal/bounded"
	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,roleName=own-namespace-role,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=system,roleName=own-namespace-role,resources=leases,resourceNames=stateful-operator,verbs=get;update
// +kubebuilder:rbac:groups="",namespace=system,roleName=own-namespace-role,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,roleName=metrics-auth-role,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,roleName=metrics-auth-role,resources=subjectaccessreviews,verbs=create

// shutdownTimeout is the max time for runnables to stop after a signal. It is shorter than the
// pod's termination grace period, so that the lease is released before the kubelet kills the
// process.
const shutdownTimeout = 10 * time.Second

// Manager returns the options of the manager for that cluster. It creates the Lease that Setup
// uses.
func (o *Options) Manager(config *rest.Config) (ctrl.Options, error) {
	if err := o.makeLease(config); err != nil {
		return ctrl.Options{}, err
	}
	scheme, err := Scheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	cached, err := o.cache(scheme)
	if err != nil {
		return ctrl.Options{}, err
	}
	timeout := shutdownTimeout
	options := ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cached,
		HealthProbeBindAddress: "0", // setupServers serves both
		Metrics:                metricsserver.Options{BindAddress: "0"},
		LeaderElection:         o.elects(),
		LeaderElectionID:       o.leaseName(), // a label of the metric
		LeaseDuration:          &o.Timing.LeaseDuration,
		RenewDeadline:          &o.Timing.RenewDeadline,
		RetryPeriod:            &o.Timing.RetryPeriod,
		// This is safe because main exits as soon as the manager has ended, and nothing is written
		// after the release of the lease.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &timeout,
	}
	if o.elects() {
		options.LeaderElectionResourceLockInterface = o.lease
	}
	if o.runs(Webhooks) {
		config, err := o.webhookTLS()
		if err != nil {
			return ctrl.Options{}, err
		}
		options.WebhookServer = bounded.NewWebhooks(o.WebhookPort, config, o.certificate, podPaths...)
	}
	return options, nil
}

// elects reports whether this process takes part in a leader election. Webhooks need none.
func (o Options) elects() bool { return o.LeaderElect && (o.runs(Controllers) || o.runs(Installer)) }

// leaseName returns the name of the Lease of the controllers. An installer without controllers has
// another one.
func (o Options) leaseName() string {
	if o.runs(Controllers) {
		return o.Name
	}
	return o.Name + "-installer"
}

// makeLease creates the lock of the leader election. Without an election it creates a watch of the
// API server instead.
func (o *Options) makeLease(config *rest.Config) error {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	if !o.elects() {
		o.lease = leadership.Alone(func(ctx context.Context) error {
			return core.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
		}, o.Timing)
		return nil
	}
	// The identity is unique, also after a restart.
	identity := o.pod + "_" + string(uuid.NewUUID())
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: core.CoreV1().Events(o.Namespace)})
	o.lease, err = leadership.New(config, o.Namespace, o.leaseName(), resourcelock.ResourceLockConfig{
		Identity:      identity,
		EventRecorder: broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: identity}),
	}, o.Timing)
	return err
}

// watchAPIServer detects outages of the API server in a process without an election.
func (o Options) watchAPIServer(mgr ctrl.Manager) error {
	if o.elects() || o.lease == nil {
		return nil
	}
	if err := mgr.Add(o.lease); err != nil {
		return fmt.Errorf("add the watch of the API server: %w", err)
	}
	return nil
}
