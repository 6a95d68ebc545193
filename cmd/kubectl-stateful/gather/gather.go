// Package gather writes an archive for maintainers to diagnose a problem. It contains no
// confidential data: no Secrets, no data of ConfigMaps, no values of environment variables.
package gather

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/kinds"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/snapshot"
	"github.com/stateful-operator/stateful-operator/cmd/kubectl-stateful/tree"
)

// Logs reads the last lines of the log of a container, up to a max number of bytes.
type Logs func(ctx context.Context, namespace, pod, container string, previous bool) ([]byte, error)

// Max size of a log. The end of a log is the most useful part.
const (
	logLines = int64(20000)
	logBytes = int64(16 << 20)
)

// LogsOf returns a function that reads logs of a cluster.
func LogsOf(core typedcorev1.PodsGetter) Logs {
	return func(ctx context.Context, namespace, pod, container string, previous bool) ([]byte, error) {
		lines, most := logLines, logBytes
		return core.Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{
			Container: container, Previous: previous, TailLines: &lines, LimitBytes: &most, Timestamps: true,
		}).DoRaw(ctx)
	}
}

// Options select the content of an archive.
type Options struct {
	// Namespace is the namespace of the objects, Operator that of the operator.
	Namespace, Operator string
	// KeepEnv keeps the values of environment variables.
	KeepEnv bool
	Now     time.Time
}

// parts are the kinds to read in a namespace. They refer to confidential data, but do not contain
// it.
var parts = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "Event"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "apps", Version: "v1", Kind: "ControllerRevision"},
	{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// ofOperator are the kinds to read in the operator's namespace.
var ofOperator = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Event"}, {Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
}

// inCluster are the cluster-scoped kinds to read.
var inCluster = []schema.GroupVersionKind{{Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "PersistentVolume"}, {Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}}

// archive is an archive that is being written.
type archive struct {
	Options
	c      client.Reader
	logs   Logs
	tar    *tar.Writer
	folder string
	// unread lists what could not be read, with the reasons.
	unread []string
	err    error
}

// Write writes the archive. Forbidden resources are skipped and listed in it.
func Write(ctx context.Context, w io.Writer, c client.Reader, logs Logs, o Options) (unread []string, err error) {
	zipped := gzip.NewWriter(w)
	a := &archive{Options: o, c: c, logs: logs, tar: tar.NewWriter(zipped), folder: FileName(o.Namespace, o.Now)}
	a.file("README.txt", []byte(a.readme()))
	for _, kind := range kinds.All {
		a.objects(ctx, kind)
	}
	for _, kind := range parts {
		a.listed(ctx, "namespace", kind, a.Namespace)
	}
	for _, kind := range inCluster {
		a.listed(ctx, "cluster", kind, "")
	}
	for _, kind := range ofOperator {
		a.listed(ctx, "operator", kind, a.Operator)
	}
	a.operatorLogs(ctx)
	a.file("unread.txt", []byte(strings.Join(append(a.unread, ""), "\n")))
	for _, done := range []func() error{a.tar.Close, zipped.Close} {
		if err := done(); a.err == nil {
			a.err = err
		}
	}
	return a.unread, a.err
}

// FileName returns the name of an archive, without its extension.
func FileName(namespace string, now time.Time) string {
	return "stateful-" + namespace + "-" + now.UTC().Format("20060102-150405")
}

func (a *archive) readme() string {
	env := "The values of environment variables and of HTTP headers of probes in templates are omitted, because they often contain passwords. Their names are kept."
	if a.KeepEnv {
		env = "THE ARCHIVE CONTAINS THE VALUES OF ENVIRONMENT VARIABLES BECAUSE OF --keep-env. THEY MAY CONTAIN PASSWORDS: CHECK BEFORE YOU SHARE IT."
	}
	return fmt.Sprintf(`Gathered by kubectl stateful gather at %s, of namespace %s, and of the operator in %s.

objects/    the objects of the four kinds (.yaml), their status (.status.txt), and recent decisions (.why.yaml)
namespace/  related objects: pods, claims, events, Services, workloads, revisions, Jobs, budgets
cluster/    Nodes, PersistentVolumes, StorageClasses
operator/   the operator: pods, events, Deployments, leases, logs
unread.txt  objects that could not be read

Not included: Secrets; ConfigMaps; logs of the application.
%s
Annotation kubectl.kubernetes.io/last-applied-configuration and managedFields are omitted too, as are
the values of annotations other than those of Kubernetes and of the operator. Included: the
commands, arguments and probes of containers, the paths of HTTP probes with their queries, labels.
Arguments of commands are included: check them for passwords.
`, a.Now.UTC().Format(time.RFC3339), a.Namespace, a.Operator, env)
}

// file adds a file. After a failed write it does nothing.
func (a *archive) file(name string, content []byte) {
	if a.err != nil {
		return
	}
	header := &tar.Header{Name: path.Join(a.folder, name), Mode: 0o600, Size: int64(len(content)), ModTime: a.Now.Truncate(time.Second), Typeflag: tar.TypeReg}
	if a.err = a.tar.WriteHeader(header); a.err == nil {
		_, a.err = a.tar.Write(content)
	}
}

func (a *archive) cannot(what string, err error) {
	a.unread = append(a.unread, fmt.Sprintf("%s: %v", what, err))
}

// objects adds the objects of a kind, and the state of each.
func (a *archive) objects(ctx context.Context, kind kinds.Kind) {
	found := a.listed(ctx, "objects", kind.GroupVersionKind, a.Namespace)
	for _, name := range found {
		base := path.Join("objects", kind.Plural, name)
		s, err := snapshot.Load(ctx, a.c, kind, a.Namespace, name)
		if err != nil {
			a.cannot(base, err)
			continue
		}
		var text bytes.Buffer
		if err := tree.Write(&text, tree.Of(s, a.Now), false); err == nil { // writes to a buffer never fail
			a.file(base+".status.txt", text.Bytes())
		}
		decisions, err := snapshot.Decisions(ctx, a.c, s.Object)
		if err != nil {
			a.cannot(base+": events", err)
		}
		a.yaml(base+".why.yaml", snapshot.WithRecorded(decisions, s.Object))
	}
}

// listed adds all objects of a kind in a namespace, each as a file, and returns their names.
func (a *archive) listed(ctx context.Context, folder string, kind schema.GroupVersionKind, namespace string) []string {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := a.c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		a.cannot(folder+"/"+kind.Kind, err)
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		item := &list.Items[i]
		Redact(item, a.KeepEnv)
		names = append(names, item.GetName())
		a.yaml(path.Join(folder, folderOf(kind), item.GetName()+".yaml"), item.Object)
	}
	return names
}

// folderOf returns the folder of a kind: the plural of its name.
func folderOf(kind schema.GroupVersionKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}

func (a *archive) yaml(name string, value any) {
	text, err := yaml.Marshal(value)
	if err != nil {
		a.cannot(name, err)
		return
	}
	a.file(name, text)
}

// operatorLogs adds the logs of all pods of the operator, also of previous containers.
func (a *archive) operatorLogs(ctx context.Context) {
	var pods corev1.PodList
	if err := a.c.List(ctx, &pods, client.InNamespace(a.Operator)); err != nil {
		return // reported when they were listed
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			a.log(ctx, pod, status.Name, false)
			if status.RestartCount > 0 {
				a.log(ctx, pod, status.Name, true)
			}
		}
	}
}

func (a *archive) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) {
	name := path.Join("operator", "logs", pod.Name+"."+container+".log")
	if previous {
		name = path.Join("operator", "logs", pod.Name+"."+container+".previous.log")
	}
	text, err := a.logs(ctx, pod.Namespace, pod.Name, container, previous)
	if err != nil {
		a.cannot(name, err)
		return
	}
	a.file(name, text)
}

// NamesOf returns the names of the objects of a list.
func NamesOf(list client.ObjectList) []string {
	var names []string
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
		if object, ok := item.(client.Object); ok {
			names = append(names, object.GetName())
		}
		return nil
	})
	return names
}
