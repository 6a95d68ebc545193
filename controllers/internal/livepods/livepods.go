// Package livepods lists pods from the API server and decodes them one at a time. Users who can label
// pods determine the size of such a list, because each pod can have one or two MiB. Decoding all pods
// at once could use all memory of the operator.
package livepods

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

// few is the number of bytes of JSON up to which a list counts as small. A pass that reads more is
// large.
const few = 1 << 20

// Reader reads from the API server. It streams lists of pods.
type Reader struct {
	client.Reader
	core rest.Interface
	most int64
}

// New returns a Reader. most is the max size of a list of pods in bytes of JSON. Larger lists return an
// error.
func New(mgr ctrl.Manager, most int64) (*Reader, error) {
	core, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create a client for pods: %w", err)
	}
	return &Reader{Reader: mgr.GetAPIReader(), core: core.RESTClient(), most: most}, nil
}

// List lists objects. ctx must be the context of a pass.
func (r *Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	pods, ok := list.(*corev1.PodList)
	if !ok {
		return r.Reader.List(ctx, list, options...)
	}
	of := (&client.ListOptions{}).ApplyOptions(options)
	answer, err := r.core.Get().Resource("pods").Namespace(of.Namespace).SetHeader("Accept", "application/json").
		VersionedParams(of.AsListOptions(), scheme.ParameterCodec).Stream(ctx)
	if err != nil {
		return err
	}
	defer answer.Close()
	return decodePods(&bounded{Reader: answer, most: r.most, enter: func() error { return large.Enter(ctx) }}, pods)
}

// decodePods decodes a PodList from JSON.
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
	_, err := d.Token() // }; an error means that the response was truncated
	return err
}

func decodeItems(d *json.Decoder, into *corev1.PodList) error {
	if begin, err := d.Token(); err != nil || begin == nil { // [ or null
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

// bounded is a reader that fails beyond most bytes. Beyond few bytes, it calls enter once before it
// continues.
type bounded struct {
	io.Reader
	enter      func() error
	most, read int64
	large      bool
}

// Read reads from the response, and enforces the limits.
func (b *bounded) Read(into []byte) (int, error) {
	n, err := b.Reader.Read(into)
	b.read += int64(n)
	if b.read > b.most {
		return 0, fmt.Errorf("the pods of its selector exceed %d MiB in total: find pods of other owners with kubectl get pods --show-labels", b.most>>20)
	}
	if b.read > few && !b.large {
		b.large = true
		if err := b.enter(); err != nil {
			return 0, err
		}
	}
	return n, err
}
