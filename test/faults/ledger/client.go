package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/client"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// runClient appends and reads until it is told to end or has appended enough.
func runClient(args []string) error {
	var (
		c           client.Client
		history     string
		count       int
		every, wait time.Duration
		flags       = flag.NewFlagSet("ledger client ADDR", flag.ContinueOnError)
	)
	flags.StringVar(&c.ID, "id", newRun(), "`name` of this client; no two may have the same")
	flags.StringVar(&history, "history", "", "`file` for the history; standard output if not said")
	flags.IntVar(&count, "count", 0, "how many to append; 0 is until it is told to end")
	flags.DurationVar(&every, "every", 100*time.Millisecond, "pause between two appends, and between two reads")
	flags.DurationVar(&wait, "wait", 0, "how long to try one append; 0 is until it is told to end")
	if len(args) == 0 {
		return errors.New("the address is missing")
	}
	c.Address = args[0]
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	c.History = os.Stdout
	if history != "" {
		file, err := openHistory(history)
		if err != nil {
			return err
		}
		defer file.Close()
		c.History = file
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return drive(ctx, &c, count, every, wait)
}

// openHistory opens a file that was not there, or reaches a scribe.
func openHistory(path string) (io.WriteCloser, error) {
	if strings.HasPrefix(path, testimony.Scheme) {
		return testimony.Dial(path, testimony.History)
	}
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
}

func drive(ctx context.Context, c *client.Client, count int, every, wait time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var reading sync.WaitGroup
	var readErr error
	reading.Go(func() {
		for ctx.Err() == nil && readErr == nil {
			_, readErr = c.Read(ctx)
			pause(ctx, every)
		}
	})
	var err error
	for i := 1; ctx.Err() == nil && err == nil && (count == 0 || i <= count); i++ {
		err = appendOne(ctx, c, fmt.Sprintf("%s-%d", c.ID, i), wait)
		pause(ctx, every)
	}
	stop()
	reading.Wait()
	return errors.Join(err, readErr)
}

func appendOne(ctx context.Context, c *client.Client, value string, wait time.Duration) error {
	if wait > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, wait)
		defer cancel()
	}
	_, err := c.Append(ctx, value)
	return err
}
