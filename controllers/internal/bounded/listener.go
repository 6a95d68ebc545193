package bounded

import (
	"net"
	"sync"
)

// maxConnections is the max number of open connections. A TLS connection takes about 40 KiB, so all of
// them take 50 MiB. The API server opens one connection per concurrent call. By default it makes up to
// 600 concurrent calls (--max-requests-inflight, --max-mutating-requests-inflight). One peer can use
// half of the connections.
const maxConnections = 1280

// reserved defines the share of connections for peers with fewer than two connections: one in 16.
const reserved = 16

// listener closes connections above its limits. A peer is an IP address. It gets another connection
// only while the number of free connections exceeds its own number. The last free connections are
// reserved for peers with fewer than two. So a peer at its limit always leaves some free: to exclude
// others, an attacker needs as many addresses as there are reserved connections. If that is a risk,
// allow only the API servers to reach the port (docs/security.md).
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

// Accept waits for a connection that is within the limits.
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

// enter counts a connection of a peer if it is within the limits, and reports whether it is.
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

// counted is a connection that is subtracted from the count when it is closed.
type counted struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (c *counted) Close() error {
	c.once.Do(c.leave)
	return c.Conn.Close()
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
