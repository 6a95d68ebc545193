// Package writer writes entries to a database through one address, for example of a Service. At the end
// it reports lost entries among the acknowledged ones.
//
//	client run ADDRESS [EVERY]   writes until SIGTERM, then reads all entries
//	client end                   stops process 1, from another shell of its pod
package writer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// TryFor is the max duration of one attempt.
const TryFor = time.Second

// PauseSuffix ends a line with a number of milliseconds in which no write was acknowledged.
const PauseSuffix = " ms without an acknowledged entry"

const (
	longPause = 300 * time.Millisecond // longer ones, and failed attempts that took longer, are printed

	again    = 5 * time.Millisecond // delay before a failed read is retried
	patience = 2 * time.Minute      // for a primary, when all entries are read
)

// Database is a database with entries 1, 2, 3 and so on.
type Database interface {
	// Put writes an entry. It reports whether the entry must survive a failover. After an error the
	// entry may be stored or not. The next call uses a new connection, because it may reach another
	// primary.
	Put(ctx context.Context, n int) (acknowledged bool, err error)
	// Has reports whether the entry is stored.
	Has(ctx context.Context, n int) (bool, error)
	// Close closes the connection. The next call opens another one.
	Close()
}

// Main runs a client with the arguments of the process, and exits.
func Main(open func(address string) (Database, error)) {
	if err := client(os.Args[1:], open); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func client(args []string, open func(address string) (Database, error)) (err error) {
	if len(args) == 1 && args[0] == "end" {
		return syscall.Kill(1, syscall.SIGTERM)
	}
	if len(args) < 2 || len(args) > 3 || args[0] != "run" {
		return errors.New("usage: client run ADDRESS [EVERY] | end")
	}
	every := 5 * time.Millisecond // between two entries
	if len(args) == 3 {
		if every, err = time.ParseDuration(args[2]); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database, err := open(args[1])
	if err != nil {
		return err
	}
	w := &writer{Database: database}
	fmt.Println("writing to", args[1])
	for ctx.Err() == nil {
		w.next()
		time.Sleep(every)
	}
	w.Close()
	return w.tell()
}

type writer struct {
	Database
	acked []int
	tried int
	last  time.Time     // time of the last acknowledgment
	pause time.Duration // max time between two acknowledgments
}

// next writes one entry. An entry is never written again, whether it is acknowledged or not.
func (w *writer) next() {
	ctx, cancel := context.WithTimeout(context.Background(), TryFor)
	defer cancel()
	w.tried++
	began := time.Now()
	acknowledged, err := w.Put(ctx, w.tried)
	if err != nil {
		if took := time.Since(began); took > longPause {
			fmt.Printf("entry %d failed after %d ms: %v\n", w.tried, took.Milliseconds(), err)
		}
		w.Close()
	}
	if err != nil || !acknowledged {
		return
	}
	now := time.Now()
	if !w.last.IsZero() {
		pause := now.Sub(w.last)
		if pause > longPause {
			fmt.Printf("%d%s\n", pause.Milliseconds(), PauseSuffix)
		}
		w.pause = max(w.pause, pause)
	}
	w.last, w.acked = now, append(w.acked, w.tried)
}

// tell reads all acknowledged entries, and reports the lost ones.
func (w *writer) tell() error {
	lost := 0
	for _, n := range w.acked {
		there, err := w.read(n)
		if err != nil {
			return err
		}
		if !there {
			lost++
		}
	}
	fmt.Printf("%d entries were acknowledged, of %d; the longest pause was %d ms; %d acknowledged entries are lost\n",
		len(w.acked), w.tried, w.pause.Milliseconds(), lost)
	if lost > 0 {
		return fmt.Errorf("%d acknowledged entries are lost", lost)
	}
	return nil
}

func (w *writer) read(n int) (there bool, err error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(again) {
		ctx, cancel := context.WithTimeout(context.Background(), TryFor)
		there, err = w.Has(ctx, n)
		cancel()
		if err == nil {
			return there, nil
		}
		w.Close()
	}
	return false, fmt.Errorf("read entry %d: %w", n, err)
}
