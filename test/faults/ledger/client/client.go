// Package client appends to a ledger and reads it through one address, such as
// that of a Service, and writes down what came of it.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/stateful-operator/stateful-operator/test/faults/ledger/record"
	"github.com/stateful-operator/stateful-operator/test/faults/testimony"
)

// Client is one client. It may be used by many at once: each operation is a
// request of its own.
type Client struct {
	// Address is host:port.
	Address string
	// ID is the client's own: no two clients of a ledger may have the same.
	ID string
	// History takes the lines of each operation.
	History io.Writer
	// Try bounds one attempt; 5 s if not said.
	Try time.Duration

	mu   sync.Mutex
	last int
}

const retryAfter = 20 * time.Millisecond

// answer is a ledger's.
type answer struct {
	Epoch, Index, Position uint64
	Digest                 record.Digest
	Error, Effect          string
}

// Append appends a value, and tries again until it is acknowledged or the
// context ends, which does not interrupt an attempt. An error is only of writing
// the history.
func (c *Client) Append(ctx context.Context, value string) (record.Op, error) {
	op, err := c.begin(record.Append, value)
	if err != nil {
		return op, err
	}
	body := record.Marshal(map[string]string{"client": op.Client, "request": op.Request, "value": op.Value})
	op.Outcome = record.Refused
	for {
		a, effect, err := c.try(context.WithoutCancel(ctx), "POST", "/append", body)
		if err == nil {
			op.Outcome, op.Error = record.OK, ""
			op.Position, op.Epoch, op.Index = a.Position, a.Epoch, a.Index
			break
		}
		op.Error = err.Error()
		if effect {
			op.Outcome = record.Unknown
		}
		if !pause(ctx) {
			break
		}
	}
	op.Return = testimony.Now()
	return op, c.write(op)
}

// Read reads how many appends there are and their digest. It tries once: the
// next attempt is another operation.
func (c *Client) Read(ctx context.Context) (record.Op, error) {
	op, err := c.begin(record.Read, "")
	if err != nil {
		return op, err
	}
	a, _, err := c.try(ctx, "GET", "/read", nil)
	op.Outcome, op.Return = record.OK, testimony.Now()
	op.Position, op.Digest, op.Epoch, op.Index = a.Position, a.Digest, a.Epoch, a.Index
	if err != nil {
		op.Outcome, op.Error = record.Refused, err.Error() // a read has no effect
	}
	return op, c.write(op)
}

func (c *Client) begin(kind, value string) (record.Op, error) {
	c.mu.Lock()
	c.last++
	op := record.Op{Client: c.ID, Request: strconv.Itoa(c.last), Kind: kind, Value: value}
	c.mu.Unlock()
	op.Call = testimony.Now()
	return op, c.write(op)
}

func (c *Client) write(op record.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.History.Write(record.Marshal(op))
	return err
}

func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(retryAfter):
		return true
	}
}

// try makes one attempt. With an error it reports whether it may have had effect.
func (c *Client) try(ctx context.Context, method, path string, body []byte) (a answer, effect bool, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, bytes.NewReader(body))
	if err != nil {
		return a, false, err
	}
	// Each request finds out anew who is behind the address.
	through := http.Client{Timeout: cmp.Or(c.Try, 5*time.Second), Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := through.Do(r)
	if err != nil {
		return a, !neverSent(err), err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&a); err != nil {
		return a, true, fmt.Errorf("%s: %w", response.Status, err)
	}
	if response.StatusCode != http.StatusOK {
		return a, a.Effect != "none", fmt.Errorf("%s: %s", response.Status, a.Error)
	}
	return a, false, nil
}

// neverSent reports whether there was no connection to send anything through.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial")
}
