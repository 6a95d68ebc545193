package main

import (
	"context"
	"errors"
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
func serve(s settings, run string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	lock := must(os.OpenFile(s.path(lockFile), os.O_CREATE|os.O_RDWR, 0o644))
	defer lock.Close()
	need(flock(lock, syscall.LOCK_EX)) // of one that is being killed
	n := openNode(s, run)
	clients := must(net.Listen("tcp", s.listen))
	orders := must(net.FileListener(os.NewFile(ordersFD, "the socket of process 1")))
	stopped := make(chan struct{}, 1)
	server := &http.Server{Handler: n.orders(stopped), ReadHeaderTimeout: time.Minute}
	go func() { need(http.Serve(clients, n.api())) }()
	go func() { _ = server.Serve(orders) }() // it ends by Shutdown
	<-stopped
	need(server.Shutdown(context.Background())) // the last answer goes out
}

func (n *node) orders(stopped chan<- struct{}) http.Handler {
	return handler(func(ctx context.Context, o order) (out outcome, _ error) {
		if o.Command != "view" {
			if err := n.obey(context.WithoutCancel(ctx), o.Command, o.Peers, o.Crash); err != nil {
				out = outcome{Code: exitFailed, Error: err.Error()}
			}
		}
		out.View = n.view()
		if o.Command == "stop" && out.Code == 0 {
			stopped <- struct{}{}
		}
		return out, nil
	})
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

// send gives an order to a socket. Without a bound it takes as long as it takes:
// the operator has a timeout.
func send(socket string, within time.Duration, o order) (out outcome, err error) {
	through := &http.Client{Timeout: within, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	err = askThrough(context.Background(), through, "ledger", "POST", "/", o, &out)
	return out, err
}
