package main

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/stateful-operator/stateful-operator/apis/clusterlabs/v1alpha1"
	"github.com/stateful-operator/stateful-operator/test/run/place"
)

const ledgerFile = "config/samples/replicatedstatefulset/ledger.yaml"

var ledgerKey = types.NamespacedName{Namespace: place.Namespace, Name: "ledger"}

// applyLedger applies the sample of ReplicatedStatefulSet with one primary.
func (s shown) applyLedger(ctx context.Context) error {
	ref, err := s.Program(ctx, ledger)
	if err != nil {
		return err
	}
	return s.Apply(ctx, ledgerFile, func(sample *unstructured.Unstructured) error { return place.MemberImage(sample, ref) })
}

// switchOver requests a switchover of the sample with one primary, and prints the duration. A failover
// this early after the start would be delayed (place.Calm).
func (s shown) switchOver(ctx context.Context) error {
	key := s.replicatedKey()
	set, err := s.Set(ctx, key, anyPrimary)
	if err != nil {
		return err
	}
	old, next := set.Status.Members.Primary[0], set.Status.Members.Secondary[0]
	if _, err := s.Run(ctx, "annotate", "rss", key.Name, v1alpha1.AnnotationSwitchoverTo+"="+next); err != nil {
		return err
	}
	_, err = s.AnotherPrimary(ctx, key, old)
	return err
}
