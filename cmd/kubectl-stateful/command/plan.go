package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ssnv1 "github.com/stateful-operator/stateful-operator/apis/statefulsingleton/v1"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/manifests"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/plans"
	"github.com/stateful-operator/stateful-operator/controllers/plugin"
)

// exitCode is an error with an exit code. Its error is nil if there is nothing to print.
type exitCode struct {
	code int
	err  error
}

// Error returns the message of the error, or "" without one.
func (e *exitCode) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// Unwrap returns the error.
func (e *exitCode) Unwrap() error { return e.err }

// Exit codes of plan, as those of kubectl diff.
const (
	exitChanges = 1
	exitError   = 2
)

// assumeApproved is the value of --assume that assumes approvals.
const assumeApproved = "approved"

// planner runs the commands of plan.
type planner struct {
	*Plugin
	output string
	assume []string
}

func (p *Plugin) plan() *cobra.Command {
	planner := &planner{Plugin: p}
	var files resource.FilenameOptions
	options := manifests.Options{}
	c := &cobra.Command{
		Use: "plan -f FILENAME", Short: "Show the effects of a change before it is applied",
		Long: "Show which pods a change restarts, in which order, which roles move, and which claims are created and deleted.\n" +
			"The command simulates the operator on the live objects. It writes nothing to the cluster: the API server checks the\n" +
			"manifests in a dry run, with all defaults and webhooks.\n\n" +
			"Exit codes: 0 if nothing happens, 1 if something does, and above 1 for an error.",
		Example: "  kubectl stateful plan -f orders.yaml\n  kustomize build . | kubectl stateful plan -f -\n  kubectl stateful plan scale stc/web --replicas=5\n" +
			"  kubectl stateful plan drain node-3\n  kubectl stateful plan delete rss/db",
		Args: cobra.NoArgs, DisableFlagsInUseLine: true, Annotations: map[string]string{likeDiff: "true"},
		RunE: func(c *cobra.Command, _ []string) error {
			return planner.run(c.Context(), func(s site) ([]plugin.Request, error) { return planner.ofFiles(c.Context(), s, files, options) })
		},
	}
	c.Flags().StringSliceVarP(&files.Filenames, "filename", "f", nil, "Files or folders with the changed objects; - is the standard input.")
	c.Flags().StringVarP(&files.Kustomize, "kustomize", "k", "", "A kustomization folder.")
	c.Flags().BoolVarP(&files.Recursive, "recursive", "R", false, "Process the folders of -f recursively.")
	c.Flags().BoolVar(&options.ServerSide, "server-side", false, "Merge as kubectl apply --server-side does.")
	c.Flags().BoolVar(&options.ForceConflicts, "force-conflicts", false, "With --server-side, take over fields of other managers.")
	c.Flags().StringVar(&options.FieldManager, "field-manager", "kubectl", "The name of the manager of the fields, for example kustomize-controller.")
	c.PersistentFlags().StringVarP(&planner.output, "output", "o", "", "Output format. One of: (json, yaml).")
	c.PersistentFlags().StringSliceVar(&planner.assume, "assume", nil, "Continue where the change waits for an approval. One of: (approved).")
	c.AddCommand(planner.scale(), planner.delete(), planner.drain())
	return c
}

// run connects, and prints the plans of requests.
func (p *planner) run(ctx context.Context, requests func(site) ([]plugin.Request, error)) error {
	s, err := p.Connect()
	if err != nil {
		return err
	}
	wanted, err := requests(s)
	if err != nil {
		return err
	}
	return p.show(ctx, s, wanted)
}

// show prints the plans of requests.
func (p *planner) show(ctx context.Context, s site, wanted []plugin.Request) error {
	for _, what := range p.assume {
		if what != assumeApproved {
			return fmt.Errorf("--assume=%s is not supported; use %s", what, assumeApproved)
		}
	}
	made, changes := []*plugin.Plan{}, false
	for _, request := range wanted {
		request.Approved = len(p.assume) > 0
		plan, err := plugin.Make(ctx, s, request, p.Now())
		if err != nil {
			return err
		}
		made = append(made, plan)
		changes = changes || plans.HasEffect(plan)
	}
	if err := p.write(made); err != nil {
		return err
	}
	if changes {
		return &exitCode{code: exitChanges}
	}
	return nil
}

func (p *planner) write(made []*plugin.Plan) error {
	if p.output != "" {
		return p.print(p.output, map[string]any{"items": made})
	}
	for i, plan := range made {
		if i > 0 {
			p.say("")
		}
		if err := plans.Write(p.Streams.Out, plan); err != nil {
			return err
		}
	}
	return nil
}

// ofFiles returns the requests for the objects of files.
func (p *planner) ofFiles(ctx context.Context, s site, files resource.FilenameOptions, options manifests.Options) ([]plugin.Request, error) {
	all, err := manifests.Read(files, p.Streams.In, s.Namespace)
	if err != nil {
		return nil, err
	}
	var requests requests
	for _, manifest := range all {
		if kind, ours := kindOf(manifest.GroupVersionKind()); ours {
			applied, err := manifests.Apply(ctx, s, manifest, options)
			if err != nil {
				return nil, err
			}
			requests.add(kind, client.ObjectKeyFromObject(applied.After), applied.After)
		}
	}
	for _, manifest := range all {
		if _, ours := kindOf(manifest.GroupVersionKind()); ours {
			continue
		}
		if !isWorkload(manifest) {
			p.skip(manifest)
			continue
		}
		if err := p.addWorkload(ctx, s, &requests, manifest, options); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

// isWorkload reports whether a manifest has pods that a StatefulSingleton can select.
func isWorkload(manifest *unstructured.Unstructured) bool {
	kind := manifest.GroupVersionKind().GroupKind()
	return kind.Group == appsv1.GroupName && slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, kind.Kind)
}

// skip prints a note about a manifest whose type is not planned.
func (p *planner) skip(manifest *unstructured.Unstructured) {
	switch manifest.GetKind() {
	case "ConfigMap", "Secret":
		p.warn("%s %s is not part of the plan: whether a change of it restarts pods depends on a key that only the operator has", manifest.GetKind(), manifest.GetName())
	default:
		p.warn("%s %s is not part of the plan", manifest.GetKind(), manifest.GetName())
	}
}

// addWorkload adds a changed workload to the requests of the StatefulSingletons that select its pods before or after
// the change.
func (p *planner) addWorkload(ctx context.Context, s site, all *requests, manifest *unstructured.Unstructured, options manifests.Options) error {
	var live ssnv1.StatefulSingletonList
	if err := s.List(ctx, &live, client.InNamespace(manifest.GetNamespace())); err != nil {
		p.warn("%s %s is not part of the plan: %s", manifest.GetKind(), manifest.GetName(), explain(err))
		return nil
	}
	if len(live.Items) == 0 && len(all.singletons(manifest.GetNamespace())) == 0 {
		p.skip(manifest)
		return nil
	}
	applied, err := manifests.Apply(ctx, s, manifest, options)
	if err != nil {
		return err
	}
	selecting := all.selecting(live.Items, applied)
	if len(selecting) == 0 {
		p.skip(manifest)
	}
	for _, name := range selecting {
		all.add(kinds.StatefulSingleton, types.NamespacedName{Namespace: manifest.GetNamespace(), Name: name}, applied.After)
	}
	return nil
}

// requests are the plans to make.
type requests []plugin.Request

// add adds a changed object to the plan of an object.
func (r *requests) add(kind kinds.Kind, key types.NamespacedName, changed client.Object) {
	for i := range *r {
		if one := &(*r)[i]; one.Kind == kind.Kind && one.Key == key {
			one.Put = append(one.Put, changed)
			return
		}
	}
	*r = append(*r, plugin.Request{Kind: kind.Kind, Key: key, Put: []client.Object{changed}})
}

// singletons returns the changed StatefulSingletons of a namespace.
func (r *requests) singletons(namespace string) (found []ssnv1.StatefulSingleton) {
	for _, request := range *r {
		for _, object := range request.Put {
			if one, isSingleton := object.(*ssnv1.StatefulSingleton); isSingleton && one.Namespace == namespace {
				found = append(found, *one)
			}
		}
	}
	return found
}

// selecting returns the names of the StatefulSingletons, live and changed ones, that select the pods of a workload
// before or after its change.
func (r *requests) selecting(live []ssnv1.StatefulSingleton, workload manifests.Applied) (names []string) {
	templates := []*corev1.PodTemplateSpec{templateOf(workload.After)}
	if workload.Before != nil {
		templates = append(templates, templateOf(workload.Before))
	}
	for _, one := range append(slices.Clone(live), r.singletons(workload.After.GetNamespace())...) {
		selector, err := metav1.LabelSelectorAsSelector(one.Spec.Selector)
		if err != nil || slices.Contains(names, one.Name) {
			continue
		}
		if slices.ContainsFunc(templates, func(t *corev1.PodTemplateSpec) bool { return selector.Matches(labels.Set(t.Labels)) }) {
			names = append(names, one.Name)
		}
	}
	return names
}

// kindOf returns the kind of a type, and whether it is one of ours.
func kindOf(gvk schema.GroupVersionKind) (kinds.Kind, bool) {
	for _, kind := range kinds.All {
		if kind.GroupKind() == gvk.GroupKind() {
			return kind, true
		}
	}
	return kinds.Kind{}, false
}

// templateOf returns the pod template of a workload; nil for other objects.
func templateOf(object client.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	}
	return nil
}

func (p *planner) scale() *cobra.Command {
	replicas := int32(-1)
	c := p.object(&cobra.Command{
		Use: "scale --replicas=N", Short: "Show the effects of a change of the number of replicas",
		Example: "  kubectl stateful plan scale stc/web --replicas=5",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		field, can := replicasFields[kind.Kind]
		if !can {
			return fmt.Errorf("a %s has no replicas", kind.Kind)
		}
		if replicas < 0 {
			return errors.New("--replicas must be 0 or more")
		}
		object := named(s, kind, name)
		data := fmt.Appendf(nil, field, replicas)
		if err := s.Patch(ctx, object, client.RawPatch(types.MergePatchType, data), client.DryRunAll, owner); err != nil {
			return err
		}
		return p.show(ctx, s, []plugin.Request{{Kind: kind.Kind, Key: client.ObjectKeyFromObject(object), Put: []client.Object{object}}})
	})
	c.Flags().Int32Var(&replicas, "replicas", replicas, "The new number of replicas.")
	_ = c.MarkFlagRequired("replicas") // the flag exists
	return c
}

// replicasFields are the patches that set the number of replicas.
var replicasFields = map[string]string{
	kinds.StatefulCluster.Kind:       `{"spec":{"replicas":%d}}`,
	kinds.ReplicatedStatefulSet.Kind: `{"spec":{"replicas":%d}}`,
	kinds.ExtendedStatefulSet.Kind:   `{"spec":{"template":{"spec":{"replicas":%d}}}}`,
}

func (p *planner) delete() *cobra.Command {
	return p.object(&cobra.Command{
		Use: "delete", Short: "Show the effects of a delete",
		Example: "  kubectl stateful plan delete rss/db",
	}, func(ctx context.Context, s site, kind kinds.Kind, name string) error {
		object := named(s, kind, name)
		if err := s.Delete(ctx, object, client.DryRunAll); err != nil {
			return err
		}
		return p.show(ctx, s, []plugin.Request{{Kind: kind.Kind, Key: client.ObjectKeyFromObject(object), Delete: true}})
	})
}

// named returns an object of a kind that has only a name, in the namespace of the command.
func named(s site, kind kinds.Kind, name string) client.Object {
	object := kind.New()
	object.SetNamespace(s.Namespace)
	object.SetName(name)
	return object
}

func (p *planner) drain() *cobra.Command {
	return &cobra.Command{
		Use: "drain (NODE | node/NODE)", Short: "Show the effects of a drain of a node on the objects with pods there",
		Long:    "Show the effects of a drain of a node on all objects of the four kinds with pods there, in all namespaces.",
		Example: "  kubectl stateful plan drain node-3", Args: cobra.ExactArgs(1), DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return p.run(c.Context(), func(s site) ([]plugin.Request, error) {
				name := strings.TrimPrefix(strings.TrimPrefix(args[0], "nodes/"), "node/")
				var node corev1.Node
				if err := s.Get(c.Context(), client.ObjectKey{Name: name}, &node); err != nil {
					return nil, err
				}
				return drained(c.Context(), s, name)
			})
		},
	}
}

// drained returns a request for each object that has pods on a node.
func drained(ctx context.Context, s site, node string) (requests []plugin.Request, err error) {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, err
	}
	for _, kind := range kinds.All {
		list := kind.NewList()
		if err := s.List(ctx, list); err != nil {
			return nil, err
		}
		keys, err := plugin.Owners(kind.Kind, list, pods.Items)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			requests = append(requests, plugin.Request{Kind: kind.Kind, Key: key, Drain: node})
		}
	}
	return requests, nil
}
