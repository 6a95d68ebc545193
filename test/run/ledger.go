package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

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

// failOver deletes the pod of the ledger's primary, or has a simulated one crash, and tells
// who took its place.
func (s shown) failOver(ctx context.Context) error {
	set, err := s.Set(ctx, ledgerKey, anyPrimary)
	if err != nil {
		return err
	}
	old := set.Status.Members.Primary[0]
	fmt.Printf("ledger: its primary, %s, fails in %s\n", old, place.Calm)
	time.Sleep(place.Calm)
	fault := []string{"delete", "pod", old, "--now", "--wait=false"}
	if s.Kind == place.Simulated {
		fault = []string{"exec", old, "--", "crash"}
	}
	if _, err := s.Run(ctx, fault...); err != nil {
		return err
	}
	_, err = s.AnotherPrimary(ctx, ledgerKey, old)
	return err
}
