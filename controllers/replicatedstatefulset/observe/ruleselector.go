package observe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/facts"
	"github.com/stateful-operator/stateful-operator/controllers/replicatedstatefulset/spec"
)

// In this file a rule is a ConfigMap that spec.ruleSelector selects. Package rules is not related.

// MaxRuleBytes is the max total size of the ConfigMaps of spec.ruleSelector.
const MaxRuleBytes = 8 << 20

// readRules hashes the contents of the ConfigMaps of spec.ruleSelector. Only their metadata is
// cached, so contents are read when a version changes. If there are too many ConfigMaps, the
// members are not restarted.
func (r *Reader) readRules(ctx context.Context, w *facts.World) error {
	if w.Invalid != "" || w.Set.Spec.RuleSelector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.Set.Spec.RuleSelector)
	if err != nil {
		return nil //nolint:nilerr // spec.Validate has rejected it, so w.Invalid is set
	}
	list := metadataListOf("ConfigMap")
	if err := r.Cache.List(ctx, list, client.InNamespace(w.Set.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	if n := len(list.Items); n > spec.MaxRules {
		setRules(w, "", fmt.Sprintf("it selects %d ConfigMaps; the max is %d", n, spec.MaxRules))
		return nil
	}
	slices.SortFunc(
		list.Items,
		func(a, b metav1.PartialObjectMetadata) int { return strings.Compare(a.Name, b.Name) },
	)
	var versions strings.Builder
	for i := range list.Items {
		fmt.Fprintf(&versions, "%s/%s ", list.Items[i].Name, list.Items[i].ResourceVersion)
	}
	remembered := r.MemoryOf(w.Set)
	if remembered.hasNoRules() || remembered.versions != versions.String() {
		remembered.rules, remembered.excess, err = r.hashRules(ctx, w.Set.Namespace, list.Items)
		if err != nil {
			remembered.rules, remembered.excess = "", ""
			return err
		}
		remembered.versions = versions.String()
	}
	setRules(w, remembered.rules, remembered.excess)
	return nil
}

// setRules sets the hash of the rules. If they are too many or too large, it keeps the hash that
// the pods have, so that no pod is recreated.
func setRules(w *facts.World, rules, excess string) {
	w.Rules, w.WhyRulesIgnored = rules, excess
	if excess != "" && w.Stateful != nil {
		w.Rules = w.Stateful.Spec.Template.Annotations[v1alpha1.AnnotationRules]
	}
}

// hashRules reads ConfigMaps one after the other, for one set at a time, so that large ones do not
// exhaust memory. It returns the hash of a JSON map of names to contents. excess states that they
// are too large.
func (r *Reader) hashRules(ctx context.Context, namespace string, of []metav1.PartialObjectMetadata) (rules, excess string, err error) {
	r.hashing.Lock()
	defer r.hashing.Unlock()
	sum, left := sha256.New(), MaxRuleBytes
	comma := "{"
	for i := range of {
		var one corev1.ConfigMap
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: of[i].Name}, &one)
		if client.IgnoreNotFound(err) != nil {
			return "", "", fmt.Errorf("get ConfigMap %s: %w", of[i].Name, err)
		}
		if err != nil {
			continue // its watch event is on the way
		}
		n, err := hashOne(sum, comma, &one)
		if err != nil {
			return "", "", err
		}
		comma = ","
		if left -= n; left < 0 {
			return "", fmt.Sprintf(
				"it selects ConfigMaps of more than %d MiB in total",
				MaxRuleBytes>>20,
			), nil
		}
	}
	_, _ = io.WriteString(sum, strings.TrimSuffix(comma, ",")+"}") // a hash never returns an error
	return hex.EncodeToString(sum.Sum(nil)[:8]), "", nil
}

// hashOne hashes the name and contents of a ConfigMap. It returns the size of the contents.
func hashOne(sum hash.Hash, before string, one *corev1.ConfigMap) (int, error) {
	name, err := json.Marshal(one.Name)
	if err != nil {
		return 0, fmt.Errorf("hash ConfigMaps: %w", err)
	}
	contents, err := json.Marshal([]any{one.Data, one.BinaryData})
	if err != nil {
		return 0, fmt.Errorf("hash ConfigMaps: %w", err)
	}
	for _, text := range [][]byte{[]byte(before), name, []byte(":"), contents} {
		_, _ = sum.Write(text)
	}
	return len(contents), nil
}
