package bounded

import (
	"net"
	"sync"
)

// maxConnections are open at one time. A TLS connection takes about 40 KiB, so all of them
// take 50 MiB. The API server opens one for each call under way, and makes up to 600 calls
// in its own defaults (--max-requests-inflight, --max-mutating-requests-inflight); one peer
// may have half of all.
const maxConnections = 1280

// reserved is the share of connections, one in so many, that only a peer with fewer than
// two gets.
const reserved = 16

// listener closes the connections that are too many. A peer, by its address, gets another
// one only while more are free than it has, and the last of them go to peers with fewer than
// two. So who holds as many as it gets leaves some free: it takes as many addresses as there
// are reserved connections to shut others out. Where that is to be feared, close the port to
// all but the API servers (docs/security.md).
type listener struct {
	net.Listener
	max int

	mu   sync.Mutex
	open int
	by   map[string]int
}

func newListener(inner net.Listener, most int) *listener {
	return &listener{Listener: inner, max: most, by: map[string]int{}}
}

// Accept waits for a connection that is not one too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer := hostOf(connection.RemoteAddr().String())
		if l.enter(peer) {
			return &counted{Conn: connection, leave: func() { l.leave(peer) }}, nil
		}
		connection.Close()
	}
}

func (l *listener) enter(peer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	free := l.max - l.open
	if l.by[peer] >= free {
		return false
	}
	if l.by[peer] > 1 && free <= l.max/reserved {
		return false
	}
	l.open++
	l.by[peer]++
	return true
}

func (l *listener) leave(peer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.by[peer]--; l.by[peer] == 0 {
		delete(l.by, peer)
	}
}

// counted is a connection that is one less when it is closed.
type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (c *counted) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// hostOf is the address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
