package bounded

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// TestF6OptionsReachTheHandler verifies that no request bypasses the handler: net/http responds to
// "OPTIONS *" itself by default.
func TestF6OptionsReachTheHandler(t *testing.T) {
	g := NewWithT(t)
	server, err := newServer("test", "127.0.0.1:0", nil, http.NotFoundHandler())
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = server.Server.Serve(server.Listener) }()
	t.Cleanup(func() { _ = server.Server.Close() })
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	defer connection.Close()
	_, err = fmt.Fprint(connection, "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
	g.Expect(err).NotTo(HaveOccurred())
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	g.Expect(response.StatusCode).To(Equal(http.StatusNotFound))
}
