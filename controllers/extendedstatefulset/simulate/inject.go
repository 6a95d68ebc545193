package simulate

import (
	"bytes"
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/children"
)

// Inject applies the patch of the operator's webhook to a new pod, as the API server does. It returns the pod
// as the webhook reads it, and the reason if the pod gets no claims.
func Inject(pod *corev1.Pod) (incoming *children.IncomingPod, why string) {
	raw := marshaled(pod)
	incoming, err := children.ReadIncomingPod(json.NewDecoder(bytes.NewReader(raw)))
	if err != nil {
		panic(err) // a marshaled pod can be read
	}
	changes, why := children.Inject(incoming)
	if len(changes) == 0 {
		return incoming, why
	}
	operations, err := jsonpatch.DecodePatch(marshaled(changes))
	if err != nil {
		panic(err) // a marshaled patch can be read
	}
	if raw, err = operations.Apply(raw); err != nil {
		panic(err) // the patch was made for this pod
	}
	after := corev1.Pod{}
	if err := json.Unmarshal(raw, &after); err != nil {
		panic(err) // the patch replaces strings
	}
	*pod = after
	return incoming, why
}

func marshaled(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // objects of the API can always be marshaled
	}
	return raw
}
