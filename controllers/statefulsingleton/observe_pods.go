package statefulsingleton

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stateful-operator/stateful-operator/controllers/internal/large"
)

// Who selects pods chooses how many bytes a pass reads: each may have a megabyte or two.
const (
	// mostPodBytes is how many bytes of JSON the pods of an object may have in all. A pass
	// fails where they have more.
	mostPodBytes = 16 << 20
	// fewPodBytes are read at any time. A pass that reads more is large.
	fewPodBytes = 1 << 20
)

// livePods reads the API server, and lists of pods one pod at a time.
type livePods struct {
	client.Reader
	core rest.Interface
}

func newLivePods(mgr ctrl.Manager) (*livePods, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client for pods: %w", err)
	}
	return &livePods{Reader: mgr.GetAPIReader(), core: core.RESTClient()}, nil
}

// List reads a list; ctx is that of a pass.
func (l *livePods) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return l.Reader.List(ctx, list, options...)
	}
	of := (&client.ListOptions{}).ApplyOptions(options)
	answer, err := l.core.Get().Resource("pods").Namespace(of.Namespace).SetHeader("Accept", "application/json").
		VersionedParams(of.AsListOptions(), scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return err
	}
	defer answer.Close()
	return decodePods(&bounded{Reader: answer, enter: func() error { return large.Enter(ctx) }}, pods)
}

// decodePods reads a PodList as JSON.
func decodePods(from io.Reader, into *corev1.PodList) error {
	d := json.NewDecoder(from)
	if _, err := d.Token(); err != nil { // {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "items":
			err = decodeItems(d, into)
		case "metadata":
			err = d.Decode(&into.ListMeta)
		default:
			err = d.Decode(&json.RawMessage{})
		}
		if err != nil {
			return err
		}
	}
	_, err := d.Token() // }: what ended before was cut off
	return err
}

func decodeItems(d *json.Decoder, into *corev1.PodList) error {
	if begin, err := d.Token(); err != nil || begin == nil { // [, or null
		return err
	}
	for d.More() {
		var pod corev1.Pod
		if err := d.Decode(&pod); err != nil {
			return err
		}
		into.Items = append(into.Items, pod)
	}
	_, err := d.Token() // ]
	return err
}

// bounded reads no more than may be, and what is much after it has entered.
type bounded struct {
	io.Reader
	enter func() error
	read  int64
	large bool
}

func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	b.read += int64(n)
	if b.read > mostPodBytes {
		return 0, fmt.Errorf("the pods that it selects have more than %d MiB in all", mostPodBytes>>20)
	}
	if b.read > fewPodBytes && !b.large {
		b.large = true
		if err := b.enter(); err != nil {
			return 0, err
		}
	}
	return n, err
}
