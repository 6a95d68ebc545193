package podexec

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/stateful-operator/stateful-operator/controllers/internal/leadership"
)

// node returns an Executor for a fake API server and kubelet. say handles a connection for a command.
func node(t *testing.T, say func(*websocket.Conn)) (*Executor, client.Client, *[]string) {
	t.Helper()
	var asked []string
	upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query()["command"]
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		say(conn)
	}))
	t.Cleanup(server.Close)
	c := fake.NewClientBuilder().WithObjects(running("uid", "containerd://1")).Build()
	e, err := NewExecutor(&rest.Config{Host: server.URL}, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, c, &asked
}

func running(uid, container string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: types.UID(uid)},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "db", ContainerID: container, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

func command(argv ...string) Command {
	return Command{Name: "status", Pod: types.NamespacedName{Namespace: "ns", Name: "a"}, UID: "uid",
		Container: "db", ContainerID: "containerd://1", Argv: argv, Timeout: time.Minute, Keep: MaxOutput}
}

func say(t *testing.T, conn *websocket.Conn, channel byte, text string) {
	if err := conn.WriteMessage(websocket.BinaryMessage, append([]byte{channel}, text...)); err != nil {
		t.Log(err)
	}
}

const (
	success = `{"status":"Success"}`
	code7   = `{"status":"Failure","reason":"NonZeroExitCode","message":"command terminated with non-zero exit code","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`
	broken  = `{"status":"Failure","reason":"InternalError","message":"error sending request: dial tcp: no route to host"}`
	missing = `{"status":"Failure","reason":"InternalError","message":"error executing command in container: OCI runtime exec failed: exec failed: unable to start container process: exec: \"/check\": stat /check: no such file or directory"}`
)

func TestAProgramThatCannotBeStartedEndsWith127(t *testing.T) {
	for _, said := range []string{
		"exec failed: unable to start container process: exec: \"check\": executable file not found in $PATH",
		"exec failed: unable to start container process: exec: \"check\": permission denied",
		"exec failed: unable to start container process: exec check: exec format error",
		"executable file `check` not found in $PATH: No such file or directory", // crun 1.8.1
	} {
		t.Run(said, func(t *testing.T) {
			status := metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError,
				Message: "error executing command in container: failed to exec in container: failed to start exec \"3c8b\": OCI runtime exec failed: " + said}
			text, err := json.Marshal(status)
			if err != nil {
				t.Fatal(err)
			}
			e, _, _ := node(t, func(c *websocket.Conn) { say(t, c, 3, string(text)) })
			if line := tell(e.Run(context.Background(), command("check"))); !strings.HasPrefix(line, "failed 127 ") {
				t.Error(line)
			}
			if line := tell(e.Run(context.Background(), command("promote"))); !strings.HasPrefix(line, "unknown: ") {
				t.Errorf("the result of another program was used: %s", line)
			}
		})
	}
}

func TestEveryEndOfACommand(t *testing.T) {
	closed := func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	}
	for _, r := range []struct {
		name string
		say  func(*websocket.Conn)
		want string
	}{
		{"the node reports exit code 0", func(c *websocket.Conn) { say(t, c, 1, "5"); say(t, c, 3, success) }, `succeeded 0 out "5" err ""`},
		{"the node reports exit code 7", func(c *websocket.Conn) { say(t, c, 2, "idle"); say(t, c, 3, code7) }, `failed 7 out "" err "idle"`},
		{"an error of the node is not an exit code", func(c *websocket.Conn) { say(t, c, 3, broken) }, "unknown: the stream ended before the node reported the exit code: error sending request: dial tcp: no route to host"},
		{"a missing program", func(c *websocket.Conn) { say(t, c, 3, missing) }, `failed 127 out "" err "error executing command in container: OCI runtime exec failed: exec failed: unable to start container process: exec: \"/check\": stat /check: no such file or directory"`},
		{"a stream that is closed normally before the exit code", func(c *websocket.Conn) { say(t, c, 1, "5"); closed(c) }, "unknown: the stream ended before the node reported the exit code: websocket: close 1000 (normal)"},
		{"an error stream without a message", func(c *websocket.Conn) { say(t, c, 3, ""); closed(c) }, "unknown: the stream ended before the node reported the exit code: websocket: close 1000 (normal)"},
		{"a truncated error stream", func(c *websocket.Conn) { c.NetConn().Close() }, "unknown: the stream ended before the node reported the exit code: "},
		{"an invalid error stream", func(c *websocket.Conn) { say(t, c, 3, "{") }, "unknown: the stream ended before the node reported the exit code: read the exit status: "},
		{"a program with unlimited output", func(c *websocket.Conn) {
			for range 1000 {
				if c.WriteMessage(websocket.BinaryMessage, []byte("\x01"+strings.Repeat("y", 32<<10))) != nil {
					return
				}
			}
		}, "unknown: the stream ended before the node reported the exit code: it printed more than 16 MiB"},
	} {
		t.Run(r.name, func(t *testing.T) {
			e, _, _ := node(t, r.say)
			got := e.Run(context.Background(), command("/check"))
			if !got.Sent {
				t.Error("the command was not sent")
			}
			if len(got.Stdout) > MaxOutput {
				t.Errorf("%d bytes of output were kept", len(got.Stdout))
			}
			if line := tell(got); !strings.HasPrefix(line, r.want) {
				t.Errorf("%s, want %s", line, r.want)
			}
		})
	}
}

func tell(r Result) string {
	if r.Outcome == Unknown {
		return "unknown: " + r.Why
	}
	return fmt.Sprintf("%s %d out %q err %q", r.Outcome, r.Code, r.Stdout, r.Stderr)
}

func TestTheArgumentsArriveAsTheyAre(t *testing.T) {
	e, _, asked := node(t, func(c *websocket.Conn) { say(t, c, 3, success) })
	argv := []string{"/check", "", "$(id)", "a b;c", "--"}
	e.Run(context.Background(), command(argv...))
	if !slices.Equal(*asked, argv) {
		t.Errorf("received %q", *asked)
	}
}

func TestATimeoutLetsTheCommandGo(t *testing.T) {
	left := make(chan struct{}, 1)
	e, _, _ := node(t, func(c *websocket.Conn) {
		_, _, _ = c.ReadMessage()
		select {
		case left <- struct{}{}:
		default:
		}
	})
	c := command("/hang")
	for c.Timeout = 10 * time.Millisecond; ; c.Timeout *= 2 {
		got := e.Run(context.Background(), c)
		if got.Outcome != Unknown {
			t.Fatal(tell(got))
		}
		if !strings.HasPrefix(got.Why, "it did not end within") { // a slow machine may not get that far in time
			continue
		}
		if want := fmt.Sprintf("unknown: it did not end within %s", c.Timeout); tell(got) != want {
			t.Errorf("%s, want %s", tell(got), want)
		}
		break
	}
	<-left
}

func TestAnotherContainerIsNotAsked(t *testing.T) {
	for name, change := range map[string]func(*Command){
		"the pod was replaced by another one of the same name": func(c *Command) { c.UID = "other" },
		"the container is no longer running":                   func(c *Command) { c.ContainerID = "containerd://0" },
		`cannot read the pod: pods "b" not f`:                  func(c *Command) { c.Pod.Name = "b" },
		"not sent within 5s of the decision":                   func(c *Command) { c.Decided = time.Now().Add(-6 * time.Second) },
		"not sent within 9s of the decision":                   func(c *Command) { c.Decided, c.Within = time.Now().Add(-10*time.Second), 9*time.Second },
	} {
		e, _, asked := node(t, func(c *websocket.Conn) { say(t, c, 3, success) })
		c := command("/check")
		change(&c)
		got := e.Run(context.Background(), c)
		if !strings.HasPrefix(got.Why, name) || got.Outcome != Unknown || got.Sent || *asked != nil {
			t.Errorf("%s, sent %t, sent command %q; want %s", tell(got), got.Sent, *asked, name)
		}
	}
}

// V15: if the API server is slow, the caller can allow a command more time.
func TestV15ACommandMayBeGivenLonger(t *testing.T) {
	e, _, asked := node(t, func(c *websocket.Conn) { say(t, c, 3, success) })
	c := command("/check")
	c.Decided, c.Within = time.Now().Add(-6*time.Second), MaxHurry
	if got := e.Run(context.Background(), c); got.Outcome != Succeeded || *asked == nil {
		t.Errorf("%s, want the command sent", tell(got))
	}
}

func TestAnAnswerFromAReplacedPodIsNone(t *testing.T) {
	var pods client.Client
	e, pods, _ := node(t, func(c *websocket.Conn) {
		ctx := context.Background()
		if err := pods.Delete(ctx, running("uid", "")); err != nil {
			t.Error(err)
		}
		if err := pods.Create(ctx, running("new", "containerd://2")); err != nil {
			t.Error(err)
		}
		say(t, c, 3, success)
	})
	if got := tell(e.Run(context.Background(), command("/check"))); got != "unknown: the pod was replaced by another one of the same name" {
		t.Error(got)
	}
}

func TestV2WhoDoesNotLeadSendsNothing(t *testing.T) {
	e, _, asked := node(t, func(c *websocket.Conn) { say(t, c, 3, success) })
	lease, err := leadership.New(&rest.Config{}, "operators", "stateful-operator", resourcelock.ResourceLockConfig{Identity: "me"}, leadership.Timing{RenewDeadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	e.lease = lease
	got := e.Run(context.Background(), command("/start"))
	if *asked != nil || got.Sent || got.Outcome != Unknown || got.Why != lease.Check().Error() {
		t.Errorf("sent %q: %s", *asked, tell(got))
	}
}

func TestARefusalBeganNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	c := fake.NewClientBuilder().WithObjects(running("uid", "containerd://1")).Build()
	e, err := NewExecutor(&rest.Config{Host: server.URL}, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"refused", "down"} {
		if got := e.Run(context.Background(), command("/check")); got.Sent || got.Outcome != Unknown || got.Refused != (state == "refused") {
			t.Errorf("%s: %s, sent %t, refused %t", state, tell(got), got.Sent, got.Refused)
		}
		server.Close()
	}
}
