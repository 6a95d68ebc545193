package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stateful-operator/stateful-operator/test/run/place"
	postgres "github.com/stateful-operator/stateful-operator/test/run/postgres/server"
)

const (
	ordersFile  = "config/samples/applications/postgresql.yaml"
	postgresTar = "build/run/postgresql.tar"
	rows        = 1000
)

var ordersKey = types.NamespacedName{Namespace: place.Namespace, Name: "orders"}

// applyOrders applies the sample of PostgreSQL, and writes rows. Simulated nodes cannot run it, and run
// the ledger instead.
func (s shown) applyOrders(ctx context.Context) error {
	if s.Kind == place.Simulated {
		return s.applyLedger(ctx)
	}
	made, err := postgres.Image.Write(ctx, postgresTar)
	if err != nil {
		return err
	}
	ref, err := s.Load(ctx, made, postgresTar)
	if err != nil {
		return err
	}
	if err := s.Apply(ctx, ordersFile, func(sample *unstructured.Unstructured) error { return place.MemberImage(sample, ref) }); err != nil {
		return err
	}
	set, err := s.Set(ctx, ordersKey, anyPrimary)
	if err != nil {
		return err
	}
	_, err = s.query(ctx, set.Status.Members.Primary[0], fmt.Sprintf(
		"create table if not exists orders (n int primary key); insert into orders select generate_series(1, %d) on conflict do nothing", rows))
	return err
}

// query runs SQL in a member.
func (s shown) query(ctx context.Context, member, sql string) (string, error) {
	return s.Run(ctx, "exec", member, "--", "psql", "-XAtqc", sql)
}

// failOver deletes the primary of PostgreSQL after the switchover, and counts the rows of the next one.
func (s shown) failOver(ctx context.Context) error {
	if s.Kind == place.Simulated {
		return nil
	}
	set, err := s.Set(ctx, ordersKey, anyPrimary)
	if err != nil {
		return err
	}
	old := set.Status.Members.Primary[0]
	if _, err := s.Run(ctx, "delete", "pod", old, "--now", "--wait=false"); err != nil {
		return err
	}
	primary, err := s.AnotherPrimary(ctx, ordersKey, old)
	if err != nil {
		return err
	}
	count, err := s.query(ctx, primary, "select count(*) from orders")
	if err == nil {
		fmt.Printf("orders: %s of %d rows after a switchover and a failover\n", count, rows)
	}
	return err
}

// replicatedKey returns the key of the sample with one primary.
func (s shown) replicatedKey() types.NamespacedName {
	if s.Kind == place.Simulated {
		return ledgerKey
	}
	return ordersKey
}
