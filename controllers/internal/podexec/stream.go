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

// client-go's remotecommand reports success if a stream was closed before the node reported the exit
// code: an error stream without a message is no error (tools/remotecommand/v2.go). That would be a
// status of 0 that was never reported, so this file reads the frames itself.

// The channels of exec over WebSocket. The channel is the first byte of each message
// (k8s.io/kubelet/pkg/cri/streaming/remotecommand/websocket.go).
const (
	channelStdout = 1
	channelStderr = 2
	channelStatus = 3
)

const (
	// maxRead is the max number of bytes to read from a command. maxStatus is the max size of the
	// node's status message.
	maxRead, maxStatus = 16 << 20, 64 << 10
	// silence is how long a connection may leave pings unanswered, and pings is the interval of pings.
	silence, pings = 30 * time.Second, 10 * time.Second
)

// stream sends the command and reads its output into result.
func (e *Executor) stream(ctx context.Context, result *Result) {
	conn, err := e.dial(ctx, result.Command)
	if err != nil {
		result.Refused = refused(err)
		result.Sent = !result.Refused && !notReached(err)
		result.Why = "the API server rejected it: " + err.Error()
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
		result.Why = "the stream ended before the node reported the exit code: " + err.Error()
		if ctx.Err() != nil {
			result.Why = fmt.Sprintf("it did not end within %s", result.Timeout)
		}
	}
}

// refused reports whether the command was rejected before it reached the node: the API server returned
// a 4xx code or could not connect to the node. Other codes are ambiguous: the API server may have
// forwarded the command and then lost the node, or a load balancer may have lost the API server.
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

// refusal matches the text of such an error. client-go does not keep the code of a response that is not
// a metav1.Status.
var refusal = regexp.MustCompile(`bad handshake \(4\d\d |error dialing backend: dial tcp `)

// notReached reports whether no connection was established. If there was a connection but no response,
// it is unknown whether the command began.
func notReached(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// read reads messages until the node reports how the command ended, and returns that status. It never
// buffers more of a message than it keeps.
func read(conn *websocket.Conn, result *Result) (status []byte, err error) {
	most := min(result.Keep, MaxOutput)
	stdout, stderr, said := kept{most: most}, kept{most: most}, kept{most: maxStatus}
	defer func() {
		result.Stdout, result.Stderr, result.Cut = string(stdout.text), string(stderr.text), stdout.cut
	}()
	buffer := make([]byte, 4<<10)
	for left := int64(maxRead); left > 0; left-- { // an empty message counts too
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
	return nil, fmt.Errorf("it printed more than %d MiB", maxRead>>20)
}

// kept is a writer that keeps the beginning of the text, without leading whitespace.
type kept struct {
	most int
	text []byte
	cut  bool // more than whitespace followed
}

// Write keeps as much as fits, and never fails.
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

// conclude parses the metav1.Status that ends a stream.
func (r *Result) conclude(text []byte) error {
	var status metav1.Status
	if err := json.Unmarshal(text, &status); err != nil {
		return fmt.Errorf("read the exit status: %w", err)
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

// If a program is missing in the image or cannot be executed, containerd reports no exit code. The node
// then reports the error message of runc or crun. Such a command gets the exit code that shells use.
// CRI-O reports an exit code itself. A node that is short of processes or memory returns other
// messages, which are not about the program.
var notStarted = regexp.MustCompile(`unable to start container process: .*(no such file or directory|executable file not found in \$PATH|permission denied|exec format error|is a directory)` +
	"|OCI runtime exec failed: executable file `.*` not found")

// named reports whether a message of the runtime is about this command's program. All commands in a
// container share the file from which containerd reads such messages. So the message may be from an
// earlier command, and this one may have run.
func (r *Result) named(words string) bool {
	if len(r.Argv) == 0 {
		return false
	}
	program := r.Argv[0]
	return slices.ContainsFunc([]string{strconv.Quote(program) + ":", "`" + program + "`", "exec " + program + ":"},
		func(form string) bool { return strings.Contains(words, form) })
}

const cannotStart = 127

// MaxDial is the max delay between the latest time at which a command may begin and its arrival at the
// node. Callers can rely on it.
const MaxDial = 7 * time.Second

// dial opens the connection for the command.
func (e *Executor) dial(ctx context.Context, c Command) (*websocket.Conn, error) {
	if !c.Decided.IsZero() { // admission can take half a minute
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, c.Decided.Add(c.within()+MaxDial))
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

// keepAsking sends pings, and makes reads fail if there is no response.
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
