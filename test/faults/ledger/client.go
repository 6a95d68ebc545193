package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/client"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// runClient appends and reads until a signal or until it has appended enough.
func runClient(args []string) {
	var c client.Client
	flags := flag.NewFlagSet("ledger client ADDR", flag.ExitOnError)
	flags.StringVar(&c.ID, "id", newRun(), "unique `name` of this client")
	history := flags.String("history", "", "`file` for the history; required")
	count := flags.Int("count", 0, "number of appends; 0 means until the client is stopped")
	every := flags.Duration("every", 100*time.Millisecond, "pause between two appends, and between two reads")
	if len(args) == 0 {
		need(errors.New("the address is missing"))
	}
	c.Address = args[0]
	need(flags.Parse(args[1:]))
	file := must(openEvidence(*history, testimony.History, os.O_EXCL)) // each client has its own
	defer file.Close()
	c.History = file
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			must(c.Read(ctx))
			pause(ctx, *every)
		}
	})
	for i := 1; ctx.Err() == nil && (*count == 0 || i <= *count); i++ {
		must(c.Append(ctx, fmt.Sprintf("%s-%d", c.ID, i)))
		pause(ctx, *every)
	}
	stop()
	reading.Wait()
}
