package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// order is a command on its way: from a hook to process 1, and from there to the
// server.
type order struct {
	Command string        `json:"command"`
	Peers   []string      `json:"peers,omitempty"`
	Late    time.Duration `json:"late,omitempty"`  // takes effect so much later than it is answered
	Crash   bool          `json:"crash,omitempty"` // the server is killed in the middle of it
}

// outcome answers an order, with the exit code and the output of the hook.
type outcome struct {
	Code   int    `json:"code"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	View   view   `json:"view"` // of the server, where it answers
}

// ordersFD is the socket that process 1 hands to its server.
const ordersFD = 3

// serve is the server: a process of its own, so that it can be killed alone. It
// does nothing before process 1 tells it, and ends with it: its input is a pipe
// from there.
func serve(s settings, run string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	lock, err := os.OpenFile(s.path(lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := flock(lock, syscall.LOCK_EX); err != nil { // of one that is being killed
		return fmt.Errorf("locking %s: %w", s.dir, err)
	}
	n, err := openNode(s, run)
	if err != nil {
		return err
	}
	clients, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	orders, err := net.FileListener(os.NewFile(ordersFD, "orders"))
	if err != nil {
		return fmt.Errorf("taking the socket of process 1: %w", err)
	}
	ended := make(chan error, 3)
	server := &http.Server{Handler: n.orders(ended), ReadHeaderTimeout: time.Minute}
	go func() { ended <- http.Serve(clients, n.api()) }()
	go func() { ended <- server.Serve(orders) }()
	if err := <-ended; err != nil {
		return err
	}
	return server.Shutdown(context.Background()) // the last answer goes out
}

func (n *node) orders(ended chan<- error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var o order
		if !hear(w, r, &o) {
			return
		}
		var out outcome
		if o.Command != "view" {
			if err := n.obey(context.WithoutCancel(r.Context()), o.Command, o.Peers, o.Crash); err != nil {
				out = outcome{Code: exitFailed, Error: err.Error()}
			}
		}
		out.View = n.view()
		tell(w, http.StatusOK, out)
		if o.Command == "stop" && out.Code == 0 {
			ended <- nil
		}
	})
}

// orderClient sends orders to a unix socket. A command takes as long as it
// takes: the operator has a timeout.
func orderClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

func listenUnix(socket string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the next one is there already
	return listener, nil
}

// send gives an order to a socket.
func send(ctx context.Context, socket string, o order) (out outcome, err error) {
	err = askThrough(ctx, orderClient(socket), "ledger", "POST", "/", o, &out)
	return out, err
}
