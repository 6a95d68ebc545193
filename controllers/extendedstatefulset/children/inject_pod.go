package children

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/fissile/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/extendedstatefulset/spec"
)

// IncomingPod has the fields of a new pod that the webhook uses. All other fields are skipped, whatever
// their size.
type IncomingPod struct {
	// ObjectMeta has only the name, the labels in ReadLabels, the annotations in readAnnotations, and
	// the controller owner.
	metav1.ObjectMeta
	Hostname string
	// Waiting are the volumes on claims that never exist.
	Waiting []UnassignedVolume
	// More is true if there are more of them than a pod of the operator can have.
	More bool
}

// UnassignedVolume is a volume without an assigned claim: its index in the list, its name, and the
// claim that never exists.
type UnassignedVolume struct {
	At          int
	Name, Claim string
}

// ReadLabels are the labels that IncomingPod keeps, and readAnnotations the annotations.
var (
	ReadLabels      = []string{v1alpha1.LabelSet, v1alpha1.LabelStatefulSet, v1alpha1.LabelVersion, v1alpha1.LabelPodOrdinal, appsv1.PodIndexLabel}
	readAnnotations = []string{v1alpha1.AnnotationHostnames}
)

// ReadIncomingPod reads a pod in one pass, and keeps only the fields of IncomingPod.
func ReadIncomingPod(d *json.Decoder) (*IncomingPod, error) {
	d.UseNumber()
	n := &IncomingPod{}
	return n, fields(d, func(name string) error {
		switch name {
		case "metadata":
			return fields(d, func(name string) error { return n.readMeta(d, name) })
		case "spec":
			return fields(d, func(name string) error { return n.readSpec(d, name) })
		}
		return skip(d)
	})
}

func (n *IncomingPod) readMeta(d *json.Decoder, name string) (err error) {
	switch name {
	case "name":
		n.Name, err = text(d)
	case "labels":
		n.Labels, err = entries(d, ReadLabels)
	case "annotations":
		n.Annotations, err = entries(d, readAnnotations)
	case "ownerReferences":
		err = items(d, func(int) error { return n.readOwner(d) })
	default:
		err = skip(d)
	}
	return err
}

// readOwner reads an owner reference, and keeps the first one to a controller.
func (n *IncomingPod) readOwner(d *json.Decoder) error {
	var owner metav1.OwnerReference
	var controller bool
	err := fields(d, func(name string) (err error) {
		switch name {
		case "apiVersion":
			owner.APIVersion, err = text(d)
		case "kind":
			owner.Kind, err = text(d)
		case "name":
			owner.Name, err = text(d)
		case "controller":
			controller, err = yes(d)
		default:
			err = skip(d)
		}
		return err
	})
	if controller && len(n.OwnerReferences) == 0 {
		owner.Controller = &controller
		n.OwnerReferences = []metav1.OwnerReference{owner}
	}
	return err
}

func (n *IncomingPod) readSpec(d *json.Decoder, name string) (err error) {
	switch name {
	case "hostname":
		n.Hostname, err = text(d)
	case "volumes":
		err = items(d, func(i int) error { return n.readVolume(d, i) })
	default:
		err = skip(d)
	}
	return err
}

// readVolume reads a volume, and keeps it if it uses a claim that never exists.
func (n *IncomingPod) readVolume(d *json.Decoder, at int) error {
	v := UnassignedVolume{At: at}
	err := fields(d, func(name string) (err error) {
		switch name {
		case "name":
			v.Name, err = text(d)
		case "persistentVolumeClaim":
			err = fields(d, func(name string) (err error) {
				if name != "claimName" {
					return skip(d)
				}
				v.Claim, err = text(d)
				return err
			})
		default:
			err = skip(d)
		}
		return err
	})
	if !strings.HasSuffix(v.Claim, v1alpha1.UnassignedClaim) {
		return err
	}
	if n.More = n.More || len(n.Waiting) == spec.MaxVolumes; !n.More {
		n.Waiting = append(n.Waiting, v)
	}
	return err
}

// fields reads a JSON object. It calls read with the name of each field; read must read the value.
func fields(d *json.Decoder, read func(name string) error) error {
	return within(d, '{', func(int) error {
		name, err := text(d)
		if err != nil {
			return err
		}
		return read(name)
	})
}

// items reads a JSON array. It calls read with the index of each item; read must read the item.
func items(d *json.Decoder, read func(at int) error) error { return within(d, '[', read) }

// within reads the content of the next object or array. It skips null.
func within(d *json.Decoder, opens json.Delim, read func(at int) error) error {
	switch t, err := d.Token(); {
	case err != nil || t == nil:
		return err
	case t != opens:
		return fmt.Errorf("got %v, want %v", t, opens)
	}
	for at := 0; d.More(); at++ {
		if err := read(at); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// entries reads an object of strings, and returns the entries whose names are in of.
func entries(d *json.Decoder, of []string) (map[string]string, error) {
	kept := map[string]string{}
	return kept, fields(d, func(name string) error {
		value, err := text(d)
		if slices.Contains(of, name) {
			kept[name] = value
		}
		return err
	})
}

// text reads a string; "" for null.
func text(d *json.Decoder) (string, error) {
	t, err := d.Token()
	if s, ok := t.(string); ok || t == nil {
		return s, err
	}
	return "", fmt.Errorf("got %v, want a string", t)
}

// yes reads a bool; false for null.
func yes(d *json.Decoder) (bool, error) {
	t, err := d.Token()
	if b, ok := t.(bool); ok || t == nil {
		return b, err
	}
	return false, fmt.Errorf("got %v, want a boolean", t)
}

// skip skips one value.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}
