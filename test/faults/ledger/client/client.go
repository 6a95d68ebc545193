// Package client appends to a ledger and reads it through one address, for example of a Service, and
// records the results.
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

// Client is a client of a ledger. It can be used concurrently: each operation is a separate request.
type Client struct {
	// Address is host:port.
	Address string
	// ID must be unique among the clients of a ledger.
	ID string
	// History receives the lines of each operation.
	History io.Writer
	// Try is the timeout of one attempt. Default: 5 s.
	Try time.Duration

	mu   sync.Mutex
	last int
}

const retryAfter = 20 * time.Millisecond

// answer is a ledger's response.
type answer struct {
	Epoch, Index, Position uint64
	Digest                 record.Digest
	Error, Effect          string
}

// Append appends a value, and retries until it is acknowledged or the context ends. A running attempt
// is not interrupted. The only errors are those of writing the history.
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

// Read reads the number of appends and their digest. It does not retry: a retry would be another
// operation.
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

// try makes one attempt. With an error it reports whether the attempt may have had an effect.
func (c *Client) try(ctx context.Context, method, path string, body []byte) (a answer, effect bool, err error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.Address+path, bytes.NewReader(body))
	if err != nil {
		return a, false, err
	}
	// Each request resolves the address again.
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

// neverSent reports whether the request was not sent because there was no connection.
func neverSent(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial")
}
