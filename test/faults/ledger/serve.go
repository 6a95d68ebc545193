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

// order is a command that is sent by a hook to process 1, and from there to the server.
type order struct {
	Command string        `json:"command"`
	Peers   []string      `json:"peers,omitempty"`
	Late    time.Duration `json:"late,omitempty"`  // the delay between its response and its effect
	Crash   bool          `json:"crash,omitempty"` // the server is killed during the command
}

// outcome is the response to an order, with the exit code and the output of the hook.
type outcome struct {
	Code   int    `json:"code"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	View   view   `json:"view"` // of the server, if it responds
}

// ordersFD is the file descriptor of the socket that process 1 passes to its server.
const ordersFD = 3

// serve runs the server in a separate process, so that it can be killed alone. It does nothing before
// an order of process 1, and ends with process 1: its input is a pipe from there.
func serve(s settings, run string) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	lock := must(os.OpenFile(s.path(lockFile), os.O_CREATE|os.O_RDWR, 0o644))
	defer lock.Close()
	need(flock(lock, syscall.LOCK_EX)) // waits for a server that is being killed
	n := openNode(s, run)
	clients := must(net.Listen("tcp", s.listen))
	orders := must(net.FileListener(os.NewFile(ordersFD, "the socket of process 1")))
	stopped := make(chan struct{}, 1)
	server := &http.Server{Handler: n.orders(stopped), ReadHeaderTimeout: time.Minute}
	go func() { need(http.Serve(clients, n.api())) }()
	go func() { _ = server.Serve(orders) }() // it returns after Shutdown
	<-stopped
	need(server.Shutdown(context.Background())) // sends the last response
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
	listener.SetUnlinkOnClose(false) // the next socket already has the path
	return listener, nil
}

// send sends an order to a socket. Without a timeout it waits forever: the operator has a timeout.
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
