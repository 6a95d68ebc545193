// Command checkcommands tests the commands of a ReplicatedStatefulSet. It creates the pods that the
// operator would create in a new namespace, runs the commands as the operator does, and reports which
// rules of docs/commands.md they keep. The exit code is 1 if a rule is broken.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/stateful-operator/stateful-operator/test/run/place"
)

var errBroken = errors.New("the commands violate a rule")

func main() {
	var (
		file    = flag.String("file", "", "`manifest` with a ReplicatedStatefulSet and the objects that its pods need")
		keep    = flag.Bool("keep", false, "keep the namespace")
		members = flag.Int("members", 0, "number of `pods` to create; default spec.replicas, max 3")
		wait    = flag.Duration("wait", 5*time.Minute, "max duration of the start of the pods")
	)
	flag.Parse()
	if *file == "" {
		fmt.Fprintln(os.Stderr, "checkcommands: --file is required; with make: make check-commands FILE=my.yaml")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := check(ctx, *file, site{keep: *keep, members: int32(*members), patience: *wait})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "checkcommands:", err)
		os.Exit(1)
	}
}

// check tests each ReplicatedStatefulSet of a manifest.
func check(ctx context.Context, file string, s site) (err error) {
	m, err := readManifest(file)
	if err != nil {
		return err
	}
	where, err := place.Find(ctx)
	if err != nil {
		return err
	}
	if err := s.open(ctx, where, m.others); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}()
	for _, set := range m.sets {
		if err := bringImages(ctx, where, set); err != nil {
			return err
		}
		pods, err := s.makePods(ctx, set)
		if err != nil {
			return err
		}
		fmt.Printf("\nchecking the commands of %s in %d pods\n", set.Name, pods.count())
		j := newJudge(pods, set, os.Stdout)
		j.try(ctx)
		if broken := j.report(); broken > 0 {
			err = errBroken
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
