// Command client writes entries to a Redis through one address, for example of a Service. At the end it
// reports lost entries among the acknowledged ones.
//
//	client run ADDRESS [EVERY]   writes until SIGTERM, then reads all entries
//	client end                   stops process 1, from another shell of its pod
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) > 1 && len(args) < 4 && args[0] == "run":
		every := 5 * time.Millisecond // between two entries
		if len(args) == 3 {
			every, err = time.ParseDuration(args[2])
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		if err == nil {
			err = run(ctx, args[1], every)
		}
		stop()
	case len(args) == 1 && args[0] == "end":
		err = syscall.Kill(1, syscall.SIGTERM)
	default:
		err = fmt.Errorf("usage: client run ADDRESS [EVERY] | end")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

const (
	tryFor   = time.Second // for one attempt
	ackFor   = 500 * time.Millisecond
	again    = 5 * time.Millisecond // delay before a failed read is retried
	patience = 2 * time.Minute      // for a primary, when all entries are read
)

// writer writes entries 1, 2, 3, each with a separate key.
type writer struct {
	client *redis.Client
	conn   *redis.Conn
	acked  []int
	tried  int
	last   time.Time     // time of the last acknowledgment
	pause  time.Duration // max time between two acknowledgments
}

func run(ctx context.Context, address string, every time.Duration) error {
	w := &writer{client: redis.NewClient(&redis.Options{
		Addr: address, MaxRetries: -1, DialerRetries: 1, DialTimeout: tryFor, ReadTimeout: tryFor, WriteTimeout: tryFor,
	})}
	defer w.client.Close()
	redis.SetLogger(silent{}) // failures are counted
	fmt.Println("writing to", address)
	for ctx.Err() == nil {
		w.next()
		time.Sleep(every)
	}
	w.drop()
	return w.tell()
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// next writes one entry. It is acknowledged when a second member has it. An unacknowledged entry may be
// stored or not, and its key is never written again.
func (w *writer) next() {
	ctx, cancel := context.WithTimeout(context.Background(), tryFor)
	defer cancel()
	if w.conn == nil {
		w.conn = w.client.Conn()
	}
	w.tried++
	err := w.conn.Set(ctx, key(w.tried), w.tried, 0).Err()
	var copies int64
	if err == nil {
		copies, err = w.conn.Wait(ctx, 1, ackFor).Result()
	}
	if err != nil { // a new connection may reach another primary
		w.drop()
		return
	}
	if copies < 1 {
		return
	}
	now := time.Now()
	if !w.last.IsZero() {
		w.pause = max(w.pause, now.Sub(w.last))
	}
	w.last, w.acked = now, append(w.acked, w.tried)
}

func key(n int) string { return "entry:" + strconv.Itoa(n) }

func (w *writer) drop() {
	if w.conn != nil {
		_ = w.conn.Close() // it is usually broken
		w.conn = nil
	}
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
		var is string
		is, err = w.client.Get(context.Background(), key(n)).Result()
		if err == nil || errors.Is(err, redis.Nil) {
			return is == strconv.Itoa(n), nil
		}
	}
	return false, fmt.Errorf("read entry %d: %w", n, err)
}
