package podexec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/kubernetes/scheme"
	transport "k8s.io/client-go/transport/websocket"
	"k8s.io/streaming/pkg/httpstream"
)

// client-go's remotecommand takes a stream that was closed before the node told
// the exit code for success: an error stream without a message is no error
// (tools/remotecommand/v2.go). Here that would be a status of 0 that nobody
// gave, so the frames are read by ourselves.

// The channels of exec over WebSocket; the first byte of each message
// (k8s.io/kubelet/pkg/cri/streaming/remotecommand/websocket.go).
const (
	channelStdout = 1
	channelStderr = 2
	channelStatus = 3
)

const (
	// mostRead ends the reading of a command that prints without end, and mostStatus
	// is how long the word may be by which a node tells of its end.
	mostRead, mostStatus = 16 << 20, 64 << 10
	// silence is how long a connection may not answer a ping, and pings how often
	// it is asked.
	silence, pings = 30 * time.Second, 10 * time.Second
)

// stream sends the command and reads what it says, into result.
func (e *Executor) stream(ctx context.Context, result *Result) {
	conn, err := e.dial(ctx, result.Command)
	if err != nil {
		result.Refused = refused(err)
		result.Sent = !result.Refused && !notReached(err)
		result.Why = "the API server did not take it: " + err.Error()
		return
	}
	defer conn.Close()
	result.Sent = true
	ended := context.AfterFunc(ctx, func() { conn.Close() })
	defer ended()
	stop := keepAsking(conn)
	defer stop()
	status, err := read(conn, result)
	if err == nil {
		err = result.conclude(status)
	}
	if err != nil {
		result.Why = "the stream ended before the node told the exit code: " + err.Error()
		if ctx.Err() != nil {
			result.Why = fmt.Sprintf("it did not end within %s", result.Timeout)
		}
	}
}

// refused reports whether the command was turned away before a node had it: by the
// API server with a code of 4xx, or because that found no way to the node. Any
// other code may be of one that handed the command on and lost the node, or a load
// balancer's that lost the API server.
func refused(err error) bool {
	var failure *httpstream.UpgradeFailureError
	if !errors.As(err, &failure) {
		return false
	}
	if status := apierrors.APIStatus(nil); errors.As(failure.Cause, &status) && status.Status().Code/100 == 4 {
		return true
	}
	return refusal.MatchString(failure.Cause.Error())
}

// refusal is the same in words: client-go keeps no code of an answer that is not a
// metav1.Status.
var refusal = regexp.MustCompile(`bad handshake \(4\d\d |error dialing backend: dial tcp `)

// notReached reports whether there was never a connection. Where one was made and
// no answer came, nobody knows what the other side did.
func notReached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// read takes messages until the node tells how the command ended, and gives what
// it said of that. It holds no more of a message than it keeps.
func read(conn *websocket.Conn, result *Result) (status []byte, err error) {
	most := min(result.Keep, MostOutput)
	stdout, stderr, said := kept{most: most}, kept{most: most}, kept{most: mostStatus}
	defer func() {
		result.Stdout, result.Stderr, result.Cut = string(stdout.text), string(stderr.text), stdout.cut
	}()
	buffer := make([]byte, 4<<10)
	for left := int64(mostRead); left > 0; left-- { // an empty message counts too
		_, message, err := conn.NextReader()
		if err != nil {
			return nil, err
		}
		to := io.Discard
		switch _, err = io.ReadFull(message, buffer[:1]); {
		case errors.Is(err, io.EOF):
			continue
		case err != nil:
			return nil, err
		case buffer[0] == channelStdout:
			to = &stdout
		case buffer[0] == channelStderr:
			to = &stderr
		case buffer[0] == channelStatus:
			to = &said
		}
		n, err := io.CopyBuffer(to, io.LimitReader(message, left), buffer)
		if err != nil {
			return nil, err
		}
		if left -= n; len(said.text) > 0 {
			return said.text, nil
		}
	}
	return nil, fmt.Errorf("it printed more than %d MiB", mostRead>>20)
}

// kept is the beginning of what was written to it, after blanks.
type kept struct {
	most int
	text []byte
	cut  bool // more than blanks came after that
}

// Write keeps what has room, and takes all.
func (k *kept) Write(more []byte) (int, error) {
	text := more
	if len(k.text) == 0 {
		text = bytes.TrimLeft(text, blanks)
	}
	room := min(len(text), k.most-len(k.text))
	k.text = append(k.text, text[:room]...)
	k.cut = k.cut || len(bytes.TrimLeft(text[room:], blanks)) > 0
	return len(more), nil
}

const blanks = " \t\r\n"

// conclude reads the metav1.Status that ends a stream.
func (r *Result) conclude(text []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("reading how it ended: %w", err)
	}
	if status.Status == metav1.StatusSuccess {
		r.Outcome, r.Code = Succeeded, 0
		return nil
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			code, err := strconv.Atoi(cause.Message)
			if cause.Type == remotecommand.ExitCodeCauseType && err == nil && code != 0 {
				r.Outcome, r.Code = Failed, code
				return nil
			}
		}
	}
	if notStarted.MatchString(status.Message) && r.named(status.Message) {
		r.Outcome, r.Code, r.Stderr = Failed, cannotStart, status.Message[:min(len(status.Message), r.Keep)]
		return nil
	}
	return errors.New(status.Message)
}

// A program that is not in the image, or cannot be executed, gets no exit code
// from containerd: the node says it in words, which are runc's or crun's. It gets the
// code that shells use. CRI-O tells an exit code itself. A node that is short of
// processes or memory has other words, which say nothing of the program.
var notStarted = regexp.MustCompile(`unable to start container process: .*(no such file or directory|executable file not found in \$PATH|permission denied|exec format error|is a directory)` +
	"|OCI runtime exec failed: executable file `.*` not found")

// named reports whether a runtime's words are of this command's program. All commands in a
// container share the file that containerd reads such words from: they may be those of an
// earlier one, and this one may have run.
func (r *Result) named(words string) bool {
	if len(r.Argv) == 0 {
		return false
	}
	program := r.Argv[0]
	return slices.ContainsFunc([]string{strconv.Quote(program) + ":", "`" + program + "`", "exec " + program + ":"},
		func(form string) bool { return strings.Contains(words, form) })
}

const cannotStart = 127

// MostDial is how much later than it may begin a command may reach its node at the
// latest. Who decides may rely on it.
const MostDial = 7 * time.Second

// dial opens the connection on which the command runs.
func (e *Executor) dial(ctx context.Context, c Command) (*websocket.Conn, error) {
	if !c.Decided.IsZero() { // admission may hold it back for half a minute
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.Decided.Add(c.within()+MostDial))
		defer cancel()
	}
	url := e.core.Get().Resource("pods").Namespace(c.Pod.Namespace).Name(c.Pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: c.Container, Command: c.Argv, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url.String(), nil)
	if err != nil {
		return nil, err
	}
	tripper, holder, err := transport.RoundTripperFor(e.config)
	if err != nil {
		return nil, err
	}
	return transport.Negotiate(tripper, holder, request, remotecommand.StreamProtocolV5Name, remotecommand.StreamProtocolV4Name)
}

// keepAsking pings the other side, and lets reads fail when it does not answer.
func keepAsking(conn *websocket.Conn) (stop func()) {
	alive := func(string) error { return conn.SetReadDeadline(time.Now().Add(silence)) }
	conn.SetPongHandler(alive)
	_ = alive("")
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(pings)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_ = conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pings))
			}
		}
	}()
	return func() { close(done) }
}
